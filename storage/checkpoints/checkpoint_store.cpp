#include "storage/checkpoints/checkpoint_store.hpp"

#include "model/checkpoint_place.hpp"
#include "storage/checkpoints/folder_store.hpp"

namespace troupe::storage {

result<std::shared_ptr<checkpoint_store>> open_checkpoint_store(const std::string& store) {
  const auto name = parse_store(store);
  if (!name)
    return name.error();
  if (name->kind != "directory" && name->kind != "shared_fs")
    return error{errc::unsupported, "this build keeps no checkpoints in '" + name->kind + "'"};
  if (!name->place.starts_with('/'))
    return error{errc::invalid,
                 "the folder of a checkpoint store is absolute, not '" + name->place.substr(0, 200) + "'"};
  return std::shared_ptr<checkpoint_store>(std::make_shared<folder_store>(name->place));
}

} // namespace troupe::storage

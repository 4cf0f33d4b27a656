#include "storage/checkpoints/checkpoint_store.hpp"

#include "storage/checkpoints/folders.hpp"

namespace troupe::storage {

result<std::shared_ptr<checkpoint_store>> open_checkpoint_store(const std::string& store) {
  const auto colon = store.find(':');
  if (colon == store.npos || colon + 1 == store.size())
    return error{errc::invalid,
                 "a checkpoint store is written KIND:PLACE, not '" + store.substr(0, 200) + "'"};
  const auto kind = store.substr(0, colon), where = store.substr(colon + 1);
  if (kind != "directory" && kind != "shared_fs")
    return error{errc::unsupported, "this build keeps no checkpoints in '" + kind + "'"};
  if (!where.starts_with('/'))
    return error{errc::invalid,
                 "the folder of a checkpoint store is absolute, not '" + where.substr(0, 200) + "'"};
  if (kind == "directory")
    return std::shared_ptr<checkpoint_store>(std::make_shared<directory_store>(where));
  return std::shared_ptr<checkpoint_store>(std::make_shared<shared_fs_store>(where));
}

checkpoint_place place_of(const checkpoint& saved) {
  if (!saved.place.store.empty())
    return saved.place;
  const auto end = "/" + saved.uuid;
  if (saved.uuid.empty() || !saved.path.starts_with('/') || !saved.path.ends_with(end) || saved.path == end)
    return {};
  return {"directory:" + saved.path.substr(0, saved.path.size() - end.size()), saved.uuid};
}

std::optional<std::filesystem::path> folder_of(const checkpoint& saved) {
  const auto place = place_of(saved);
  auto store = open_checkpoint_store(place.store);
  return store ? (*store)->folder(place.key) : std::nullopt;
}

} // namespace troupe::storage

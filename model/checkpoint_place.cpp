#include "model/checkpoint_place.hpp"

namespace troupe {

result<store_name> parse_store(const std::string& store) {
  const auto colon = store.find(':');
  if (colon == store.npos || colon == 0 || colon + 1 == store.size())
    return error{errc::invalid,
                 "a checkpoint store is written KIND:PLACE, not '" + store.substr(0, 200) + "'"};
  return store_name{store.substr(0, colon), store.substr(colon + 1)};
}

std::string folder_of_store(const std::string& store) {
  const auto name = parse_store(store);
  const bool folder = name && (name->kind == "directory" || name->kind == "shared_fs");
  return folder && name->place.starts_with('/') ? name->place : "";
}

bool is_checkpoint_key(const std::string& key) {
  return !key.empty() && key.size() <= 64 &&
         key.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == key.npos;
}

std::string folder_of(const checkpoint_place& place) {
  const auto folder = folder_of_store(place.store);
  return folder.empty() || !is_checkpoint_key(place.key) ? "" : folder + "/" + place.key;
}

checkpoint_place place_of(const checkpoint& saved) {
  if (!saved.place.store.empty())
    return saved.place;
  const auto end = "/" + saved.uuid;
  if (!is_checkpoint_key(saved.uuid) || !saved.path.starts_with('/') || !saved.path.ends_with(end) ||
      saved.path == end)
    return {};
  return {"directory:" + saved.path.substr(0, saved.path.size() - end.size()), saved.uuid};
}

std::string folder_of(const checkpoint& saved) { return folder_of(place_of(saved)); }

std::string address_in_bucket(const value& storage, const std::string& key) {
  const auto text = [&](const char* name) {
    const auto found = storage.is_object() ? storage.value(name, value()) : value();
    return found.is_string() ? found.get<std::string>() : std::string();
  };
  const auto type = text("type");
  if (type == "azure")
    return "azure://" + text("container") + "/" + key;
  if (type != "s3" && type != "gcs")
    return "";
  // Determined's client writes a prefix `/a//b/` as `a/b`.
  std::string folder;
  for (auto rest = text("prefix"); !rest.empty();) {
    const auto part = rest.substr(0, rest.find('/'));
    rest.erase(0, part.size() + 1);
    if (!part.empty() && part != ".")
      folder += part + "/";
  }
  return (type == "s3" ? "s3://" : "gs://") + text("bucket") + "/" + folder + key;
}

} // namespace troupe

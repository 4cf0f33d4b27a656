#pragma once
// Where checkpoints lie, one interface for folders of the hosts and for buckets. Each checkpoint is a tree of
// files under its key, which is its uuid.
//
// A store is written KIND:PLACE in facts (model/checkpoint_place.hpp): "directory:/mnt/ck",
// "shared_fs:/mnt/ck". Secrets are never part of it.

#include "model/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::storage {

/// Thread-safe. Calls block for as long as the disk or the network takes.
class checkpoint_store {
public:
  virtual ~checkpoint_store() = default;

  /// Copies the files of the folder `from`, whole or not at all; replaces what has this key. Symbolic links
  /// are left out. errc::not_found where there is no such folder; errc::no_space, errc::io.
  virtual result<void> put(const std::string& key, const std::filesystem::path& from) = 0;
  /// Copies them into `to`, a folder that does not exist yet. errc::not_found.
  virtual result<void> get(const std::string& key, const std::filesystem::path& to) const = 0;
  /// Bytes by path. errc::not_found.
  virtual result<std::map<std::string, std::int64_t>> list(const std::string& key) const = 0;
  /// Whether anything has this key.
  virtual result<bool> has(const std::string& key) const = 0;
  /// What is not there is no fault. Counts the files that it removes in `files`, also where it fails.
  virtual result<void> erase(const std::string& key, std::size_t& files) = 0;
  /// Files of it alone, as `list` names them; folders that are empty then go too. What is not there is no
  /// fault.
  virtual result<void> erase_files(const std::string& key, const std::vector<std::string>& paths) = 0;
  /// Whether files can be kept here now: errc::io or errc::denied with what is wrong.
  virtual result<void> probe() = 0;
};

/// errc::invalid where `store` is not KIND:PLACE; errc::unsupported where this build has no such kind.
result<std::shared_ptr<checkpoint_store>> open_checkpoint_store(const std::string& store);

} // namespace troupe::storage

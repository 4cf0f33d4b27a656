#pragma once
// The interface of the places where checkpoints lie: folders of hosts, and buckets. Each checkpoint is a tree
// of files under its key, which is its uuid.
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

  /// Copies the files of the folder `from`, whole or not at all, and replaces a checkpoint that has this key.
  /// Symbolic links are left out. Fails with errc::not_found where there is no such folder, errc::no_space or
  /// errc::io.
  virtual result<void> put(const std::string& key, const std::filesystem::path& from) = 0;
  /// Copies the checkpoint's files into `to`, a folder that does not exist yet. Fails with errc::not_found.
  virtual result<void> get(const std::string& key, const std::filesystem::path& to) const = 0;
  /// Returns the size in bytes of each file, by path, and 0 for each folder, whose path ends with '/'. Fails
  /// with errc::not_found where there is no such checkpoint.
  virtual result<std::map<std::string, std::int64_t>> list(const std::string& key) const = 0;
  /// Whether the store holds anything under this key.
  virtual result<bool> has(const std::string& key) const = 0;
  /// Removes the checkpoint; a missing one is not an error. Adds the number of removed files to `files`, also
  /// where it fails.
  virtual result<void> erase(const std::string& key, std::size_t& files) = 0;
  /// Removes only these files and folders of the checkpoint, named as by `list`. A folder that is not empty
  /// then stays. What is missing is not an error, be it the whole checkpoint.
  virtual result<void> erase_files(const std::string& key, const std::vector<std::string>& paths) = 0;
  /// Checks that files can be kept here now. Fails with errc::io or errc::denied, and says what is wrong.
  virtual result<void> probe() = 0;
};

/// Fails with errc::invalid where `store` is not KIND:PLACE, with errc::unsupported where this build lacks
/// the kind.
result<std::shared_ptr<checkpoint_store>> open_checkpoint_store(const std::string& store);

} // namespace troupe::storage

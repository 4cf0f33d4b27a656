#pragma once
// Checkpoints in a folder that the hosts see.

#include "storage/checkpoints/checkpoint_store.hpp"

namespace troupe::storage {

/// A folder of the host's own: made where it is missing.
class directory_store : public checkpoint_store {
public:
  explicit directory_store(std::filesystem::path root) : root_(std::move(root)) {}

  result<void> put(const std::string& key, const std::filesystem::path& from) override;
  result<void> get(const std::string& key, const std::filesystem::path& to) const override;
  result<std::map<std::string, std::int64_t>> list(const std::string& key) const override;
  result<void> erase(const std::string& key) override;
  result<void> probe() override;
  std::optional<std::filesystem::path> folder(const std::string& key) const override;

protected:
  virtual result<void> make_root() const;
  const std::filesystem::path root_;
};

/// A folder of a file system that several hosts mount: it is never made, since what is missing is the mount,
/// and the local disk below it would take the files.
class shared_fs_store final : public directory_store {
public:
  using directory_store::directory_store;

protected:
  result<void> make_root() const override;
};

} // namespace troupe::storage

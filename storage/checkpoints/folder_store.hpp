#pragma once
// Checkpoints in a folder of the host ("directory"), or of a file system that several hosts mount
// ("shared_fs").

#include "storage/checkpoints/checkpoint_store.hpp"

namespace troupe::storage {

/// Makes the folder where it is missing.
class folder_store final : public checkpoint_store {
public:
  explicit folder_store(std::filesystem::path root) : root_(std::move(root)) {}

  result<void> put(const std::string& key, const std::filesystem::path& from) override;
  result<void> get(const std::string& key, const std::filesystem::path& to) const override;
  result<std::map<std::string, std::int64_t>> list(const std::string& key) const override;
  result<bool> has(const std::string& key) const override;
  result<void> erase(const std::string& key, std::size_t& files) override;
  result<void> erase_files(const std::string& key, const std::vector<std::string>& paths) override;
  result<void> probe() override;

private:
  result<void> make_root() const;
  const std::filesystem::path root_;
};

} // namespace troupe::storage

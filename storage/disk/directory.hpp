#pragma once
// The folder of a store: its owner's lock, its free space, its ballast and its blobs.
//
//   DIR/journal.lock   locked (flock) by the owner; holds its process id
//   DIR/ballast        blocks that are given up to open a full store
//   DIR/next-log       blocks that the next write-ahead log will take
//   DIR/db/            RocksDB
//   DIR/blobs/NAME     one file each; *.tmp are unfinished and removed when the folder is opened

#include "model/result.hpp"
#include "storage/disk/space_gate.hpp"

#include <filesystem>
#include <memory>

namespace troupe::storage {

/// Free and total bytes of the file system that holds `directory`; zeros where they cannot be read.
free_space space_of(const std::filesystem::path& directory);

class owned_directory {
public:
  /// Makes and locks the folder. Fails with errc::conflict where another process holds it, errc::io where it
  /// cannot be written, errc::no_space where not even its names have room; each error says what to do.
  static result<std::unique_ptr<owned_directory>> open(const std::filesystem::path& at);
  ~owned_directory(); ///< unlocks
  owned_directory(const owned_directory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path database() const { return path_ / "db"; }

  bool has_ballast(std::uint64_t bytes) const;
  void drop_ballast() const;
  void make_ballast(std::uint64_t bytes) const; ///< makes none where the disk lacks room

  /// The blob is durable when this returns.
  result<void> put_blob(std::string_view name, std::string_view bytes) const;
  result<std::string> blob(std::string_view name) const;

private:
  owned_directory(std::filesystem::path at, int lock) : path_(std::move(at)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_;
};

} // namespace troupe::storage

#pragma once
// The places where a contract test runs: a kind of store, and the way in which it crashes.

#include "storage/disk/disk_store.hpp"
#include "storage/stored_journal.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>

namespace troupe::storage {

/// An empty folder that is deleted together with this object.
class scratch {
public:
  scratch() {
    auto name = (std::filesystem::temp_directory_path() / "troupe-storage-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~scratch() {
    std::error_code fault;
    std::filesystem::remove_all(path_, fault);
  }
  scratch(const scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

/// One kind of store with its data. `crash` forgets what was only queued; `store` holds what survived.
struct world {
  virtual ~world() = default;
  std::shared_ptr<struct store> store;
  std::unique_ptr<journal> j;
  journal_options options;

  void reopen() { // closes in an orderly way and opens again
    close();
    open();
  }
  void crash() {
    lose();
    open();
  }
  void open() {
    auto made = make_journal(attach(), options);
    ASSERT_TRUE(made) << made.error().what;
    j = std::move(*made);
  }
  virtual std::shared_ptr<storage::store> attach() = 0;

protected:
  virtual void close() = 0;
  virtual void lose() = 0;
};

struct memory_world : world {
  memory_world() { options.directory = "memory"; }
  std::shared_ptr<storage::store> attach() override { return store = store ? store : make_memory_store(); }
  void close() override { j.reset(); }
  void lose() override { j.reset(); }
};

/// A store on disk. A crash copies the files below the open database, as a killed process leaves them, and
/// opens the copy.
struct disk_world : world {
  disk_world() : at(std::make_unique<scratch>()) { options.directory = at->path(); }
  ~disk_world() override { close(); }
  std::shared_ptr<storage::store> attach() override {
    auto opened = open_disk_store(options);
    EXPECT_TRUE(opened) << opened.error().what;
    return store = std::move(*opened);
  }
  void close() override { j.reset(), store.reset(); }
  void lose() override {
    auto copy = std::make_unique<scratch>();
    std::filesystem::copy(at->path(), copy->path(), std::filesystem::copy_options::recursive);
    close();
    at = std::move(copy);
    options.directory = at->path();
  }
  std::unique_ptr<scratch> at;
};

/// Every key of one family, with its data.
inline std::map<std::string, std::string> dump(const struct store& of, family where) {
  std::map<std::string, std::string> all;
  auto now = of.look();
  for (auto at = now->scan(where, std::string(1, '\0'), std::string(1, '\x7f')); at->valid(); at->next())
    all.emplace(at->key(), at->data());
  return all;
}

} // namespace troupe::storage

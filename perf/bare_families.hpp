#pragma once
// The floor of a start: the column families of a data directory, opened with RocksDB's defaults.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <rocksdb/db.h>

class bare_families {
public:
  /// Ends the program, with the reason, where they cannot be opened.
  explicit bare_families(const char* directory) {
    rocksdb::DBOptions options;
    options.create_if_missing = options.create_missing_column_families = true;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const char* name : {"default", "rows", "series", "logs"})
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    if (auto opened = rocksdb::DB::Open(options, directory, families, &handles_, &db_); !opened.ok()) {
      std::fprintf(stderr, "%s: %s\n", directory, opened.ToString().c_str());
      std::exit(1);
    }
  }
  ~bare_families() {
    for (auto* handle : handles_)
      db_->DestroyColumnFamilyHandle(handle);
    delete db_;
  }
  bare_families(const bare_families&) = delete;
  bare_families& operator=(const bare_families&) = delete;

private:
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  rocksdb::DB* db_ = nullptr;
};

// The floor: a host linked to RocksDB and CAF that opens the column families of a data directory as RocksDB gives them, and holds an
// actor system with nothing in it. Usage: perf_embed_bare DIRECTORY

#include "measure.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <rocksdb/db.h>

int main(int argc, char** argv) {
  if (argc != 2)
    return std::fprintf(stderr, "usage: perf_embed_bare DIRECTORY\n"), 2;
  const auto begin = std::chrono::steady_clock::now();
  rocksdb::DBOptions options;
  options.create_if_missing = options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : {"default", "rows", "series", "logs"})
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  if (auto opened = rocksdb::DB::Open(options, argv[1], families, &handles, &db); !opened.ok())
    return std::fprintf(stderr, "perf_embed_bare: %s\n", opened.ToString().c_str()), 1;
  const auto opened = ms_since(begin);
  caf::actor_system_config config;
  config.set("scheduler.max-threads", std::size_t{4});
  caf::actor_system system(config);
  print(opened);
  for (auto* handle : handles)
    db->DestroyColumnFamilyHandle(handle);
  delete db;
}

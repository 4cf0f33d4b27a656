// The floor: a host linked to RocksDB and CAF that opens the column families of a data directory with
// RocksDB's defaults, and holds an empty actor system. Usage: perf_embed_bare DIRECTORY

#include "measure.hpp"
#include "perf/bare_families.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

int main(int argc, char** argv) {
  if (argc != 2)
    return std::fprintf(stderr, "usage: perf_embed_bare DIRECTORY\n"), 2;
  const auto begin = std::chrono::steady_clock::now();
  const bare_families families(argv[1]);
  const auto opened = ms_since(begin);
  caf::actor_system_config config;
  config.set("scheduler.max-threads", std::size_t{4});
  caf::actor_system system(config);
  print(opened);
}

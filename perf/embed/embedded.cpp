// A host that opens a node: how long that takes, and the memory of the process afterwards. Usage:
// perf_embed_node DATA_DIR

#include "measure.hpp"
#include "troupe/embed.hpp"

int main(int argc, char** argv) {
  if (argc != 2)
    return std::fprintf(stderr, "usage: perf_embed_node DATA_DIR\n"), 2;
  const auto begin = std::chrono::steady_clock::now();
  auto node = troupe::node::open({.data_dir = argv[1], .cpu_slots = 2});
  if (!node)
    return node.error().print(stderr);
  const auto opened = ms_since(begin);
  if (auto ready = node->ready(std::chrono::seconds(60)); !ready)
    return ready.error().print(stderr);
  std::fprintf(stderr, "open %.2f ms\n", opened);
  print(ms_since(begin));
}

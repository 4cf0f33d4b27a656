#include "workers/collectives/operation_mark.hpp"

#include <algorithm>

namespace troupe {

std::string show(const operation_mark& x) {
  std::string text = name(x.what);
  if (x.what == operation_kind::barrier)
    return text;
  text += " of " + std::to_string(x.bytes) + " bytes of " + name(x.type);
  if (x.buffers > 1)
    text += " in " + std::to_string(x.buffers) + " buffers";
  if (x.what == operation_kind::all_reduce || x.what == operation_kind::reduce_scatter)
    text += std::string(", ") + name(x.how);
  if (x.what == operation_kind::broadcast)
    text += " from rank " + std::to_string(x.root);
  return text;
}

result<std::string> name_of_inner_group(const std::string& parent, std::span<const int> ranks, int rank,
                                        int size, int repeat, const char* member) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const int r : ranks)
    hash = (hash ^ std::uint64_t(r + 1)) * 0x100000001b3;
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  if (!std::binary_search(sorted.begin(), sorted.end(), rank) || sorted.front() < 0 ||
      sorted.back() >= size || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return error{errc::invalid,
                 std::string("collective ") + member +
                   ": the ranks of a group are different ranks of its parent, and the caller is one of them"};
  return parent + "." + std::to_string(hash) + "-" + std::to_string(repeat);
}

} // namespace troupe

#include "runtime/cli/verbs.hpp"
#include "runtime/cli/rows.hpp"

namespace troupe::cli {

std::span<const verb_spec> all_verbs() {
  static const std::vector<verb_spec> all = [] {
    std::vector<verb_spec> laid;
    for (auto family : {rows::of_node, rows::of_experiments, rows::of_tasks, rows::of_places, rows::of_people,
                        rows::of_rules, rows::of_cluster}) {
      const auto some = family();
      laid.insert(laid.end(), some.begin(), some.end());
    }
    return laid;
  }();
  return all;
}

} // namespace troupe::cli

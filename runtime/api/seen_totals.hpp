#pragma once
// Totals of the work in a cluster, of the part that one viewer sees. Where roles decide, these take the place
// of the totals that the cluster counts over all work.

#include "runtime/api/route.hpp"

#include <map>
#include <optional>
#include <string>

namespace troupe::api {

struct seen_totals {
  struct of_pool {
    std::int64_t experiments = 0; ///< that have not ended
    std::int64_t waiting = 0;     ///< runs that wait for slots
  };
  std::int64_t experiments = 0; ///< that have not ended
  std::int64_t waiting = 0;     ///< runs that wait for slots
  std::map<std::string, of_pool> pools;
};

/// Whether the counts of the cluster tell the viewer of nothing that is hidden.
bool hides_nothing(const storage::reader& seen);
/// The number of experiments that `seen` shows and that have not ended.
result<std::int64_t> count_open(const storage::reader& seen);
/// The number of runs of a queue, as queue_list answers it, that wait for slots.
std::int64_t count_waiting(const value& queue);

/// Counts what the caller sees, and then calls `then`, with nothing where the counts of the cluster are right
/// for the caller. Answers `back` itself where it cannot count.
void with_seen_totals(const call_ptr& c, const reply& back,
                      std::function<void(std::optional<seen_totals>)> then);

/// Puts the totals into a pool of an answer, which has a `name`.
void put_totals(value& pool, const seen_totals& of);

} // namespace troupe::api

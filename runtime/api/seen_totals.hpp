#pragma once
// Totals of the work in a cluster, of the part that one viewer sees. Where roles decide, these take the place
// of the totals that the cluster counts over all work.

#include "storage/journal.hpp"

#include <map>
#include <string>

namespace troupe::api {

struct seen_totals {
  struct of_pool {
    std::int64_t experiments = 0; ///< that have not ended
    std::int64_t waiting = 0;     ///< runs without a place, also those that need no slots
  };
  std::int64_t experiments = 0; ///< that have not ended
  std::int64_t waiting = 0;     ///< runs that wait for slots
  std::map<std::string, of_pool> pools;
};

/// Counts what `seen` shows.
result<seen_totals> count_seen(const storage::reader& seen);

/// Puts the totals into a pool of an answer, which has a `name`.
void put_totals(value& pool, const seen_totals& of);
/// Puts the totals of what `seen` shows into an answer about the whole cluster.
result<void> put_totals_of_cluster(value& status, const storage::reader& seen);

} // namespace troupe::api

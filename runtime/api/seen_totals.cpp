#include "runtime/api/seen_totals.hpp"

#include "runtime/api/place_shapes.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/slot_usage.hpp"

namespace troupe::api {

result<seen_totals> count_seen(const storage::reader& seen) {
  auto standings = seen.experiment_standings();
  auto open = seen.open_tasks();
  auto usual = usual_pool(seen);
  if (!standings || !open || !usual)
    return !standings ? standings.error() : !open ? open.error() : usual.error();
  struct place {
    std::string pool;
    bool slots = true;
  };
  seen_totals out;
  std::map<experiment_id, place> places;
  for (const auto& one : *standings) {
    if (terminal(one.state) || one.unmanaged)
      continue;
    const auto row = seen.experiment(one.id);
    if (!row)
      continue; // it was deleted meanwhile
    const auto& in = places[one.id] = {pool_of(*row, *usual), slots_of(*row) > 0};
    ++out.experiments;
    ++out.pools[in.pool].experiments;
  }
  for (const auto& task : *open) {
    const auto runs = seen.runs(task.id);
    if (!runs || runs->empty() || runs->back().ended != time_point{} || !runs->back().on.empty())
      continue;
    place in;
    if (task.id.is_trial()) {
      const auto at = places.find(task.experiment);
      if (at == places.end())
        continue;
      in = at->second;
    } else {
      const auto row = seen.other_task(task.id);
      if (!row)
        continue;
      in.pool = row->made.pool;
      if (row->made.config.is_object())
        in.slots = row->made.config.value(value::json_pointer("/resources/slots"), value(1)) != 0;
    }
    out.waiting += in.slots;
    ++out.pools[in.pool].waiting;
  }
  return out;
}

void put_totals(value& pool, const seen_totals& of) {
  const auto at = of.pools.find(pool.value("name", std::string()));
  const auto here = at == of.pools.end() ? seen_totals::of_pool{} : at->second;
  pool["waiting"] = here.waiting;
  pool["experiments"] = here.experiments;
}

result<void> put_totals_of_cluster(value& status, const storage::reader& seen) {
  const auto totals = count_seen(seen);
  if (!totals)
    return totals.error();
  status["waiting"] = totals->waiting;
  status["experiments_active"] = totals->experiments;
  return {};
}

} // namespace troupe::api

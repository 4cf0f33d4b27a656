#include "runtime/api/seen_totals.hpp"

#include "model/commands/commands.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/slot_usage.hpp"
#include "runtime/api/veil.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

bool is_open(const auto& standing) { return !terminal(standing.state) && !standing.unmanaged; }

result<seen_totals> experiments_of(const storage::reader& seen) {
  const auto standings = seen.experiment_standings();
  const auto usual = usual_pool(seen);
  if (!standings || !usual)
    return !standings ? standings.error() : usual.error();
  seen_totals out;
  for (const auto& one : *standings)
    if (is_open(one))
      if (const auto row = seen.experiment(one.id)) { // else it was deleted meanwhile
        ++out.experiments;
        ++out.pools[pool_of(*row, *usual)].experiments;
      }
  return out;
}

} // namespace

bool hides_nothing(const storage::reader& seen) {
  const auto* by = dynamic_cast<const screen*>(&seen);
  return !by || by->shows_all();
}

result<std::int64_t> count_open(const storage::reader& seen) {
  const auto standings = seen.experiment_standings();
  if (!standings)
    return standings.error();
  return std::count_if(standings->begin(), standings->end(), [](const auto& one) { return is_open(one); });
}

std::int64_t count_waiting(const value& queue) {
  return std::count_if(queue.begin(), queue.end(),
                       [](const value& one) { return one.value("slots", 0) > 0; });
}

void with_seen_totals(const call_ptr& c, const reply& back,
                      std::function<void(std::optional<seen_totals>)> then) {
  if (!c->by.roles || hides_nothing(*c->parts->storage))
    return then({});
  auto totals = experiments_of(*c->parts->storage);
  if (!totals)
    return back(failure(totals.error()));
  c->parts->cluster.order(
    c->by.who, commands::queue_list{},
    [c, back, then = std::move(then), totals = std::move(*totals)](result<value> got) mutable {
      if (!got)
        return back(failure(got.error()));
      const auto waiting = got->value("waiting", value::array());
      totals.waiting = count_waiting(waiting);
      for (const auto& one : waiting)
        totals.pools[one.value("pool", std::string())].waiting += one.value("slots", 0) > 0;
      then(std::move(totals));
    });
}

void put_totals(value& pool, const seen_totals& of) {
  const auto at = of.pools.find(pool.value("name", std::string()));
  const auto here = at == of.pools.end() ? seen_totals::of_pool{} : at->second;
  pool["waiting"] = here.waiting;
  pool["experiments"] = here.experiments;
}

} // namespace troupe::api

#pragma once
// Has files removed from buckets by tasks on agents, and waits for the ends of these tasks. A part of the
// retention actor, which alone calls it.

#include "actors/retention/bucket_order.hpp"
#include "actors/retention/retention_actor.hpp"
#include "actors/shells/probed.hpp"

#include <functional>
#include <map>
#include <optional>

namespace troupe {

class bucket_removals {
public:
  using done_callback = std::function<void(const result<void>&)>;

  /// `peers` belongs to the retention actor and lives longer than this object. `arm` is called when
  /// `deadline` has changed.
  bucket_removals(actor_base<retention_actor>* self, const retention_peers& peers, std::function<void()> arm)
      : self_(self), peers_(peers), arm_(std::move(arm)) {}

  /// Creates the tasks of the order, one for each part of it; `then` is called when they are durable. A part
  /// for which a task is open already gets no second one.
  void order(bucket_order what, done_callback then);
  /// Creates one task, for the first part of the order; `then` hears how the task has ended, and `refused`
  /// why none could be created.
  void remove(bucket_order what, done_callback then, done_callback refused);

  std::optional<time_point> deadline() const { return look_at_; }
  void time_passed();

private:
  void begin(const bucket_order& what, std::function<void(result<task_id>)> then);
  std::optional<task_id> open_for(const bucket_order& what) const;

  actor_base<retention_actor>* self_;
  const retention_peers& peers_;
  std::function<void()> arm_;
  std::map<task_id, std::vector<done_callback>> waiting_;
  std::optional<time_point> look_at_;
};

} // namespace troupe

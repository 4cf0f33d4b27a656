#pragma once
// Asks pools and allocations why a trial is where it is. A part of the cluster actor, which alone calls it.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/explanations.hpp"
#include "actors/shells/probed.hpp"

namespace troupe {

class cluster_explain {
public:
  using done_callback = std::function<void(result<value>)>;
  struct needs {
    std::function<pool_actor(const std::string& pool)> pool;
    std::function<experiment_actor(experiment_id)> experiment; ///< null where it has ended
  };
  cluster_explain(actor_base<cluster_actor>* self, std::shared_ptr<storage::reader> reads, needs with)
      : self_(self), reads_(std::move(reads)), with_(std::move(with)) {}

  /// Calls `done` once.
  void explain(explained_run of, const done_callback& done);
  /// The first `most` that wait, each explained.
  void explain_all(std::vector<explained_run> waiting, value frame, const done_callback& done);

private:
  void look(explained_run of, value said, const done_callback& done);
  void ask_again(explained_run of, const pool_actor& pool, value said, const done_callback& done);
  std::vector<run_outlook> outlooks(const value& would_free) const;

  actor_base<cluster_actor>* self_;
  std::shared_ptr<storage::reader> reads_;
  needs with_;
};

} // namespace troupe

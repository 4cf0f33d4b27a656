#pragma once
// What the slots of a host are used for, as its agent tells it: to the master, and into the metrics of the
// trials that hold them. What is lost is lost: the next look comes soon. A part of the agent's actor, which
// alone calls it.

#include "actors/agent/agent.hpp"
#include "actors/shells/probed.hpp"
#include "workers/slot_watch.hpp"

#include <map>
#include <set>

namespace troupe {

class slot_reports {
public:
  /// `sender` names this life of the agent in the metrics.
  slot_reports(actor_base<agent_actor>* self, std::string agent, std::string sender,
               std::unique_ptr<workers::slot_watch> watch)
      : self_(self), agent_(std::move(agent)), sender_(std::move(sender)), watch_(std::move(watch)) {}

  /// Whom the agent is connected to.
  struct master {
    cluster_actor cluster;
    journal_actor journal;
    std::string fence_token;
  };
  /// Each look is told once. `tasks`: all that the agent knows; `ending`: those of which the last metrics are
  /// told; `to`: null where nobody is connected.
  void tell(const std::vector<task_report>& tasks, const std::set<allocation_id>& ending, const master* to);
  /// The newest look, too: the master is a new one.
  void tell_again() { looks_told_ = 0; }

private:
  struct series { ///< reports of the metric group "system" that were sent for one allocation
    std::uint64_t sequence = 0;
    bool waits = false; ///< for the answer to its last report
  };
  void report_use(const task_report& task, const std::vector<workers::slot_look>& seen,
                  const std::vector<workers::task_look>& used, const journal_actor& journal);

  actor_base<agent_actor>* self_;
  std::string agent_, sender_;
  std::unique_ptr<workers::slot_watch> watch_;
  std::uint64_t looks_told_ = 0;
  std::map<allocation_id, series> reported_;
};

} // namespace troupe

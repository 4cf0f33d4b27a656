#pragma once
// Reports how the slots of a host are used: to the master, and into the metrics of the trials that hold them.
// A lost report is not repeated, as the next look at the slots comes soon. It is a part of the agent's actor,
// which alone calls it.

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

  /// The master that the agent is connected to.
  struct master {
    cluster_actor cluster;
    journal_actor journal;
    std::string fence_token;
  };
  /// Reports each look once. `tasks`: all tasks that the agent knows; `ending`: tasks that get no more
  /// metrics, as they are ending; `to`: null where no master is connected.
  void tell(const std::vector<task_report>& tasks, const std::set<allocation_id>& ending, const master* to);
  /// To be called for a new master: the newest look is reported again.
  void tell_again() { looks_told_ = 0; }

private:
  struct series { ///< reports of the metric group "system" that were sent for one allocation
    std::uint64_t sequence = 0;
    bool waits = false; ///< whether the answer to the last report is missing
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

#pragma once
// Decides when retention sweeps which experiment, what it tries again and how often, and when it looks for
// logs whose time to be kept is over. Pure; the shell is retention_actor.cpp. retention.hpp decides what is
// removed.

#include "actors/machine.hpp"

#include <map>
#include <optional>
#include <variant>
#include <vector>

namespace troupe {

// Events.
struct sweep_asked {
  experiment_id id;
  time_point due; ///< earliest time of the sweep
};
struct sweep_planned {
  experiment_id id;
  std::vector<trial_id> trials; ///< trials with superfluous checkpoints
  /// Whether there is something to note or to remove, or an open collection to end.
  bool collects = false;
};
struct sweep_unplanned { ///< storage could not be read
  experiment_id id;
};
struct collection_begun { ///< the begin is durable: people see that files are removed
  experiment_id id;
};
struct collection_ended { ///< the end is durable
  experiment_id id;
};
struct collection_refused { ///< the journal refused the begin or the end
  experiment_id id;
};
struct deletion_noted { ///< the fact that this trial's checkpoints are deleted is durable
  experiment_id id;
  trial_id trial;
};
struct deletion_refused {
  experiment_id id;
  trial_id trial;
  /// Whether another append took the number: then a new try may succeed at once.
  bool taken = false;
};
using sweeps_event =
  std::variant<sweep_asked, sweep_planned, sweep_unplanned, collection_begun, collection_ended,
               collection_refused, deletion_noted, deletion_refused, time_passed>;

// Actions.
struct plan_sweep { ///< answered by sweep_planned or sweep_unplanned
  experiment_id id;
};
struct begin_collection { ///< answered by collection_begun or collection_refused
  experiment_id id;
};
struct end_collection { ///< answered by collection_ended or collection_refused
  experiment_id id;
};
struct note_deletion { ///< answered by deletion_noted or deletion_refused
  experiment_id id;
  trial_id trial;
};
struct remove_files { ///< removes the files of the checkpoints that were noted last
  experiment_id id;
  trial_id trial;
};
struct report_swept {
  experiment_id id;
};
struct look_at_logs {};
using sweeps_action = std::variant<plan_sweep, begin_collection, note_deletion, remove_files, end_collection,
                                   report_swept, look_at_logs>;

/// Not thread-safe: one actor owns it. Soft state: after a start, its owner asks again for each experiment
/// that is not swept. The way of one experiment:
///
///   waiting --due--> planning --begun--> noting --each trial noted--> ending --ended--> swept
///      ^                |-- nothing to collect -----------------------------------------^
///      |-- what could not be read or noted waits a minute, and is planned anew --|
class sweeps {
public:
  static constexpr int most_tries = 5;   ///< tries of one append that follow each other at once
  static constexpr duration pause = 60s; ///< time before what failed is tried again

  /// The first look at the logs is at most a minute after `now`.
  sweeps(time_point now, duration look_every);

  /// An answer that nobody waits for changes nothing, and neither does a repeated request for a sweep that is
  /// at work.
  [[nodiscard]] std::vector<sweeps_action> apply(const sweeps_event& ev, time_point now);
  time_point deadline() const; ///< when `time_passed` can next matter
  value describe() const;      ///< the state, for people

private:
  enum class stage { waiting, planning, beginning, noting, ending };
  struct sweep {
    time_point due;
    stage at = stage::waiting;
    std::vector<trial_id> left = {}; ///< trials not yet noted; the last one is being noted
    int tries = 0;
  };
  using out = std::vector<sweeps_action>;
  void on(out& o, const sweep_asked& ev, time_point now);
  void on(out& o, const sweep_planned& ev, time_point now);
  void on(out& o, const sweep_unplanned& ev, time_point now);
  void on(out& o, const collection_begun& ev, time_point now);
  void on(out& o, const collection_ended& ev, time_point now);
  void on(out& o, const collection_refused& ev, time_point now);
  void on(out& o, const deletion_noted& ev, time_point now);
  void on(out& o, const deletion_refused& ev, time_point now);
  void on(out& o, const time_passed& ev, time_point now);
  void begin(out& o, experiment_id id, sweep& x);
  void next(out& o, experiment_id id);
  void finish(out& o, experiment_id id);
  sweep* at_stage(experiment_id id, stage at);
  sweep* noting(experiment_id id, trial_id trial);
  static void put_off(sweep& x, time_point now);

  duration look_every_;
  time_point look_at_;
  std::map<experiment_id, sweep> sweeps_;
};

} // namespace troupe

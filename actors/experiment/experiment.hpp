#pragma once
// One experiment: its state, its trials, and what its search has heard and decided. One input goes to the searcher
// at a time; what came in and what was decided on it become one fact. Pure; the shell is experiment_actor.cpp.

#include "actors/machine.hpp"
#include "searchers/searcher.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>

namespace troupe {

struct experiment_spec {
  experiment_id id;
  std::string metric;      ///< the searcher's
  std::string time_metric; ///< or empty
};

/// Which report waits for the decision on it.
struct report_origin {
  allocation_id allocation;
  std::int32_t rank = 0;
  std::string process;
  std::uint64_t sequence = 0;
  MSGPACK_DEFINE_ARRAY(allocation, rank, process, sequence)
};

// Events; they are also messages.
struct experiment_activate {
  MSGPACK_DEFINE_ARRAY()
};
struct experiment_pause {
  MSGPACK_DEFINE_ARRAY()
};
struct experiment_stop {
  bool kill = false;
  std::string why;
  bool broken = false; ///< a stream of it cannot be replayed: it ends as error
  MSGPACK_DEFINE_ARRAY(kill, why, broken)
};
struct validation_recorded { ///< by the journal: it is durable
  trial_id trial;
  report_origin origin; ///< empty after recovery: nobody waits
  std::uint64_t row = 0;
  std::int64_t steps = 0;
  std::string metrics; ///< a msgpack map
  MSGPACK_DEFINE_ARRAY(trial, origin, row, steps, metrics)
};
struct trial_finished {
  trial_id trial;
  trial_state state = trial_state::completed;
  int exit_reason = -1;
  std::string why;
  MSGPACK_DEFINE_ARRAY(trial, state, exit_reason, why)
};
struct search_decided {
  std::vector<trial_created> created; ///< with the ids that the cluster gave
  std::vector<std::pair<std::string, trial_stop_decided>> stopped; ///< by the searcher's key; `trial` is not set
  bool shut_down = false, cancel = false, failure = false;
  double progress = 0;
  std::string fault; ///< why the searcher could not answer, or empty
  MSGPACK_DEFINE_ARRAY(created, stopped, shut_down, cancel, failure, progress, fault)
};
using experiment_event = std::variant<experiment_activate, experiment_pause, experiment_stop, validation_recorded,
                                      trial_finished, search_decided>;

// Actions.
struct ask_searcher {
  searchers::search_event event;
};
struct spawn_trial {
  trial_created trial;
  bool active = true;
};
struct order_trial {
  enum class kind { activate, pause, stop } what = kind::activate;
  trial_id trial;
  trial_state outcome = trial_state::completed; ///< of stop
  bool kill = false;
  std::string why;
};
struct answer_validation {
  report_origin origin;
  bool stop = false;
  std::string reason; ///< "pruned", "canceled", ... when stop
};
struct report_experiment_end {
  experiment_state state = experiment_state::completed;
};
using experiment_action =
  std::variant<ask_searcher, spawn_trial, order_trial, answer_validation, report_experiment_end>;
using experiment_step = step_of<experiment_fact, experiment_action>;

/// Not thread-safe: one actor owns it.
///
///   active <-> paused;  both --search over--> completed, error;  --cancel, kill--> stopping --trials ended--> canceled
class experiment {
public:
  explicit experiment(experiment_spec spec);

  [[nodiscard]] experiment_step apply(const experiment_event& ev, time_point now);
  void replay(const experiment_fact& fact);
  /// Why a user's event makes no sense now ("experiment 7 is COMPLETED"), or nothing.
  std::optional<error> refuses(const experiment_event& ev) const;
  /// Spawns the trials whose end the search has not heard, then goes on asking.
  [[nodiscard]] std::vector<experiment_action> resume(time_point now);
  /// The same for one trial, whose actor died: what was ordered of it may not have reached its journal.
  [[nodiscard]] std::vector<experiment_action> resume_trial(trial_id id) const;
  std::string snapshot() const; ///< of what the facts hold

  experiment_state state() const { return state_; }
  std::size_t live_trials() const;
  /// The newest validation row that the search has heard, by trial that has not ended.
  std::map<trial_id, std::uint64_t> heard_rows() const;
  /// The events the searcher has answered, oldest first: a fresh searcher that takes them is where this one is.
  const std::vector<searchers::search_event>& history() const { return history_; }

private:
  struct trial_entry {
    trial_created made;
    std::uint64_t heard_row = 0;
    bool exited = false;   ///< the search has heard of it
    bool finished = false; ///< it has said so; soft
    std::string stop_why;  ///< the searcher wants it to end; empty: it does not
  };
  struct input {
    search_input kind = search_input::started;
    trial_id trial;
    report_origin origin;
    std::uint64_t row = 0;
    std::int64_t steps = 0;
    value metrics;
    int reason = 0;
  };
  void on(experiment_step& s, const experiment_activate&, time_point now);
  void on(experiment_step& s, const experiment_pause&, time_point now);
  void on(experiment_step& s, const experiment_stop& ev, time_point now);
  void on(experiment_step& s, const validation_recorded& ev, time_point now);
  void on(experiment_step& s, const trial_finished& ev, time_point now);
  void on(experiment_step& s, const search_decided& ev, time_point now);
  void drop_inputs(experiment_step& s); ///< answers those who wait
  void ask_next(std::vector<experiment_action>& out);
  void conclude(experiment_step& s, time_point now);
  void order_all(std::vector<experiment_action>& out, order_trial order) const;
  void note(experiment_step& s, experiment_fact fact);
  searchers::search_event event_of(const input& x) const;
  value relevant(const std::string& metrics, std::int64_t steps) const;

  experiment_spec spec_;
  experiment_state state_ = experiment_state::active;
  bool started_ = false; ///< the search has
  std::optional<search_stepped> over_;
  std::map<trial_id, trial_entry> trials_;
  std::map<std::string, trial_id> by_key_;
  std::vector<searchers::search_event> history_;
  // Soft state.
  std::deque<input> inputs_;
  bool asking_ = false;
};

} // namespace troupe

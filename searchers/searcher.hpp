#pragma once
// Which trial comes next. One interface for every search algorithm; pure, seeded, and restored from bytes.
//
// Events drive a search, and actions are its answers. Its core drops events that cannot count (reports of
// unknown or ended trials, steps that do not increase, a second exit), so that a late or repeated event
// changes nothing.

#include "model/result.hpp"
#include "model/value.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace troupe::searchers {

/// Names a trial of one search: an ordinal from "1" in native mode, a request id (UUID) in compat mode.
using trial_key = std::string;

enum class search_mode { native, compat };
enum class exit_reason { errored, user_requested_stop, user_canceled, invalid_hp, init_invalid_hp };

// Events.
struct search_started {}; ///< comes exactly once, first
/// A validation; `metrics` holds the searcher's metric and, where the search has one, its time metric. A
/// metric that is missing, NaN or not a number ranks last and never fails the search.
struct trial_validated {
  trial_key trial;
  value metrics;
};
struct trial_exited_early {
  trial_key trial;
  exit_reason reason;
}; ///< trial_exited follows
struct trial_exited {
  trial_key trial;
};
struct trial_progressed {
  trial_key trial;
  double progress = 0;
}; ///< from 0 to 1
struct trial_checkpointed {
  trial_key trial;
  double step = 0;
  std::string checkpoint;
};
/// For a `custom` search only: what the process outside wants, a list of actions as objects (docs/api.md, "A
/// search of your own"). The list is refused whole, with `errc::invalid` or `not_found`, where one action
/// makes no sense.
struct search_ordered {
  value orders;
};
/// Runs trials that have exited again, and what the search has left after them. Only for searches whose
/// trials do not compete (`single`, `random`, `grid`); others answer `errc::unsupported`. The answer resumes
/// the trials that may run at once; the others follow as slots become free. A trial that has not exited goes
/// on.
struct search_continued {
  std::vector<trial_key> trials;
};
using search_event = std::variant<search_started, trial_validated, trial_exited_early, trial_exited,
                                  trial_progressed, trial_checkpointed, search_ordered, search_continued>;

// Actions, in order.
struct create_trial {
  trial_key trial;
  value hparams;
  std::uint32_t trial_seed = 0;
  std::string source_checkpoint;
};
/// `why` is one sentence for people. Where a rung decided, the other fields hold its index from 0, its length
/// in units of the time metric, the trial's metric as reported, and the metric that it had to beat (NaN where
/// not known); otherwise rung is -1.
struct stop_trial {
  trial_key trial;
  std::string why;
  int rung = -1;
  double units = 0;
  double metric = 0;
  double needed = 0;
};
struct pause_trial {
  trial_key trial;
};
struct resume_trial {
  trial_key trial;
  double until = 0;
};
struct perturb_trial {
  trial_key trial;
  trial_key source;
  std::string checkpoint;
  value hparams;
};
struct shut_down {
  bool cancel = false;
  bool failure = false;
};
using search_action =
  std::variant<create_trial, stop_trial, pause_trial, resume_trial, perturb_trial, shut_down>;

struct bracket {
  int rungs = 0;
  std::int64_t max_trials = 0;
  std::int64_t max_concurrent = 0;
  std::vector<std::int64_t> units;
};

/// Not thread-safe: one actor owns it. Deterministic: configuration, seed, mode and the events so far
/// determine the actions.
class searcher {
public:
  virtual ~searcher() = default;
  /// Decides. An event that cannot count changes nothing and returns no action. Fails with `errc::not_found`
  /// where the event names a trial that this search never created.
  virtual result<std::vector<search_action>> apply(const search_event& event) = 0;
  /// From 0 to 1; takes O(1).
  virtual double progress() const = 0;
  /// Brackets of halving searchers, the one that stops most first; empty for other searchers.
  virtual std::vector<bracket> brackets() const = 0;
  /// How many trials the search may create; trials that replace invalid ones do not count.
  virtual std::int64_t max_trials() const = 0;
  /// Versioned bytes from which `load_searcher` makes a searcher that goes on identically.
  virtual std::string snapshot() const = 0;
};

/// `config` is the `searcher` section of an experiment configuration, `hyperparameters` its section of that
/// name; both are complete. An error names every fault.
result<std::unique_ptr<searcher>> make_searcher(const value& config, const value& hyperparameters,
                                                std::uint64_t seed, search_mode mode = search_mode::native);
result<std::unique_ptr<searcher>> load_searcher(const value& config, const value& hyperparameters,
                                                std::uint64_t seed, search_mode mode,
                                                std::string_view snapshot);

} // namespace troupe::searchers

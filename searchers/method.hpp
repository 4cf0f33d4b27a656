#pragma once
// The inner interface: one search algorithm. The core (search_core.hpp) has filtered the events, numbers the
// trials, counts slots and budget, and asks; a method only says what it would run next and what should stop.

#include "searchers/archive.hpp"
#include "searchers/searcher.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe::searchers {

using ordinal = std::uint32_t; ///< a trial of this search, from 0 in the order of creation

/// A validation that counts: of a running trial, at a step beyond its last.
struct report {
  ordinal trial = 0;
  double step = 0;     ///< time metric, or the number of the report; NaN where the time metric is missing
  double worth = 0;    ///< smaller is better; +infinity where the metric is missing, NaN or no number
  double as_given = 0; ///< the metric as reported; NaN where there is none
  const value* metrics = nullptr;
};

enum class ending { completed, stopped, errored, canceled, requested, invalid };

/// What a free slot should run.
struct start_new {
  value hparams;
  std::string source_checkpoint;
};
struct continue_paused {
  ordinal trial = 0;
  double until = 0;
};
using proposal = std::variant<std::monostate, start_new, continue_paused>;

/// What a method may order while it hears a report. Order matters and is kept.
class orders {
public:
  virtual ~orders() = default;
  virtual void stop(ordinal trial, stop_trial reason) = 0; ///< `reason.trial` is filled in by the core
  virtual void pause(ordinal trial) = 0;
  /// `step`: of the checkpoint; the trial's next report comes from beyond it.
  virtual void perturb(ordinal trial, ordinal source, std::string checkpoint, double step, value hparams) = 0;
};

class method {
public:
  virtual ~method() = default;
  /// A slot is free. A new trial would get the number `fresh`; where not `may_create` the budget is used up
  /// and only a paused trial may go on.
  virtual proposal next(ordinal fresh, bool may_create) = 0;
  virtual void reported(const report&, orders&) {}
  /// Exactly once per trial, when it gives up its slot for good: stopped, left early, or exited.
  virtual void left(ordinal, ending) {}
  /// After every event, before the slots are filled: orders that an end brought about.
  virtual void settle(orders&) {}
  virtual void checkpointed(ordinal, double /*step*/, const std::string& /*checkpoint*/) {}
  /// Whether no trial's fate depends on another's: an ended search can be continued.
  virtual bool independent() const { return false; }
  virtual std::vector<bracket> brackets() const { return {}; }
  virtual std::vector<std::size_t> trial_brackets() const { return {}; }
  /// Writes or reads the whole state.
  virtual void persist(archive& ar) = 0;
};

} // namespace troupe::searchers

#pragma once
// The inner interface: one search algorithm. The core (search_core.hpp) filters the events, numbers the
// trials, counts slots and budget, and asks. A method only says what it would run next and what should stop.

#include "searchers/archive.hpp"
#include "searchers/rung_book.hpp"
#include "searchers/searcher.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::searchers {

/// A validation that counts: by a running trial, at a step beyond its last one.
struct report {
  ordinal trial = 0;
  double step = 0;     ///< time metric, or the number of the report; NaN where the time metric is missing
  double worth = 0;    ///< smaller is better; +infinity where the metric is missing, NaN or not a number
  double as_given = 0; ///< the metric as reported; NaN where it is missing
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

/// What a method may order while it hears a report. The core keeps the order of the calls.
class orders {
public:
  virtual ~orders() = default;
  virtual void stop(ordinal trial, stop_trial reason) = 0; ///< the core fills in `reason.trial`
  virtual void pause(ordinal trial) = 0;
  /// `step` is that of the checkpoint; the trial's next report has a greater one.
  virtual void perturb(ordinal trial, ordinal source, std::string checkpoint, double step, value hparams) = 0;
};

class method : public rung_book {
public:
  /// Called when a slot is free. A new trial would get the number `fresh`. Where `may_create` is false the
  /// budget is used up, and only a paused trial may go on.
  virtual proposal next(ordinal fresh, bool may_create) = 0;
  virtual void reported(const report&, orders&) {}
  /// Called exactly once for each trial, when it gives up its slot for good: stopped, left early, or exited.
  virtual void left(ordinal, ending) {}
  /// Called after every event, before the slots are filled, so that a method can order what an end brought
  /// about.
  virtual void settle(orders&) {}
  virtual void checkpointed(ordinal, double /*step*/, const std::string& /*checkpoint*/) {}
  /// Whether no trial's fate depends on another trial: such a search can be continued after its end.
  virtual bool independent() const { return false; }
  virtual std::vector<bracket> brackets() const { return {}; }
  std::vector<bracket> opened() const override { return brackets(); }
  /// Writes or reads the whole state.
  virtual void persist(archive& ar) = 0;
};

} // namespace troupe::searchers

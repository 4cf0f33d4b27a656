#pragma once
// Carries the output of this host's tasks from their spools into the journal, in batches, one unanswered at a
// time. Pure; the shell is log_pump_actor.cpp, which reads the spools. Nothing here is durable: how far the
// journal has a spool's lines is what the journal says.

#include "actors/machine.hpp"
#include "model/ids.hpp"
#include "workers/log_spool.hpp"

namespace troupe {

// Events
struct spool_opened {
  allocation_id allocation;
  std::string agent, spool;
};
struct spool_ended { ///< nothing more will be written to it
  allocation_id allocation;
};
struct journal_reached { ///< the connection to the master came or went
  bool there = false;
};
/// Answers carry the number of what they answer; one to an older question is late.
struct position_told {
  allocation_id allocation;
  std::uint64_t question = 0;
  std::uint64_t line = 0; ///< the last one that the journal has
};
struct batch_stored {
  allocation_id allocation;
  std::uint64_t question = 0;
};
struct journal_refused {
  allocation_id allocation;
  std::uint64_t question = 0;
};
struct spool_read { ///< of the action `read_spool`
  allocation_id allocation;
  enum class outcome {
    lines,   ///< there are some after `line`
    none,    ///< nothing that the journal has not
    damaged, ///< `next` is behind the damage
    gone     ///< no file can be read
  } what = outcome::none;
  workers::log_position next;
  bool at_end = false;
};
using log_pump_event = std::variant<spool_opened, spool_ended, journal_reached, position_told, batch_stored,
                                    journal_refused, spool_read, time_passed>;

// Actions
struct ask_position {
  allocation_id allocation;
  std::uint64_t question = 0;
  std::string key; ///< the spool's name in the journal
};
struct read_spool { ///< and keep the lines after `line` for `store_batch`
  allocation_id allocation;
  std::string agent, spool;
  workers::log_position from;
  std::uint64_t line = 0;
};
struct store_batch {
  allocation_id allocation;
  std::uint64_t question = 0;
  std::string key;
};
struct tell_pumped { ///< everything of it is in the journal
  allocation_id allocation;
};
using log_pump_action = std::variant<ask_position, read_spool, store_batch, tell_pumped>;

/// Not thread-safe: one actor owns it.
///
///   new --ask--> asking --told--> reading <--stored-- storing       each back to new with another journal
///                                   |  '--lines-->------^
///                                   '--ended and at its end--> gone
class log_pump {
public:
  /// `pace`: between two looks at the spool of a task that runs, once it is read to its end: where there is
  /// more, it is read at once, as a task that prints fast makes its spool's oldest files go. What the journal
  /// has refused waits for the next look.
  explicit log_pump(duration pace) : pace_(pace) {}

  [[nodiscard]] std::vector<log_pump_action> apply(const log_pump_event& ev, time_point now);
  /// When to look next; none while there is nothing to read or no journal.
  std::optional<time_point> deadline() const;

private:
  enum class phase { fresh, asking, reading, storing };
  struct source {
    std::string agent, spool, key;
    phase now = phase::fresh;
    workers::log_position at, next;
    std::uint64_t stored = 0; ///< the last line that the journal has
    std::uint64_t question = 0;
    bool ending = false;
    bool more = false; ///< behind `next` there was more when it was read
  };
  using out = std::vector<log_pump_action>;
  using entry = std::map<allocation_id, source>::iterator;

  void on(out& o, const spool_opened& ev, time_point now);
  void on(out& o, const spool_ended& ev, time_point now);
  void on(out& o, const journal_reached& ev, time_point now);
  void on(out& o, const position_told& ev, time_point now);
  void on(out& o, const batch_stored& ev, time_point now);
  void on(out& o, const journal_refused& ev, time_point now);
  void on(out& o, const spool_read& ev, time_point now);
  void on(out& o, const time_passed& ev, time_point now);
  void go_on(out& o, allocation_id id, source& s);
  void finish(out& o, entry it);
  entry answered(allocation_id id, std::uint64_t question, phase in);
  void look_soon(time_point now);

  const duration pace_;
  bool journal_ = false;
  std::map<allocation_id, source> sources_;
  std::optional<time_point> look_at_;
  std::uint64_t questions_ = 0;
};

} // namespace troupe

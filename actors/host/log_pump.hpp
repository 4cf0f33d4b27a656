#pragma once
// Carries the output of this host's tasks from their spools into the journal, in batches; each spool has at
// most one batch that is not answered. Pure; the shell is log_pump_actor.cpp, which reads the spools. Nothing
// here is durable: the journal says which lines of a spool it has.

#include "actors/machine.hpp"
#include "model/ids.hpp"
#include "workers/log_spool.hpp"

namespace troupe {

// Events
struct spool_opened {
  allocation_id allocation;
  std::string agent, spool;
};
struct spool_ended { ///< nothing more will be written to the spool
  allocation_id allocation;
};
struct journal_reached { ///< the connection to the master was made or lost
  bool there = false;
};
/// An answer carries the number of its question; an answer to an older question is late.
struct position_told {
  allocation_id allocation;
  std::uint64_t question = 0;
  std::uint64_t line = 0; ///< number of the last line that the journal has
};
struct batch_stored {
  allocation_id allocation;
  std::uint64_t question = 0;
};
struct journal_refused {
  allocation_id allocation;
  std::uint64_t question = 0;
};
struct spool_read { ///< answer to the action `read_spool`
  allocation_id allocation;
  enum class outcome {
    lines,   ///< there are lines after `line`
    none,    ///< there are no lines that the journal lacks
    damaged, ///< a part of the spool is damaged; `next` lies behind it
    gone     ///< no file of the spool can be read
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
struct read_spool { ///< the lines after `line` are kept for `store_batch`
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
struct tell_pumped { ///< all lines of the allocation are in the journal
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
  /// `pace`: time between two looks at the spool of a running task that was read to its end. If the spool has
  /// more lines, they are read at once, because the oldest files of a spool are removed when a task prints
  /// fast. A batch that the journal refused waits for the next look.
  explicit log_pump(duration pace) : pace_(pace) {}

  [[nodiscard]] std::vector<log_pump_action> apply(const log_pump_event& ev, time_point now);
  /// When to look next; none while there is nothing to read or no journal is reachable.
  std::optional<time_point> deadline() const;

private:
  enum class phase { fresh, asking, reading, storing };
  struct source {
    std::string agent, spool, key;
    phase now = phase::fresh;
    workers::log_position at, next;
    std::uint64_t stored = 0; ///< number of the last line that the journal has
    std::uint64_t question = 0;
    bool ending = false;
    bool more = false; ///< whether more lines followed `next` when the spool was read
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

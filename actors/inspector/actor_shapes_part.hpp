#pragma once
// What an inspector tells of an actor, as JSON.

#include "actors/shells/probed.hpp"

namespace troupe {

time_point wall_now();
double in_seconds(duration x);

/// The state that the actor's machine names; without a machine, a state derived from its mailbox.
const char* state_of(const probe& p);

/// Returns what an actor monitors and what it waits for: {peers, waits}. To be called on that actor's thread.
value ask_links(const probe_register& reg, probe_side& side);

/// Makes the JSON shapes for the actors of one node.
class actor_shapes {
public:
  actor_shapes(const caf::actor_system& system, std::shared_ptr<probe_register> reg, std::string node)
      : system_(&system), reg_(std::move(reg)), node_(std::move(node)) {}

  using moment = tick_scale::moment;

  value us(std::uint64_t ticks) const; ///< microseconds; null if the time was not measured
  static value us(std::uint64_t ticks, const moment& now);
  value row_of(const probe& p, double msg_per_s, const moment& now) const;
  value recent(const probe& p, std::size_t most) const;
  value stats(const probe& p) const;
  value links_of(const probe& p, const std::vector<std::string>& monitored) const;
  value info(const probe& p, const value& asked) const; ///< `asked`: the result of ask_links and state_bytes

private:
  value note_of(const message_note& n, const probe& p, const moment& now) const;

  const caf::actor_system* system_;
  std::shared_ptr<probe_register> reg_;
  std::string node_;
};

} // namespace troupe

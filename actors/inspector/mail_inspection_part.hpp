#pragma once
// What an inspector does with the mail of its node's actors: traces that a user follows, and planted faults.

#include "actors/messages.hpp"
#include "actors/shells/probe_register.hpp"
#include "model/commands/shell_commands.hpp"

#include <chrono>

namespace troupe {

/// Not thread-safe: one actor owns it. All times come from the actor's clock.
class mail_inspection {
public:
  using instant = std::chrono::steady_clock::time_point;
  mail_inspection(const caf::actor_system& system, std::shared_ptr<probe_register> reg, std::string node)
      : system_(system), register_(std::move(reg)), node_(std::move(node)) {}

  // The functions below keep traces; a trace whose rows nobody asks for is forgotten.
  command_result open(const commands::inspect_watch& x, instant now);
  command_result taken(const commands::inspect_taken& x, instant now);
  command_result close(const commands::inspect_unwatch& x);
  void forget_unasked(instant now);
  bool any() const { return !watches_.empty(); }

  /// Drops, delays or holds mail if the node allows faults; "clear" removes all faults.
  command_result disturb(const commands::inspect_fault& x);

private:
  struct open_watch {
    std::shared_ptr<message_watch> what;
    std::string actor;
    std::uint64_t actor_id = 0;
    instant asked;
  };
  command_result not_here(const std::string& actor) const;

  const caf::actor_system& system_;
  std::shared_ptr<probe_register> register_;
  std::string node_;
  std::uint64_t ids_ = 0;
  std::map<std::uint64_t, open_watch> watches_;
};

} // namespace troupe

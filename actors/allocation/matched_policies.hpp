#pragma once
// Remembers the lines of a task's log that matched its log policies. They decide which agents the next runs
// avoid, and whether the task runs again after a failure. A part of the machines of trials and of other
// tasks. Pure.

#include "model/facts.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Event: a line of the task's log matched a pattern of `log_policies`. It comes once for each pattern and
/// agent.
struct log_matched {
  run_id run;
  std::string agent; ///< agent on which the line was written
  std::string policy, pattern, line;
  bool exclude_agent = false, cancel_retries = false;
};

/// Action: writes a line of the platform into the log of the task, once for each source.
struct say_in_log {
  std::string source, text;
};

class matched_policies {
public:
  /// The fact of a match; nothing where the match is a repeat.
  std::optional<log_policy_matched> news(const log_matched& ev, time_point now) const;
  void replay(const log_policy_matched& fact);
  /// To be called when a trial that has ended runs again, which it does as another task: patterns may match
  /// again, and no agent is excluded until one does.
  void forget_matches();

  /// The line that says that an agent is avoided, to be called after `replay` of the fact; nothing where the
  /// fact excludes no agent.
  std::optional<say_in_log> exclusion(const log_policy_matched& fact) const;
  /// The excluded agents, in the order of their matches.
  const std::vector<std::string>& not_agents() const { return not_agents_; }
  const std::string& no_retry() const { return no_retry_; } ///< line that forbids a restart; empty: none
  std::string snapshot() const;                             ///< the state as bytes

private:
  std::vector<std::string> matched_; ///< patterns, with the agent where it is excluded
  std::vector<std::string> not_agents_;
  std::string no_retry_;
  std::uint64_t count_ = 0; ///< number of lines that have matched so far
};

} // namespace troupe

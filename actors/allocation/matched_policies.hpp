#pragma once
// What lines of a task's log that matched its log policies mean from then on: which agents its next runs
// avoid, and whether a failure is its last. A part of the machines of trials and of other tasks. Pure.

#include "model/facts.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Event: a line of its log matched a pattern of `log_policies`. Once for each pattern and agent.
struct log_matched {
  run_id run;
  std::string agent; ///< where the line was written
  std::string policy, pattern, line;
  bool exclude_agent = false, cancel_retries = false;
};

/// Action: a line of our own for the log of the task, once for each source.
struct say_in_log {
  std::string source, text;
};

class matched_policies {
public:
  /// The fact of a match; nothing where it is a repeat.
  std::optional<log_policy_matched> news(const log_matched& ev, time_point now) const;
  void replay(const log_policy_matched& fact);
  /// It runs again as new: what matched before may match again. Agents stay excluded.
  void forget_matches();

  /// After `replay` of the fact: that its agent is avoided; nothing where it excludes none.
  std::optional<say_in_log> exclusion(const log_policy_matched& fact) const;
  const std::vector<std::string>& not_agents() const {
    return not_agents_;
  }                                                         ///< in the order of their matches
  const std::string& no_retry() const { return no_retry_; } ///< which line forbids a restart; empty: none
  std::string snapshot() const;                             ///< the state as bytes

private:
  std::vector<std::string> matched_; ///< patterns, with the agent where it is excluded
  std::vector<std::string> not_agents_;
  std::string no_retry_;
  std::uint64_t count_ = 0; ///< how many lines have matched so far
};

} // namespace troupe

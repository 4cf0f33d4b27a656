#include "actors/allocation/matched_policies.hpp"

#include <algorithm>

namespace troupe {

std::optional<log_policy_matched> matched_policies::news(const log_matched& ev, time_point now) const {
  const auto agent = ev.exclude_agent ? ev.agent : std::string();
  if (std::find(matched_.begin(), matched_.end(), ev.pattern + '\n' + agent) != matched_.end())
    return std::nullopt;
  return log_policy_matched{now, ev.run, ev.policy, ev.pattern, ev.line, agent, ev.cancel_retries};
}

void matched_policies::replay(const log_policy_matched& fact) {
  ++count_;
  matched_.push_back(fact.pattern + '\n' + fact.exclude_agent);
  if (!fact.exclude_agent.empty() &&
      std::find(not_agents_.begin(), not_agents_.end(), fact.exclude_agent) == not_agents_.end())
    not_agents_.push_back(fact.exclude_agent);
  if (fact.cancel_retries)
    no_retry_ = "(log \"" + fact.line + "\" matched regex \"" + fact.pattern + "\")";
}

void matched_policies::forget_matches() {
  matched_.clear();
  not_agents_.clear();
  no_retry_.clear();
}

/// The sentence is that of Determined.
std::optional<say_in_log> matched_policies::exclusion(const log_policy_matched& fact) const {
  if (fact.exclude_agent.empty())
    return std::nullopt;
  return say_in_log{"log_policy/" + std::to_string(count_),
                    "(log '\"" + fact.line + "\"' matched regex " + fact.pattern +
                      ") therefore will not schedule on " + fact.exclude_agent};
}

std::string matched_policies::snapshot() const {
  return pack(std::tuple{matched_, not_agents_, no_retry_, count_});
}

} // namespace troupe

#include "actors/journal/log_watch.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_known = 100'000, most_line_bytes = 1000;

/// Whether Determined's launcher wrote this line, which prints the configuration with its patterns.
bool prints_configuration(const log_line& line) {
  return line.text.find("\"log_policies\":") != std::string::npos;
}

std::string key_of(const line_matched& x) {
  return to_string(x.allocation.task) + '\n' + x.pattern + '\n' +
         (x.webhook         ? "#" + to_string(x.webhook)
          : x.exclude_agent ? x.agent
                            : std::string());
}

} // namespace

log_watch::log_watch(std::function<experiment_id(task_id)> experiment_of)
    : experiment_of_(std::move(experiment_of)) {}

log_watch::policies log_watch::compiled(const value& log_policies) {
  policies made;
  std::vector<std::string> patterns;
  for (const auto& one : log_policies.is_array() ? log_policies : value::array()) {
    const auto pattern = one.value("pattern", value());
    if (!pattern.is_string() || pattern == "")
      continue; // an empty pattern switches off the policy of this name
    auto action = one.value("action", value());
    if (action.is_object())
      action = action.value("type", value());
    const auto name = one.value("name", value());
    made.all.push_back({name.is_string() ? name.get<std::string>() : std::string(), pattern,
                        action == "exclude_node", action == "cancel_retries"});
    patterns.push_back(pattern);
  }
  if (!made.all.empty())
    made.patterns = std::make_shared<log_patterns>(patterns);
  return made;
}

void log_watch::watch(experiment_id of, const value& log_policies) {
  auto made = compiled(log_policies);
  if (made.all.empty())
    return forget(of);
  const std::scoped_lock lock(mutex_);
  policies_[of] = std::move(made);
}

void log_watch::watch_other(task_id of, const value& log_policies) {
  auto made = compiled(log_policies);
  if (made.all.empty())
    return forget_other(of);
  const std::scoped_lock lock(mutex_);
  of_tasks_[of] = std::move(made);
}

void log_watch::forget(experiment_id of) {
  const std::scoped_lock lock(mutex_);
  policies_.erase(of);
}

void log_watch::forget_other(task_id of) {
  const std::scoped_lock lock(mutex_);
  of_tasks_.erase(of);
}

void log_watch::watch(std::vector<std::pair<webhook_id, std::string>> all) {
  std::vector<std::string> patterns;
  for (const auto& [webhook, regex] : all)
    patterns.push_back(regex);
  triggers made{std::move(all), patterns.empty() ? nullptr : std::make_shared<log_patterns>(patterns)};
  const std::scoped_lock lock(mutex_);
  triggers_ = std::move(made);
}

std::vector<line_matched> log_watch::look(const std::vector<log_line>& lines) {
  std::vector<line_matched> out;
  const std::scoped_lock lock(mutex_);
  if (policies_.empty() && of_tasks_.empty() && triggers_.all.empty())
    return out;
  for (const auto& line : lines)
    if (line.stream != "troupe")
      look(line, out);
  return out;
}

log_watch::policies* log_watch::policies_of(task_id task) {
  if (!task.is_trial()) {
    const auto own = of_tasks_.find(task);
    return own == of_tasks_.end() ? nullptr : &own->second;
  }
  auto known = experiments_.find(task);
  if (known == experiments_.end()) {
    if (experiments_.size() >= most_known)
      experiments_.clear();
    known = experiments_.emplace(task, experiment_of_(task)).first;
  }
  const auto of = policies_.find(known->second);
  return of == policies_.end() ? nullptr : &of->second;
}

void log_watch::look(const log_line& line, std::vector<line_matched>& into) {
  line_matched found{line.allocation, line.agent, {}, {}, {}, {}};
  const auto add = [&](const std::set<std::string>& told) {
    const auto key = key_of(found);
    const auto same = [&](const line_matched& x) { return key_of(x) == key; };
    if (told.contains(key) || std::any_of(into.begin(), into.end(), same) || prints_configuration(line))
      return;
    found.line = line.text.substr(0, most_line_bytes);
    into.push_back(found);
  };
  if (const auto* of = policies_of(line.allocation.task)) {
    hits_.clear();
    of->patterns->match(line.text, hits_);
    for (const auto hit : hits_) {
      const auto& x = of->all[hit];
      found.pattern = x.pattern;
      found.policy = x.name;
      found.exclude_agent = x.exclude_agent;
      found.cancel_retries = x.cancel_retries;
      add(of->told);
    }
  }
  if (!triggers_.patterns)
    return;
  hits_.clear();
  triggers_.patterns->match(line.text, hits_);
  found = {line.allocation, line.agent, {}, {}, {}, {}};
  for (const auto hit : hits_) {
    std::tie(found.webhook, found.pattern) = triggers_.all[hit];
    add(told_);
  }
}

void log_watch::told(const std::vector<line_matched>& lines) {
  const std::scoped_lock lock(mutex_);
  for (const auto& x : lines) {
    if (x.webhook) {
      if (told_.size() >= most_known)
        told_.clear(); // the machine of webhooks knows which triggers were told, too
      told_.insert(key_of(x));
    } else if (auto* of = policies_of(x.allocation.task)) {
      of->told.insert(key_of(x));
    }
  }
}

} // namespace troupe

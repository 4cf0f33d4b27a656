#include "model/names.hpp"

#include <cstdio>
#include <optional>

namespace troupe {
namespace {

constexpr std::string_view task_prefix = "00000000-0000-4000-8000-", job_prefix = "00000000-0000-4000-9000-";

std::string uuid(std::string_view prefix, std::uint64_t number) {
  char tail[24];
  std::snprintf(tail, sizeof tail, "%012llx", static_cast<unsigned long long>(number & 0xffffffffffffULL));
  return std::string(prefix) + tail;
}

std::uint64_t number_of(std::string_view prefix, std::string_view text) {
  if (text.size() != prefix.size() + 12 || !text.starts_with(prefix))
    return 0;
  std::uint64_t number = 0;
  auto digits = text.substr(prefix.size());
  auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return fault == std::errc{} && end == digits.data() + digits.size() ? number : 0;
}

/// Splits "…-2" into "…" and 2: the number follows the 36 characters of a UUID behind the first dot.
std::pair<std::string_view, std::uint32_t> without_continuation(std::string_view text) {
  const auto dash = text.find('.') + 1 + 36;
  std::uint32_t number = 0;
  if (dash >= text.size() || text[dash] != '-')
    return {text, 0};
  const auto digits = text.substr(dash + 1);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool sound =
    fault == std::errc{} && end == digits.data() + digits.size() && number && digits[0] != '0';
  return sound ? std::pair{text.substr(0, dash), number} : std::pair{text, std::uint32_t{0}};
}

} // namespace

std::string task_name(experiment_id experiment, task_id task, std::uint32_t continued) {
  return task.is_trial() ? to_string(experiment) + "." + uuid(task_prefix, task.trial().value) +
                             (continued ? "-" + std::to_string(continued) : "")
                         : to_string(task);
}

std::string people_name(experiment_id experiment, task_id task) {
  if (task.is_trial())
    return "Trial " + to_string(task) + " (Experiment " + to_string(experiment) + ")";
  if (task.kind() == task_kind::checkpoint_gc)
    return "Checkpoint GC (Experiment " + to_string(experiment) + ")";
  return name(task.kind()) + (" " + to_string(task));
}

std::string allocation_name(experiment_id experiment, allocation_id allocation) {
  return task_name(experiment, allocation.task) + "." + to_string(allocation.run);
}

std::string job_name(experiment_id experiment) { return uuid(job_prefix, experiment.value); }

std::string part_name(allocation_id allocation, int node_rank) {
  if (!allocation.task.is_trial())
    return to_string(allocation) + "." + std::to_string(node_rank);
  char text[64];
  std::snprintf(text, sizeof text, "%08llx-%04x-4000-a000-%012llx",
                static_cast<unsigned long long>(allocation.trial().value & 0xffffffffULL), node_rank & 0xffff,
                static_cast<unsigned long long>(allocation.run.value & 0xffffffffffffULL));
  return text;
}

allocation_part named_part(std::string_view text) {
  if (const auto dot = text.rfind('.'); dot != text.npos) {
    const auto allocation = parse_allocation(text.substr(0, dot));
    unsigned node = 0;
    const auto* end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data() + dot + 1, end, node);
    const bool sound =
      allocation && !allocation.task.is_trial() && fault == std::errc{} && at == end && node <= 0xffff;
    return sound ? allocation_part{allocation, static_cast<int>(node)} : allocation_part{};
  }
  if (text.size() != 36 || text.substr(13, 11) != "-4000-a000-" || text[8] != '-')
    return {};
  const auto hex = [](std::string_view digits) {
    std::uint64_t number = 0;
    auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    return fault == std::errc{} && end == digits.data() + digits.size() ? std::optional{number}
                                                                        : std::nullopt;
  };
  const auto trial = hex(text.substr(0, 8)), node = hex(text.substr(9, 4)), run = hex(text.substr(24));
  if (!trial || !node || !run || !*trial || !*run)
    return {};
  return {{trial_id{*trial}, run_id{*run}}, static_cast<int>(*node)};
}

std::uint32_t named_continuation(std::string_view text) { return without_continuation(text).second; }

task_id named_task(std::string_view text) {
  if (const auto plain = parse_task(text); plain)
    return plain;
  text = without_continuation(text).first;
  auto dot = text.find('.');
  if (dot == text.npos || !parse_id<experiment_id>(text.substr(0, dot)))
    return {};
  return trial_id{number_of(task_prefix, text.substr(dot + 1))};
}

allocation_id named_allocation(std::string_view text) {
  if (auto plain = parse_allocation(text); plain)
    return plain;
  auto dot = text.rfind('.');
  if (dot == text.npos)
    return {};
  allocation_id id{named_task(text.substr(0, dot)), parse_id<run_id>(text.substr(dot + 1))};
  return id.task && id.run ? id : allocation_id{};
}

experiment_id job_experiment(std::string_view text) { return {number_of(job_prefix, text)}; }

namespace {
constexpr std::string_view external_prefix = "external/";
}
std::string external_key(std::string_view name) { return std::string(external_prefix) + std::string(name); }
std::string numbered_key(std::string_view key, std::size_t n) {
  std::string out(key);
  if (n > 1)
    out += '\0' + std::to_string(n);
  return out;
}
std::string after_numbered(std::string_view key) { return std::string(key) + '\1'; }
std::string external_name(std::string_view key) {
  return key.starts_with(external_prefix) ? std::string(key.substr(external_prefix.size())) : std::string();
}

} // namespace troupe

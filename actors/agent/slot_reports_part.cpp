#include "actors/agent/slot_reports_part.hpp"

#include "actors/shells/obey.hpp"
#include "model/commands/table.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr auto answer_timeout = std::chrono::seconds(10);

/// The names under which the numbers of a slot are reported; null: the number is left out.
struct number_names {
  const char *utilization, *used, *memory, *temperature, *errors;
};
constexpr number_names shown{"utilization_percent", "memory_used_bytes", "memory_bytes",
                             "temperature_celsius", "errors"};
/// The names in the metrics of a task, where numbers that never change are left out.
constexpr number_names sample_of_processor{"utilization_percent", nullptr, nullptr, nullptr, nullptr},
  sample_of_gpu{"gpu_percent", "gpu_memory_bytes", nullptr, "gpu_temperature_celsius", "gpu_errors"};

std::vector<std::pair<const char*, double>> numbers_of(const workers::slot_look& x,
                                                       const number_names& names) {
  std::vector<std::pair<const char*, double>> out;
  const auto add = [&](const char* name, const auto& number) {
    if (name && number)
      out.emplace_back(name, static_cast<double>(*number));
  };
  add(names.utilization, x.utilization_percent);
  add(names.used, x.memory_used_bytes);
  add(names.memory, x.memory_bytes);
  add(names.temperature, x.temperature_celsius);
  add(names.errors, x.errors);
  return out;
}

value shape_of(const workers::slot_look& x) {
  value out = {{"device", x.kind}, {"brand", x.name}};
  if (!x.uuid.empty())
    out["uuid"] = x.uuid;
  for (const auto& [name, number] : numbers_of(x, shown))
    out["usage"][name] = number;
  if (!x.fault.empty())
    out["usage"]["fault"] = x.fault;
  return out;
}

} // namespace

void slot_reports::tell(const std::vector<task_report>& tasks, const std::set<allocation_id>& ending,
                        const master* to) {
  std::vector<workers::slot_watch::held> held;
  for (const auto& task : tasks)
    if (!task.exited && task.pid > 0)
      held.push_back({task.pid, task.slots});
  watch_->hold(std::move(held));
  const auto looks = watch_->looks();
  if (!to || looks == looks_told_)
    return;
  looks_told_ = looks;
  const auto seen = watch_->newest();
  const auto used = watch_->newest_of_tasks();
  value slots = value::array();
  for (const auto& one : seen)
    slots.push_back(shape_of(one));
  auto news = client_command_of(commands::agent_slots{agent_, to->fence_token, std::move(slots)});
  self_->request(to->cluster, answer_timeout, std::move(news))
    .then([](const command_result&) {}, [](const caf::error&) {});
  std::set<allocation_id> running;
  for (const auto& task : tasks) {
    if (!task.exited)
      running.insert(task.allocation);
    if (!task.exited && task.pid > 0 && !ending.contains(task.allocation))
      report_use(task, seen, used, to->journal);
  }
  std::erase_if(reported_, [&](const auto& x) { return !running.contains(x.first); });
}

void slot_reports::report_use(const task_report& task, const std::vector<workers::slot_look>& seen,
                              const std::vector<workers::task_look>& used, const journal_actor& journal) {
  auto& series = reported_[task.allocation];
  value metrics = value::object();
  const auto add = [&](const char* name, const std::optional<double>& number) {
    if (number)
      metrics[name] = *number;
  };
  for (const auto& look : used)
    if (look.pid == task.pid) {
      add("cpu_percent", look.cpu_percent);
      add("memory_bytes", look.memory_bytes);
      add("read_bytes_per_s", look.read_bytes_per_s);
      add("write_bytes_per_s", look.write_bytes_per_s);
    }
  for (const int slot : task.slots)
    if (slot >= 0 && static_cast<std::size_t>(slot) < seen.size()) {
      const auto& look = seen[static_cast<std::size_t>(slot)];
      for (const auto& [name, number] :
           numbers_of(look, look.kind == "cpu" ? sample_of_processor : sample_of_gpu))
        metrics[agent_ + "/" + std::to_string(slot) + "/" + name] = number;
    }
  if (series.waits || metrics.empty())
    return;
  series.waits = true;
  storage::report_batch::report row;
  row.group = "system";
  row.at = self_->now();
  row.metrics = to_msgpack(metrics);
  append_reports mail{task.allocation, 0, sender_, series.sequence + 1, {std::move(row)}};
  self_->request(journal, answer_timeout, std::move(mail))
    .then(
      [this, id = task.allocation](const reports_committed& x) {
        auto it = reported_.find(id);
        if (it == reported_.end())
          return;
        it->second.waits = false;
        it->second.sequence = std::max(it->second.sequence, x.up_to);
      },
      [this, id = task.allocation](const caf::error&) {
        if (auto it = reported_.find(id); it != reported_.end())
          it->second.waits = false; // the next report has the same number, and is a repeat if this is stored
      });
}

} // namespace troupe

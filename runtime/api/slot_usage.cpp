#include "runtime/api/slot_usage.hpp"

#include "model/facts.hpp"
#include "model/names.hpp"
#include "runtime/api/csv.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace troupe::api {
namespace {

double seconds(duration x) { return std::chrono::duration<double>(x).count(); }

/// The number as text; empty where the run did not belong to an experiment.
std::string experiment_number(experiment_id id) { return id ? to_string(id) : std::string(); }

} // namespace

std::int64_t slots_of(const experiment_row& row) {
  const auto resources = row.config->is_object() ? row.config->value("resources", value()) : value();
  auto slots = resources.is_object() ? resources.value("slots_per_trial", value(1)) : value(1);
  if (slots.is_object())
    slots = slots.value("max", value(1));
  return slots.is_number_integer() ? slots.get<std::int64_t>() : 1;
}

result<std::vector<storage::usage_record>> usage_between(const storage::reader& from, time_point begin,
                                                         time_point end, time_point now) {
  auto bytes = from.records(storage::usage_record::tag);
  if (!bytes)
    return bytes.error();
  std::vector<storage::usage_record> out;
  for (const auto& one : *bytes) {
    auto record = unpack<storage::usage_record>(one);
    if (!record)
      return record.error();
    if (record->ended == time_point{} || record->ended > now)
      record->ended = now; // a run that still goes on counts up to now
    if (record->began < end && record->ended > begin)
      out.push_back(std::move(*record));
  }
  return out;
}

std::string usage_kind(const storage::usage_record& x) {
  return x.task ? std::string(name(x.task.kind())) : "training";
}

std::string raw_table(const std::vector<storage::usage_record>& all) {
  std::string out = "experiment_id,kind,username,labels,slots,start_time,end_time,seconds\n";
  for (const auto& one : all) {
    std::string labels;
    for (const auto& label : one.labels)
      labels += (labels.empty() ? "" : ",") + label;
    out += experiment_number(one.experiment) + "," + usage_kind(one) + "," + csv_cell(one.user) + "," +
           csv_cell(labels) + "," + std::to_string(one.slots) + "," + to_rfc3339(one.began) + "," +
           to_rfc3339(one.ended) + "," + csv_number(seconds(one.ended - one.began)) + "\n";
  }
  return out;
}

std::string allocations_table(const std::vector<storage::usage_record>& all) {
  std::string out = "allocation_id,task_type,username,workspace_name,experiment_id,slots,start_time,end_time,"
                    "imagepulling_time,slot_hours,resource_pool\n";
  for (const auto& one : all) {
    auto type = one.task ? usage_kind(one) : std::string("trial");
    std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::toupper(c); });
    const auto id = one.task ? one.task : task_id(one.trial);
    const auto used = seconds(one.ended - one.began) * static_cast<double>(one.slots) / 3600;
    out += allocation_name(one.experiment, {id, one.run}) + "," + type + "," + csv_cell(one.user) + "," +
           csv_cell(one.workspace) + "," + experiment_number(one.experiment) + "," +
           std::to_string(one.slots) + "," + to_rfc3339(one.began) + "," + to_rfc3339(one.ended) + ",0," +
           csv_hours(used) + "," + csv_cell(one.pool) + "\n";
  }
  return out;
}

void step_means::add(time_point from, time_point until, double amount) {
  const auto count = static_cast<std::int64_t>(partly_.size());
  from = std::max(from, begin_);
  until = std::min(until, begin_ + step_ * count);
  if (from >= until)
    return;
  const auto part = [&](std::int64_t i, time_point a, time_point b) {
    partly_[static_cast<std::size_t>(i)] += amount * seconds(b - a);
  };
  // The steps that contain `from` and `until`.
  const auto first = (from - begin_) / step_, last = (until - begin_) / step_;
  if (first == last)
    return part(first, from, until);
  part(first, from, begin_ + step_ * (first + 1));
  if (last < count)
    part(last, begin_ + step_ * last, until);
  if (first + 1 < last) {
    whole_[static_cast<std::size_t>(first + 1)] += amount;
    whole_[static_cast<std::size_t>(last)] -= amount;
  }
}

std::vector<double> step_means::means() const {
  std::vector<double> out(partly_.size());
  double whole = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    whole += whole_[i];
    out[i] = whole + partly_[i] / seconds(step_);
  }
  return out;
}

result<std::vector<slot_history::change>> slot_history::changes(const storage::reader& from) {
  std::lock_guard lock(mutex_);
  auto facts = from.facts_of(cluster_entity, next_);
  if (!facts)
    return facts.error();
  for (const auto& bytes : *facts) {
    ++next_;
    auto fact = decode(bytes);
    if (!fact)
      return fact.error();
    time_point at;
    if (const auto* joined = std::get_if<agent_joined>(&*fact)) {
      agents_[joined->agent] = joined->slots;
      at = joined->at;
    } else if (const auto* left = std::get_if<agent_left>(&*fact)) {
      agents_.erase(left->agent);
      at = left->at;
    } else
      continue;
    const auto total = std::accumulate(agents_.begin(), agents_.end(), std::int64_t{0},
                                       [](std::int64_t sum, const auto& one) { return sum + one.second; });
    if (changes_.empty() || changes_.back().slots != total)
      changes_.push_back({at, total});
  }
  return changes_;
}

} // namespace troupe::api

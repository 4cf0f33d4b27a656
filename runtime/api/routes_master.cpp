// Routes for administrators: the message that all users see, the configuration in force, the use of slots;
// and the answers of a cluster without Kubernetes to questions about it.

#include "model/config/cluster_config.hpp"
#include "runtime/api/csv.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fact_shape.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/slot_usage.hpp"
#include "runtime/api/told_facts.hpp"
#include "runtime/api/work_shapes.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::api {
namespace {

using std::chrono::sys_days;

// ---- the message to all users

result<value> message(const call& c) {
  auto now = cluster_message(*c.parts->storage, c.now, false);
  return now ? result<value>(value{{"clusterMessage", *now}}) : now.error();
}

void set_message(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("message");
  commands::cluster_message_set with;
  with.message = f.text("message");
  with.from = f.text("startTime");
  with.until = f.text("endTime");
  const auto lasts = f.text("duration");
  if (f.bad())
    return back(failure(*f.bad()));
  if (with.message.empty())
    return back(failure({errc::invalid, "message must have 1 to 250 characters"}));
  if (!lasts.empty() && !with.until.empty())
    return back(failure({errc::invalid, "duration and endTime exclude each other"}));
  if (!lasts.empty()) {
    auto life = go_duration(lasts);
    if (!life)
      return back(failure({errc::invalid, "duration: " + life.error().what}));
    const auto from = with.from.empty() ? std::optional{c->now} : from_rfc3339(with.from);
    if (!from)
      return back(failure({errc::invalid, "startTime has to be a time as RFC 3339 writes it"}));
    with.until = to_rfc3339(*from + *life);
  }
  command(c, back, std::move(with));
}

void delete_message(const call_ptr& c, const reply& back) {
  command(c, back, commands::cluster_message_set{});
}

// ---- the configuration

result<value> master_config(const call& c) {
  auto now = c.parts->storage->configuration();
  if (!now)
    return now.error();
  return value{{"config", *now ? config::printable_cluster((*now)->configuration) : value::object()}};
}

result<value> telemetry(const call&) { return value{{"enabled", false}}; }

/// The number of running tasks that are not trials, by kind.
result<value> task_counts(const call& c) {
  auto open = c.parts->storage->open_tasks();
  if (!open)
    return open.error();
  value out = {{"commands", 0}, {"notebooks", 0}, {"shells", 0}, {"tensorboards", 0}};
  for (const auto& task : *open)
    if (auto at = out.find(std::string(name(task.id.kind())) + "s"); at != out.end())
      if (const auto whole = c.parts->storage->other_task(task.id);
          whole && work_state(*whole) == "STATE_RUNNING")
        *at = at->get<int>() + 1;
  return out;
}

// ---- usage

result<std::vector<storage::usage_record>> usage(const call& c, time_point from, time_point until) {
  return usage_between(*c.parts->storage, from, until, c.now);
}

struct span {
  time_point from, until;
};

result<span> asked_span(const call& c) {
  const std::string after(c.query.first("timestampAfter")), before(c.query.first("timestampBefore"));
  const auto from = from_rfc3339(after), until = from_rfc3339(before);
  if (!from || !until)
    return error{errc::invalid,
                 "timestamp_after and timestamp_before have to be times as RFC 3339 writes them"};
  if (*until < *from)
    return error{errc::invalid, "timestamp_after has to be before timestamp_before"};
  return span{*from, *until};
}

double seconds(time_point from, time_point until) {
  return std::chrono::duration<double>(until - from).count();
}

result<value> raw_usage(const call& c) {
  auto asked = asked_span(c);
  auto all =
    asked ? usage(c, asked->from, asked->until) : result<std::vector<storage::usage_record>>(asked.error());
  if (!all)
    return all.error();
  value list = value::array();
  for (const auto& one : *all)
    list.push_back({{"kind", usage_kind(one)},
                    {"startTime", to_rfc3339(one.began)},
                    {"endTime", to_rfc3339(one.ended)},
                    {"experimentId", one.experiment.value},
                    {"username", one.user},
                    {"userId", number_of(one.user, *c.parts->users)},
                    {"labels", one.labels},
                    {"seconds", seconds(one.began, one.ended)},
                    {"slots", one.slots}});
  return value{{"resourceEntries", std::move(list)}};
}

/// Slot-seconds of one day or month.
struct period_sum {
  double total = 0;
  std::map<std::string, double> by_user, by_label, by_pool;
};
struct aggregation {
  bool monthly = false;
  std::map<std::string, period_sum> periods; ///< by name of the day or month, "2026-11-23" or "2026-11"
};

std::optional<sys_days> day_in(std::string_view text, bool month) {
  const auto whole = from_rfc3339(std::string(text) + (month ? "-01" : "") + "T00:00:00Z");
  return whole && text.size() == (month ? 7U : 10U)
           ? std::optional{std::chrono::floor<std::chrono::days>(*whole)}
           : std::nullopt;
}

sys_days next_period(sys_days at, bool monthly) {
  if (!monthly)
    return at + std::chrono::days(1);
  const std::chrono::year_month_day date{at};
  return sys_days{(date.year() / date.month() + std::chrono::months(1)) / 1};
}

result<aggregation> aggregated(const call& c) {
  aggregation out;
  const auto period = c.query.first("period");
  const std::string_view monthly = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY",
                         daily = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY";
  out.monthly = period == monthly || period == "monthly";
  if (!out.monthly && !period.empty() && period != daily && period != "daily")
    return error{errc::invalid, "period has to be " + std::string(daily) + " or " + std::string(monthly)};
  const auto first = day_in(c.query.first("startDate"), out.monthly),
             last = day_in(c.query.first("endDate"), out.monthly);
  if (!first || !last)
    return error{errc::invalid, out.monthly ? "start_date and end_date have to be YYYY-MM"
                                            : "start_date and end_date have to be YYYY-MM-DD"};
  if (*last < *first)
    return error{errc::invalid, "start_date has to be before end_date"};
  if (*last - *first > std::chrono::days(366 * 100))
    return error{errc::invalid, "start_date and end_date are at most 100 years apart"};
  const auto end = next_period(*last, out.monthly);
  auto all = usage(c, time_point(*first), time_point(end));
  if (!all)
    return all.error();
  for (auto at = *first; at < end; at = next_period(at, out.monthly)) {
    const auto from = time_point(at), until = time_point(next_period(at, out.monthly));
    auto& sums = out.periods[to_rfc3339(from).substr(0, out.monthly ? 7 : 10)];
    for (const auto& one : *all) {
      const auto inside = seconds(std::max(from, one.began), std::min(until, one.ended));
      if (inside <= 0)
        continue;
      const auto used = inside * static_cast<double>(one.slots);
      sums.total += used;
      sums.by_user[one.user] += used;
      sums.by_pool[one.pool] += used;
      for (const auto& label : one.labels)
        sums.by_label[label] += used;
    }
  }
  return out;
}

result<value> aggregated_usage(const call& c) {
  auto all = aggregated(c);
  if (!all)
    return all.error();
  value list = value::array();
  for (const auto& [name, sums] : all->periods)
    list.push_back({{"periodStart", name},
                    {"period", all->monthly ? "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY"
                                            : "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"},
                    {"seconds", sums.total},
                    {"byUsername", sums.by_user},
                    {"byExperimentLabel", sums.by_label},
                    {"byResourcePool", sums.by_pool}});
  return value{{"resourceEntries", std::move(list)}};
}

result<response> raw_csv(const call& c) {
  auto asked = asked_span(c);
  auto all =
    asked ? usage(c, asked->from, asked->until) : result<std::vector<storage::usage_record>>(asked.error());
  if (!all)
    return all.error();
  return csv_file("allocation.csv", raw_table(*all));
}

result<response> allocations_csv(const call& c) {
  auto asked = asked_span(c);
  auto all =
    asked ? usage(c, asked->from, asked->until) : result<std::vector<storage::usage_record>>(asked.error());
  if (!all)
    return all.error();
  return csv_file("allocation.csv", allocations_table(*all));
}

result<response> aggregated_csv(const call& c) {
  auto all = aggregated(c);
  if (!all)
    return all.error();
  std::string out = "aggregation_type,aggregation_key,date,seconds\n";
  for (const auto& [name, sums] : all->periods) {
    out += "total,total," + name + "," + csv_number(sums.total) + "\n";
    for (const auto& [type, by] : {std::pair{"username", &sums.by_user},
                                   {"experiment_label", &sums.by_label},
                                   {"resource_pool", &sums.by_pool}})
      for (const auto& [key, used] : *by)
        out += std::string(type) + "," + csv_cell(key) + "," + name + "," + csv_number(used) + "\n";
  }
  return csv_file("allocation.csv", std::move(out));
}

// ---- Kubernetes: a cluster of agents has none

result<value> no_managers(const call&) { return value{{"resourceManagers", value::array()}}; }
result<value> no_bindings(const call&) { return value{{"workspaceIds", value::array()}}; }
result<value> no_namespaces(const call&) {
  return error{errc::not_found, "there are no namespaces: this cluster has agents, not Kubernetes"};
}
result<value> not_supported(const call&) {
  return error{errc::invalid, "operation not supported: this cluster has agents, not Kubernetes"};
}

/// The log of the master, which is its journal: each fact is a line, numbered by its sequence. So restarts
/// leave no gap in the log.
class master_log : public body_stream {
public:
  /// `after`: the sequence of the fact before the first line. `last`: where it is not 0, the log begins with
  /// the last so many lines instead.
  master_log(std::shared_ptr<storage::reader> storage, fact_choice tells, std::uint64_t after,
             std::uint64_t last, std::uint64_t limit, bool follow)
      : storage_(std::move(storage)), tells_(std::move(tells)), after_(after), last_(last),
        until_(storage_->sequence()), left_(limit), follow_(follow) {}

  result<piece> next(time_point) override {
    piece out;
    if (last_) {
      if (auto fine = look_back(); !fine)
        return fine.error();
      out.pause = duration{0}; // lets other connections have their turn
      return out;
    }
    auto facts = storage_->facts_after(after_, std::min<std::uint64_t>(left_, 500));
    if (!facts)
      return facts.error();
    for (const auto& one : *facts) {
      after_ = one.sequence;
      if (tells_ && !tells_(one))
        continue;
      --left_;
      if (auto shape = fact_shape(one))
        out.bytes += to_json({{"result", {{"logEntry", line(one.sequence, std::move(*shape))}}}}) + "\n";
    }
    out.last = left_ == 0 || (facts->empty() && !follow_);
    if (facts->empty() && follow_)
      out.pause = 60s;
    return out;
  }

private:
  /// Looks at some facts up to `until_` for the first of the last lines. They have to be counted, because a
  /// fact that the caller may not see is no line.
  result<void> look_back() {
    const auto before = until_ - std::min<std::uint64_t>(until_, std::clamp<std::uint64_t>(last_, 500, 4096));
    auto facts = storage_->facts_after(before, until_ - before);
    if (!facts)
      return facts.error();
    std::erase_if(*facts,
                  [this](const auto& one) { return one.sequence > until_ || (tells_ && !tells_(one)); });
    if (facts->size() < last_ && before > 0) {
      last_ -= facts->size();
      until_ = before;
      return {};
    }
    after_ = facts->size() < last_ ? 0 : (*facts)[facts->size() - last_].sequence - 1;
    last_ = 0;
    return {};
  }

  static value line(std::uint64_t sequence, value shape) {
    const auto text = [&](const char* key) {
      const auto x = shape.value(key, value());
      return x.is_string() ? x.get<std::string>() : std::string();
    };
    const char* level = text("state") == "ERROR"                           ? "LOG_LEVEL_ERROR"
                        : text("why") == "failed" || text("why") == "lost" ? "LOG_LEVEL_WARNING"
                                                                           : "LOG_LEVEL_INFO";
    const auto at = text("at"), said = text("entity") + ": " + text("type");
    for (const auto* known : {"at", "entity", "type", "sequence", "number"})
      shape.erase(known);
    return {{"id", sequence},
            {"timestamp", at},
            {"level", level},
            {"message", said + (shape.empty() ? std::string() : " " + to_json(shape))}};
  }

  std::shared_ptr<storage::reader> storage_;
  fact_choice tells_;
  std::uint64_t after_, last_;
  std::uint64_t until_; ///< the lines after this fact are counted
  std::uint64_t left_;
  bool follow_;
};

/// The lines of the log from `offset` on; a negative offset counts from the end.
result<response> master_logs(const call& c) {
  const auto offset = c.query.number("offset", 0), limit = c.query.number("limit", 0);
  for (const auto* number : {&offset, &limit})
    if (!*number)
      return number->error();
  if (*limit < 0)
    return error{errc::invalid, "limit has to be 0 or more"};
  const auto after = static_cast<std::uint64_t>(*offset);
  response out;
  out.stream = std::make_unique<master_log>(
    c.parts->storage, told_to(c), *offset >= 0 ? after : 0, *offset >= 0 ? 0 : -after,
    *limit ? static_cast<std::uint64_t>(*limit) : std::uint64_t(-1), c.query.flag("follow"));
  return out;
}

/// Changes the level of the log and nothing else. The change outlives a restart, as every operator's setting
/// does.
void patch_config(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  const auto& mask = f.object("fieldMask");
  fields m{mask, "fieldMask"};
  for (const auto& path : m.texts("paths"))
    if (path != "log" && path != "log.level" && path != "log.color")
      m.fault("paths", "'" + path.substr(0, 100) + "' cannot be changed; `log` can");
  fields log{fields{f.object("config")}.object("log"), "config.log"};
  auto level = log.text("level");
  log.flag("color"); // our logs have no colour; only the type is checked
  for (const auto* one : {&f, &m, &log})
    if (one->bad())
      return back(failure(*one->bad()));
  static const std::map<std::string, std::string> levels{
    {"LOG_LEVEL_TRACE", "debug"},     {"LOG_LEVEL_DEBUG", "debug"}, {"LOG_LEVEL_INFO", "info"},
    {"LOG_LEVEL_WARNING", "warning"}, {"LOG_LEVEL_ERROR", "error"}, {"LOG_LEVEL_CRITICAL", "error"}};
  if (level.empty())
    return back(json(value::object()));
  const auto known = levels.find(level);
  if (known == levels.end())
    return back(failure({errc::invalid, "config.log.level: '" + level.substr(0, 50) + "' is not a level"}));
  commands::shell_log_set with;
  with.level = known->second;
  command(c, back, std::move(with), [](value) -> result<value> { return value::object(); });
}

} // namespace

result<value> cluster_message(const storage::reader& storage, time_point now, bool begun) {
  auto all = storage::records_of<cluster_message_changed>(storage);
  if (!all)
    return all.error();
  for (const auto& one : *all) {
    if (one.message.empty() || (one.ends != time_point{} && one.ends <= now) || (begun && now < one.begins))
      continue;
    value out = {{"message", one.message}, {"startTime", one.from}, {"createdTime", to_rfc3339(one.at)}};
    if (!one.until.empty())
      out["endTime"] = one.until;
    return out;
  }
  return value(nullptr);
}

std::vector<route> master_routes() {
  const authority::need see_message{action::view, thing::cluster_message},
    change_message{action::change, thing::cluster_message}, see{action::view, thing::cluster},
    see_usage{action::view, thing::usage}, workspace{action::view, thing::workspace},
    change_pools{action::change, thing::pool};
  const char* message_path = "/api/v1/master/cluster_message";
  return {
    {"GET", message_path, see_message, answer_with(message), "", "v1GetClusterMessageResponse",
     "What everybody is told, also before it begins."},
    {"PUT", message_path, change_message, set_message, "v1SetClusterMessageRequest", "Empty",
     "Says what everybody is told."},
    {"DELETE", message_path, change_message, delete_message, "", "Empty",
     "There is nothing to tell any more."},
    {"GET",
     "/api/v1/master/config",
     {action::view, thing::master},
     answer_with(master_config),
     "",
     "v1GetMasterConfigResponse",
     "The configuration in force, passwords and keys left out."},
    {"GET",
     "/api/v1/master/logs",
     {action::view, thing::actor},
     respond_with(master_logs),
     "",
     "stream of v1MasterLogsResponse",
     "What the master has noted, each fact a line; an offset below 0 is counted from the end."},
    {"PATCH",
     "/api/v1/master/config",
     {action::change, thing::master},
     patch_config,
     "v1PatchMasterConfigRequest",
     "Empty",
     "Sets the level of the log."},
    {"GET",
     "/api/v1/master/telemetry",
     {action::view, thing::door},
     answer_with(telemetry),
     "",
     "v1GetTelemetryResponse",
     "Nothing is reported to anybody."},
    {"GET", "/api/v1/tasks/count", see, answer_with(task_counts), "", "v1GetActiveTasksCountResponse",
     "How many tasks besides trials run."},
    {"GET", "/api/v1/resources/allocation/raw", see_usage, answer_with(raw_usage), "",
     "v1ResourceAllocationRawResponse", "Who used how many slots, from when to when."},
    {"GET", "/api/v1/resources/allocation/aggregated", see_usage, answer_with(aggregated_usage), "",
     "v1ResourceAllocationAggregatedResponse", "Slot-seconds by day or month."},
    {"GET", "/resources/allocation/raw", see_usage, respond_with(raw_csv), "", "csv",
     "Who used how many slots, from when to when."},
    {"GET", "/resources/allocation/allocations-csv", see_usage, respond_with(allocations_csv), "", "csv",
     "Each allocation with its slot-hours."},
    {"GET", "/resources/allocation/aggregated", see_usage, respond_with(aggregated_csv), "", "csv",
     "Slot-seconds by day or month."},
    {"GET", "/api/v1/k8s-resource-managers", see, answer_with(no_managers), "",
     "v1GetKubernetesResourceManagersResponse", "None: this cluster has agents."},
    {"GET", "/api/v1/namespace-bindings/workspace-ids-with-default-bindings", workspace,
     answer_with(no_bindings), "", "v1GetWorkspacesWithDefaultNamespaceBindingsResponse",
     "None: this cluster has agents."},
    {"GET", "/api/v1/workspaces/{id}/list-namespace-bindings", workspace, answer_with(no_namespaces), "",
     "v1ListWorkspaceNamespaceBindingsResponse", "404: this cluster has agents."},
    {"GET", "/api/v1/workspaces/{id}/get-k8s-resource-quotas", workspace, answer_with(not_supported), "",
     "v1GetKubernetesResourceQuotasResponse", "400: this cluster has agents."},
    {"POST", "/api/v1/namespace-bindings/bulk-auto-create", change_pools, answer_with(not_supported), "",
     "Empty", "400: this cluster has agents."},
    {"POST", "/api/v1/workspaces/{id}/set-resource-quota", change_pools, answer_with(not_supported), "",
     "Empty", "400: this cluster has agents."},
    {"POST", "/api/v1/workspaces/{workspaceId}/namespace-bindings", change_pools, answer_with(not_supported),
     "", "Empty", "400: this cluster has agents."},
    {"DELETE", "/api/v1/workspaces/{workspaceId}/namespace-bindings", change_pools,
     answer_with(not_supported), "", "Empty", "400: this cluster has agents."},
  };
}

} // namespace troupe::api

// Routes that say what runs when: pools, the queue, resources of live experiments, agents and slots that are
// disabled, explanations; and the same in Determined's form.

#include "model/config/cluster_config.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/guard.hpp"
#include "runtime/api/open_runs.hpp"
#include "runtime/api/past.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/resource_patch.hpp"
#include "runtime/api/routes_rule.hpp"
#include "runtime/api/seen_totals.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/usable_pools.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

namespace troupe::api {
namespace {

// ---- our own routes

/// The pool without quotas of workspaces that the caller may not see, and with totals of what the caller
/// sees. Jobs of tasks that are not trials get the task's name.
result<value> shown_pool(const call& c, value pool, const std::optional<seen_totals>& totals) {
  if (auto jobs = pool.find("jobs"); jobs != pool.end())
    for (auto& job : *jobs)
      if (is_task_job(experiment_id{job.at("experiment").get<std::uint64_t>()}))
        job["experiment"] = nullptr;
  if (!c.by.roles)
    return pool;
  if (totals)
    put_totals(pool, *totals);
  auto quotas = pool.find("quotas");
  if (quotas == pool.end())
    return pool;
  const auto book = place_book::read(*c.parts->storage);
  if (!book)
    return book.error();
  value kept = value::array();
  for (auto& one : *quotas) {
    const auto places = book->workspaces();
    if (!one.contains("workspace") || std::any_of(places.begin(), places.end(), [&](const auto& place) {
          return place.name == one.at("workspace");
        }))
      kept.push_back(std::move(one));
  }
  *quotas = std::move(kept);
  return pool;
}

void one_pool(const call_ptr& c, const reply& back) {
  with_seen_totals(c, back, [c, back](std::optional<seen_totals> totals) {
    command(c, back, commands::pool_details{std::string(c->named("name"))},
            [c, totals = std::move(totals)](value pool) { return shown_pool(*c, std::move(pool), totals); });
  });
}
void all_pools(const call_ptr& c, const reply& back) {
  with_seen_totals(c, back, [c, back](std::optional<seen_totals> totals) {
    command(c, back, commands::pool_list{}, [totals = std::move(totals)](value got) -> result<value> {
      if (totals)
        for (auto& pool : got.at("pools"))
          put_totals(pool, *totals);
      return got;
    });
  });
}
/// The queue; with `at=SEQUENCE` the queue after that fact.
void queue(const call_ptr& c, const reply& back) {
  if (!c->query.has("at"))
    return command(c, back, commands::queue_list{}, as_it_is);
  auto sequence = c->query.number("at", 0);
  if (!sequence || *sequence < 1)
    return back(failure({errc::invalid, "at has to be the number of a fact"}));
  // The past is folded once for all callers; each is shown only what they may see.
  auto then = c->parts->past->queue_after(c->parts->all ? *c->parts->all : *c->parts,
                                          static_cast<std::uint64_t>(*sequence));
  if (then && c->by.roles) {
    value shown = value::array();
    for (auto& one : then->at("waiting"))
      if (c->parts->storage->task(parse_allocation(one.at("allocation").get<std::string>()).task))
        shown.push_back(std::move(one));
    then->at("waiting") = std::move(shown);
  }
  back(then ? json(*then, c->query.has("pretty")) : failure(then.error()));
}

constexpr std::size_t last_lines = 10;

/// Adds where each run of the trial ran, and for a trial that failed the numbers of its last lines.
result<value> with_runs(const call& c, trial_id id, value said) {
  auto row = c.parts->storage->trial(id);
  if (!row)
    return row.error();
  value runs = value::array();
  for (const auto& run : row->runs) {
    value agents = value::array();
    for (const auto& part : run.on)
      agents.push_back(part.agent);
    runs.push_back({{"run", run.run.value},
                    {"agents", std::move(agents)},
                    {"fromSteps", run.from_steps},
                    {"fromCheckpoint", run.from_checkpoint},
                    {"startTime", to_rfc3339(run.placed == time_point{} ? run.started : run.placed)},
                    {"endTime", run.ended == time_point{} ? value() : value(to_rfc3339(run.ended))}});
  }
  said["runs"] = std::move(runs);
  said["log"] = value::array();
  if (row->state != trial_state::error && said.at("reason").at("code") != "back_off")
    return said;
  auto lines = c.parts->storage->logs_before(id, std::numeric_limits<std::uint64_t>::max(), last_lines);
  if (!lines)
    return lines.error();
  std::vector<std::uint64_t> numbers;
  for (const auto& line : *lines)
    numbers.push_back(line.number);
  std::sort(numbers.begin(), numbers.end());
  said["log"] = numbers;
  return said;
}

/// Leaves out what the caller may not see: the allocation that the trial waits behind or that gets its slots,
/// and those whose slots would become free.
value veiled_explanation(const call& c, value said) {
  if (!c.by.roles)
    return said;
  const auto hidden = [&](const value& allocation) {
    return allocation.is_string() &&
           !c.parts->storage->task(parse_allocation(allocation.get<std::string>()).task);
  };
  if (auto& behind = said.at("behind"); hidden(behind)) {
    behind = nullptr;
    const auto slots = said.value("slots", 0);
    const auto text =
      "waits for " + std::to_string(slots) + (slots == 1 ? " slot" : " slots") + " behind others";
    const auto mask = [&](value& reason) {
      const auto was = reason.at("text").get<std::string>();
      if (reason.at("code") == "behind")
        reason["text"] = text;
      else if (const auto heir = was.rfind("; its slots go to "); heir != was.npos)
        reason["text"] = was.substr(0, heir) + "; its slots go to another";
    };
    mask(said.at("reason"));
    for (auto& one : said.at("also"))
      mask(one);
  }
  for (auto& one : said.at("wouldFree"))
    for (const char* key : {"allocation", "preemptedFor"})
      if (hidden(one.at(key)))
        one[key] = nullptr;
  return said;
}

void explain_trial(const call_ptr& c, const reply& back) {
  const auto id = named_task(c->named("trialId")).trial();
  if (!id)
    return back(failure({errc::invalid, "'" + std::string(c->named("trialId")) + "' is not a trial"}));
  command(c, back, commands::trial_explain{id},
          [c, id](value said) { return with_runs(*c, id, veiled_explanation(*c, std::move(said))); });
}
void explain_task(const call_ptr& c, const reply& back) {
  command(c, back, commands::task_explain{std::string(c->named("taskId"))},
          [c](value said) -> result<value> { return veiled_explanation(*c, std::move(said)); });
}
void explain_allocation(const call_ptr& c, const reply& back) {
  const auto id = named_allocation(c->named("allocationId"));
  if (!id)
    return back(
      failure({errc::invalid, "'" + std::string(c->named("allocationId")) + "' is not an allocation"}));
  command(c, back, commands::allocation_explain{to_string(id)},
          [c](value said) -> result<value> { return veiled_explanation(*c, std::move(said)); });
}
void explain_experiment(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  command(c, back, commands::experiment_explain{row->id}, [c](value said) -> result<value> {
    auto& waiting = said.at("waiting");
    for (auto& one : waiting)
      one = veiled_explanation(*c, std::move(one));
    if (c->by.roles && !waiting.empty() &&
        said.at("reason").at("code") == waiting.front().at("reason").at("code")) {
      const auto& first = waiting.front();
      said["reason"]["text"] =
        "trial " + to_json(first.at("trial")) + ": " + first.at("reason").at("text").get<std::string>();
      said["wouldFree"] = first.at("wouldFree");
    }
    return said;
  });
}

void set_resources(const call_ptr& c, const reply& back) {
  auto row = named_experiment(*c);
  if (!row)
    return back(failure(row.error()));
  auto body = parse_object(c->body);
  auto with = body ? resource_patch(row->id, *body, true) : result<commands::experiment_set>(body.error());
  if (!with)
    return back(failure(with.error()));
  command(c, back, std::move(*with));
}

// ---- agents and slots

using one_agent_shape = std::function<result<value>(const value& agent)>;

/// Changes an agent, and answers with the agent as it is afterwards.
void change_agent(const call_ptr& c, const reply& back, commands::agent_drain with,
                  const one_agent_shape& shape) {
  auto name = with.agent;
  c->parts->cluster.order(
    c->by.who, std::move(with), [c, back, shape, name = std::move(name)](result<value> done) {
      if (!done)
        return back(failure(done.error()));
      command(c, back, commands::agent_list{}, [shape, name](value got) -> result<value> {
        const auto all = got.value("agents", value::array());
        for (const auto& agent : all)
          if (agent.at("name") == name)
            return shape(agent);
        return error{errc::not_found, "agent '" + name + "' not found"};
      });
    });
}

handler of_agent(bool enable) {
  return [enable](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    const bool drain = f.flag("drain");
    f.text("agentId"); // the path names the agent; only the type is checked
    if (f.bad())
      return back(failure(*f.bad()));
    commands::agent_drain with{std::string(c->named("agentId")), !enable, {}, !enable && !drain};
    change_agent(c, back, std::move(with), [](const value& agent) -> result<value> {
      return value{{"agent", agent_shape(agent)}};
    });
  };
}

handler of_slot(bool enable) {
  return [enable](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    const bool drain = f.flag("drain");
    f.text("agentId"), f.text("slotId"); // the path names both; only their types are checked
    if (f.bad())
      return back(failure(*f.bad()));
    const std::string text(c->named("slotId"));
    const bool number = !text.empty() && text.size() < 7 && text.find_first_not_of("0123456789") == text.npos;
    if (!number)
      return back(failure({errc::not_found, "slot '" + text + "' not found"}));
    const auto slot = std::stoll(text);
    commands::agent_drain with{std::string(c->named("agentId")), !enable, slot, !enable && !drain};
    change_agent(c, back, std::move(with), [slot](const value& agent) -> result<value> {
      for (const auto& one : agent.at("slots"))
        if (one.at("id") == slot)
          return value{{"slot", slot_shape(one, agent.at("name"))}};
      return error{errc::not_found, "slot '" + std::to_string(slot) + "' not found"};
    });
  };
}

// ---- Determined's pools

const char* scheduler_type(const value& pool) {
  const auto name = pool.at("scheduler").get<std::string>();
  // The scheduler fifo is a priority scheduler in which all jobs are equally urgent.
  return name == "fair"          ? "SCHEDULER_TYPE_FAIR_SHARE"
         : name == "round_robin" ? "SCHEDULER_TYPE_ROUND_ROBIN"
                                 : "SCHEDULER_TYPE_PRIORITY";
}

value resource_pool_shape(const value& pool, const cluster_identity& about) {
  const auto agents = pool.at("agents").get<std::size_t>();
  const auto aux = pool.at("auxPerAgent").get<std::size_t>();
  const bool by_priority = pool.at("scheduler") == "priority";
  value details = value::object();
  if (by_priority)
    details["priorityScheduler"] = {{"preemption", pool.at("preemption")},
                                    {"defaultPriority", pool.at("defaultPriority")},
                                    {"k8Priorities", value::array()}};
  value out{{"name", pool.at("name")},
            {"description", ""},
            {"type", "RESOURCE_POOL_TYPE_STATIC"},
            {"numAgents", agents},
            {"slotsAvailable", pool.at("slots").at("total")},
            {"slotsUsed", pool.at("slots").at("used")},
            {"slotType", pool.at("device") == "cpu" ? "TYPE_CPU" : "TYPE_CUDA"},
            {"auxContainerCapacity", aux * agents},
            {"auxContainersRunning", pool.at("auxUsed")},
            {"auxContainerCapacityPerAgent", aux},
            {"defaultComputePool", pool.at("default")},
            {"defaultAuxPool", pool.at("default")},
            {"preemptible", pool.at("preemption")},
            {"minAgents", 0},
            {"maxAgents", agents},
            {"schedulerType", scheduler_type(pool)},
            {"schedulerFittingPolicy",
             pool.at("fitting") == "worst" ? "FITTING_POLICY_WORST" : "FITTING_POLICY_BEST"},
            {"maxIdleAgentPeriod", 0},
            {"maxAgentStartingPeriod", 0},
            {"clusterName", about.cluster_name},
            {"details", std::move(details)},
            {"resourceManagerMetadata", {{"resourceManagerName", "default"}}},
            {"location", "on-prem"},
            {"accelerator", ""}};
  if (const auto& provider = pool.value("provider", value()); provider.is_object()) {
    out["minAgents"] = provider.at("minInstances");
    out["maxAgents"] = provider.at("maxInstances");
    out["slotsPerAgent"] = provider.at("instanceSlots");
    out["maxIdleAgentPeriod"] = provider.at("maxIdleSeconds");
    out["maxAgentStartingPeriod"] = provider.at("maxStartingSeconds");
  }
  for (const char* unset :
       {"imageId", "instanceType", "masterUrl", "masterCertName", "startupScript", "containerStartupScript",
        "agentDockerNetwork", "agentDockerRuntime", "agentDockerImage", "agentFluentImage"})
    out[unset] = "";
  return out;
}

void resource_pools(const call_ptr& c, const reply& back) {
  command(c, back, commands::job_list{}, [c](value got) -> result<value> {
    auto pools = got.value("pools", value::array());
    if (c->query.flag("unbound")) {
      value free = value::array();
      for (auto& pool : pools) {
        auto bound = is_bound(*c, pool.at("name").get<std::string>());
        if (!bound)
          return bound.error();
        if (!*bound)
          free.push_back(std::move(pool));
      }
      pools = std::move(free);
    }
    auto part = page_of(c->query, pools.size());
    if (!part)
      return part.error();
    value all = value::array();
    for (auto i = part->first; i < part->last; ++i)
      all.push_back(resource_pool_shape(pools[i], c->parts->about));
    return value{{"resourcePools", std::move(all)}, {"pagination", part->pagination}};
  });
}

// ---- Determined's jobs

struct shown_job {
  value shape;
  std::string state;
};

/// The fields that a list of jobs shows of a task that is not a trial, in the form of an experiment.
result<experiment_row> row_of_other(const task_detail& task) {
  experiment_row row;
  row.name = task.made.name;
  row.owner = task.made.owner;
  row.created = task.made.at;
  row.project = {};
  return row;
}

const char* type_of_other(task_kind kind) {
  switch (kind) {
  case task_kind::command:
    return "TYPE_COMMAND";
  case task_kind::notebook:
    return "TYPE_NOTEBOOK";
  case task_kind::shell:
    return "TYPE_SHELL";
  case task_kind::tensorboard:
    return "TYPE_TENSORBOARD";
  default:
    return "TYPE_GENERIC";
  }
}

/// The jobs of one pool, in the order in which they get their turn.
result<std::vector<shown_job>> jobs_of(const value& pool, const services& parts, const place_book& places,
                                       const std::map<experiment_id, open_runs>& open) {
  std::vector<shown_job> out;
  std::map<experiment_id, task_detail> others;
  for (auto kind : {task_kind::command, task_kind::notebook, task_kind::shell, task_kind::tensorboard,
                    task_kind::generic}) {
    auto some = parts.storage->other_tasks(kind);
    if (!some)
      return some.error();
    for (auto& one : *some)
      if (!terminal(one.state))
        others.emplace(job_of(one.made.id), std::move(one));
  }
  std::int64_t ahead = 0; // counts only jobs that the caller may see, so that it tells nothing of others
  for (const auto& job : pool.at("jobs")) {
    const experiment_id id{job.at("experiment").get<std::uint64_t>()};
    const auto other = others.find(id);
    if (is_task_job(id) && other == others.end())
      continue; // the job was deleted meanwhile
    auto row = is_task_job(id) ? row_of_other(other->second) : parts.storage->experiment(id);
    if (!row)
      continue; // the job was deleted meanwhile
    const auto runs = open.find(id);
    const std::string state = job_state(runs == open.end() ? open_runs() : runs->second);
    const auto owner = parts.users->owner(row->owner);
    const auto* project = places.find(row->project);
    const auto used = job.at("used").get<std::int64_t>();
    const auto task = other == others.end() ? std::string() : to_string(other->second.made.id);
    const bool generic = !task.empty() && other->second.made.id.kind() == task_kind::generic;
    value shape{{"jobId", task.empty() ? job_name(id) : task},
                {"type", task.empty() ? "TYPE_EXPERIMENT" : type_of_other(other->second.made.id.kind())},
                {"entityId", task.empty() ? to_string(id) : task},
                {"name", generic ? "generic-task" : row->name},
                {"username", owner ? owner->name : row->owner},
                {"submissionTime", to_rfc3339(row->created)},
                {"resourcePool", pool.at("name")},
                {"isPreemptible", task.empty() || generic ? pool.at("preemption") : value(false)},
                {"allocatedSlots", used},
                {"requestedSlots", used + job.at("waiting").get<std::int64_t>()},
                {"progress", row->progress},
                {"workspaceId", !task.empty() ? other->second.made.workspace.value
                                : project     ? project->workspace.value
                                              : 1},
                {"summary", {{"state", state}, {"jobsAhead", pool.at("scheduler") == "fair" ? -1 : ahead}}}};
    if (owner)
      shape["userId"] = owner->id;
    if (pool.at("scheduler") == "fair")
      shape["weight"] = job.at("weight");
    else
      shape["priority"] = job.at("priority");
    ++ahead;
    out.push_back({std::move(shape), state});
  }
  return out;
}

using jobs_answer = std::function<result<value>(const call&, const value& pools, const place_book& places,
                                                const std::map<experiment_id, open_runs>& open)>;

handler with_jobs(jobs_answer make) {
  return [make = std::move(make)](const call_ptr& c, const reply& back) {
    command(c, back, commands::job_list{}, [c, make](value got) -> result<value> {
      auto places = place_book::read(*c->parts->storage);
      if (!places)
        return places.error();
      auto open = open_runs_by_job(*c->parts->storage);
      return open ? make(*c, got.value("pools", value::array()), *places, *open) : open.error();
    });
  };
}

jobs_answer list_of_jobs(bool wrapped) {
  return [wrapped](const call& c, const value& pools, const place_book& places,
                   const std::map<experiment_id, open_runs>& open) -> result<value> {
    const std::string wanted(c.query.first("resourcePool"));
    std::vector<std::string> states;
    for (const auto& [key, one] : c.query.all)
      if (key == "states")
        states.push_back(one);
    std::vector<shown_job> all;
    for (const auto& pool : pools) {
      const bool meant = wanted.empty() ? pool.at("default") == true : pool.at("name") == wanted;
      if (!meant)
        continue;
      auto some = jobs_of(pool, *c.parts, places, open);
      if (!some)
        return some.error();
      all = std::move(*some);
    }
    if (!states.empty())
      std::erase_if(all, [&](const shown_job& job) {
        return std::find(states.begin(), states.end(), job.state) == states.end();
      });
    if (c.query.first("orderBy") == "ORDER_BY_DESC")
      std::reverse(all.begin(), all.end());
    auto part = page_of(c.query, all.size());
    if (!part)
      return part.error();
    value jobs = value::array();
    for (auto i = part->first; i < part->last; ++i)
      jobs.push_back(wrapped ? value{{"full", std::move(all[i].shape)}} : std::move(all[i].shape));
    return value{{"jobs", std::move(jobs)}, {"pagination", part->pagination}};
  };
}

result<value> job_stats(const call& c, const value& pools, const place_book& places,
                        const std::map<experiment_id, open_runs>& open) {
  std::vector<std::string> wanted;
  for (const auto& [key, one] : c.query.all)
    if (key == "resourcePools")
      wanted.push_back(one);
  value results = value::array();
  for (const auto& pool : pools) {
    const auto name = pool.at("name").get<std::string>();
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end())
      continue;
    auto jobs = jobs_of(pool, *c.parts, places, open);
    if (!jobs)
      return jobs.error();
    const auto queued = std::count_if(jobs->begin(), jobs->end(),
                                      [](const shown_job& job) { return job.state == "STATE_QUEUED"; });
    results.push_back(
      {{"resourcePool", name},
       {"stats",
        {{"queuedCount", queued}, {"scheduledCount", static_cast<std::ptrdiff_t>(jobs->size()) - queued}}},
       {"aggregates", value::array()}});
  }
  return value{{"results", std::move(results)}};
}

constexpr std::int64_t most_number = 1'000'000'000; ///< of slots and of a weight
constexpr const char* above_most = "has to be at most 1000000000";

/// Empty where the order's priority, if it has one, is possible.
std::string fault_of_priority(const commands::experiment_set& order) {
  const auto given = order.priority.value_or(1);
  return given < 1 || given > 99 ? "priority must be between 1 and 99, not " + std::to_string(given) : "";
}

/// Empty where the order's weight, if it has one, is possible. `zero`: whether it may be 0.
std::string fault_of_weight(const commands::experiment_set& order, bool zero) {
  const auto given = order.weight.value_or(1);
  if (!(zero ? given >= 0 : given > 0))
    return zero ? "has to be 0 or more" : "has to be above 0";
  return given > most_number ? above_most : "";
}

using job_order = std::variant<commands::experiment_set, commands::task_set>;

error joined(const std::vector<error>& faults) {
  if (faults.size() == 1)
    return faults.front();
  error all{faults.front().code, "encountered the following errors: "};
  for (const auto& one : faults)
    all.what += (&one == &faults.front() ? "" : "; ") + one.what;
  return all;
}

/// The orders that the updates ask for. All faults are found here, before any order is carried out.
result<std::vector<job_order>> job_orders(const call& c, const value& updates) {
  std::vector<job_order> orders;
  std::vector<error> faults;
  auto book = place_book::read(*c.parts->storage);
  auto rules = rules_in_force(c);
  if (!book || !rules)
    return !book ? book.error() : rules.error();
  // Whether the caller may give the order. Who may not is told nothing else of the job.
  const auto may = [&](const auto& order, const authority::resource& on) {
    auto fine = allowed(c, action::change, on);
    if (fine)
      fine = may_order(c.parts->cluster, c.by.who, order);
    if (!fine)
      faults.push_back(fine.error());
    return bool(fine);
  };
  for (const auto& one : updates) {
    if (!one.is_object())
      return error{errc::invalid, "updates: has to be a list of objects"};
    fields update{one, "updates"};
    const auto wrong = [&](errc code, std::string what) { faults.push_back({code, std::move(what)}); };
    update.need("jobId");
    const auto job = update.text("jobId");
    const experiment_id id = job_experiment(job);
    for (const char* place : {"aheadOf", "behindOf"})
      if (update.has(place))
        update.fault(place, "is not possible: set a priority or a weight");
    commands::experiment_set order;
    order.id = id;
    if (update.has("priority"))
      order.priority = update.number("priority");
    if (update.has("weight"))
      order.weight = update.real("weight");
    if (update.has("resourcePool"))
      order.pool = update.text("resourcePool");
    if (update.bad()) {
      faults.push_back(*update.bad());
      continue;
    }
    if (const auto bad = fault_of_priority(order); !bad.empty())
      wrong(errc::invalid, "updates.priority: " + bad);
    if (const auto bad = fault_of_weight(order, false); !bad.empty())
      wrong(errc::invalid, "updates.weight: " + bad);
    if (const auto task = parse_task(job); task && !task.is_trial()) {
      auto row = c.parts->storage->other_task(task);
      if (!row) {
        wrong(errc::not_found, "job '" + job + "' not found");
        continue;
      }
      commands::task_set with{to_string(task), order.priority.value_or(0), {}};
      if (!may(with, {thing::task, to_string(task), row->made.owner}))
        continue;
      if (terminal(row->state))
        wrong(errc::conflict, "task " + to_string(task) + " has ended");
      if (!order.priority || order.weight || order.pool) {
        wrong(errc::invalid, "updates: of a task that is not a trial only the priority changes");
        continue;
      }
      if (auto fine = check_constraints({{"resources", {{"priority", *order.priority}}}},
                                        rules->constraints_of(row->made.workspace, "NTSC"));
          !fine)
        faults.push_back(fine.error());
      orders.emplace_back(std::move(with));
      continue;
    }
    auto row = c.parts->storage->experiment(id);
    if (!row) {
      wrong(errc::not_found, "job '" + job + "' not found");
      continue;
    }
    if (!may(order, {thing::experiment, to_string(id), row->owner}))
      continue;
    if (!order.priority && !order.weight && !order.pool)
      wrong(errc::invalid,
            "updates: nothing is set for job '" + job + "': name priority, weight or resourcePool");
    if (terminal(row->state))
      wrong(errc::conflict, "experiment " + to_string(id) + " has ended");
    else if (row->unmanaged)
      wrong(errc::conflict,
            "experiment " + to_string(id) + " is unmanaged: nothing of it runs here, or waits for slots");
    const auto* in = book->find(row->project);
    const auto workspace = in ? in->workspace : workspace_id{1};
    if (auto fine = rules->check_change(workspace, order); !fine)
      faults.push_back(fine.error());
    if (order.pool) {
      auto usable = usable_pools(c, *book, workspace);
      if (!usable)
        return usable.error();
      const auto* of = book->find(workspace);
      if (auto fine = config::pool_choice{std::move(*usable), of ? of->name : ""}.check(*order.pool); !fine)
        wrong(errc::invalid, fine.error().what.substr(0, fine.error().what.find('\n'))); // others may follow
    }
    orders.emplace_back(std::move(order));
  }
  return faults.empty() ? result<std::vector<job_order>>(std::move(orders)) : joined(faults);
}

/// Gives all orders together. An order that has become impossible since it was checked does not keep the
/// others from being carried out.
void update_jobs(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  const auto& updates = f.list("updates");
  if (f.bad())
    return back(failure(*f.bad()));
  auto made = job_orders(*c, updates);
  if (!made)
    return back(failure(made.error()));
  struct work {
    std::mutex mutex;
    std::size_t left = 0;
    std::vector<error> faults;
  };
  auto all = std::make_shared<work>();
  all->left = made->size() + 1;
  const auto done = [all, c, back](const result<value>& got) {
    std::lock_guard lock(all->mutex);
    if (!got)
      all->faults.push_back(got.error());
    if (--all->left == 0)
      back(all->faults.empty() ? json(value::object(), c->query.has("pretty"))
                               : failure(joined(all->faults)));
  };
  std::vector<grouped_order> orders;
  for (auto& one : *made)
    orders.push_back(std::visit([&](auto& order) { return grouped(std::move(order), done); }, one));
  c->parts->cluster.call_together(c->by.who, std::move(orders));
  done(value());
}

} // namespace

result<commands::experiment_set> resource_patch(experiment_id id, const value& body, bool zero_weight) {
  fields f{body};
  commands::experiment_set with;
  with.id = id;
  if (f.has("priority"))
    with.priority = f.number("priority");
  if (f.has("weight"))
    with.weight = f.real("weight");
  if (const auto bad = fault_of_priority(with); !bad.empty())
    f.fault("priority", bad);
  if (const auto bad = fault_of_weight(with, zero_weight); !bad.empty())
    f.fault("weight", bad);
  auto limit = body.find("maxSlots"); // null is not the same as absent
  if (limit == body.end())
    limit = body.find("max_slots");
  if (limit != body.end())
    with.max_slots = limit->is_null() || *limit == "none" ? -1 : f.number("maxSlots");
  if (with.max_slots && *with.max_slots < 0 && !limit->is_null() && *limit != "none")
    f.fault("maxSlots", "has to be 0 or more, or null for any number");
  if (with.max_slots && *with.max_slots > most_number)
    f.fault("maxSlots", above_most);
  if (f.has("pool"))
    with.pool = f.text("pool");
  if (f.bad())
    return *f.bad();
  return with;
}

std::vector<route> pool_routes() {
  const authority::need view{action::view, thing::cluster}, change{action::change, thing::agent};
  const auto post = [&](const char* path, handler run, const char* takes, const char* answers,
                        const char* doc) {
    return route{"POST", path, change, std::move(run), takes, answers, doc};
  };
  std::vector<route> rows = {
    {"GET", "/troupe/v1/pools", view, all_pools, "", "Pools",
     "The resource pools with their slots and what waits."},
    {"GET", "/troupe/v1/pools/{name}", view, one_pool, "", "Pool", "One pool with its jobs and quotas."},
    {"GET", "/troupe/v1/queue", view, queue, "", "Queue",
     "Allocations that wait for slots, by pool and turn; with `at` those that waited after that fact."},
    {"GET",
     "/troupe/v1/trials/{trialId}/explain",
     {action::view, thing::search},
     explain_trial,
     "",
     "Explanation",
     "Why a trial is where it is: what it waits for, who holds it, and what would help."},
    {"GET",
     "/troupe/v1/allocations/{allocationId}/explain",
     {action::view, thing::search},
     explain_allocation,
     "",
     "Explanation",
     "The same of one run, also of a task that is not a trial."},
    {"GET",
     "/troupe/v1/tasks/{taskId}/explain",
     {action::view, thing::task},
     explain_task,
     "",
     "Explanation",
     "The same of a task that is not a trial."},
    {"GET",
     "/troupe/v1/experiments/{experimentId}/explain",
     {action::view, thing::search},
     explain_experiment,
     "",
     "ExperimentExplanation",
     "How many of its trials run, wait and are paused, and why the first 20 wait."},
    {"POST",
     "/troupe/v1/experiments/{experimentId}/resources",
     {action::change, thing::experiment},
     set_resources,
     "ExperimentResources",
     "Empty",
     "Changes priority, weight, max_slots or pool of a live experiment; durable when answered."},
    post("/api/v1/agents/{agentId}/enable", of_agent(true), "", "v1EnableAgentResponse",
         "Places work on the agent again."),
    post(
      "/api/v1/agents/{agentId}/disable", of_agent(false), "v1DisableAgentRequest", "v1DisableAgentResponse",
      "Places nothing new on the agent. What runs there is killed: trials and generic tasks run elsewhere, "
      "other tasks end; or, with `drain`, it ends by itself."),
    post("/api/v1/agents/{agentId}/slots/{slotId}/enable", of_slot(true), "", "v1EnableSlotResponse",
         "Places work on the slot again."),
    post("/api/v1/agents/{agentId}/slots/{slotId}/disable", of_slot(false), "v1DisableSlotRequest",
         "v1DisableSlotResponse", "As of an agent, of one slot."),
    {"GET", "/api/v1/resource-pools", view, resource_pools, "", "v1GetResourcePoolsResponse",
     "The resource pools."},
    {"GET", "/api/v1/job-queues", view, with_jobs(list_of_jobs(false)), "", "v1GetJobsResponse",
     "The jobs of a pool, the first in turn first."},
    {"GET", "/api/v1/job-queues-v2", view, with_jobs(list_of_jobs(true)), "", "v1GetJobsV2Response",
     "The jobs of a pool, the first in turn first."},
    {"GET", "/api/v1/job-queues/stats", view, with_jobs(job_stats), "", "v1GetJobQueueStatsResponse",
     "How many jobs wait and run, by pool."},
    asks_again({"POST",
                "/api/v1/job-queues",
                {action::change, thing::experiment},
                update_jobs,
                "v1UpdateJobQueueRequest",
                "Empty",
                "Changes priority, weight or pool of jobs."}),
  };
  for (auto& row : rows)
    row.slow = row.path == "/troupe/v1/queue"; // folding the past of a long queue takes long
  return rows;
}

} // namespace troupe::api

#include "runtime/api/past.hpp"

#include "model/config/cluster_config.hpp"
#include "model/facts.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/slot_usage.hpp"

#include <algorithm>
#include <set>

namespace troupe::api {
namespace {

constexpr std::size_t most_stories = 3, most_pasts = 6, most_queues = 50, batch = 4096;
/// Times of facts may differ from the order of facts by this much.
constexpr auto slack = std::chrono::minutes(1);

time_point time_of(const fact& x) {
  return std::visit([](const auto& one) { return one.at; }, x);
}
const char* tag_of(const fact& x) {
  return std::visit([](const auto& one) { return std::decay_t<decltype(one)>::tag; }, x);
}

/// Where the fact places a run, or how it ends a run or a trial; null for other facts.
value place_or_end_in(const fact& x) {
  if (const auto* placed = std::get_if<allocation_placed>(&x)) {
    value on = value::array();
    for (const auto& part : placed->on)
      on.push_back({{"agent", part.agent}, {"slots", part.slots}});
    return {{"on", std::move(on)}};
  }
  if (const auto* closed = std::get_if<allocation_closed>(&x))
    return {{"why", name(closed->why)}};
  if (const auto* ended = std::get_if<run_ended>(&x))
    return {{"why", name(ended->why)}};
  if (const auto* ended = std::get_if<trial_ended>(&x))
    return {{"state", name(ended->state)}};
  return {};
}

/// A reader of the past: rows and facts come from the folded journal, reports are those up to that time, and
/// everything else is as it is now.
class past_reader : public storage::reader {
public:
  past_reader(std::unique_ptr<storage::journal> then, std::shared_ptr<storage::reader> now,
              std::uint64_t sequence, time_point at)
      : journal_(std::move(then)), then_(journal_->reads()), now_(std::move(now)), sequence_(sequence),
        at_(at) {}

  std::uint64_t sequence() const override { return sequence_; }
  trial_id newest_trial() const override { return then_->newest_trial(); }
  result<std::vector<experiment_row>> experiments() const override { return then_->experiments(); }
  result<std::vector<experiment_standing>> experiment_standings() const override {
    return then_->experiment_standings();
  }
  result<experiment_row> experiment(experiment_id id) const override { return then_->experiment(id); }
  result<std::vector<experiment_id>> experiments_with_key(std::string_view key) const override {
    return now_->experiments_with_key(key);
  }
  result<std::vector<trial_row>> trials(experiment_id id) const override { return then_->trials(id); }
  result<std::vector<trial_id>> trial_ids(experiment_id id) const override { return then_->trial_ids(id); }
  result<trial_row> trial(trial_id id) const override { return then_->trial(id); }
  result<trial_id> trial_with_name(const local_name& name) const override {
    return now_->trial_with_name(name);
  }
  result<task_row> task(task_id id) const override { return then_->task(id); }
  result<std::vector<run_row>> runs(task_id id) const override { return then_->runs(id); }
  result<task_detail> other_task(task_id id) const override { return now_->other_task(id); }
  result<std::vector<task_detail>> other_tasks(task_kind kind, time_point since) const override {
    return now_->other_tasks(kind, since);
  }
  result<std::vector<task_row>> open_tasks() const override { return then_->open_tasks(); }
  result<std::vector<metric_row>> metrics(trial_id id, std::uint64_t after, std::size_t limit,
                                          std::string_view group) const override {
    auto rows = now_->metrics(id, after, limit, group);
    if (rows)
      std::erase_if(*rows, [&](const auto& row) { return row.at > at_; });
    return rows;
  }
  result<metric_row> metric(trial_id id, std::uint64_t row) const override { return now_->metric(id, row); }
  result<std::vector<checkpoint_row>> checkpoints(trial_id id) const override {
    return then_->checkpoints(id);
  }
  result<checkpoint_row> checkpoint(std::string_view uuid) const override { return then_->checkpoint(uuid); }
  result<std::vector<log_line>> logs(task_id id, std::uint64_t after, std::size_t limit) const override {
    return now_->logs(id, after, limit);
  }
  result<std::vector<log_line>> logs_before(task_id id, std::uint64_t before,
                                            std::size_t limit) const override {
    return now_->logs_before(id, before, limit);
  }
  result<std::vector<storage::committed_fact>> facts_after(std::uint64_t after,
                                                           std::size_t limit) const override {
    return then_->facts_after(after, limit);
  }
  result<std::vector<std::string>> facts_of(std::string_view entity, std::uint64_t first) const override {
    return then_->facts_of(entity, first);
  }
  result<std::uint64_t> next_of(std::string_view entity) const override { return then_->next_of(entity); }
  result<std::vector<user_changed>> users() const override { return now_->users(); }
  result<std::vector<token_changed>> tokens() const override { return now_->tokens(); }
  result<std::vector<setting_changed>> settings() const override { return now_->settings(); }
  result<std::optional<configuration_changed>> configuration() const override {
    return now_->configuration();
  }
  result<std::vector<workspace_changed>> workspaces() const override { return now_->workspaces(); }
  result<std::vector<project_changed>> projects() const override { return now_->projects(); }
  result<std::vector<template_changed>> templates() const override { return now_->templates(); }
  result<std::vector<model_changed>> models() const override { return now_->models(); }
  result<std::vector<model_version_changed>> model_versions() const override {
    return now_->model_versions();
  }
  result<std::vector<std::string>> records(std::string_view tag, std::string_view prefix) const override {
    return now_->records(tag, prefix);
  }
  result<std::optional<storage::kept_snapshot>> snapshot_of(std::string_view entity) const override {
    return then_->snapshot_of(entity);
  }
  result<std::vector<std::string>> entities(std::string_view kind) const override {
    return then_->entities(kind);
  }
  result<std::string> blob(std::string_view name) const override { return now_->blob(name); }

private:
  std::unique_ptr<storage::journal> journal_;
  std::shared_ptr<storage::reader> then_, now_;
  std::uint64_t sequence_;
  time_point at_;
};

/// The sequence of the last fact of the cluster that is older than `at`; 0 where there is none. Times rise
/// with the sequence, except for `slack`.
result<std::uint64_t> last_before(const storage::reader& from, time_point at) {
  std::uint64_t low = 0, high = from.sequence();
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    auto one = from.facts_after(middle, 1);
    if (!one)
      return one.error();
    auto known = one->empty() ? result<fact>(error{errc::not_found, ""}) : decode(one->front().bytes);
    if (!known)
      return std::uint64_t{0}; // then all facts have to be looked at
    if (time_of(*known) < at - slack)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

constexpr task_kind other_kinds[] = {task_kind::command, task_kind::notebook, task_kind::shell,
                                     task_kind::tensorboard, task_kind::generic};

/// The experiments and tasks that may have had a run that waited at that time, and when the first of them was
/// created.
struct suspects {
  std::set<experiment_id> experiments;
  std::set<task_id> others;
  time_point since = time_point::max();

  static result<suspects> at(const storage::reader& now, time_point then) {
    suspects out;
    const auto there = [&](time_point created, time_point ended) {
      const bool was = created <= then + slack && (ended == time_point{} || ended >= then - slack);
      if (was)
        out.since = std::min(out.since, created);
      return was;
    };
    auto experiments = now.experiments();
    if (!experiments)
      return experiments.error();
    for (const auto& row : *experiments)
      if (!row.unmanaged && there(row.created, row.ended))
        out.experiments.insert(row.id);
    for (const auto kind : other_kinds) {
      auto tasks = now.other_tasks(kind);
      if (!tasks)
        return tasks.error();
      for (const auto& one : *tasks)
        if (there(one.made.at, one.ended))
          out.others.insert(one.made.id);
    }
    return out;
  }
};

/// The configuration of the cluster that was in force at that time; nullopt where it has been replaced since.
result<std::optional<value>> configuration_at(const storage::reader& now, time_point then) {
  auto known = now.configuration();
  if (!known)
    return known.error();
  if (!*known)
    return std::optional<value>(value()); // the cluster never had a configuration
  return (*known)->at <= then ? std::optional((*known)->configuration) : std::nullopt;
}

/// The pool, priority and weight of a waiting run: those of its own `resources`, or those that a user set
/// later.
struct terms {
  value pool, priority, weight = 1;

  terms(const value& resources, const experiment_row* of) {
    const auto given = [&](const char* key) {
      return resources.is_object() ? resources.value(key, value()) : value();
    };
    if (auto x = given("resource_pool"); x.is_string() && x != "")
      pool = std::move(x);
    if (auto x = given("priority"); x.is_number_integer())
      priority = std::move(x);
    if (auto x = given("weight"); x.is_number())
      weight = std::move(x);
    if (!of || of->resources.empty())
      return;
    const auto& set = of->resources.front();
    if (!set.pool.empty())
      pool = set.pool;
    if (set.priority > 0)
      priority = set.priority;
    weight = set.weight;
  }

  /// Fills what neither of these gives with the cluster's defaults.
  void fill(const value& cluster) {
    constexpr int usual_priority = 42;
    if (pool.is_null())
      pool = config::default_pool(cluster);
    if (priority.is_null())
      priority = config::pool_settings(cluster, pool.get<std::string>())
                   .value("default_priority", value(usual_priority));
  }
};

value waiting_row(allocation_id id, experiment_id job, const run_row& run, const terms& with, value slots) {
  return {{"position", nullptr},
          {"allocation", to_string(id)},
          {"trial", id.task.is_trial() ? id.trial().value : 0},
          {"experiment", id.task.is_trial() ? value(job.value) : value()},
          {"pool", with.pool},
          {"slots", slots.is_number_integer() ? std::move(slots) : value(1)},
          {"priority", with.priority},
          {"weight", with.weight},
          {"since", to_rfc3339(run.started)},
          {"reason", nullptr}};
}

value resources_in(const value& config) {
  return config.is_object() ? config.value("resources", value::object()) : value::object();
}

/// The open runs that have no place.
result<value> waiting_in(const storage::reader& then, const std::optional<value>& cluster) {
  auto open = then.open_tasks();
  if (!open)
    return open.error();
  std::vector<std::pair<time_point, value>> all;
  for (const auto& task : *open) {
    auto runs = then.runs(task.id);
    if (!runs)
      return runs.error();
    if (runs->empty() || runs->back().placed != time_point{} || runs->back().ended != time_point{})
      continue; // also a collection of checkpoints in the master itself, which has no agent
    const auto& run = runs->back();
    const auto add = [&](terms with, experiment_id job, value slots) {
      if (cluster)
        with.fill(*cluster);
      auto row = waiting_row({task.id, run.run}, job, run, with, std::move(slots));
      row["user"] = task.owner;
      all.emplace_back(run.started, std::move(row));
    };
    if (task.id.is_trial()) {
      auto of = then.experiment(task.experiment);
      if (!of)
        return of.error();
      add(terms(resources_in(of->config), &*of), of->id, slots_of(*of));
    } else {
      auto of = then.other_task(task.id);
      if (!of)
        return of.error();
      const auto resources = resources_in(of->made.config);
      terms with(resources, nullptr);
      with.pool = of->made.pool;
      if (of->priority > 0)
        with.priority = of->priority;
      add(std::move(with), job_of(task.id), resources.value("slots", value(0)));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const auto &x = a.second.at("pool"), &y = b.second.at("pool");
    return x != y ? x < y : a.first < b.first;
  });
  value list = value::array();
  for (auto& [since, row] : all)
    list.push_back(std::move(row));
  return list;
}

} // namespace

std::shared_ptr<past_shelf::story> past_shelf::story_of(experiment_id of) {
  std::lock_guard lock(mutex_);
  const auto at =
    std::find_if(stories_.begin(), stories_.end(), [&](const auto& x) { return x.first == of; });
  if (at != stories_.end())
    stories_.splice(stories_.begin(), stories_, at);
  else
    stories_.emplace_front(of, std::make_shared<story>());
  if (stories_.size() > most_stories)
    stories_.pop_back();
  return stories_.front().second;
}

result<void> past_shelf::read_on(story& of, const services& now, const experiment_row& row) {
  const auto own = entity(row.id);
  if (of.up_to == 0) {
    auto start = last_before(*now.storage, row.created);
    if (!start)
      return start.error();
    of.up_to = *start;
  }
  for (bool more = true; more;) {
    auto facts = now.storage->facts_after(of.up_to, batch);
    if (!facts)
      return facts.error();
    more = facts->size() == batch;
    for (auto& one : *facts) {
      of.up_to = one.sequence;
      const std::string_view name = one.entity;
      const auto slash = name.find('/');
      const auto kind = name.substr(0, slash);
      moment what;
      what.sequence = one.sequence;
      if (kind == "trial" || kind == "allocation") {
        const auto rest = name.substr(slash + 1);
        const auto task = kind == "trial" ? parse_task(rest) : parse_allocation(rest).task;
        auto [ours, fresh] = of.ours.try_emplace(task);
        if (fresh) {
          auto known = now.storage->task(task);
          ours->second = known && known->experiment == row.id;
        }
        if (!ours->second)
          continue;
        what.trial = task.trial();
      } else if (name != own && name != cluster_entity)
        continue;
      auto known = decode(one.bytes);
      if (!known)
        return known.error();
      if (name == cluster_entity) {
        const auto* made = std::get_if<experiment_created>(&*known);
        if (!made || made->id != row.id)
          continue;
        one.number = 0; // the folded past has only this fact in the stream of the cluster
      }
      what.at = time_of(*known);
      what.type = tag_of(*known);
      if (kind == "allocation")
        what.run = parse_allocation(name.substr(slash + 1)).run;
      else if (const auto* ended = std::get_if<run_ended>(&*known))
        what.run = ended->run;
      what.told = place_or_end_in(*known);
      of.facts.push_back({what, std::move(one)});
    }
  }
  return {};
}

result<std::vector<past_shelf::moment>> past_shelf::history(const services& now, const experiment_row& of) {
  const auto known = story_of(of.id);
  std::lock_guard lock(known->mutex);
  if (auto ok = read_on(*known, now, of); !ok)
    return ok.error();
  std::vector<moment> out;
  out.reserve(known->facts.size());
  for (const auto& one : known->facts)
    out.push_back(one.what);
  return out;
}

result<past_shelf::past> past_shelf::after(const std::shared_ptr<const services>& now,
                                           const experiment_row& of, std::uint64_t sequence) {
  if (!make_)
    return error{errc::unsupported, "this server does not show the past"};
  const auto known = story_of(of.id);
  std::lock_guard lock(known->mutex);
  if (sequence > known->up_to)
    if (auto ok = read_on(*known, *now, of); !ok)
      return ok.error();
  const auto end = std::upper_bound(known->facts.begin(), known->facts.end(), sequence,
                                    [](std::uint64_t x, const auto& one) { return x < one.what.sequence; });
  if (end == known->facts.begin())
    return error{errc::invalid,
                 "experiment " + to_string(of.id) + " was created after fact " + std::to_string(sequence)};
  const auto& last = std::prev(end)->what;
  const std::pair name{of.id, last.sequence};
  {
    std::lock_guard all(mutex_);
    for (const auto& [key, one] : pasts_)
      if (key == name)
        return one;
  }
  auto journal = make_();
  std::size_t queued = 0;
  for (auto one = known->facts.begin(); one != end; ++one) {
    if (auto ok = journal->append({one->fact.entity, one->fact.number, {one->fact.bytes}}); !ok)
      return ok.error();
    if (++queued % batch == 0)
      if (auto done = journal->commit(); !done)
        return done.error();
  }
  if (auto done = journal->commit(); !done)
    return done.error();
  auto parts = std::make_shared<services>(*now);
  parts->storage = std::make_shared<past_reader>(std::move(journal), now->storage, last.sequence, last.at);
  parts->columns = std::make_shared<series_columns>();
  parts->past = nullptr;
  past made{std::move(parts), last.at};
  std::lock_guard all(mutex_);
  pasts_.emplace_front(name, made);
  if (pasts_.size() > most_pasts)
    pasts_.pop_back();
  return made;
}

/// A journal with the folded facts up to `sequence` of everything that may have waited then.
result<std::unique_ptr<storage::journal>> past_shelf::open_then(const services& now, time_point at,
                                                                std::uint64_t sequence) const {
  auto who = suspects::at(*now.storage, at);
  if (!who)
    return who.error();
  auto then = make_();
  if (who->experiments.empty() && who->others.empty())
    return then;
  auto after = last_before(*now.storage, who->since);
  if (!after)
    return after.error();
  std::map<task_id, bool> wanted;
  const auto is_wanted = [&](task_id task) {
    auto [known, fresh] = wanted.try_emplace(task, who->others.contains(task));
    if (fresh && task.is_trial())
      if (auto row = now.storage->task(task))
        known->second = who->experiments.contains(row->experiment);
    return known->second;
  };
  std::uint64_t creations = 0; // the folded past has only creations in the stream of the cluster
  for (bool more = true; more && *after < sequence;) {
    auto facts = now.storage->facts_after(*after, batch);
    if (!facts)
      return facts.error();
    more = facts->size() == batch;
    for (auto& one : *facts) {
      if (one.sequence > sequence)
        break;
      *after = one.sequence;
      const std::string_view name = one.entity;
      const auto slash = name.find('/');
      const auto kind = name.substr(0, slash),
                 rest = slash == name.npos ? std::string_view{} : name.substr(slash + 1);
      if (name == cluster_entity) {
        auto known = decode(one.bytes);
        const auto* made = known ? std::get_if<experiment_created>(&*known) : nullptr;
        if (!made || !who->experiments.contains(made->id))
          continue;
        one.number = creations++;
      } else if (!(kind == "experiment"   ? who->experiments.contains(parse_id<experiment_id>(rest))
                   : kind == "allocation" ? is_wanted(parse_allocation(rest).task)
                   : kind == "trial" || kind == "task" ? is_wanted(parse_task(rest))
                                                       : false))
        continue;
      if (auto ok = then->append({one.entity, one.number, {std::move(one.bytes)}}); !ok)
        return ok.error();
    }
    if (auto done = then->commit(); !done)
      return done.error();
  }
  return then;
}

namespace {

result<void> is_past(const storage::reader& now, std::uint64_t sequence) {
  if (const auto newest = now.sequence(); sequence > newest)
    return error{errc::invalid, "there is no fact " + std::to_string(sequence) + " yet; the newest is " +
                                  std::to_string(newest)};
  return {};
}

} // namespace

result<value> past_shelf::queue_after(const services& now, std::uint64_t sequence) {
  if (!make_)
    return error{errc::unsupported, "this server does not show the past"};
  if (auto there = is_past(*now.storage, sequence); !there)
    return there.error();
  {
    std::lock_guard all(mutex_);
    for (const auto& [number, made] : queues_)
      if (number == sequence)
        return made;
  }
  auto one = now.storage->facts_after(sequence - 1, 1);
  if (!one)
    return one.error();
  auto known =
    one->empty() ? result<fact>(error{errc::not_found, "that fact is not kept"}) : decode(one->front().bytes);
  if (!known)
    return known.error();
  const auto at = time_of(*known);
  auto cluster = configuration_at(*now.storage, at);
  if (!cluster)
    return cluster.error();
  auto then = open_then(now, at, sequence);
  auto list = then ? waiting_in(*(*then)->reads(), *cluster) : result<value>(then.error());
  if (!list)
    return list;
  value out{{"waiting", std::move(*list)}, {"sequence", sequence}, {"at", to_rfc3339(at)}};
  std::lock_guard all(mutex_);
  queues_.emplace_front(sequence, out);
  if (queues_.size() > most_queues)
    queues_.pop_back();
  return out;
}

handler as_of(handler run) {
  return [run = std::move(run)](const call_ptr& c, const reply& back) {
    if (!c->query.has("at"))
      return run(c, back);
    auto sequence = c->query.number("at", 0);
    if (!sequence || *sequence < 1)
      return back(failure({errc::invalid, "at has to be the number of a fact"}));
    auto id = c->path.contains("experimentId") ? parse_id<experiment_id>(c->named("experimentId"))
                                               : parse_id<experiment_id>(c->query.first("experiment"));
    if (!id) {
      const auto trials = c->query.first("trials");
      auto trial = c->parts->storage->trial(parse_id<trial_id>(trials.substr(0, trials.find(','))));
      if (!trial)
        return run(c, back); // the handler says what is wrong
      id = trial->experiment;
    }
    auto row = c->parts->storage->experiment(id);
    if (!row)
      return run(c, back);
    if (auto there = is_past(*c->parts->storage, static_cast<std::uint64_t>(*sequence)); !there)
      return back(failure(there.error()));
    auto then = c->parts->past->after(c->parts->all ? c->parts->all : c->parts, *row,
                                      static_cast<std::uint64_t>(*sequence));
    if (!then)
      return back(failure(then.error()));
    auto past = std::make_shared<call>(*c);
    past->parts = then->parts; // they hold only this experiment, which the caller may see: it was just found
    past->now = then->at;
    run(past, back);
  };
}

} // namespace troupe::api

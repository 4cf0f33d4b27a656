#include "runtime/api/past.hpp"

#include "model/facts.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/series_columns.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

constexpr std::size_t most_stories = 3, most_pasts = 6, batch = 4096;
constexpr auto slack = std::chrono::minutes(1); ///< by which times of facts may be out of their order

time_point time_of(const fact& x) {
  return std::visit([](const auto& one) { return one.at; }, x);
}
const char* tag_of(const fact& x) {
  return std::visit([](const auto& one) { return std::decay_t<decltype(one)>::tag; }, x);
}

/// What was: rows and facts of the experiment as they were folded again, its reports up to that time, and all
/// else as it is now.
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
  result<experiment_id> experiment_with_key(std::string_view key) const override {
    return now_->experiment_with_key(key);
  }
  result<std::vector<trial_row>> trials(experiment_id id) const override { return then_->trials(id); }
  result<trial_row> trial(trial_id id) const override { return then_->trial(id); }
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

/// The last fact of the cluster that is older than `at`, 0 where there is none: times rise with the sequence,
/// but for `slack`.
result<std::uint64_t> last_before(const storage::reader& from, time_point at) {
  std::uint64_t low = 0, high = from.sequence();
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    auto one = from.facts_after(middle, 1);
    if (!one)
      return one.error();
    auto known = one->empty() ? result<fact>(error{errc::not_found, ""}) : decode(one->front().bytes);
    if (!known)
      return std::uint64_t{0}; // all are looked at
    if (time_of(*known) < at - slack)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
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
        one.number = 0; // it is alone in its stream, in the past
      }
      what.at = time_of(*known);
      what.type = tag_of(*known);
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
        return run(c, back); // which says what is wrong
      id = trial->experiment;
    }
    auto row = c->parts->storage->experiment(id);
    if (!row)
      return run(c, back);
    auto then = c->parts->past->after(c->parts->all ? c->parts->all : c->parts, *row,
                                      static_cast<std::uint64_t>(*sequence));
    if (!then)
      return back(failure(then.error()));
    auto past = std::make_shared<call>(*c);
    past->parts = then->parts; // which hold one experiment, that may be seen: it was just found
    past->now = then->at;
    run(past, back);
  };
}

} // namespace troupe::api

#include "actors/cluster/cluster_explain_part.hpp"

#include "actors/shells/obey.hpp"
#include "model/config/cluster_config.hpp"
#include "model/names.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr auto patience = std::chrono::seconds(10);
constexpr std::size_t most_experiments = 50; ///< limit of the experiments whose ended runs one answer reads
constexpr std::size_t most_explained = 20;   ///< limit of the trials of an experiment that are explained
constexpr std::uint64_t newest_facts = 200;  ///< number of facts of a trial that one answer reads

} // namespace

template <class Of>
cluster_explain::question cluster_explain::question_of(Of of) const {
  question x{of.allocation(), of.open(), of.pool, {}};
  x.answer = [of = std::move(of), self = self_](const value& said, const std::string& doing) {
    return explanation_of(of, said, doing, self->now());
  };
  return x;
}

void cluster_explain::explain(const question& x, const done_callback& done) {
  const auto pool = with_.pool(x.pool);
  if (!x.open || !pool)
    return done(x.answer({}, {}));
  self_->request(pool, patience, explain_allocation{x.run, {}})
    .then(
      [this, x, pool, done](allocation_explained& got) {
        const auto code =
          got.why.is_object() ? got.why.at("reason").at("code").get<std::string>() : std::string();
        if (code.empty() || code == "running")
          return look(x, std::move(got.why), done);
        ask_again(x, pool, std::move(got.why), done);
      },
      [done](const caf::error& why) { done(from_caf(why)); });
}

/// Asks the pool again, now with the outlooks of the runs that hold the slots.
void cluster_explain::ask_again(const question& x, const pool_actor& pool, value said,
                                const done_callback& done) {
  auto known = outlooks(said.at("wouldFree"));
  self_->request(pool, patience, explain_allocation{x.run, std::move(known)})
    .then([x, done, before = std::move(said)](
            allocation_explained& got) { done(x.answer(got.why.is_object() ? got.why : before, {})); },
          [done](const caf::error& why) { done(from_caf(why)); });
}

/// Asks the allocation of a run that holds slots what the run does with them.
void cluster_explain::look(const question& x, value said, const done_callback& done) {
  const auto tell = [x, said, done](const command_result& got) {
    done(x.answer(said, got.got ? got.got->value("state", std::string()) : std::string()));
  };
  const auto unknown = [x, said, done](const caf::error&) { done(x.answer(said, {})); };
  const auto ask = [&](const auto& owner) {
    if (owner)
      self_->request(owner, patience, task_call_of(x.run, commands::allocation_look{})).then(tell, unknown);
    else
      done(x.answer(said, {}));
  };
  if (!x.run.task.is_trial())
    return ask(with_.task(x.run.task));
  const auto trial = reads_->trial(x.run.trial());
  ask(trial ? with_.experiment(trial->experiment) : experiment_actor());
}

std::vector<run_outlook> cluster_explain::outlooks(const value& would_free) const {
  std::map<experiment_id, std::vector<trial_row>> siblings;
  std::vector<run_outlook> out;
  for (const auto& one : would_free) {
    const auto id = parse_allocation(one.at("allocation").get<std::string>());
    auto trial = id.task.kind() == task_kind::trial ? reads_->trial(id.trial())
                                                    : result<trial_row>(error{errc::not_found, ""});
    if (!trial || (siblings.size() >= most_experiments && !siblings.contains(trial->experiment)))
      continue;
    auto [known, fresh] = siblings.try_emplace(trial->experiment);
    if (fresh)
      if (auto all = reads_->trials(trial->experiment))
        known->second = std::move(*all);
    auto outlook = outlook_of(*trial, known->second, self_->now());
    if (outlook.from == "progress")
      outlook = outlook_of(*trial, known->second, self_->now(), newest_of(trial->id).progressed);
    if (outlook.allocation == id)
      out.push_back(std::move(outlook));
  }
  return out;
}

void cluster_explain::explain_all(const std::vector<explained_run>& waiting, const done_callback& done) {
  struct gathering {
    std::vector<value> answers;
    std::size_t left = 1;
  };
  auto all = std::make_shared<gathering>();
  all->answers.resize(waiting.size());
  all->left += waiting.size();
  const auto one_less = [all, done] {
    if (--all->left)
      return;
    auto list = value::array();
    for (auto& one : all->answers)
      if (!one.is_null())
        list.push_back(std::move(one));
    done(std::move(list));
  };
  for (std::size_t i = 0; i < waiting.size(); ++i)
    explain(question_of(waiting[i]), [all, one_less, i](result<value> got) {
      if (got)
        all->answers[i] = std::move(*got);
      one_less();
    });
  one_less();
}

caf::result<command_result> cluster_explain::obey(client_command& x) {
  return troupe::obey<commands_here>(x.name, std::move(x.fields),
                                     [this, &x](auto order) { return on(x.user, std::move(order)); });
}

caf::result<command_result> cluster_explain::on(const std::string&, const commands::trial_explain& x) {
  auto row = reads_->trial(x.id);
  if (!row)
    return refused({errc::not_found, "trial " + to_string(x.id) + " not found"});
  const auto run = row->runs.empty() ? run_id{} : row->runs.back().run;
  return answer(std::move(*row), run);
}

caf::result<command_result> cluster_explain::on(const std::string&, const commands::task_explain& x) {
  const auto id = parse_task(x.id);
  auto row = id && !id.is_trial() ? reads_->other_task(id) : result<task_detail>(error{errc::not_found, ""});
  if (!row)
    return refused({errc::not_found, "task " + x.id + " not found"});
  const auto run = row->runs.empty() ? run_id{} : row->runs.back().run;
  return answer(std::move(*row), run);
}

caf::result<command_result> cluster_explain::on(const std::string&, const commands::allocation_explain& x) {
  const auto id = parse_allocation(x.id);
  if (!id)
    return refused({errc::invalid, "'" + x.id + "' is not an allocation\nhint: task and run, as 12.3"});
  const auto of_row = [&](auto row) -> caf::result<command_result> {
    if (!row || std::none_of(row->runs.begin(), row->runs.end(),
                             [&](const run_row& one) { return one.run == id.run; }))
      return refused({errc::not_found, "allocation " + x.id + " not found"});
    return answer(std::move(*row), id.run);
  };
  return id.task.is_trial() ? of_row(reads_->trial(id.trial())) : of_row(reads_->other_task(id.task));
}

caf::result<command_result> cluster_explain::on(const std::string&, const commands::experiment_explain& x) {
  auto row = reads_->experiment(x.id);
  auto trials = row ? reads_->trials(x.id) : result<std::vector<trial_row>>(row.error());
  if (!trials)
    return refused(trials.error());
  std::vector<explained_run> waiting;
  for (const auto& trial : *trials)
    if (waiting.size() < most_explained && place_of(trial, *row) == trial_place::waiting)
      waiting.push_back(explained(trial, *row, trial.runs.back().run));
  auto pool = pool_name_of(who_, *row);
  auto promise = self_->make_response_promise<command_result>();
  explain_all(std::move(waiting), [promise, of = std::move(*row), all = std::move(*trials),
                                   pool = std::move(pool)](result<value> got) mutable {
    if (got)
      got = explanation_of(of, all, pool, std::move(*got));
    promise.deliver(command_result{std::move(got)});
  });
  return promise;
}

caf::result<command_result> cluster_explain::answer(const question& x) {
  auto promise = self_->make_response_promise<command_result>();
  explain(x, [promise](result<value> got) mutable { promise.deliver(command_result{std::move(got)}); });
  return promise;
}

caf::result<command_result> cluster_explain::answer(trial_row row, run_id run) {
  auto of = reads_->experiment(row.experiment);
  if (!of)
    return refused(of.error());
  return answer(question_of(explained(row, *of, run)));
}

caf::result<command_result> cluster_explain::answer(task_detail row, run_id run) {
  return answer(question_of(explained(std::move(row), run)));
}

explained_run cluster_explain::explained(const trial_row& trial, const experiment_row& of, run_id run) const {
  explained_run out{trial, of, run, pool_name_of(who_, of), 42, {}};
  if (!trial.runs.empty() && trial.runs.back().ended != time_point{} && !terminal(trial.state))
    out.retry_at = newest_of(trial.id).retry_at;
  for (const auto& one : trial.runs)
    if (one.run == run && !one.pool.empty())
      out.pool = one.pool;
  out.default_priority = default_priority_of(out.pool);
  return out;
}

trial_news cluster_explain::newest_of(trial_id id) const {
  const auto stream = entity(id);
  const auto next = reads_->next_of(stream);
  if (!next)
    return {};
  const auto facts = reads_->facts_of(stream, *next - std::min(*next, newest_facts));
  return facts ? news_of(*facts) : trial_news{};
}

explained_task cluster_explain::explained(task_detail task, run_id run) const {
  auto pool = task.made.pool;
  for (const auto& one : task.runs)
    if (one.run == run && !one.pool.empty())
      pool = one.pool;
  const int usual = default_priority_of(pool);
  return {std::move(task), run, std::move(pool), usual};
}

int cluster_explain::default_priority_of(const std::string& pool) const {
  const auto settings = config::pool_settings(who_.configuration(), pool);
  const auto given = settings.value("default_priority", value());
  return given.is_number_integer() ? given.get<int>() : 42;
}

} // namespace troupe

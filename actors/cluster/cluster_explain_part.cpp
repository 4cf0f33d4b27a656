#include "actors/cluster/cluster_explain_part.hpp"

#include "actors/shells/obey.hpp"
#include "model/config/cluster_config.hpp"
#include "model/names.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr auto patience = std::chrono::seconds(10);
constexpr std::size_t most_experiments = 50; ///< whose ended runs are read for one answer
constexpr std::size_t most_explained = 20;   ///< trials of an experiment

} // namespace

void cluster_explain::explain(explained_run of, const done_callback& done) {
  const auto pool = with_.pool(of.pool);
  if (!of.open() || !pool)
    return done(explanation_of(of, {}, {}, self_->now()));
  self_->request(pool, patience, explain_allocation{of.allocation(), {}})
    .then(
      [this, of, pool, done](allocation_explained& x) {
        const auto code =
          x.why.is_object() ? x.why.at("reason").at("code").get<std::string>() : std::string();
        if (code.empty() || code == "running")
          return look(of, std::move(x.why), done);
        ask_again(of, pool, std::move(x.why), done);
      },
      [done](const caf::error& why) { done(from_caf(why)); });
}

/// Once more, with what is known of those who hold the slots.
void cluster_explain::ask_again(explained_run of, const pool_actor& pool, value said,
                                const done_callback& done) {
  auto known = outlooks(said.at("wouldFree"));
  self_->request(pool, patience, explain_allocation{of.allocation(), std::move(known)})
    .then(
      [this, of, done, before = std::move(said)](allocation_explained& x) {
        done(explanation_of(of, x.why.is_object() ? x.why : before, {}, self_->now()));
      },
      [done](const caf::error& why) { done(from_caf(why)); });
}

/// A run that holds slots: what it does with them its allocation knows.
void cluster_explain::look(explained_run of, value said, const done_callback& done) {
  const auto experiment = with_.experiment(of.experiment.id);
  if (!experiment)
    return done(explanation_of(of, said, {}, self_->now()));
  self_->request(experiment, patience, task_call_of(of.allocation(), commands::allocation_look{}))
    .then(
      [this, of, said, done](const command_result& x) {
        const auto doing = x.got ? x.got->value("state", std::string()) : std::string();
        done(explanation_of(of, said, doing, self_->now()));
      },
      [this, of, said, done](const caf::error&) { done(explanation_of(of, said, {}, self_->now())); });
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
    if (auto outlook = outlook_of(*trial, known->second, self_->now()); outlook.allocation == id)
      out.push_back(std::move(outlook));
  }
  return out;
}

void cluster_explain::explain_all(std::vector<explained_run> waiting, const done_callback& done) {
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
    explain(std::move(waiting[i]), [all, one_less, i](result<value> got) {
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

caf::result<command_result> cluster_explain::on(const std::string&, const commands::allocation_explain& x) {
  const auto id = parse_allocation(x.id);
  if (!id)
    return refused({errc::invalid, "'" + x.id + "' is not an allocation\nhint: trial and run, as 12.3"});
  auto row = id.task.kind() == task_kind::trial ? reads_->trial(id.trial())
                                                : result<trial_row>(error{errc::not_found, ""});
  if (!row ||
      std::none_of(row->runs.begin(), row->runs.end(), [&](const run_row& one) { return one.run == id.run; }))
    return refused({errc::not_found, "allocation " + x.id + " not found"});
  return answer(std::move(*row), id.run);
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

caf::result<command_result> cluster_explain::answer(trial_row row, run_id run) {
  auto of = reads_->experiment(row.experiment);
  if (!of)
    return refused(of.error());
  auto promise = self_->make_response_promise<command_result>();
  explain(explained(row, *of, run),
          [promise](result<value> got) mutable { promise.deliver(command_result{std::move(got)}); });
  return promise;
}

explained_run cluster_explain::explained(const trial_row& trial, const experiment_row& of, run_id run) const {
  explained_run out{trial, of, run, pool_name_of(who_, of), 42};
  for (const auto& one : trial.runs)
    if (one.run == run && !one.pool.empty())
      out.pool = one.pool;
  const auto settings = config::pool_settings(who_.configuration(), out.pool);
  if (const auto given = settings.value("default_priority", value()); given.is_number_integer())
    out.default_priority = given.get<int>();
  return out;
}

} // namespace troupe

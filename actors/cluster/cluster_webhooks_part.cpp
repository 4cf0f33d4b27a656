#include "actors/cluster/cluster_webhooks_part.hpp"

#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/names.hpp"
#include "system/random.hpp"

#include <caf/all.hpp>

namespace troupe {

webhook_subject cluster_webhooks::subject_of(const experiment_row& row, trial_id trial) const {
  webhook_subject out;
  out.id = row.id;
  out.name = row.name;
  out.in = machine_.where.workspace_id_of(row.project);
  if (const auto at = machine_.where.workspaces().find(out.in); at != machine_.where.workspaces().end())
    out.workspace = at->second.name;
  if (const auto at = machine_.where.projects().find(row.project); at != machine_.where.projects().end())
    out.project = at->second.name;
  out.pool = with_.pool_name(row);
  out.config = row.config;
  out.state = troupe::name(row.state);
  out.created = row.created;
  out.ended = row.ended;
  const auto slots = row.config->value(value::json_pointer("/resources/slots_per_trial"), value(1));
  out.slots = slots.is_number_integer() ? slots.get<int>() : 1;
  out.trial = trial;
  if (!trial && row.num_trials == 1)
    if (const auto trials = peers_.reads->trials(row.id); trials && !trials->empty())
      out.trial = trials->front().id;
  return out;
}

std::optional<webhook_subject> cluster_webhooks::subject_of(const task_row& task) const {
  if (task.experiment) {
    const auto row = peers_.reads->experiment(task.experiment);
    return row ? std::optional{subject_of(*row, task.id.trial())} : std::nullopt;
  }
  const auto row = peers_.reads->other_task(task.id);
  if (!row)
    return std::nullopt;
  webhook_subject out;
  out.name = row->made.name;
  out.in = row->made.workspace;
  out.workspace = task.workspace;
  if (const auto at = machine_.where.workspaces().find(out.in); at != machine_.where.workspaces().end())
    out.workspace = at->second.name;
  out.pool = row->made.pool;
  out.created = task.created;
  return out;
}

void cluster_webhooks::tell_receivers(experiment_id id, std::function<void()> then) {
  std::vector<cluster_fact> facts;
  if (!machine_.rules.webhooks().empty())
    if (auto row = peers_.reads->experiment(id))
      facts = machine_.post.ended(before(row->ended), subject_of(*row), self_->now());
  queue_events(std::move(facts), [then = std::move(then)](const caf::error& why) {
    if (!why)
      then();
  });
}
/// The webhooks that existed at the time `at`: a webhook does not hear of anything that was before it.
deliveries::webhooks cluster_webhooks::before(time_point at) const {
  auto all = machine_.rules.webhooks();
  std::erase_if(all, [&](const auto& one) { return one.second.at > at; });
  return all;
}

void cluster_webhooks::queue_events(std::vector<cluster_fact> facts, done_callback done) {
  with_.take(std::move(facts), [this, done = std::move(done)](const caf::error& why) {
    done(why);
    send_due();
  });
}

void cluster_webhooks::send_due() {
  if (!setup_.deliver || closing_)
    return;
  if (auto due = machine_.post.due(self_->now()); !due.empty())
    deliver(std::move(due));
}

void cluster_webhooks::deliver(std::vector<webhook_delivery> some) {
  if (!ear_)
    ear_ = std::make_shared<const std::function<void(std::vector<webhook_told>)>>(
      [to = cluster_actor{self_}](std::vector<webhook_told> how) {
        caf::anon_send(to, webhooks_told{std::move(how)});
      });
  setup_.deliver(std::move(some), ear_);
}

void cluster_webhooks::heard_of_deliveries(const webhooks_told& all) {
  std::vector<cluster_fact> facts;
  for (const auto& x : all.each) {
    if (auto test = tests_.extract(x.id)) {
      test.mapped().deliver(x.done ? answered({{"completed", true}}) : refused({errc::invalid, x.why}));
      continue;
    }
    for (auto& fact : machine_.post.told(x.id, x.done, x.final, x.why, self_->now()))
      facts.push_back(std::move(fact));
  }
  if (!facts.empty())
    with_.take(std::move(facts), {});
  send_due();
}

caf::result<committed> cluster_webhooks::take_matches(const lines_matched& x) {
  struct pending {
    std::size_t left = 1;
    caf::error worst;
  };
  auto all = std::make_shared<pending>();
  auto to = self_->make_response_promise<committed>();
  auto one_less = [all, to](const caf::error& why) mutable {
    if (why)
      all->worst = why;
    if (--all->left)
      return;
    if (all->worst)
      to.deliver(all->worst);
    else
      to.deliver(committed{});
  };
  const auto tell = [&](const auto& who, const line_matched& line) {
    if (!who)
      return; // the experiment or task has ended, so nothing follows from its lines
    ++all->left;
    const commands::log_match match{line.allocation.run, line.agent,         line.policy,        line.pattern,
                                    line.line,           line.exclude_agent, line.cancel_retries};
    self_->request(who, journal_timeout, task_call_of(line.allocation, match))
      .then([one_less](const command_result&) mutable { one_less({}); }, // ended tasks may refuse
            [one_less](const caf::error& why) mutable {
              one_less(why == caf::sec::request_receiver_down ? caf::error{} : why);
            });
  };
  std::vector<cluster_fact> events;
  for (const auto& line : x.lines) {
    const auto id = line.allocation.task;
    if (!line.webhook && !id.is_trial()) {
      tell(with_.task(id), line);
      continue;
    }
    auto task = peers_.reads->task(id);
    if (!task)
      continue;
    if (line.webhook) {
      const auto subject = subject_of(*task);
      if (!subject)
        continue;
      auto made = machine_.post.matched(machine_.rules.webhooks(), line.webhook, line.pattern, *subject,
                                        task_name(task->experiment, id), line.agent, line.line, self_->now());
      for (auto& one : made)
        events.push_back(std::move(one));
      continue;
    }
    if (const auto live = with_.experiment(task->experiment))
      tell(live, line);
    else if (const auto of = peers_.reads->experiment(task->experiment); of && of->unmanaged) {
      ++all->left;
      with_.unmanaged(line, of->id, [one_less](const caf::error& why) mutable { one_less(why); });
    }
  }
  queue_events(std::move(events), [one_less](const caf::error& why) mutable { one_less(why); });
  return to;
}

void cluster_webhooks::watch_triggers() {
  if (!setup_.lines)
    return;
  std::vector<std::pair<webhook_id, std::string>> all;
  for (const auto& [id, hook] : machine_.rules.webhooks())
    for (const auto& trigger : hook.triggers)
      if (trigger.value("type", value()) == "TASK_LOG")
        all.emplace_back(id, trigger.at("condition").at("regex"));
  setup_.lines->watch(std::move(all));
}

caf::result<command_result> cluster_webhooks::on(const commands::webhook_alert& x) {
  auto row = peers_.reads->experiment(x.experiment);
  if (!row)
    return refused(row.error());
  if (x.title.size() > 1000 || x.description.size() > 10'000 || x.level.size() > 50)
    return refused({errc::invalid, "an event has at most 1,000 bytes of title and 10,000 of description"});
  auto facts = machine_.post.alerted(machine_.rules.webhooks(), subject_of(*row, x.trial),
                                     {{"title", x.title}, {"description", x.description}, {"level", x.level}},
                                     random_uuid(), self_->now());
  auto to = self_->make_response_promise<command_result>();
  queue_events(std::move(facts), [to](const caf::error& why) mutable {
    to.deliver(why ? refused(from_caf(why)) : answered());
  });
  return to;
}

caf::result<command_result> cluster_webhooks::on(const commands::webhook_test& x) {
  const auto at = machine_.rules.webhooks().find(x.id);
  if (at == machine_.rules.webhooks().end())
    return refused({errc::not_found, "webhook '" + to_string(x.id) + "' not found"});
  if (!setup_.deliver || tests_.size() >= 100)
    return refused({errc::busy, "too many tests of webhooks are under way\nhint: ask once more"});
  const auto id = random_uuid();
  auto to = self_->make_response_promise<command_result>();
  tests_.emplace(id, to);
  deliver({machine_.post.test(at->second, id, self_->now())});
  return to;
}

} // namespace troupe

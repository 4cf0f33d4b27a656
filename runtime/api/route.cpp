#include "runtime/api/route.hpp"

#include "model/names.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/routes_configuration.hpp"
#include "runtime/api/routes_shell.hpp"

#include <algorithm>
#include <set>

namespace troupe::api {

std::string_view call::named(std::string_view name) const {
  auto found = path.find(name);
  return found == path.end() ? std::string_view{} : std::string_view{found->second};
}

authority::principal identity::asks() const {
  authority::principal out;
  out.user = who.user;
  out.former = former;
  out.admin = who.admin;
  out.id = user_id ? std::to_string(user_id) : std::string();
  if (is_task()) {
    out.experiment = experiment ? to_string(experiment) : std::string();
    out.task = to_string(allocation.task);
    out.allocation = to_string(allocation);
  }
  return out;
}

void identity::take_roles(role_book* book) {
  if (!book)
    return;
  roles = book->of({user_id});
  who.admin = !is_task() && roles->holds_role(authority::cluster_admin);
}

result<void> allowed(const call& c, action what, const authority::resource& on) {
  const auto* rule = authority::rule_of({what, on.kind});
  if (c.by.is_task())
    if (auto fine = authority::may(c.by.asks(), what, on); !fine || rule->of_tasks != authority::tasks::none)
      return fine; // otherwise the rights of the task's owner decide
  if (!c.by.roles || !rule || rule->of_users == authority::users::nobody ||
      (rule->of_users == authority::users::unmanaged && !on.unmanaged))
    return authority::may(c.by.asks(), what, on);
  const bool of_other =
    on.kind == thing::token ? on.id != c.by.asks().id : !on.owner.empty() && !c.by.is(on.owner);
  const auto wanted = authority::needed({what, on.kind}, of_other);
  if (!wanted)
    return authority::may(c.by.asks(), what, on);
  const auto& permission = authority::permissions()[static_cast<std::size_t>(*wanted)];
  if (permission.of_workspaces || c.by.roles->anywhere(*wanted))
    return {};
  return error{errc::denied, std::string("access denied: this needs the permission ") + permission.name};
}

authority::resource named_thing(const call& c, thing kind) {
  authority::resource out{kind, {}};
  const auto name = [&](const char* key, auto read) {
    if (out.id.empty() && c.path.contains(key))
      out.id = to_string(read(c.named(key)));
  };
  switch (kind) {
  case thing::experiment:
    name("experimentId", parse_id<experiment_id>);
    break;
  case thing::trial:
  case thing::task:
  case thing::log:
    name("trialId", parse_id<trial_id>);
    name("labels_trialId", parse_id<trial_id>);
    name("taskId", named_task);
    break;
  case thing::allocation:
    name("allocationId", named_allocation);
    break;
  case thing::checkpoint: // named by the experiment that it belongs to
    if (const auto uuid = c.named("checkpointUuid").substr(0, 100); !uuid.empty())
      if (const auto row = c.parts->storage->checkpoint(uuid))
        out.id = to_string(row->experiment);
    break;
  case thing::user:
  case thing::self:
    out.id = c.named("userId");
    break;
  default:
    break;
  }
  return out;
}

bool of_unmanaged(const call& c, task_id task) {
  const auto trial =
    task.is_trial() ? c.parts->storage->trial(task.trial()) : result<trial_row>(error{errc::not_found, ""});
  const auto of = trial ? c.parts->storage->experiment(trial->experiment) : trial.error();
  return of && of->unmanaged;
}

result<call_ptr> spoken_for(const call_ptr& c, task_id task, bool late) {
  if (task.is_trial() && !c->by.is_task())
    if (const auto known = c->parts->storage->trial(task.trial()); !known)
      return known.error().code == errc::not_found
               ? error{errc::not_found, "trial '" + to_string(task.trial()) + "' not found"}
               : known.error();
  authority::resource trial{thing::trial, to_string(task)};
  trial.unmanaged = of_unmanaged(*c, task);
  if (auto fine = allowed(*c, action::report, trial); !fine)
    return fine.error();
  auto row = c->parts->storage->trial(task.trial());
  if (!row)
    return row.error();
  if (row->runs.empty() || (!late && row->runs.back().ended != time_point{}))
    return error{errc::conflict, "trial " + to_string(task) + " has no open run\nhint: start it first"};
  auto as = std::make_shared<call>(*c);
  as->by.experiment = row->experiment;
  as->by.allocation = {row->id, row->runs.back().run};
  as->by.who.allocation = to_string(as->by.allocation);
  return call_ptr(std::move(as));
}

bool is_leaving(const call& c, experiment_id id) {
  const auto row = c.parts->storage->experiment(id);
  return row ? row->state == experiment_state::deleting : row.error().code == errc::not_found;
}

namespace {

/// The error of a read that missed a part of what the path names: where a deletion took it away, the whole is
/// told as one that never was.
error of_the_whole(const call& c, error why) {
  if (why.code != errc::not_found)
    return why;
  if (const auto id = parse_id<experiment_id>(c.named("experimentId")); id && is_leaving(c, id))
    return {errc::not_found, "experiment '" + to_string(id) + "' not found"};
  if (const auto id = parse_id<trial_id>(c.named("trialId"))) {
    const auto row = c.parts->storage->trial(id);
    if (row ? row->deletion == deletion_step::ordered || is_leaving(c, row->experiment)
            : row.error().code == errc::not_found)
      return {errc::not_found, "trial '" + to_string(id) + "' not found"};
  }
  if (const auto uuid = std::string(c.named("checkpointUuid").substr(0, 100)); !uuid.empty()) {
    const auto row = c.parts->storage->checkpoint(uuid);
    if (row ? is_leaving(c, row->experiment) : row.error().code == errc::not_found)
      return {errc::not_found, "checkpoint '" + uuid + "' not found"};
  }
  return why;
}

} // namespace

handler respond_with(std::function<result<response>(const call&)> make) {
  return [make = std::move(make)](const call_ptr& c, const reply& back) {
    const auto seen = c->parts->storage->sequence();
    auto made = make(*c);
    if (!made)
      return back(failure(of_the_whole(*c, made.error())));
    made->headers.emplace_back("Troupe-Sequence", std::to_string(seen));
    back(std::move(*made));
  };
}

handler answer_with(std::function<result<value>(const call&)> make) {
  return respond_with([make = std::move(make)](const call& c) -> result<response> {
    auto body = make(c);
    if (!body)
      return body.error();
    return json(*body, c.query.has("pretty"));
  });
}

result<experiment_row> named_experiment(const call& c) {
  const auto id = parse_id<experiment_id>(c.named("experimentId"));
  if (!id)
    return error{errc::invalid,
                 "'" + std::string(c.named("experimentId")) + "' is not an id of an experiment"};
  auto row = c.parts->storage->experiment(id);
  if (!row && row.error().code == errc::not_found)
    return error{errc::not_found, "experiment '" + to_string(id) + "' not found"};
  return row;
}

result<trial_row> trial_of(const call& c, std::string_view text) {
  const auto id = parse_id<trial_id>(text);
  if (!id)
    return error{errc::invalid, "'" + std::string(text.substr(0, 100)) + "' is not an id of a trial"};
  auto row = c.parts->storage->trial(id);
  if (!row && row.error().code == errc::not_found)
    return error{errc::not_found, "trial '" + to_string(id) + "' not found"};
  return row;
}
result<trial_row> named_trial(const call& c) { return trial_of(c, c.named("trialId")); }

result<std::vector<trial_row>> listed_trials(const call& c, std::string_view list) {
  constexpr std::size_t most = 1000;
  if (static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) >= most)
    return error{errc::invalid, "at most 1000 trials at once"};
  std::vector<trial_row> rows;
  std::set<trial_id> named;
  while (!list.empty()) {
    const auto end = list.find(',');
    auto row = trial_of(c, list.substr(0, end));
    list = end == list.npos ? std::string_view{} : list.substr(end + 1);
    if (!row)
      return row.error();
    if (named.insert(row->id).second)
      rows.push_back(std::move(*row));
  }
  return rows;
}

answer answer_to(const call_ptr& c, const reply& back, answer_shape shape, error_shape on_error) {
  return [c, back, shape = std::move(shape), on_error = std::move(on_error)](result<value> got) {
    if (!got)
      return back(on_error ? on_error(got.error()) : failure(got.error()));
    try {
      auto body = shape ? shape(std::move(*got)) : result<value>(value::object());
      back(body ? json(*body, c->query.has("pretty")) : failure(body.error()));
    } catch (const std::exception& fault) {
      back(failure(
        {errc::internal, std::string("the cluster's answer has not the form agreed on: ") + fault.what()}));
    }
  };
}

std::vector<route> all_routes() {
  std::vector<route> all;
  for (auto part : {troupe_routes(),     cluster_routes(),  pool_routes(),       user_routes(),
                    experiment_routes(), trial_routes(),    checkpoint_routes(), task_routes(),
                    search_routes(),     session_routes(),  series_routes(),     usage_routes(),
                    history_routes(),    analysis_routes(), live_routes(),       log_routes(),
                    file_routes(),       place_routes(),    registry_routes(),   description_routes(),
                    removal_routes(),    people_routes(),   rule_routes(),       master_routes(),
                    run_routes(),        insight_routes(),  shell_routes(),      configuration_routes(),
                    proxy_routes(),      webhook_routes(),  stream_routes(),     work_routes(),
                    unmanaged_routes()})
    for (auto& row : part)
      all.push_back(std::move(row));
  return all;
}

} // namespace troupe::api

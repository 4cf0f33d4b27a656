#include "actors/cluster/cluster_records_part.hpp"

#include "actors/catalogue/catalogue_commands.hpp"
#include "actors/catalogue/house_changes.hpp"
#include "actors/catalogue/last_admin.hpp"
#include "actors/catalogue/place_changes.hpp"
#include "actors/catalogue/pool_bindings.hpp"
#include "actors/cluster/cluster_deletions_part.hpp"
#include "actors/cluster/cluster_tasks_part.hpp"
#include "actors/cluster/cluster_webhooks_part.hpp"
#include "actors/shells/obey.hpp"

namespace troupe {
namespace {

/// The pools that may be the default ones of a workspace that is made or changed.
template <class Wish>
config::pool_choice pools_for(const Wish& x, const cluster_machines& now) {
  const auto& cluster = now.who.configuration();
  if constexpr (std::is_same_v<Wish, commands::workspace_create>)
    return pools_of_new(now.rules, now.where, cluster, x.name.value_or(""));
  else
    return pools_of(now.rules, now.where, cluster, x.id);
}

} // namespace

caf::result<command_result> cluster_records::obey(client_command& x) {
  return troupe::obey<commands_here>(x.name, std::move(x.fields),
                                     [this, &x](auto order) { return on(x.user, order); });
}

template <class Change>
caf::result<command_result> cluster_records::on(const std::string& user, const Change& x) {
  if (auto fine = last_admin(machine_.records, machine_.folk, setup_.roles).allows(x); !fine)
    return refused(fine.error());
  if constexpr (commands::contains<commands::catalogue_commands, Change>)
    return change_catalogue(user, x);
  else if constexpr (commands::contains<commands::place_commands, Change> ||
                     commands::contains<commands::registry_commands, Change>)
    return change_places(user, x);
  else
    return change_people(user, x);
}

template <class Change>
caf::result<command_result> cluster_records::change_catalogue(const std::string& user, const Change& x) {
  constexpr bool configures = std::is_same_v<Change, commands::configuration_record>;
  if constexpr (configures)
    if (auto no = machine_.who.refuses(configured{x.configuration}, self_->now()))
      return refused(*no);
  auto decided = change(machine_.records, x, user, self_->now());
  if (!decided)
    return refused(decided.error());
  if constexpr (configures)
    decided->answer["warnings"] = unknown_names(x.configuration, machine_.where, machine_.records.users());
  std::vector<cluster_fact> facts;
  for (const auto& one : decided->facts)
    std::visit([&](const auto& f) { facts.emplace_back(f); }, one);
  auto promise = self_->make_response_promise<command_result>();
  with_.take(std::move(facts), [this, promise, decided = *decided](const caf::error& why) mutable {
    if (why) {
      promise.deliver(refused(from_caf(why)));
      return;
    }
    for (const auto& one : decided.facts)
      if (setup_.recorded)
        setup_.recorded(one);
    if (configures)
      with_.tell_members(configured{machine_.records.configuration().configuration});
    promise.deliver(answered(std::move(decided.answer)));
  });
  return promise;
}

template <class Change>
caf::result<command_result> cluster_records::change_places(const std::string& user, const Change& x) {
  bool ended = false;
  if constexpr (requires { x.compute_pool; })
    for (const auto& pool : {x.compute_pool, x.aux_pool})
      if (pool && !pool->empty())
        if (auto fine = pools_for(x, machine_).check(*pool); !fine)
          return refused(fine.error());
  if constexpr (std::is_same_v<Change, commands::experiment_describe>)
    ended = with_.has_stopped(x.id);
  if constexpr (std::is_same_v<Change, commands::version_create>)
    if (auto fine = with_.deletions.check_usable(x.checkpoint); !fine)
      return refused(fine.error());
  auto decided = decide(machine_.where, machine_.books, x, ended, user, self_->now());
  if (!decided)
    return refused(decided.error());
  auto promise = self_->make_response_promise<command_result>();
  workspace_id removed;
  experiment_id to_sweep; // experiment whose number of checkpoints to be kept has changed; 0: none
  if constexpr (std::is_same_v<Change, commands::workspace_remove>)
    removed = x.id;
  if constexpr (std::is_same_v<Change, commands::experiment_describe>)
    if (ended && (x.save_experiment_best || x.save_trial_best || x.save_trial_latest))
      to_sweep = x.id;
  with_.take(std::move(decided->facts), [this, promise, removed, to_sweep, user,
                                         answer = std::move(decided->answer)](const caf::error& why) mutable {
    promise.deliver(why ? refused(from_caf(why)) : answered(std::move(answer)));
    if (to_sweep && !why)
      with_.deletions.sweep(to_sweep, true);
    if constexpr (std::is_same_v<Change, commands::workspace_remove>)
      with_.tasks.kill_in(removed, {"killed: its workspace is deleted", user});
    if constexpr (std::is_same_v<Change, commands::workspace_remove> ||
                  std::is_same_v<Change, commands::project_remove>)
      with_.deletions.delete_doomed();
  });
  return promise;
}

template <class Change>
caf::result<command_result> cluster_records::change_people(const std::string& user, const Change& x) {
  const people::world known{[this](user_id id) { return machine_.records.users().contains(id); },
                            [this](workspace_id id) { return machine_.where.knows(id); },
                            [this](workspace_id id) { return machine_.where.takes(id); }};
  auto decided = decide(machine_.folk, machine_.rules, known, x, user, self_->now());
  if (!decided)
    return refused(decided.error());
  if constexpr (std::is_same_v<Change, commands::webhook_remove>)
    for (const auto& fact : decided->facts)
      machine_.post.replay(fact);
  auto promise = self_->make_response_promise<command_result>();
  with_.take(std::move(decided->facts),
             [this, promise, answer = std::move(decided->answer)](const caf::error& why) mutable {
               if constexpr (std::is_same_v<Change, commands::webhook_create> ||
                             std::is_same_v<Change, commands::webhook_remove>)
                 with_.webhooks.watch_triggers();
               promise.deliver(why ? refused(from_caf(why)) : answered(std::move(answer)));
             });
  return promise;
}

} // namespace troupe

#include "actors/cluster/cluster_creation_part.hpp"

#include "actors/catalogue/pool_bindings.hpp"
#include "actors/cluster/cluster_experiments_part.hpp"
#include "actors/cluster/cluster_members_part.hpp"
#include "actors/cluster/cluster_unmanaged_part.hpp"
#include "actors/cluster/continuation.hpp"
#include "actors/cluster/warm_start.hpp"
#include "actors/retention/held_checkpoints.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "model/chosen_name.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config/secrets.hpp"
#include "model/names.hpp"

#include <algorithm>

namespace troupe {
caf::result<command_result> cluster_creation::obey(client_command& x) {
  return troupe::obey<commands_here>(x.name, std::move(x.fields),
                                     [this, &x](auto order) { return on(x.user, std::move(order)); });
}

caf::result<command_result> cluster_creation::on(const std::string& user,
                                                 const commands::experiment_validate& x) {
  auto checked = accepted(x, user);
  if (!checked)
    return refused(checked.error());
  // Whether the secret of a parent would take its place, only a creation knows.
  auto answer = value::object();
  if (const auto fine = check_no_mask(checked->config.settings, x.config, x.config_name); !fine)
    answer = {{"masked", fine.error().what}};
  if (x.unmanaged) // no pool would place its trials
    return answered(std::move(answer));
  auto to = self_->make_response_promise<command_result>();
  check_size(checked->config.settings,
             [to, answer = std::move(answer)](const result<value>& warnings) mutable {
               to.deliver(warnings ? answered(std::move(answer)) : refused(warnings.error()));
             });
  return to;
}

void cluster_creation::check_size(const value& settings,
                                  std::function<void(result<value> warnings)> then) const {
  const auto pool = config::pool_of_experiment(machine_.who.configuration(), settings);
  if (!pool)
    return then(value::array());
  with_.members.ask_capacity(
    *pool, [settings, name = *pool, then = std::move(then)](const result<pool_capacity>& its) {
      if (!its) // the pool is being made again, so that the experiment waits for it in any case
        return then(value::array());
      if (auto no = too_large(settings, name, *its))
        return then(std::move(*no));
      then(launch_warnings(settings, *its));
    });
}

/// Checks the submission of a creation, or of a command that only validates, and completes its configuration.
template <class Submission>
result<cluster_creation::placed_config> cluster_creation::accepted(const Submission& x,
                                                                   const std::string& user) const {
  config_layers below;
  if constexpr (requires { x.unmanaged; })
    below.unmanaged = x.unmanaged;
  if (!x.template_name.empty()) {
    const auto* known = machine_.books.find_template(x.template_name);
    if (!known)
      return error{errc::not_found, "template '" + x.template_name + "' not found"};
    below.template_config = known->config;
    below.template_name = x.template_name;
  }
  const auto accept = [&](const value& text) {
    return accept_config(text, x.config_name, setup_.checkpoint_dir, machine_.who.configuration(), below);
  };
  below.only_place = true; // the workspace may give the storage
  auto checked = accept(x.config);
  if (!checked)
    return checked.error();
  auto project = machine_.where.place_of(x.project, checked->settings);
  if (!project)
    return project.error();
  below.workspace_checkpoint_storage = machine_.where.storage_of(*project);
  const auto workspace = machine_.where.workspace_id_of(*project);
  below.invariant = machine_.rules.invariant_of(workspace);
  const auto& place = machine_.where.workspaces().at(workspace);
  below.compute_pool = place.compute_pool;
  below.aux_pool = place.aux_pool;
  below.pools = pools_of(machine_.rules, machine_.where, machine_.who.configuration(), workspace);
  below.only_place = false;
  checked = accept(x.config);
  if (!checked)
    return checked.error();
  below.pools.reset(); // from here on configurations are only compared, so any pool may stand in them
  auto& settings = checked->settings;
  if constexpr (requires { x.parent.value; })
    if (auto parent = x.parent ? peers_.reads->experiment(x.parent) : result<experiment_row>(error{});
        parent) {
      const auto owner = machine_.records.now_named(parent->owner);
      if (owner == machine_.records.now_named(user)) {
        config::restore_secrets(settings, parent->config);
      } else {
        // Secrets that the cluster, the workspace or the template give are given to every user who submits an
        // experiment there, so the user may have them here too.
        const auto anybody =
          accept({{"entrypoint", "true"}, {"searcher", {{"name", "single"}, {"metric", "x"}}}});
        if (!config::restore_open_secrets(settings, parent->config, anybody ? anybody->settings : value()))
          return error{errc::invalid, "the credentials of experiment " + to_string(x.parent) +
                                        " are those of " + owner + ": give your own in place of '" +
                                        config::secret_mask + "'"};
      }
    }
  if constexpr (requires { x.parent.value; })
    if (auto fine = check_no_mask(settings, x.config, x.config_name); !fine)
      return fine.error();
  if (auto fine = check_constraints(settings, machine_.rules.constraints_of(workspace)); !fine)
    return fine.error();
  if (auto fine = with_source(settings); !fine)
    return fine.error();
  return placed_config{std::move(*checked), *project};
}

/// resolve_source, with what is being removed now.
result<void> cluster_creation::with_source(value& settings) const {
  return resolve_source(
    *peers_.reads, [this](const checkpoint_row& row) { return machine_.uses.unusable(row, machine_.ids); },
    settings);
}

seen_by cluster_creation::sight_of(const std::string& user, workspace_id in) const {
  return [this, user, in](experiment_id id) {
    if (setup_.roles && !machine_.sees(user, id))
      return sight::none;
    const auto row = peers_.reads->experiment(id);
    const bool own = row && machine_.records.now_named(row->owner) == machine_.records.now_named(user);
    if (own)
      return sight::own;
    return setup_.roles && in && machine_.where.workspace_id_of(id) != in ? sight::none : sight::seen;
  };
}

caf::result<command_result> cluster_creation::on(const std::string& user, commands::experiment_create x) {
  // A name that is known already is not checked, as earlier builds took others.
  const bool known =
    !x.external_id.empty() && machine_.ids.with_key(external_key(x.external_id), sight_of(user, {}));
  if (auto no = with_.unmanaged.refuses(x, known))
    return refused(*no);
  if (!x.name.empty())
    if (auto fine = check_chosen_name("name", x.name); !fine)
      return refused(fine.error());
  if (auto fine = check_submitters_key(x.key);
      !fine && !machine_.ids.with_key(x.key, sight_of(user, {}))) // earlier builds took others
    return refused(fine.error());
  if (const auto names = external_key(""); x.key.starts_with(names))
    return refused(
      {errc::invalid, "the key begins with '" + names + "', as external ids do\nhint: choose another one"});
  auto checked = accepted(x, user);
  if (!checked)
    return refused(checked.error());
  auto& [settings, source] = checked->config;
  if (!settings.contains("reproducibility") || !settings["reproducibility"].is_object())
    settings["reproducibility"] = value::object();
  auto& seed = settings["reproducibility"]["experiment_seed"];
  if (!seed.is_number())
    seed = self_->now().time_since_epoch().count() / 1'000'000 & 0x7fffffff;
  experiment_created wanted{self_->now(), {},    settings, x.name,           user,        x.context_blob,
                            source,       x.key, x.parent, checked->project, x.unmanaged, x.external_id};
  if (!x.external_id.empty())
    wanted.key = external_key(x.external_id);
  if (wanted.name.empty())
    wanted.name =
      settings.value("name", value()).is_string() ? settings["name"].get<std::string>() : "experiment";
  auto promise = self_->make_response_promise<command_result>();
  auto go_on = [this, wanted = std::move(wanted), activate = x.activate, files = std::move(x.context.held),
                promise](result<value> warnings) mutable {
    if (!warnings) {
      promise.deliver(refused(warnings.error()));
      return;
    }
    if (files.empty())
      return record(std::move(wanted), activate, std::move(*warnings), promise);
    self_->request(peers_.journal, journal_timeout, store_blob{std::move(files)})
      .then(
        [this, wanted = std::move(wanted), activate, warnings = std::move(*warnings),
         promise](const blob_stored& blob) mutable {
          wanted.context = blob.name;
          record(std::move(wanted), activate, std::move(warnings), promise);
        },
        [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
  };
  if (x.unmanaged) // no pool places its trials
    go_on(value::array());
  else
    check_size(settings, std::move(go_on));
  return promise;
}

void cluster_creation::record(experiment_created wanted, bool activate, value warnings, promise to) {
  // The checkpoint may have gone while the files were stored.
  if (auto fine = with_source(wanted.config); !fine) {
    to.deliver(refused(fine.error()));
    return;
  }
  auto made = machine_.create(wanted, sight_of(wanted.owner, machine_.where.workspace_id_of(wanted.project)));
  const auto done = [id = made.id.value, warnings = std::move(warnings)] {
    return answered({{"id", id}, {"warnings", warnings}});
  };
  if (made.facts.empty()) { // a repeat of a key gets the same answer, once the first creation is durable
    with_.take(
      {}, [to, done](const caf::error& why) mutable { to.deliver(why ? refused(from_caf(why)) : done()); });
    return;
  }
  const auto submitted = std::get<experiment_created>(made.facts.front()).at;
  if (!wanted
         .unmanaged) // from now on, so that the checkpoint is not removed before the experiment is durable
    machine_.uses.begin_with(made.id, source_in(wanted.config));
  with_.take(std::move(made.facts), [this, to, done, id = made.id, activate, submitted,
                                     wanted = std::move(wanted)](const caf::error& why) mutable {
    if (why) {
      machine_.uses.forget(id);
      to.deliver(refused(from_caf(why)));
      return;
    }
    if (wanted.unmanaged) { // an unmanaged experiment has no actor
      to.deliver(done());
      return;
    }
    auto settings = with_.experiments.settings_of(id, wanted.config, wanted.context, wanted.owner, submitted);
    if (!settings) { // not expected, as accept_config has built the settings once
      with_.experiments.set_aside(id, settings.error().what);
      to.deliver(refused(settings.error()));
      return;
    }
    with_.experiments.start(std::move(*settings), {}, !activate);
    if (activate) {
      to.deliver(done());
      return;
    }
    self_
      // The experiment answers once the pause is durable.
      ->request(with_.experiments.actor_of(id), journal_timeout, experiment_pause{})
      .then([to, done](const committed&) mutable { to.deliver(done()); },
            [to](const caf::error& fault) mutable { to.deliver(refused(from_caf(fault))); });
  });
}

} // namespace troupe

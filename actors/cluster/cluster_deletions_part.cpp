#include "actors/cluster/cluster_deletions_part.hpp"

#include "actors/cluster/single_trials.hpp"
#include "actors/experiment/unmanaged.hpp"
#include "actors/retention/collection.hpp"
#include "actors/retention/globs.hpp"
#include "actors/retention/open_collections.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

constexpr auto deletion_timeout = std::chrono::minutes(10); ///< limit for retention to delete one experiment
/// Limit of the experiments and trials that retention deletes at the same time. Each deletion waits for
/// several commits, and a commit serves all deletions that wait for it.
constexpr std::size_t most_erasing = 64;

} // namespace

void cluster_deletions::begin() {
  retention_peers peers{cluster_actor{self_}, peers_.journal, peers_.reads, setup_.tokens.cluster_id,
                        setup_.checkpoint_dir};
  peers.id_bytes = setup_.id_bytes;
  retention_ = spawn_retention(self_->system(), std::move(peers));
  self_->monitor(retention_);
  auto rows = peers_.reads->experiments();
  for (const auto& row : rows ? *rows : std::vector<experiment_row>())
    if (unmanaged::told_at_start(row, machine_.ids.unswept(row.id), self_->now()))
      tell_of_unmanaged(row.id);
    else if (!row.unmanaged && terminal(row.state) && machine_.ids.unswept(row.id))
      with_.tell_receivers(row.id, [this, id = row.id] { sweep(id, false); });
  for (const auto& order : open_collections(*peers_.reads))
    if (order.cause == collected_by::request)
      go_on_with(order);
  erasing_.clear();
  delete_next();
  delete_doomed();
}

/// Continues the removal of files of checkpoints that a user ordered in an earlier life of the master. Some
/// of the removal may be noted already. Checkpoints that have come into use since then stay.
void cluster_deletions::go_on_with(const checkpoint_files_removed& order) {
  stored_erased seen;
  seen.tasks = {order.id};
  std::vector<std::string> going;
  for (const auto& uuid : order.checkpoints)
    if (const auto row = peers_.reads->checkpoint(uuid);
        row && row->state != checkpoint_state::deleted && !machine_.uses.in_use(uuid, machine_.books)) {
      seen.left[uuid] = left_by(order.globs, row->saved.files);
      going.push_back(uuid);
    }
  carry_out(
    seen, order.by, [](command_result&) {},
    [this, removal = begin_removal(going)] { machine_.uses.end_removal(removal); });
}

void cluster_deletions::tell_of_unmanaged(experiment_id id) {
  with_.tell_receivers(id, [this, id] {
    if (auto facts = machine_.ids.swept(id, self_->now()); !facts.empty())
      with_.take(std::move(facts), {});
  });
}

void cluster_deletions::end_all(const caf::error& why) {
  closing_ = true;
  self_->send_exit(retention_, why);
}

void cluster_deletions::sweep(experiment_id id, bool again) {
  self_->send(retention_, sweep_experiment{id, again});
}

/// Deletes at most `most_erasing` things at a time, so that their facts share commits. Deletions that were
/// ordered before a restart stand in the machine as well.
void cluster_deletions::delete_next() {
  const auto full = [this] { return closing_ || erasing_.size() >= most_erasing; };
  for (const auto& [id, by] : machine_.ids.deleting()) {
    if (full())
      return;
    erase({id, {}}, by);
  }
  for (const auto& [id, order] : machine_.ids.deleting_trials()) {
    if (full())
      return;
    erase({order.experiment, id}, order.by);
  }
}

void cluster_deletions::erase(const doomed& what, const std::string& by) {
  if (std::find(erasing_.begin(), erasing_.end(), what) != erasing_.end())
    return;
  erasing_.push_back(what);
  erase_stored all;
  all.experiment = what.experiment;
  all.trial = what.trial;
  all.by = by;
  self_->request(retention_, most_erasing * deletion_timeout, all)
    .then(
      [this, what, by](const stored_erased& x) {
        if (!x.why.empty()) // first notes which files are gone: then nobody can use their checkpoints
          return note_left(x, by, [this, what, why = x.why](command_result& noted) {
            failed(what, noted.got ? why : why + "; and " + noted.got.error().what);
          });
        noted(what, what.trial ? machine_.ids.deleted(what.trial, self_->now())
                               : machine_.ids.deleted(what.experiment, x.trials, self_->now()));
      },
      [this, what](const caf::error& why) {
        if (why != caf::sec::request_receiver_down) // `begin` asks the next actor again
          failed(what, from_caf(why).what);
      });
}

void cluster_deletions::failed(const doomed& what, const std::string& why) {
  noted(what, what.trial ? machine_.ids.deletion_failed(what.trial, why, self_->now())
                         : machine_.ids.deletion_failed(what.experiment, why, self_->now()));
}

void cluster_deletions::noted(const doomed& what, std::vector<cluster_fact> facts) {
  pass_on(facts);
  with_.take(std::move(facts), [this, what](const caf::error&) {
    std::erase(erasing_, what);
    delete_next();
  });
}

/// Tells the places of facts that the machine `ids` has decided, and adds the facts that the places decide
/// because of them.
void cluster_deletions::pass_on(std::vector<cluster_fact>& facts) {
  machine_.pass_on(facts);
  for (auto& one : machine_.where.settle(self_->now()))
    std::visit([&](auto& f) { facts.emplace_back(std::move(f)); }, one);
}

void cluster_deletions::delete_doomed() {
  std::vector<cluster_fact> facts;
  const auto doomed = machine_.where.doomed();
  const auto goes = [&](experiment_id id) {
    return std::any_of(doomed.begin(), doomed.end(), [&](const auto& one) { return one.first == id; });
  };
  for (const auto& [id, by] : doomed) {
    if (const auto live = with_.experiment(id)) {
      experiment_stop order{true, "killed: its project is deleted", false, by};
      self_->request(live, journal_timeout, std::move(order))
        .then([](const committed&) {}, [](const caf::error&) {}); // the experiment tells its end in any case
      continue;
    }
    if (const auto row = peers_.reads->experiment(id); row && is_being_continued(*row))
      continue; // once the experiment is continued, this function is called again and kills it
    const auto [user, uuid] = beginner_with(id);
    if (user && goes(user))
      continue; // experiment `id` is deleted once `user`, which is doomed as well, no longer needs it
    auto ordered = machine_.ids.order_deletion(id, by, self_->now());
    // The reason is told to all who see the project.
    if (auto held = user ? starts_with_it(uuid, user, {}) : registered_in(id); !held.empty())
      for (auto& fact : machine_.ids.deletion_failed(id, held, self_->now()))
        ordered.push_back(std::move(fact));
    for (auto& fact : ordered)
      facts.push_back(std::move(fact));
  }
  if (facts.empty())
    return;
  pass_on(facts);
  with_.take(std::move(facts), [this](const caf::error&) { delete_next(); });
}

/// Whether a continuation of the experiment is not durable yet: the row says that the experiment has ended,
/// which is no longer true once the fact is durable.
bool cluster_deletions::is_being_continued(const experiment_row& row) const {
  return machine_.ids.continued(row.id) != row.continued;
}

std::string cluster_deletions::kept_in(const std::string& asked_by, experiment_id id, trial_id trial) const {
  const auto [user, uuid] = beginner_with(id, trial);
  return user ? starts_with_it(uuid, user, asked_by) : registered_in(id, trial);
}

std::string cluster_deletions::starts_with_it(const std::string& uuid, experiment_id user,
                                              const std::string& asked_by) const {
  const bool sees = !setup_.roles || machine_.sees(asked_by, user);
  return "checkpoint " + uuid + " is in use: " +
         (sees               ? "experiment " + to_string(user)
          : asked_by.empty() ? "another experiment"
                             : "an experiment that you may not see") +
         " begins its trials with it";
}

std::pair<experiment_id, std::string> cluster_deletions::beginner_with(experiment_id id,
                                                                       trial_id trial) const {
  for (const auto& [user, all] : machine_.uses.sources())
    if (user != id)
      for (const auto& uuid : all)
        if (auto row = peers_.reads->checkpoint(uuid);
            row && row->experiment == id && (!trial || row->trial == trial))
          return {user, uuid};
  return {};
}

result<void> cluster_deletions::check_usable(const std::string& uuid) const {
  const auto row = peers_.reads->checkpoint(uuid);
  if (!row)
    return row.error();
  const auto why = machine_.uses.unusable(*row, machine_.ids);
  return why.empty() ? result<void>() : error{errc::conflict, "checkpoint " + uuid + " " + why};
}

std::string cluster_deletions::begin_removal(const std::vector<std::string>& uuids) {
  auto removal = "removal " + std::to_string(++removals_);
  machine_.uses.begin_removal(removal, uuids);
  return removal;
}

std::string cluster_deletions::registered_in(experiment_id id, trial_id trial) const {
  constexpr auto why = "checkpoints are registered as model versions";
  const auto registered = machine_.books.registered();
  if (registered.empty())
    return {};
  // The smaller list is gone through: the registered checkpoints, or those of the experiment.
  const auto of = peers_.reads->experiment(id);
  if (of && of->checkpoint_count == 0)
    return {};
  if (of && of->checkpoint_count < registered.size())
    if (const auto own = checkpoints_of(id, trial)) {
      const std::set<std::string> known(registered.begin(), registered.end());
      return std::any_of(own->begin(), own->end(), [&](const auto& uuid) { return known.contains(uuid); })
               ? why
               : "";
    }
  for (const auto& uuid : registered)
    if (auto row = peers_.reads->checkpoint(uuid);
        row && row->experiment == id && (!trial || row->trial == trial))
      return why;
  return {};
}

result<std::vector<std::string>> cluster_deletions::checkpoints_of(experiment_id id, trial_id alone) const {
  std::vector<std::string> out;
  auto trials = peers_.reads->trials(id);
  if (!trials)
    return trials.error();
  for (const auto& trial : *trials) {
    if (alone && trial.id != alone)
      continue;
    auto rows = peers_.reads->checkpoints(trial.id);
    if (!rows)
      return rows.error();
    for (const auto& row : *rows)
      out.push_back(row.saved.uuid);
  }
  return out;
}

/// Answers when the facts are durable; the deletions that they order begin then.
caf::result<command_result> cluster_deletions::once_durable(std::vector<cluster_fact> facts) {
  auto to = self_->make_response_promise<command_result>();
  with_.take(std::move(facts), [this, to](const caf::error& why) mutable {
    to.deliver(why ? refused(from_caf(why)) : answered());
    delete_next();
  });
  return to;
}

caf::result<command_result> cluster_deletions::obey(client_command& x) {
  return troupe::obey<commands_here>(x.name, std::move(x.fields),
                                     [this, &x](auto order) { return on(x.user, std::move(order)); });
}

caf::result<command_result> cluster_deletions::on(const std::string& user,
                                                  const commands::experiment_delete& x) {
  auto row = peers_.reads->experiment(x.id);
  if (!row)
    return refused({errc::not_found, "experiment '" + to_string(x.id) + "' not found"});
  if (!terminal(row->state) || with_.experiment(x.id))
    return refused(
      {errc::conflict, "cannot delete experiment in " + std::string(troupe::name(row->state)) + " state"});
  if (is_being_continued(*row))
    return refused({errc::conflict, "experiment " + to_string(x.id) + " is being continued"});
  if (auto held = kept_in(user, x.id); !held.empty())
    return refused({errc::invalid, held});
  auto facts = machine_.ids.order_deletion(x.id, user, self_->now());
  pass_on(facts);
  return once_durable(std::move(facts));
}

caf::result<command_result> cluster_deletions::on(const std::string& user, const commands::trial_delete& x) {
  auto row = peers_.reads->trial(x.id);
  auto of = row ? peers_.reads->experiment(row->experiment) : result<experiment_row>(row.error());
  if (!of)
    return refused(of.error());
  if (auto fine = may_delete(*row, *of); !fine)
    return refused(fine.error());
  if (is_being_continued(*of))
    return refused({errc::conflict, "experiment " + to_string(of->id) + " is being continued"});
  if (with_.experiment(of->id))
    return refused({errc::conflict, "experiment " + to_string(of->id) + " is ending\nhint: ask once more"});
  if (auto held = kept_in(user, of->id, x.id); !held.empty())
    return refused({errc::invalid, held});
  return once_durable(machine_.ids.order_deletion(of->id, x.id, user, self_->now()));
}

caf::result<command_result> cluster_deletions::on(const std::string& user, const commands::trial_archive& x) {
  auto row = peers_.reads->trial(x.id);
  auto of = row ? peers_.reads->experiment(row->experiment) : result<experiment_row>(row.error());
  if (!of)
    return refused(of.error());
  auto changes = may_archive(*row, *of, x.archived);
  if (!changes)
    return refused(changes.error());
  if (!*changes)
    return answered();
  return once_durable({trial_archived{self_->now(), user, of->id, x.id, x.archived}});
}

caf::result<command_result> cluster_deletions::on(const std::string& user,
                                                  const commands::experiment_erase_tensorboards& x) {
  auto row = peers_.reads->experiment(x.id);
  if (!row)
    return refused({errc::not_found, "experiment '" + to_string(x.id) + "' not found"});
  if (!terminal(row->state))
    return refused({errc::conflict, "cannot delete tensorboard files of an experiment in " +
                                      std::string(troupe::name(row->state)) + " state"});
  erase_stored files;
  files.experiment = x.id;
  files.tensorboards_only = true;
  files.by = user;
  auto to = self_->make_response_promise<command_result>();
  self_->request(retention_, deletion_timeout, files)
    .then([to](const stored_erased&) mutable { to.deliver(answered()); },
          [to](const caf::error& why) mutable { to.deliver(refused(from_caf(why))); });
  return to;
}

caf::result<command_result> cluster_deletions::on(const std::string& user,
                                                  const commands::checkpoint_remove& x) {
  erase_stored files;
  files.globs = x.globs;
  files.only_look = true;
  files.refresh = x.refresh;
  files.by = user;
  for (const auto& glob : x.globs)
    if (auto fine = check_glob(glob); !fine)
      return refused(fine.error());
  for (const auto& uuid : x.uuids) {
    if (auto row = peers_.reads->checkpoint(uuid); !row)
      return refused(row.error());
    files.checkpoints.push_back(uuid);
  }
  if (!x.refresh)
    if (auto fine = machine_.books.check_unregistered(x.uuids, x.models, "deleted"); !fine)
      return refused(fine.error());
  for (const auto& uuid : x.uuids)
    if (const auto beginner = x.refresh ? experiment_id{} : machine_.uses.beginner_with(uuid))
      return refused({errc::invalid, starts_with_it(uuid, beginner, user)});
  auto to = self_->make_response_promise<command_result>();
  const change_done noted = [to](command_result& answer) {
    auto last = to;
    last.deliver(std::move(answer));
  };
  const std::function<void()> gone =
    [this, removal = begin_removal(x.refresh ? std::vector<std::string>() : x.uuids)] {
      machine_.uses.end_removal(removal);
    };
  self_->request(retention_, deletion_timeout, files)
    .then([this, noted, gone, user](const stored_erased& seen) { carry_out(seen, user, noted, gone); },
          [noted, gone](const caf::error& why) {
            gone();
            auto no = refused(from_caf(why));
            noted(no);
          });
  return to;
}

/// Notes which files will be left of each checkpoint, calls `noted` with the answer to the user, and then has
/// the other files removed. Calls `gone` when the removal has ended, also where it failed: then the log of
/// the task says which files are still there.
void cluster_deletions::carry_out(const stored_erased& seen, const std::string& by, change_done noted,
                                  std::function<void()> gone) {
  note_left(
    seen, by,
    [this, by, tasks = seen.tasks, noted = std::move(noted), gone = std::move(gone)](command_result& left) {
      noted(left);
      if (tasks.empty())
        return gone();
      // Retention removes the files whose removal is noted, leaves all others, and ends the task.
      erase_stored go;
      go.tasks = tasks;
      self_->request(retention_, most_erasing * deletion_timeout, std::move(go))
        .then(
          [this, gone, by](const stored_erased& x) {
            if (x.why.empty())
              return gone();
            // What could not be removed is there again, so that asking once more removes it.
            note_left(x, by, [gone](command_result&) { gone(); });
          },
          [gone](const caf::error&) { gone(); });
    });
}

/// Records which files will be left of each checkpoint. Calls `done` with the worst answer.
void cluster_deletions::note_left(const stored_erased& seen, const std::string& by, change_done done) {
  struct pending {
    std::size_t left = 1;
    command_result worst = answered();
  };
  auto all = std::make_shared<pending>();
  const change_done one_done = [all, done = std::move(done)](command_result& one) {
    if (!one.got && all->worst.got)
      all->worst = one;
    if (--all->left == 0)
      done(all->worst);
  };
  for (const auto& [uuid, files] : seen.left) {
    auto saved = peers_.reads->checkpoint(uuid);
    if (!saved || !peers_.reads->trial(saved->trial) || saved->saved.files == files)
      continue; // the checkpoint is gone meanwhile, or keeps all its files
    ++all->left;
    with_.change_files(uuid, {files, by, seen.why.empty(), one_done});
  }
  auto last = answered();
  one_done(last);
}

caf::result<command_result> cluster_deletions::on(const std::string&, const commands::logs_cleanup&) {
  auto to = self_->make_response_promise<command_result>();
  self_->request(retention_, std::chrono::minutes(10), clean_logs{})
    .then(
      [to](const logs_cleaned& x) mutable {
        to.deliver(answered({{"removedCount", x.trials}}));
      },
      [to](const caf::error& why) mutable { to.deliver(refused(from_caf(why))); });
  return to;
}

} // namespace troupe

#include "actors/retention/erasures_part.hpp"

#include "actors/experiment/experiment_settings.hpp"
#include "actors/retention/globs.hpp"
#include "actors/retention/retention.hpp"
#include "actors/shells/durable.hpp"
#include "model/checkpoint_place.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

#include <algorithm>
#include <set>

#include <caf/all.hpp>

namespace troupe {
namespace {

/// Limit of the pieces that are removed between two writes of the log.
constexpr std::size_t pieces_at_once = 32;
constexpr auto removal_timeout = std::chrono::minutes(10); ///< time for `pieces_at_once` pieces

/// The answer where the folder of a checkpoint lacks all its files. A folder that is not mounted looks the
/// same.
error nothing_seen(const checkpoint& saved) {
  return {errc::not_found, "no file of checkpoint " + saved.uuid +
                             " can be seen from the master, so nothing is noted" +
                             "\nhint: delete the checkpoint where it is gone indeed"};
}

/// The files of a checkpoint that exist now, with the folders that were named. errc::not_found if none
/// exists.
result<std::map<std::string, std::int64_t>> refreshed(const checkpoint& saved) {
  const auto place = place_of(saved);
  auto store = storage::open_checkpoint_store(place.store);
  if (!store)
    return store.error();
  auto there = (*store)->list(place.key);
  if (!there && there.error().code == errc::not_found)
    there = std::map<std::string, std::int64_t>{};
  if (!there)
    return there.error();
  if (there->empty() && !saved.files.empty())
    return nothing_seen(saved);
  std::map<std::string, std::int64_t> out;
  for (const auto& [path, bytes] : *there)
    out[path] = static_cast<std::int64_t>(bytes);
  for (const auto& [path, bytes] : saved.files)
    if (path.ends_with('/'))
      out.emplace(path, bytes);
  return out;
}

/// Whether a file or a folder exists that a pattern matches, whether a fact lists it or not.
bool holds_any(const checkpoint& saved, const std::vector<std::string>& globs) {
  const auto place = place_of(saved);
  auto store = storage::open_checkpoint_store(place.store);
  auto there = store ? (*store)->list(place.key) : result<std::map<std::string, std::int64_t>>(store.error());
  return there && std::any_of(there->begin(), there->end(),
                              [&](const auto& one) { return is_removed(globs, one.first); });
}

/// The files of a checkpoint that a removal leaves. errc::not_found if some are to be left and none exists.
result<std::map<std::string, std::int64_t>> left_of(const checkpoint& saved,
                                                    const std::vector<std::string>& globs) {
  auto left = left_by(globs, saved.files);
  if (!left.empty() && !is_there(whole(saved)))
    return nothing_seen(saved);
  return left;
}

} // namespace

erasures::erasures(actor_base<retention_actor>* self, const retention_peers& peers, collections& tasks,
                   bucket_removals& buckets)
    : self_(self), peers_(peers), tasks_(tasks), buckets_(buckets) {
  for (std::size_t i = 0; i < removers_->size(); ++i)
    make_remover(i);
  self_->attach_functor([all = removers_](const caf::error&) {
    for (const auto& one : *all)
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  });
}

void erasures::make_remover(std::size_t i) {
  (*removers_)[i] = spawn_remover(self_->system(), i + 1);
  self_->monitor((*removers_)[i]);
}

bool erasures::remover_down(const caf::actor_addr& who) {
  for (std::size_t i = 0; i < removers_->size(); ++i)
    if (who == (*removers_)[i].address()) {
      if (!restarts_.again(i, self_->now()))
        return false;
      make_remover(i);
    }
  return true;
}

caf::result<stored_erased> erasures::erase(const erase_stored& x) {
  auto work = std::make_shared<erasing>();
  work->promise = self_->make_response_promise<stored_erased>();
  if (!x.tasks.empty()) {
    work->to_carry_out = x.tasks;
    carry_out_next(work);
  } else if (auto fine = x.experiment ? erase_experiment(x, work) : look_at_checkpoints(x, work); !fine)
    work->promise.deliver(to_caf(fine.error()));
  return work->promise;
}

result<void> erasures::erase_experiment(const erase_stored& x, const work_ptr& work) {
  auto experiment = peers_.reads->experiment(x.experiment);
  if (!experiment)
    return experiment.error();
  auto trials = peers_.reads->trials(x.experiment);
  if (!trials)
    return trials.error();
  const auto* cause = x.tensorboards_only ? collected_by::tensorboards
                      : x.trial           ? collected_by::trial
                                          : collected_by::deletion;
  auto order = tasks_.order_of(*experiment, cause, x.by);
  order.trial = x.trial;
  auto history = storage_history::of(*peers_.reads, *experiment);
  if (!history)
    return history.error();
  auto far = in_buckets(order, *history, *trials);
  if (!far)
    return far.error();
  if (!far->empty())
    return empty_buckets(x, std::move(*far), work);
  if (x.tensorboards_only && !work->boards_ordered) {
    work->boards_ordered = true;
    std::vector<bucket_order> boards;
    for (const auto& storage : history->buckets())
      boards.push_back(
        {order.experiment, order.trial, order.cause, order.by, {}, all_files(), true, storage});
    order_boards(x, std::move(boards), work);
    return {};
  }
  auto pieces = pieces_of(order, *experiment, *trials);
  if (!pieces)
    return pieces.error();
  work->left.clear();
  if (!x.tensorboards_only)
    for (const auto& trial : *trials)
      if (!x.trial || trial.id == x.trial)
        work->left.push_back(trial.id);
  work->done.trials = work->left;
  work->is_deletion = !x.tensorboards_only;
  if (pieces->empty() && !tasks_.is_open(order)) {
    work->unfinished = 1;
    erase_rows(work);
    return {};
  }
  work->pieces = std::move(*pieces);
  tasks_.begin(std::move(order), [this, work](result<task_id> task) {
    if (!task) {
      work->promise.deliver(to_caf(task.error()));
      return;
    }
    work->task = *task;
    remove_some(work);
  });
  return {};
}

/// What lies in the experiment's buckets of what the order names, one order for each storage. TensorBoard
/// files are removed with the last checkpoints of their storage, by the same client.
result<std::vector<bucket_order>> erasures::in_buckets(const checkpoint_files_removed& order,
                                                       storage_history& history,
                                                       const std::vector<trial_row>& trials) const {
  std::map<storage_number, bucket_order> far;
  if (history.buckets().empty() || order.cause == collected_by::tensorboards || tasks_.is_open(order))
    return std::vector<bucket_order>();
  for (const auto& trial : trials) {
    if (order.trial && trial.id != order.trial)
      continue;
    auto saved = peers_.reads->checkpoints(trial.id);
    if (!saved)
      return saved.error();
    for (const auto& row : *saved) {
      if (row.state == checkpoint_state::deleted || !removable(row.saved))
        continue;
      const auto storage = history.of_checkpoint(*peers_.reads, row);
      if (!storage)
        return storage.error();
      if (history.deletes_here(*storage) || is_there(whole(row.saved)))
        continue;
      bucket_order fresh{order.experiment, order.trial, order.cause, order.by, {},
                         all_files(),      true,        *storage};
      far.try_emplace(*storage, std::move(fresh)).first->second.checkpoints.push_back(row.saved.uuid);
    }
  }
  std::vector<bucket_order> out;
  for (auto& [storage, one] : far)
    out.push_back(std::move(one));
  return out;
}

/// Orders the tasks that remove TensorBoard files from buckets, one after the other, and goes on.
void erasures::order_boards(const erase_stored& x, std::vector<bucket_order> orders, const work_ptr& work) {
  const auto then = going_on(x, work);
  if (orders.empty())
    return then({});
  auto next = std::move(orders.back());
  orders.pop_back();
  buckets_.order(std::move(next),
                 [this, x, orders = std::move(orders), work, then](const result<void>& done) {
                   if (done)
                     order_boards(x, orders, work);
                   else
                     then(done);
                 });
}

/// Waits until a task has removed what lies in the first of the buckets, and goes on with the rest. Each task
/// has to have removed some checkpoints, so that this ends.
result<void> erasures::empty_buckets(const erase_stored& x, std::vector<bucket_order> orders,
                                     const work_ptr& work) {
  std::size_t count = 0;
  for (const auto& one : orders)
    count += one.checkpoints.size();
  if (work->in_bucket && count >= *work->in_bucket)
    return error{errc::io, "checkpoint " + orders.front().checkpoints.front() +
                             " is in the bucket still, although a task has removed it"};
  work->in_bucket = count;
  const auto then = going_on(x, work);
  buckets_.remove(std::move(orders.front()), then, then);
  return {};
}

/// Goes on with an experiment when a part that concerns its bucket is done; its failure ends the work.
bucket_removals::done_callback erasures::going_on(const erase_stored& x, const work_ptr& work) {
  return [this, x, work](const result<void>& done) {
    const auto rest = done ? erase_experiment(x, work) : done;
    if (!rest)
      work->promise.deliver(to_caf(rest.error()));
  };
}

/// The pieces that the order names and that exist now. Fails if they cannot be removed from here.
result<std::vector<removal_piece>> erasures::pieces_of(const checkpoint_files_removed& order) const {
  if (order.cause == collected_by::request)
    return pieces_asked_for(order);
  auto experiment = peers_.reads->experiment(order.experiment);
  if (!experiment)
    return experiment.error();
  auto trials = peers_.reads->trials(order.experiment);
  if (!trials)
    return trials.error();
  return pieces_of(order, *experiment, *trials);
}

result<std::vector<removal_piece>> erasures::pieces_of(const checkpoint_files_removed& order,
                                                       const experiment_row& experiment,
                                                       const std::vector<trial_row>& trials) const {
  std::vector<removal_piece> out;
  const auto store_now = checkpoint_store_of(experiment.config, peers_.checkpoint_dir);
  std::set<std::string> folders{store_now ? folder_of_store(*store_now) : peers_.checkpoint_dir};
  // A continuation may have changed the storage. What ran before wrote its event files beside its
  // checkpoints.
  for (const auto& trial : trials) {
    if (order.trial && trial.id != order.trial)
      continue;
    auto saved = peers_.reads->checkpoints(trial.id);
    if (!saved)
      return saved.error();
    for (const auto& row : *saved)
      if (removable(row.saved))
        folders.insert(folder_of_store(place_of(row.saved).store));
  }
  if (order.cause == collected_by::deletion || order.cause == collected_by::trial) {
    auto history = storage_history::of(*peers_.reads, experiment);
    if (!history)
      return history.error();
    for (const auto& trial : trials) {
      if (order.trial && trial.id != order.trial)
        continue;
      auto saved = peers_.reads->checkpoints(trial.id);
      if (!saved)
        return saved.error();
      for (const auto& row : *saved) {
        if (row.state == checkpoint_state::deleted)
          continue;
        const auto storage = history->of_checkpoint(*peers_.reads, row);
        if (!storage)
          return storage.error();
        // Before a collection began, all was found here. Since then files of it may have been removed.
        const bool here = history->deletes_here(*storage) || tasks_.is_open(order);
        if (!can_delete(row.saved, here) || out_of_sight(row.saved, peers_.checkpoint_dir))
          return cannot_delete(row.saved);
        if (auto piece = whole(row.saved); is_there(piece))
          out.push_back(std::move(piece));
      }
    }
  }
  for (const auto& folder : folders)
    if (auto boards = tensorboards_in(folder, experiment.id, order.trial); boards && is_there(*boards))
      out.push_back(std::move(*boards));
  return out;
}

/// The TensorBoard files beside the checkpoints in `folder`, where the stock client puts them. `trial`: the
/// trial whose files are meant; 0: all trials.
std::optional<removal_piece> erasures::tensorboards_in(const std::string& folder, experiment_id of,
                                                       trial_id trial) const {
  if (folder.empty() || peers_.cluster_id.empty())
    return std::nullopt;
  const auto all = "directory:" + folder + "/" + peers_.cluster_id + "/tensorboard/experiment";
  if (trial)
    return removal_piece{{}, all + "/" + to_string(of) + "/trial", to_string(trial)};
  return removal_piece{{}, all, to_string(of)};
}

/// The files and folders that are noted as removed and still exist. A checkpoint whose folder has gone since
/// it was looked at has none.
result<std::vector<removal_piece>> erasures::pieces_asked_for(const checkpoint_files_removed& order) const {
  std::vector<removal_piece> out;
  for (const auto& uuid : order.checkpoints) {
    auto row = peers_.reads->checkpoint(uuid);
    if (!row && row.error().code == errc::not_found)
      continue; // the experiment was deleted in the meantime
    if (!row)
      return row.error();
    if (!removable(row->saved))
      return cannot_delete(row->saved);
    auto piece = whole(row->saved);
    if (!row->saved.files.empty()) {
      auto store = storage::open_checkpoint_store(piece.store);
      if (!store)
        return store.error();
      auto there = (*store)->list(piece.key);
      if (!there && there.error().code == errc::not_found && !out_of_sight(row->saved, peers_.checkpoint_dir))
        continue;
      if (!there)
        return there.error();
      for (const auto& [path, bytes] : *there)
        if (is_removed(order.globs, path) && !row->saved.files.contains(path))
          piece.paths.push_back(path);
      if (piece.paths.empty())
        continue;
    }
    out.push_back(std::move(piece));
  }
  return out;
}

/// Removes the next pieces. Several threads remove files, so that experiments are deleted at the same time.
void erasures::remove_some(const work_ptr& work) {
  auto some = std::make_shared<removal_work>();
  while (some->pieces.size() < pieces_at_once && work->removed < work->pieces.size())
    some->pieces.push_back(std::move(work->pieces[work->removed++]));
  if (some->pieces.empty())
    return end_task(work);
  remove(work, some);
}

void erasures::remove(const work_ptr& work, const std::shared_ptr<removal_work>& some) {
  tasks_.removing();
  self_->request((*removers_)[next_remover_++ % removers_->size()], removal_timeout, remove_stored{some})
    .then(
      [this, work](const stored_removed& x) {
        for (const auto& one : x.work->done)
          note(work, one);
        go_on(work);
        tasks_.removed();
      },
      [this, work, some](const caf::error& why) {
        tasks_.removed();
        if (why == caf::sec::request_receiver_down) // what was removed before the remover died is no fault
          return remove(work, some);
        note(work, {{}, 0, from_caf(why).what});
        // What is there of all that was not told is listed again. The remover may still read `some`.
        const auto order = tasks_.order(work->task);
        const auto give_up = [&](const removal_piece& piece) {
          if (!piece.checkpoint.empty())
            work->failed[piece.checkpoint] = order ? order->globs : std::vector<std::string>();
        };
        std::for_each(some->pieces.begin(), some->pieces.end(), give_up);
        std::for_each(work->pieces.begin() + static_cast<std::ptrdiff_t>(work->removed), work->pieces.end(),
                      give_up);
        work->removed = work->pieces.size();
        go_on(work);
      });
}

void erasures::note(const work_ptr& work, const removal& one) {
  if (work->why.empty())
    work->why = one.why;
  if (!one.why.empty() && !one.checkpoint.empty()) {
    const auto order = tasks_.order(work->task);
    work->failed[one.checkpoint] = order ? order->globs : std::vector<std::string>();
  }
  tasks_.note(work->task, one);
}

void erasures::go_on(const work_ptr& work) {
  if (work->removed == work->pieces.size())
    return end_task(work);
  tasks_.write_log(work->task, [this, work] { remove_some(work); });
}

/// Erases the rows of trials at the same time as the last facts are written, because one commit can serve
/// both.
void erasures::end_task(const work_ptr& work) {
  const bool last = work->to_carry_out.empty();
  const bool with_rows = last && work->why.empty();
  work->unfinished = with_rows ? 2 : 1;
  tasks_.end(work->task, [this, work, last](const result<void>& done) {
    if (!done && work->why.empty())
      work->why = done.error().what;
    if (last)
      finish(work);
    else
      carry_out_next(work);
  });
  if (with_rows)
    erase_rows(work);
}

void erasures::finish(const work_ptr& work) {
  if (--work->unfinished)
    return;
  if (!work->why.empty())
    note_left(work);
  if (work->why.empty() || work->is_deletion || !work->failed.empty())
    work->promise.deliver(work->done);
  else
    work->promise.deliver(to_caf({errc::io, work->why}));
}

/// Collects what a failed removal has left. After a failed deletion these are the checkpoints that have lost
/// files, also before a restart, so that nothing begins with them. After other removals it is also the files
/// that still exist, although the journal says that they are removed.
void erasures::note_left(const work_ptr& work) const {
  work->done.why = work->why;
  for (const auto& [uuid, globs] : work->failed) {
    const auto row = peers_.reads->checkpoint(uuid);
    auto there = row ? refreshed(row->saved) : result<std::map<std::string, std::int64_t>>(row.error());
    if (!there)
      continue;
    std::erase_if(*there, [&](const auto& one) { // another removal may have noted it as removed
      return !row->saved.files.contains(one.first) && !is_removed(globs, one.first);
    });
    work->done.left[uuid] = std::move(*there);
  }
  if (!work->is_deletion)
    return;
  for (const auto trial : work->done.trials)
    if (const auto rows = peers_.reads->checkpoints(trial))
      for (const auto& row : *rows)
        if (row.state != checkpoint_state::deleted && !out_of_sight(row.saved, peers_.checkpoint_dir) &&
            !is_there(whole(row.saved)))
          work->done.left[row.saved.uuid] = {};
}

void erasures::carry_out_next(const work_ptr& work) {
  work->task = work->to_carry_out.back();
  work->to_carry_out.pop_back();
  work->removed = 0;
  work->pieces.clear();
  if (const auto order = tasks_.order(work->task)) {
    auto pieces = pieces_of(*order);
    if (pieces)
      work->pieces = std::move(*pieces);
    else {
      for (const auto& uuid : order->checkpoints)
        work->failed[uuid] = order->globs;
      if (work->why.empty())
        work->why = pieces.error().what;
      tasks_.note(work->task, {{}, 0, pieces.error().what});
    }
  }
  remove_some(work);
}

/// Looks at the checkpoints first; the cluster then notes what is removed, and afterwards the files are
/// erased that are noted as removed and still exist. The tasks that will erase them are begun here, so that a
/// master that ends in between leaves nothing half done.
result<void> erasures::look_at_checkpoints(const erase_stored& x, const work_ptr& work) {
  std::map<experiment_id, std::vector<std::string>> going;
  std::map<std::pair<experiment_id, storage_number>, std::vector<std::string>> far;
  std::map<experiment_id, storage_history> histories;
  for (const auto& uuid : x.checkpoints) {
    auto row = peers_.reads->checkpoint(uuid);
    if (!row)
      return row.error();
    if (row->state == checkpoint_state::deleted)
      continue; // no file is left that could be removed or listed again
    auto history = histories.find(row->experiment);
    if (history == histories.end()) {
      auto experiment = peers_.reads->experiment(row->experiment);
      if (!experiment)
        return experiment.error();
      auto known = storage_history::of(*peers_.reads, *experiment);
      if (!known)
        return known.error();
      history = histories.emplace(row->experiment, std::move(*known)).first;
    }
    const auto storage = history->second.of_checkpoint(*peers_.reads, *row);
    if (!storage)
      return storage.error();
    const bool here = history->second.deletes_here(*storage);
    if (!removable(row->saved) || (here && !x.refresh && out_of_sight(row->saved, peers_.checkpoint_dir)))
      return cannot_delete(row->saved);
    if (!can_delete(row->saved, here)) {
      far[{row->experiment, *storage}].push_back(uuid);
      continue;
    }
    auto left = x.refresh ? refreshed(row->saved) : left_of(row->saved, x.globs);
    if (!left && left.error().code == errc::not_found) {
      const auto now = peers_.reads->checkpoint(uuid);
      if (now && now->state == checkpoint_state::deleted)
        continue; // another removal has taken all files since the row was read
    }
    if (!left)
      return left.error();
    const auto& noted = work->done.left[uuid] = std::move(*left);
    if (x.refresh)
      continue;
    if (noted != row->saved.files || holds_any(row->saved, x.globs))
      going[row->experiment].push_back(uuid);
  }
  for (auto& [id, uuids] : going) {
    auto& order = work->to_begin.emplace_back(tasks_.order_of(id, collected_by::request, x.by));
    order.checkpoints = std::move(uuids);
    order.globs = x.globs;
  }
  std::vector<bucket_order> orders;
  const auto globs = x.globs.empty() && !x.refresh ? all_files() : x.globs;
  for (auto& [of, uuids] : far)
    orders.push_back({of.first, {}, collected_by::request, x.by, std::move(uuids), globs, false, of.second});
  order_next(std::move(orders), work);
  return {};
}

/// Orders the tasks that remove files from buckets. The caller does not wait for them: they report by
/// themselves which files are left.
void erasures::order_next(std::vector<bucket_order> orders, const work_ptr& work) {
  if (orders.empty())
    return begin_next(work);
  auto next = std::move(orders.back());
  orders.pop_back();
  buckets_.order(std::move(next), [this, orders = std::move(orders), work](const result<void>& done) {
    if (done)
      order_next(orders, work);
    else
      work->promise.deliver(to_caf(done.error()));
  });
}

void erasures::begin_next(const work_ptr& work) {
  if (work->to_begin.empty()) {
    work->promise.deliver(work->done);
    return;
  }
  auto order = std::move(work->to_begin.back());
  work->to_begin.pop_back();
  tasks_.begin(std::move(order), [this, work](result<task_id> task) {
    if (task) {
      work->done.tasks.push_back(*task);
      return begin_next(work);
    }
    for (const auto begun : work->done.tasks) // nothing was noted, so that these tasks have nothing to do
      tasks_.end(begun, [](const result<void>&) {});
    work->promise.deliver(to_caf(task.error()));
  });
}

/// Erases lines and reports of the trials, one trial after the other.
void erasures::erase_rows(const work_ptr& work) {
  if (work->left.empty())
    return finish(work);
  const auto trial = work->left.back();
  work->left.pop_back();
  tasks_.post([this, work, trial] {
    self_->request(peers_.journal, journal_timeout, erase_log{trial, true})
      .then([this, work](const committed&) { erase_rows(work); },
            [this, work](const caf::error& why) {
              if (work->why.empty())
                work->why = from_caf(why).what;
              finish(work);
            });
  });
}

} // namespace troupe

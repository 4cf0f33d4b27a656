#include "actors/retention/retention_actor.hpp"

#include "actors/experiment/experiment_settings.hpp"
#include "actors/retention/erasures_part.hpp"
#include "actors/retention/expired_logs_part.hpp"
#include "actors/retention/held_checkpoints.hpp"
#include "actors/retention/retention.hpp"
#include "actors/retention/sweeps.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "storage/rollback.hpp"

#include <algorithm>
#include <iostream>

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<retention_actor>;

constexpr std::size_t rows_at_once = 1000;
/// Limit of the checkpoints that one command notes as deleted, so that the cluster can do other things
/// between two of them.
constexpr std::size_t noted_at_once = 100;

/// The searcher's metric of each validation that counts, by steps.
result<std::map<std::int64_t, double>> validations(const storage::reader& reads, const trial_row& trial,
                                                   const std::string& metric) {
  std::map<std::int64_t, double> found;
  auto gone = storage::rollback_of(trial, reads);
  if (!gone)
    return gone.error();
  for (std::uint64_t after = 0;;) {
    auto rows = reads.metrics(trial.id, after, rows_at_once, "validation");
    if (!rows)
      return rows.error();
    for (const auto& row : *rows) {
      if (gone->archives(row))
        continue;
      auto all = parse_msgpack(row.metrics);
      if (!all || !all->is_object() || !all->contains(metric))
        continue;
      if (auto number = number_in((*all)[metric]))
        found[row.steps] = *number;
    }
    if (rows->size() < rows_at_once)
      return found;
    after = rows->back().row;
  }
}

class retention_state {
public:
  static inline const char* name = "retention";
  explicit retention_state(base* self) : self_(self) {}

  retention_actor::behavior_type make_behavior(retention_peers peers) {
    self_->enter("retention");
    stand_back(self_->system());
    self_->set_down_handler([this](const caf::down_msg& x) {
      if (!erasures_->remover_down(x.source))
        self_->quit(x.reason);
    });
    peers_ = std::move(peers);
    machine_.emplace(self_->now(), peers_.look_at_logs);
    collections_.emplace(self_, peers_.journal, peers_.reads, peers_.id_bytes);
    buckets_.emplace(self_, peers_, [this] { arm(); });
    erasures_.emplace(self_, peers_, *collections_, *buckets_);
    logs_.emplace(self_, peers_.journal, peers_.reads);
    self_->describe_by([this] { return machine_->describe(); });
    arm();
    for (const auto& order : collections_->recover())
      go_on(order);
    return {
      [this](const sweep_experiment& x) {
        step(sweep_asked{x.id, x.at_once ? self_->now() : due(x.id)});
      },
      [this](const clean_logs&) { return logs_->erase(); },
      [this](const erase_stored& x) { return erasures_->erase(x); },
      [this](const time_passed&) {
        armed_.reset();
        buckets_->time_passed();
        step(time_passed{});
      },
    };
  }

private:
  struct doomed {
    std::map<trial_id, std::vector<checkpoint>> of_trials; ///< superfluous checkpoints
    /// What an earlier sweep noted as removed and left on the disk.
    std::vector<removal_piece> left_over;
    /// Superfluous checkpoints that tasks on agents have to remove, by the storage that they are in.
    std::map<storage_number, std::vector<std::string>> in_bucket;
    task_id task; ///< the collection's task, once it is begun
  };

  void step(const sweeps_event& ev) {
    auto actions = machine_->apply(ev, self_->now());
    self_->trace_decision([&] { return "actions: " + std::to_string(actions.size()); });
    for (const auto& action : actions)
      std::visit([this](const auto& x) { run(x); }, action);
    arm();
  }
  void arm() {
    auto next = machine_->deadline();
    if (const auto look = buckets_->deadline())
      next = std::min(next, *look);
    if (armed_ && *armed_ <= next)
      return;
    armed_ = next;
    send_later(std::max<duration>(next - self_->now(), duration{0}), time_passed{});
  }

  /// Goes on with an order of an earlier life. The cluster itself orders again the deletion of an experiment
  /// or a trial, and the removal of files that a user named.
  void go_on(const checkpoint_files_removed& order) {
    const retention_actor me{self_};
    if (order.cause == collected_by::policy) {
      auto row = peers_.reads->experiment(order.experiment);
      if (row && terminal(row->state))
        caf::anon_send(me, sweep_experiment{order.experiment, true});
      else // the experiment was deleted or continued
        collections_->end(order.id, [](const result<void>&) {});
    } else if (order.cause == collected_by::deletion || order.cause == collected_by::trial) {
      if (!is_being_deleted(order))
        collections_->end(order.id, [](const result<void>&) {});
    } else if (order.cause == collected_by::tensorboards) {
      erase_stored again;
      again.tasks = {order.id};
      caf::anon_send(me, std::move(again));
    }
  }

  /// Whether the cluster will order the deletion again.
  bool is_being_deleted(const checkpoint_files_removed& order) const {
    if (order.cause == collected_by::trial) {
      auto row = peers_.reads->trial(order.trial);
      return row && row->deletion == deletion_step::ordered;
    }
    auto row = peers_.reads->experiment(order.experiment);
    return row && row->state == experiment_state::deleting;
  }

  time_point due(experiment_id id) const {
    auto row = peers_.reads->experiment(id);
    return row && terminal(row->state) ? sweep_due(row->source, retention_of(row->config), row->ended)
                                       : time_point{};
  }

  void run(const plan_sweep& x) {
    auto planned = plan(x.id);
    if (!planned && planned.error().code == errc::not_found)
      planned = doomed{}; // the experiment was deleted in the meantime
    if (!planned)
      return step(sweep_unplanned{x.id});
    if (removes_from_bucket(x, *planned))
      return;
    sweep_planned found{x.id, {}, !planned->left_over.empty()};
    for (const auto& [trial, checkpoints] : planned->of_trials)
      found.trials.push_back(trial);
    found.collects = found.collects || !found.trials.empty() ||
                     collections_->is_open(collections_->order_of(x.id, collected_by::policy, {}));
    doomed_[x.id] = std::move(*planned);
    step(found);
  }
  /// Has a task remove what is in a bucket, and plans the rest when it has ended. Each task has to have
  /// removed some checkpoints; what the tasks could not remove stays, and their logs have the reason. Where
  /// no task can be created, the sweep waits as it does where storage cannot be read.
  bool removes_from_bucket(const plan_sweep& x, const doomed& planned) {
    for (const auto& [storage, uuids] : planned.in_bucket) {
      const auto [before, fresh] = left_in_bucket_[x.id].try_emplace(storage, uuids.size());
      if (!fresh && uuids.size() >= before->second)
        continue;
      before->second = uuids.size();
      remove_from_bucket(x, storage, uuids);
      return true;
    }
    return false;
  }
  void remove_from_bucket(const plan_sweep& x, storage_number storage,
                          const std::vector<std::string>& uuids) {
    buckets_->remove(
      {x.id, {}, collected_by::policy, {}, uuids, all_files(), false, storage},
      [this, x, storage](const result<void>& done) {
        if (!done)
          left_in_bucket_[x.id][storage] = 0;
        run(x);
      },
      [this, x](const result<void>& refused) {
        left_in_bucket_.erase(x.id);
        auto& said = refused_[x.id];
        if (said != refused.error().what) {
          said = refused.error().what;
          std::cerr << "troupe: no task removes checkpoints of experiment " << to_string(x.id)
                    << " from its bucket, which is tried again every minute: " << said << std::endl;
        }
        step(sweep_unplanned{x.id});
      });
  }
  void run(const begin_collection& x) {
    collections_->begin(collections_->order_of(x.id, collected_by::policy, {}),
                        [this, id = x.id](result<task_id> task) {
                          if (!task)
                            return step(collection_refused{id});
                          auto& doomed = doomed_[id];
                          doomed.task = *task;
                          for (const auto& one : std::exchange(doomed.left_over, {}))
                            collections_->note(*task, remove_piece(one));
                          collections_->write_log(*task, [] {});
                          step(collection_begun{id});
                        });
  }
  void run(const remove_files& x) {
    auto& doomed = doomed_[x.id];
    for (const auto& one : doomed.of_trials[x.trial])
      collections_->note(doomed.task, removable(one) ? remove_piece(whole(one))
                                                     : removal{one.uuid, 0, cannot_delete(one).what});
    collections_->write_log(doomed.task, [] {});
  }
  void run(const end_collection& x) {
    collections_->end(doomed_[x.id].task, [this, id = x.id](const result<void>& done) {
      if (done)
        step(collection_ended{id});
      else
        step(collection_refused{id});
    });
  }
  void run(const report_swept& x) {
    doomed_.erase(x.id);
    left_in_bucket_.erase(x.id);
    refused_.erase(x.id);
    self_->send(peers_.cluster, sweep_finished{x.id});
  }
  void run(const look_at_logs&) { logs_->look(); }

  /// Sends a message later. CAF's clock keeps a reference to the actor that it will wake, and that reference
  /// would keep this actor's own thread alive: so an actor without a thread of its own waits.
  template <class Message>
  void send_later(duration wait, Message x) {
    auto to = caf::actor_cast<caf::actor_addr>(retention_actor{self_});
    self_->spawn<caf::linked>([to, wait, x](caf::event_based_actor* self) -> caf::behavior {
      self->delayed_send(self, wait, x);
      return {[self, to](const Message& due) {
        if (auto still_there = caf::actor_cast<caf::strong_actor_ptr>(to))
          caf::anon_send(caf::actor_cast<retention_actor>(still_there), due);
        self->quit();
      }};
    });
  }

  result<doomed> plan(experiment_id id) {
    auto experiment = peers_.reads->experiment(id);
    if (!experiment)
      return experiment.error();
    const auto policy = retention_of(experiment->config);
    if (!terminal(experiment->state))
      return doomed{};
    auto trials = peers_.reads->trials(id);
    if (!trials)
      return trials.error();
    doomed out;
    std::vector<checkpoint_standing> all;
    std::map<std::string, checkpoint_row> rows;
    for (const auto& trial : *trials) {
      auto saved = peers_.reads->checkpoints(trial.id);
      if (!saved)
        return saved.error();
      // A trial of an experiment that was set aside may never have ended; its checkpoints are removed as
      // those of other trials.
      if (saved->empty())
        continue;
      auto at = validations(*peers_.reads, trial, experiment->metric);
      if (!at)
        return at.error();
      for (auto& row : *saved) {
        if (row.state == checkpoint_state::deleted) {
          if (removable(row.saved) && is_there(whole(row.saved)))
            out.left_over.push_back(whole(row.saved));
          continue;
        }
        auto stands = at->find(row.saved.steps);
        all.push_back({trial.id, row.saved.uuid, row.saved.steps,
                       stands == at->end() ? std::nullopt : std::optional{stands->second}});
        rows.emplace(row.saved.uuid, std::move(row));
      }
    }
    const auto unwanted = superfluous(policy, experiment->smaller_is_better, all);
    auto held = held_checkpoints(*peers_.reads, unwanted);
    if (!held)
      return held.error();
    auto history = storage_history::of(*peers_.reads, *experiment);
    if (!history)
      return history.error();
    for (const auto& uuid : unwanted) {
      if (held->contains(uuid))
        continue;
      auto& row = rows.at(uuid);
      if (out_of_sight(row.saved, peers_.checkpoint_dir))
        continue; // it stays, as nobody can tell whether its files are gone
      const auto storage = history->of_checkpoint(*peers_.reads, row);
      if (!storage)
        return storage.error();
      if (!history->deletes_here(*storage) && removable(row.saved) && !is_there(whole(row.saved)))
        out.in_bucket[*storage].push_back(uuid);
      else
        out.of_trials[row.trial].push_back(std::move(row.saved));
    }
    return out;
  }

  void run(const note_deletion& x) { note_some(x, 0); }
  /// Has the cluster note the checkpoints from number `first` on as deleted. The cluster refuses what has
  /// come into use since the plan.
  void note_some(const note_deletion& x, std::size_t first) {
    const auto& doomed = doomed_[x.id];
    const auto all = doomed.of_trials.find(x.trial);
    const auto count = all == doomed.of_trials.end() ? 0 : all->second.size();
    if (first >= count)
      return step(deletion_noted{x.id, x.trial});
    const auto last = std::min(first + noted_at_once, count);
    commands::checkpoint_patch noted;
    for (auto n = first; n < last; ++n)
      noted.checkpoints.push_back({all->second[n].uuid, commands::file_sizes{}});
    auto order = client_command_of(noted);
    order.allocation = to_string(allocation_id{doomed.task, run_id{1}});
    self_->request(peers_.cluster, journal_timeout, std::move(order))
      .then(
        [this, x, last](const command_result& answer) {
          if (answer.got)
            note_some(x, last);
          else
            step(deletion_refused{x.id, x.trial, answer.got.error().code == errc::gap});
        },
        [this, x](const caf::error&) {
          step(deletion_refused{x.id, x.trial});
        });
  }

  base* self_;
  retention_peers peers_;
  std::optional<sweeps> machine_;
  std::optional<collections> collections_;
  std::optional<bucket_removals> buckets_;
  std::optional<erasures> erasures_;
  std::optional<expired_logs> logs_;
  std::map<experiment_id, doomed> doomed_; ///< what the sweeps at work remove
  /// Checkpoints in each storage when a sweep at work looked last; 0: a task has failed to remove them.
  std::map<experiment_id, std::map<storage_number, std::size_t>> left_in_bucket_;
  std::map<experiment_id, std::string> refused_; ///< why no task could be created, as told last
  std::optional<time_point> armed_;
};

} // namespace

retention_actor spawn_retention(caf::actor_system& sys, retention_peers peers) {
  return spawn_with_own_thread<shell<retention_state, retention_actor, retention_peers>>(sys,
                                                                                         std::move(peers));
}

} // namespace troupe

#include "actors/retention/retention_actor.hpp"

#include "actors/experiment/experiment_settings.hpp"
#include "actors/retention/globs.hpp"
#include "actors/retention/held_checkpoints.hpp"
#include "actors/retention/retention.hpp"
#include "actors/retention/sweeps.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/durable.hpp"
#include "model/checkpoint_place.hpp"
#include "model/config/cluster_config.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/keys.hpp"

#include <algorithm>

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<retention_actor>;

constexpr std::size_t rows_at_once = 1000;

/// The searcher's metric of each validation that counts, by steps.
result<std::map<std::int64_t, double>> validations(const storage::reader& reads, const trial_row& trial,
                                                   const std::string& metric) {
  std::map<std::int64_t, double> found;
  for (std::uint64_t after = 0;;) {
    auto rows = reads.metrics(trial.id, after, rows_at_once, "validation");
    if (!rows)
      return rows.error();
    for (const auto& row : *rows) {
      if (archived(row, trial.runs))
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
    peers_ = std::move(peers);
    machine_.emplace(self_->now(), peers_.look_at_logs);
    self_->describe_by([this] { return machine_->describe(); });
    arm();
    return {
      [this](const sweep_experiment& x) {
        step(sweep_asked{x.id, x.at_once ? self_->now() : due(x.id)});
      },
      [this](const clean_logs&) { return clean(); },
      [this](const erase_stored& x) { return erase_what(x); },
      [this](const time_passed&) {
        armed_.reset();
        step(time_passed{});
      },
    };
  }

private:
  // ---- checkpoints

  using doomed = std::map<trial_id, std::vector<checkpoint>>; ///< superfluous checkpoints by trial

  void step(const sweeps_event& ev) {
    auto actions = machine_->apply(ev, self_->now());
    self_->trace_decision([&] { return "actions: " + std::to_string(actions.size()); });
    for (const auto& action : actions)
      std::visit([this](const auto& x) { run(x); }, action);
    arm();
  }
  void arm() {
    const auto next = machine_->deadline();
    if (armed_ && *armed_ <= next)
      return;
    armed_ = next;
    send_later(std::max<duration>(next - self_->now(), duration{0}), time_passed{});
  }

  time_point due(experiment_id id) const {
    auto row = peers_.reads->experiment(id);
    return row && terminal(row->state) ? sweep_due(row->source, row->ended) : time_point{};
  }

  void run(const plan_sweep& x) {
    auto planned = plan(x.id);
    if (!planned)
      return step(sweep_unplanned{x.id});
    sweep_planned found{x.id, {}};
    for (const auto& [trial, checkpoints] : *planned)
      found.trials.push_back(trial);
    doomed_[x.id] = std::move(*planned);
    step(found);
  }
  void run(const remove_files& x) {
    for (const auto& one : doomed_[x.id][x.trial])
      remove(one);
  }
  void run(const report_swept& x) {
    doomed_.erase(x.id);
    self_->send(peers_.cluster, sweep_finished{x.id});
  }
  void run(const look_at_logs&) { erase(std::make_shared<cleaning>(cleaning{expired(), 0, {}})); }

  /// The clock holds whom it will wake, and what is held keeps its thread: so the hours are waited by an
  /// actor without one.
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

  /// Also removes what an earlier sweep has noted and left on the disk.
  result<doomed> plan(experiment_id id) {
    auto experiment = peers_.reads->experiment(id);
    if (!experiment)
      return experiment.error();
    const auto policy = retention_of(experiment->config);
    if (!policy.deletes_here || !terminal(experiment->state))
      return doomed{};
    auto trials = peers_.reads->trials(id);
    if (!trials)
      return trials.error();
    std::vector<checkpoint_standing> all;
    std::map<std::string, checkpoint_row> rows;
    for (const auto& trial : *trials) {
      auto saved = peers_.reads->checkpoints(trial.id);
      if (!saved)
        return saved.error();
      if (saved->empty()) // a trial of an experiment that was set aside may never have ended; its checkpoints
                          // go as the others'
        continue;
      auto at = validations(*peers_.reads, trial, experiment->metric);
      if (!at)
        return at.error();
      for (auto& row : *saved) {
        if (row.state == checkpoint_state::deleted) {
          remove(row.saved);
          continue;
        }
        auto stands = at->find(row.saved.steps);
        all.push_back({trial.id, row.saved.uuid, row.saved.steps,
                       stands == at->end() ? std::nullopt : std::optional{stands->second}});
        rows.emplace(row.saved.uuid, std::move(row));
      }
    }
    doomed out;
    const auto unwanted = superfluous(policy, experiment->smaller_is_better, all);
    auto held = held_checkpoints(*peers_.reads, unwanted);
    if (!held)
      return held.error();
    for (const auto& uuid : unwanted) {
      if (held->contains(uuid))
        continue;
      auto& row = rows.at(uuid);
      out[row.trial].push_back(std::move(row.saved));
    }
    return out;
  }

  void run(const note_deletion& x) {
    const auto stream = entity(x.trial);
    auto first = peers_.reads->next_of(stream);
    if (!first)
      return step(deletion_refused{x.id, x.trial});
    append_facts message{stream, *first, {}};
    for (const auto& one : doomed_[x.id][x.trial])
      message.facts.push_back(encode(checkpoint_changed{self_->now(), one.uuid, {}, {}}));
    self_->request(peers_.journal, journal_timeout, std::move(message))
      .then(
        [this, x](const committed&) {
          step(deletion_noted{x.id, x.trial});
        },
        [this, x](const caf::error& why) {
          step(deletion_refused{x.id, x.trial, from_caf(why).code == errc::gap});
        });
  }

  static void remove(const checkpoint& saved) {
    if (!removable(saved))
      return;
    const auto place = place_of(saved);
    if (auto store = storage::open_checkpoint_store(place.store))
      (void)(*store)->erase(place.key); // what stays is tried at the next sweep
  }

  // ---- what somebody wants to be gone

  struct erasing {
    std::vector<trial_id> left;
    stored_erased done;
    caf::typed_response_promise<stored_erased> promise;
  };

  caf::result<stored_erased> erase_what(const erase_stored& x) {
    auto work = std::make_shared<erasing>(erasing{{}, {}, self_->make_response_promise<stored_erased>()});
    auto files = x.experiment ? erase_experiment(x, *work) : erase_checkpoints(x, work->done);
    if (!files)
      work->promise.deliver(to_caf(files.error()));
    else
      erase_rows(work);
    return work->promise;
  }

  result<void> erase_experiment(const erase_stored& x, erasing& work) {
    auto experiment = peers_.reads->experiment(x.experiment);
    if (!experiment)
      return experiment.error();
    auto trials = peers_.reads->trials(x.experiment);
    if (!trials)
      return trials.error();
    const auto policy = retention_of(experiment->config);
    for (const auto& trial : x.tensorboards_only ? std::vector<trial_row>{} : *trials) {
      if (x.trial && trial.id != x.trial)
        continue;
      auto saved = peers_.reads->checkpoints(trial.id);
      if (!saved)
        return saved.error();
      for (const auto& row : *saved) {
        const auto place = place_of(row.saved);
        if (row.state == checkpoint_state::deleted)
          continue;
        if (!policy.deletes_here || !removable(row.saved))
          return error{errc::unsupported, "checkpoint " + row.saved.uuid +
                                            " lies where this cluster cannot "
                                            "delete (" +
                                            (place.store.empty() ? "a bucket" : place.store) + ")"};
        auto store = storage::open_checkpoint_store(place.store);
        auto erased = store ? (*store)->erase(place.key) : result<void>(store.error());
        if (!erased)
          return erased;
      }
      work.left.push_back(trial.id);
    }
    work.done.trials = work.left;
    return erase_tensorboards(*experiment, x.trial);
  }

  /// They lie beside the checkpoints, as the stock client puts them. `trial`: its own alone; 0: all.
  result<void> erase_tensorboards(const experiment_row& experiment, trial_id trial) {
    auto settings = experiment_settings_of(
      {experiment.id, experiment.config, {}, experiment.owner, peers_.checkpoint_dir, experiment.created});
    const auto& folder = settings ? settings->launch.checkpoint_dir : peers_.checkpoint_dir;
    if (folder.empty() || peers_.cluster_id.empty())
      return {};
    const auto all = "directory:" + folder + "/" + peers_.cluster_id + "/tensorboard/experiment";
    auto store =
      storage::open_checkpoint_store(trial ? all + "/" + to_string(experiment.id) + "/trial" : all);
    return store ? (*store)->erase(trial ? to_string(trial) : to_string(experiment.id))
                 : result<void>(store.error());
  }

  static bool goes(const erase_stored& x, const std::string& path) {
    bool out = x.globs.empty();
    for (const auto& glob : x.globs)
      out = out || matches_glob(glob, path);
    return out && !path.ends_with('/');
  }

  /// What of a checkpoint is there now, with the folders that were named. errc::not_found where nothing is.
  static result<std::map<std::string, std::int64_t>> refreshed(const checkpoint& saved) {
    const auto place = place_of(saved);
    auto store = storage::open_checkpoint_store(place.store);
    if (!store)
      return store.error();
    auto there = (*store)->list(place.key);
    if (!there)
      return there.error();
    if (there->empty() && !saved.files.empty()) // a folder that is not mounted looks so, too
      return error{errc::not_found, "no file of checkpoint " + saved.uuid +
                                      " can be seen from the master, so nothing is noted" +
                                      "\nhint: delete the checkpoint where it is gone indeed"};
    std::map<std::string, std::int64_t> out;
    for (const auto& [path, bytes] : *there)
      out[path] = static_cast<std::int64_t>(bytes);
    for (const auto& [path, bytes] : saved.files)
      if (path.ends_with('/'))
        out.emplace(path, bytes);
    return out;
  }

  /// Looked at first, then noted by the cluster, then erased: what is noted as gone and still there.
  result<void> erase_checkpoints(const erase_stored& x, stored_erased& done) {
    for (const auto& uuid : x.checkpoints) {
      auto row = peers_.reads->checkpoint(uuid);
      if (!row)
        return row.error();
      if (!removable(row->saved))
        return error{errc::unsupported, "checkpoint " + uuid + " lies where this cluster cannot delete"};
      if (x.refresh) {
        auto there = refreshed(row->saved);
        if (!there)
          return there.error();
        done.left[uuid] = std::move(*there);
        continue;
      }
      if (x.only_look) {
        auto& left = done.left[uuid] = row->saved.files;
        std::erase_if(left, [&](const auto& one) { return goes(x, one.first); });
        if (std::all_of(left.begin(), left.end(), [](const auto& one) { return one.first.ends_with('/'); }))
          left.clear(); // folders alone are no checkpoint
        continue;
      }
      const auto place = place_of(row->saved);
      auto store = storage::open_checkpoint_store(place.store);
      if (!store)
        return store.error();
      if (row->saved.files.empty()) {
        if (auto erased = (*store)->erase(place.key); !erased)
          return erased;
        continue;
      }
      auto there = (*store)->list(place.key);
      if (!there)
        return there.error();
      std::vector<std::string> doomed;
      for (const auto& [path, bytes] : *there)
        if (goes(x, path) && !row->saved.files.contains(path))
          doomed.push_back(path);
      if (auto erased = (*store)->erase_files(place.key, doomed); !erased)
        return erased;
    }
    return {};
  }

  /// Lines and reports of the trials, one after the other.
  void erase_rows(const std::shared_ptr<erasing>& work) {
    if (work->left.empty()) {
      work->promise.deliver(work->done);
      return;
    }
    const auto trial = work->left.back();
    work->left.pop_back();
    self_->request(peers_.journal, journal_timeout, erase_log{trial, true})
      .then([this, work](const committed&) { erase_rows(work); },
            [work](const caf::error& why) { work->promise.deliver(why); });
  }

  // ---- logs

  struct cleaning {
    std::vector<task_id> left;
    std::uint64_t erased = 0;
    caf::typed_response_promise<logs_cleaned> promise;
  };

  caf::result<logs_cleaned> clean() {
    auto work =
      std::make_shared<cleaning>(cleaning{expired(), 0, self_->make_response_promise<logs_cleaned>()});
    erase(work);
    return work->promise;
  }

  bool has_lines(task_id id) const {
    const auto lines = peers_.reads->logs(id, 0, 1);
    return lines && !lines->empty();
  }

  std::vector<task_id> expired() {
    std::vector<task_id> out;
    const auto configuration = peers_.reads->configuration();
    if (!configuration)
      return out; // what it says is not known: the next look finds them
    const auto usual =
      *configuration ? config::log_retention((*configuration)->configuration) : std::optional<duration>{};
    for (const auto kind : {task_kind::command, task_kind::notebook, task_kind::shell, task_kind::tensorboard,
                            task_kind::generic}) {
      auto others = usual ? peers_.reads->other_tasks(kind) : std::vector<task_detail>{};
      for (const auto& one : others ? *others : std::vector<task_detail>{})
        if (log_expired(usual, one.ended, self_->now()) && has_lines(one.made.id))
          out.push_back(one.made.id);
    }
    auto experiments = peers_.reads->experiments();
    for (const auto& experiment : experiments ? *experiments : std::vector<experiment_row>{}) {
      const auto policy = retention_of(experiment.config);
      auto said =
        storage::records_of<log_retention_changed>(*peers_.reads, storage::keys::one(experiment.id.value));
      auto trials = said && (usual || policy.log_days || !said->empty()) ? peers_.reads->trials(experiment.id)
                                                                         : std::vector<trial_row>{};
      for (const auto& trial : trials ? *trials : std::vector<trial_row>{})
        if (log_expired(log_life(policy, *said, trial.id, usual), trial.ended, self_->now()) &&
            has_lines(trial.id))
          out.push_back(trial.id);
    }
    return out;
  }

  void erase(std::shared_ptr<cleaning> work) {
    if (work->left.empty()) {
      if (work->promise.pending())
        work->promise.deliver(logs_cleaned{work->erased});
      return;
    }
    const auto task = work->left.back();
    work->left.pop_back();
    self_->request(peers_.journal, journal_timeout, erase_log{task, false})
      .then(
        [this, work](const committed&) {
          ++work->erased;
          erase(work);
        },
        [work](const caf::error& why) { // the next look finds the rest
          if (work->promise.pending())
            work->promise.deliver(why);
        });
  }

  base* self_;
  retention_peers peers_;
  std::optional<sweeps> machine_;
  std::map<experiment_id, doomed> doomed_; ///< of the sweeps at work
  std::optional<time_point> armed_;
};

} // namespace

retention_actor spawn_retention(caf::actor_system& sys, retention_peers peers) {
  return spawn_with_own_thread<shell<retention_state, retention_actor, retention_peers>>(sys,
                                                                                         std::move(peers));
}

} // namespace troupe

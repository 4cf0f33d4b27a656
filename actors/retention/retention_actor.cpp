#include "actors/retention/retention_actor.hpp"

#include "actors/experiment/experiment_settings.hpp"
#include "actors/retention/collections_part.hpp"
#include "actors/retention/globs.hpp"
#include "actors/retention/held_checkpoints.hpp"
#include "actors/retention/remover_actor.hpp"
#include "actors/retention/retention.hpp"
#include "actors/retention/sweeps.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/durable.hpp"
#include "model/checkpoint_place.hpp"
#include "model/config/cluster_config.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/keys.hpp"

#include <algorithm>
#include <array>

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<retention_actor>;

constexpr std::size_t rows_at_once = 1000;
constexpr std::size_t pieces_at_once = 32;                 ///< removed between two writes of the log
constexpr auto removal_timeout = std::chrono::minutes(10); ///< for so many

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
    stand_back(self_->system());
    for (std::size_t i = 0; i < removers_->size(); ++i)
      make_remover(i);
    self_->attach_functor([all = removers_](const caf::error&) {
      for (const auto& one : *all)
        caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
    });
    self_->set_down_handler([this](const caf::down_msg& x) {
      for (std::size_t i = 0; i < removers_->size(); ++i)
        if (x.source == (*removers_)[i].address()) {
          if (!restarts_.again(i, self_->now()))
            return self_->quit(x.reason);
          make_remover(i);
        }
    });
    peers_ = std::move(peers);
    machine_.emplace(self_->now(), peers_.look_at_logs);
    collections_.emplace(self_, peers_.journal, peers_.reads, peers_.id_bytes);
    self_->describe_by([this] { return machine_->describe(); });
    arm();
    for (const auto& order : collections_->recover())
      go_on(order);
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

  struct doomed {
    std::map<trial_id, std::vector<checkpoint>> of_trials; ///< superfluous ones
    std::vector<removal_piece> left_over; ///< what an earlier sweep has noted and left on the disk
    task_id task;                         ///< the collection, once it is begun
  };

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

  /// Of an earlier life. The deletion of an experiment or a trial is ordered again by the cluster.
  void go_on(const checkpoint_files_removed& order) {
    const retention_actor me{self_};
    if (order.cause == collected_by::policy) {
      auto row = peers_.reads->experiment(order.experiment);
      if (row && terminal(row->state))
        caf::anon_send(me, sweep_experiment{order.experiment, true});
      else // it was deleted or continued
        collections_->end(order.id, [](const result<void>&) {});
    } else if (order.cause == collected_by::deletion || order.cause == collected_by::trial) {
      if (!is_being_deleted(order))
        collections_->end(order.id, [](const result<void>&) {});
    } else {
      erase_stored again;
      again.tasks = {order.id};
      caf::anon_send(me, std::move(again));
    }
  }

  /// Whether the cluster will order it again.
  bool is_being_deleted(const checkpoint_files_removed& order) const {
    if (order.cause == collected_by::trial) {
      auto row = peers_.reads->trial(order.trial);
      return row && row->deletion == deletion_step::ordered;
    }
    auto row = peers_.reads->experiment(order.experiment);
    return row && row->state == experiment_state::deleting;
  }

  /// What begins a collection, but for its id and time.
  checkpoint_files_removed order_of(experiment_id id, const char* cause, const std::string& by) const {
    if (auto row = peers_.reads->experiment(id))
      return order_of(*row, cause, by);
    experiment_row gone;
    gone.id = id;
    return order_of(gone, cause, by);
  }
  checkpoint_files_removed order_of(const experiment_row& row, const char* cause,
                                    const std::string& by) const {
    checkpoint_files_removed order;
    order.by = by;
    order.experiment = row.id;
    order.cause = cause;
    order.owner = row.owner;
    if (auto projects = peers_.reads->projects())
      for (const auto& project : *projects)
        if (project.id == row.project)
          order.workspace = project.workspace;
    const auto known = peers_.reads->configuration();
    order.pool = config::default_pool(known && *known ? (*known)->configuration : value());
    return order;
  }

  time_point due(experiment_id id) const {
    auto row = peers_.reads->experiment(id);
    return row && terminal(row->state) ? sweep_due(row->source, row->ended) : time_point{};
  }

  void run(const plan_sweep& x) {
    auto planned = plan(x.id);
    if (!planned && planned.error().code == errc::not_found)
      planned = doomed{}; // the experiment was deleted since
    if (!planned)
      return step(sweep_unplanned{x.id});
    sweep_planned found{x.id, {}, !planned->left_over.empty()};
    for (const auto& [trial, checkpoints] : planned->of_trials)
      found.trials.push_back(trial);
    found.collects = found.collects || !found.trials.empty() ||
                     collections_->is_open(order_of(x.id, collected_by::policy, {}));
    doomed_[x.id] = std::move(*planned);
    step(found);
  }
  void run(const begin_collection& x) {
    collections_->begin(order_of(x.id, collected_by::policy, {}), [this, id = x.id](result<task_id> task) {
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
    doomed out;
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
    for (const auto& uuid : unwanted) {
      if (held->contains(uuid))
        continue;
      auto& row = rows.at(uuid);
      out.of_trials[row.trial].push_back(std::move(row.saved));
    }
    return out;
  }

  void run(const note_deletion& x) {
    const auto stream = entity(x.trial);
    auto first = peers_.reads->next_of(stream);
    if (!first)
      return step(deletion_refused{x.id, x.trial});
    append_facts message{stream, *first, {}};
    for (const auto& one : doomed_[x.id].of_trials[x.trial])
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

  static removal_piece whole(const checkpoint& saved) {
    const auto place = place_of(saved);
    return {saved.uuid, place.store, place.key};
  }
  static bool is_there(const removal_piece& piece) {
    auto store = storage::open_checkpoint_store(piece.store);
    if (!store)
      return true; // what is in the way is said when it is to be removed
    const auto there = (*store)->has(piece.key);
    return !there || *there;
  }
  static error cannot_delete(const checkpoint& saved) {
    const auto place = place_of(saved);
    return {errc::unsupported, "checkpoint " + saved.uuid + " lies where this cluster cannot delete (" +
                                 (place.store.empty() ? "a bucket" : place.store) + ")"};
  }

  // ---- what somebody wants to be gone

  struct erasing {
    std::vector<trial_id> left; ///< whose rows go, when the files are gone
    stored_erased done;
    caf::typed_response_promise<stored_erased> promise;
    std::vector<checkpoint_files_removed> to_begin; ///< of a look
    std::vector<task_id> to_carry_out;
    task_id task; ///< at work
    std::vector<removal_piece> pieces;
    std::size_t removed = 0; ///< of `pieces`, or on its way
    std::string why;         ///< first failure
    int unfinished = 0;      ///< of the end of the last task and the rows
  };
  using work_ptr = std::shared_ptr<erasing>;

  caf::result<stored_erased> erase_what(const erase_stored& x) {
    auto work = std::make_shared<erasing>();
    work->promise = self_->make_response_promise<stored_erased>();
    if (!x.tasks.empty()) {
      work->to_carry_out = x.tasks;
      carry_out_next(work);
    } else if (auto fine = x.experiment ? erase_experiment(x, work) : look_at_checkpoints(x, work); !fine)
      work->promise.deliver(to_caf(fine.error()));
    return work->promise;
  }

  result<void> erase_experiment(const erase_stored& x, const work_ptr& work) {
    auto experiment = peers_.reads->experiment(x.experiment);
    if (!experiment)
      return experiment.error();
    auto trials = peers_.reads->trials(x.experiment);
    if (!trials)
      return trials.error();
    const auto* cause = x.tensorboards_only ? collected_by::tensorboards
                        : x.trial           ? collected_by::trial
                                            : collected_by::deletion;
    auto order = order_of(*experiment, cause, x.by);
    order.trial = x.trial;
    auto pieces = pieces_of(order, *experiment, *trials);
    if (!pieces)
      return pieces.error();
    if (!x.tensorboards_only)
      for (const auto& trial : *trials)
        if (!x.trial || trial.id == x.trial)
          work->left.push_back(trial.id);
    work->done.trials = work->left;
    if (pieces->empty() && !collections_->is_open(order)) {
      work->unfinished = 1;
      erase_rows(work);
      return {};
    }
    work->pieces = std::move(*pieces);
    collections_->begin(std::move(order), [this, work](result<task_id> task) {
      if (!task) {
        work->promise.deliver(to_caf(task.error()));
        return;
      }
      work->task = *task;
      remove_some(work);
    });
    return {};
  }

  /// What there is now of what the order names. Fails where it cannot be removed from here.
  result<std::vector<removal_piece>> pieces_of(const checkpoint_files_removed& order) const {
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
  result<std::vector<removal_piece>> pieces_of(const checkpoint_files_removed& order,
                                               const experiment_row& experiment,
                                               const std::vector<trial_row>& trials) const {
    std::vector<removal_piece> out;
    if (order.cause == collected_by::deletion || order.cause == collected_by::trial) {
      const auto policy = retention_of(experiment.config);
      for (const auto& trial : trials) {
        if (order.trial && trial.id != order.trial)
          continue;
        auto saved = peers_.reads->checkpoints(trial.id);
        if (!saved)
          return saved.error();
        for (const auto& row : *saved) {
          if (row.state == checkpoint_state::deleted)
            continue;
          if (!policy.deletes_here || !removable(row.saved))
            return cannot_delete(row.saved);
          if (auto piece = whole(row.saved); is_there(piece))
            out.push_back(std::move(piece));
        }
      }
    }
    if (auto boards = tensorboards_of(experiment, order.trial); boards && is_there(*boards))
      out.push_back(std::move(*boards));
    return out;
  }

  /// They lie beside the checkpoints, as the stock client puts them. `trial`: its own alone; 0: all.
  std::optional<removal_piece> tensorboards_of(const experiment_row& experiment, trial_id trial) const {
    const auto store = checkpoint_store_of(experiment.config, peers_.checkpoint_dir);
    const auto folder = store ? folder_of_store(*store) : peers_.checkpoint_dir;
    if (folder.empty() || peers_.cluster_id.empty())
      return std::nullopt;
    const auto all = "directory:" + folder + "/" + peers_.cluster_id + "/tensorboard/experiment";
    if (trial)
      return removal_piece{{}, all + "/" + to_string(experiment.id) + "/trial", to_string(trial)};
    return removal_piece{{}, all, to_string(experiment.id)};
  }

  /// What is noted as gone and still there.
  result<std::vector<removal_piece>> pieces_asked_for(const checkpoint_files_removed& order) const {
    std::vector<removal_piece> out;
    for (const auto& uuid : order.checkpoints) {
      auto row = peers_.reads->checkpoint(uuid);
      if (!row && row.error().code == errc::not_found)
        continue; // its experiment was deleted since
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
        if (!there)
          return there.error();
        for (const auto& [path, bytes] : *there)
          if (goes(order.globs, path) && !row->saved.files.contains(path))
            piece.paths.push_back(path);
        if (piece.paths.empty())
          continue;
      }
      out.push_back(std::move(piece));
    }
    return out;
  }

  void make_remover(std::size_t i) {
    (*removers_)[i] = spawn_remover(self_->system(), i + 1);
    self_->monitor((*removers_)[i]);
  }

  /// Experiments are deleted beside each other: their files by several threads.
  void remove_some(const work_ptr& work) {
    auto some = std::make_shared<removal_work>();
    while (some->pieces.size() < pieces_at_once && work->removed < work->pieces.size())
      some->pieces.push_back(std::move(work->pieces[work->removed++]));
    if (some->pieces.empty())
      return end_task(work);
    remove(work, some);
  }
  void remove(const work_ptr& work, const std::shared_ptr<removal_work>& some) {
    self_->request((*removers_)[next_remover_++ % removers_->size()], removal_timeout, remove_stored{some})
      .then(
        [this, work](const stored_removed& x) {
          for (const auto& one : x.work->done)
            note(work, one);
          go_on(work);
        },
        [this, work, some](const caf::error& why) {
          if (why == caf::sec::request_receiver_down) // what is gone by then is no fault
            return remove(work, some);
          note(work, {{}, 0, from_caf(why).what});
          work->removed = work->pieces.size();
          go_on(work);
        });
  }
  void note(const work_ptr& work, const removal& one) {
    if (work->why.empty())
      work->why = one.why;
    collections_->note(work->task, one);
  }
  void go_on(const work_ptr& work) {
    if (work->removed == work->pieces.size())
      return end_task(work);
    collections_->write_log(work->task, [this, work] { remove_some(work); });
  }
  /// The rows of trials are erased beside the last facts, as one commit can serve both.
  void end_task(const work_ptr& work) {
    const bool last = work->to_carry_out.empty();
    const bool with_rows = last && work->why.empty();
    work->unfinished = with_rows ? 2 : 1;
    collections_->end(work->task, [this, work, last](const result<void>& done) {
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
  void finish(const work_ptr& work) {
    if (--work->unfinished)
      return;
    if (work->why.empty())
      work->promise.deliver(work->done);
    else
      work->promise.deliver(to_caf({errc::io, work->why}));
  }

  void carry_out_next(const work_ptr& work) {
    work->task = work->to_carry_out.back();
    work->to_carry_out.pop_back();
    work->removed = 0;
    work->pieces.clear();
    if (const auto order = collections_->order(work->task)) {
      auto pieces = pieces_of(*order);
      if (pieces)
        work->pieces = std::move(*pieces);
      else {
        if (work->why.empty())
          work->why = pieces.error().what;
        collections_->note(work->task, {{}, 0, pieces.error().what});
      }
    }
    remove_some(work);
  }

  static bool goes(const std::vector<std::string>& globs, const std::string& path) {
    bool out = globs.empty();
    for (const auto& glob : globs)
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

  /// Looked at first, then noted by the cluster, then erased: what is noted as gone and still there. The
  /// tasks that will erase it are begun here, so that a fall of the master in between leaves nothing half
  /// done.
  result<void> look_at_checkpoints(const erase_stored& x, const work_ptr& work) {
    std::map<experiment_id, std::vector<std::string>> going;
    for (const auto& uuid : x.checkpoints) {
      auto row = peers_.reads->checkpoint(uuid);
      if (!row)
        return row.error();
      if (!removable(row->saved))
        return cannot_delete(row->saved);
      auto& left = work->done.left[uuid];
      if (x.refresh) {
        auto there = refreshed(row->saved);
        if (!there)
          return there.error();
        left = std::move(*there);
        continue;
      }
      left = row->saved.files;
      std::erase_if(left, [&](const auto& one) { return goes(x.globs, one.first); });
      if (std::all_of(left.begin(), left.end(), [](const auto& one) { return one.first.ends_with('/'); }))
        left.clear(); // folders alone are no checkpoint
      if (left != row->saved.files || holds_any(row->saved, x.globs))
        going[row->experiment].push_back(uuid);
    }
    for (auto& [id, uuids] : going) {
      auto& order = work->to_begin.emplace_back(order_of(id, collected_by::request, x.by));
      order.checkpoints = std::move(uuids);
      order.globs = x.globs;
    }
    begin_next(work);
    return {};
  }
  /// Whether a file is there that a pattern matches, noted or not.
  static bool holds_any(const checkpoint& saved, const std::vector<std::string>& globs) {
    const auto place = place_of(saved);
    auto store = storage::open_checkpoint_store(place.store);
    auto there =
      store ? (*store)->list(place.key) : result<std::map<std::string, std::int64_t>>(store.error());
    return there &&
           std::any_of(there->begin(), there->end(), [&](const auto& one) { return goes(globs, one.first); });
  }
  void begin_next(const work_ptr& work) {
    if (work->to_begin.empty()) {
      work->promise.deliver(work->done);
      return;
    }
    auto order = std::move(work->to_begin.back());
    work->to_begin.pop_back();
    collections_->begin(std::move(order), [this, work](result<task_id> task) {
      if (task) {
        work->done.tasks.push_back(*task);
        return begin_next(work);
      }
      for (const auto begun : work->done.tasks) // nothing was noted: they have nothing to do
        collections_->end(begun, [](const result<void>&) {});
      work->promise.deliver(to_caf(task.error()));
    });
  }

  /// Lines and reports of the trials, one after the other.
  void erase_rows(const work_ptr& work) {
    if (work->left.empty())
      return finish(work);
    const auto trial = work->left.back();
    work->left.pop_back();
    self_->request(peers_.journal, journal_timeout, erase_log{trial, true})
      .then([this, work](const committed&) { erase_rows(work); },
            [this, work](const caf::error& why) {
              if (work->why.empty())
                work->why = from_caf(why).what;
              finish(work);
            });
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
  std::optional<collections> collections_;
  std::shared_ptr<std::array<remover_actor, 2>> removers_ = std::make_shared<std::array<remover_actor, 2>>();
  child_restarts<std::size_t> restarts_; ///< of them
  std::size_t next_remover_ = 0;
  std::map<experiment_id, doomed> doomed_; ///< of the sweeps at work
  std::optional<time_point> armed_;
};

} // namespace

retention_actor spawn_retention(caf::actor_system& sys, retention_peers peers) {
  return spawn_with_own_thread<shell<retention_state, retention_actor, retention_peers>>(sys,
                                                                                         std::move(peers));
}

} // namespace troupe

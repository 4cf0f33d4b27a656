#include "actors/retention/retention_actor.hpp"

#include "actors/retention/retention.hpp"
#include "actors/shells/durable.hpp"

#include <caf/all.hpp>

#include <filesystem>

namespace troupe {
namespace {

using base = actor_base<retention_actor>;

constexpr std::size_t rows_at_once = 1000;
constexpr int most_tries = 5;
constexpr auto pause = std::chrono::minutes(1); ///< until what could not be noted is tried again

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
    send_later(std::min<duration>(pause, peers_.look_at_logs), time_passed{});
    return {
      [this](const sweep_experiment& x) { sweep(x.id); },
      [this](const clean_logs&) { return clean(); },
      [this](const time_passed&) {
        send_later(peers_.look_at_logs, time_passed{});
        erase(std::make_shared<cleaning>(cleaning{expired(), 0, {}}));
      },
    };
  }

private:
  // ---- checkpoints

  struct doomed {
    trial_id trial;
    std::vector<checkpoint> checkpoints; ///< of one trial
  };
  struct sweeping {
    experiment_id id;
    std::vector<doomed> left; ///< not yet noted as deleted
    int tries = 0;
  };

  void sweep(experiment_id id) {
    if (auto row = peers_.reads->experiment(id); row && terminal(row->state))
      if (auto wait = sweep_due(row->source, row->ended) - self_->now(); wait > duration{}) {
        send_later(wait, sweep_experiment{id});
        return;
      }
    auto planned = plan(id);
    if (!planned)
      return later(id);
    self_->trace_decision([&] { return "sweep experiment " + to_string(id); });
    note(std::make_shared<sweeping>(sweeping{id, std::move(*planned)}));
  }
  void later(experiment_id id) { send_later(pause, sweep_experiment{id}); }

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
  result<std::vector<doomed>> plan(experiment_id id) {
    auto experiment = peers_.reads->experiment(id);
    if (!experiment)
      return experiment.error();
    const auto policy = retention_of(experiment->config);
    if (!policy.deletes_here || !terminal(experiment->state))
      return std::vector<doomed>{};
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
    std::map<trial_id, doomed> by_trial;
    for (const auto& uuid : superfluous(policy, experiment->smaller_is_better, all)) {
      auto& row = rows.at(uuid);
      by_trial[row.trial].checkpoints.push_back(std::move(row.saved));
    }
    std::vector<doomed> out;
    for (auto& [trial, of] : by_trial)
      out.push_back({trial, std::move(of.checkpoints)});
    return out;
  }

  /// One trial after the other: the fact first, then the files.
  void note(std::shared_ptr<sweeping> work) {
    if (work->left.empty()) {
      self_->send(peers_.cluster, sweep_finished{work->id});
      return;
    }
    const auto& next = work->left.back();
    const auto stream = entity(next.trial);
    auto first = peers_.reads->next_of(stream);
    if (!first)
      return later(work->id);
    append_facts message{stream, *first, {}};
    for (const auto& one : next.checkpoints)
      message.facts.push_back(encode(checkpoint_changed{self_->now(), one.uuid, {}}));
    self_->request(peers_.journal, journal_timeout, std::move(message))
      .then(
        [this, work](const committed&) {
          for (const auto& one : work->left.back().checkpoints)
            remove(one);
          work->left.pop_back();
          work->tries = 0;
          note(work);
        },
        [this, work](const caf::error& why) {
          if (from_caf(why).code == errc::gap && ++work->tries < most_tries)
            return note(work); // somebody else took the number
          later(work->id);
        });
  }

  static void remove(const checkpoint& saved) {
    std::error_code
      fault; // a file that is not there is no fault, and one that stays is tried at the next sweep
    if (removable(saved))
      std::filesystem::remove_all(saved.path, fault);
  }

  // ---- logs

  struct cleaning {
    std::vector<trial_id> left;
    std::uint64_t erased = 0;
    caf::typed_response_promise<logs_cleaned> promise;
  };

  caf::result<logs_cleaned> clean() {
    auto work =
      std::make_shared<cleaning>(cleaning{expired(), 0, self_->make_response_promise<logs_cleaned>()});
    erase(work);
    return work->promise;
  }

  std::vector<trial_id> expired() {
    std::vector<trial_id> out;
    auto experiments = peers_.reads->experiments();
    for (const auto& experiment : experiments ? *experiments : std::vector<experiment_row>{}) {
      const auto policy = retention_of(experiment.config);
      auto trials = policy.log_days ? peers_.reads->trials(experiment.id) : std::vector<trial_row>{};
      for (const auto& trial : trials ? *trials : std::vector<trial_row>{}) {
        auto lines = log_expired(policy, trial.ended, self_->now()) ? peers_.reads->logs(trial.id, 0, 1)
                                                                    : std::vector<log_line>{};
        if (lines && !lines->empty())
          out.push_back(trial.id);
      }
    }
    return out;
  }

  void erase(std::shared_ptr<cleaning> work) {
    if (work->left.empty()) {
      if (work->promise.pending())
        work->promise.deliver(logs_cleaned{work->erased});
      return;
    }
    auto trial = work->left.back();
    work->left.pop_back();
    self_->request(peers_.journal, journal_timeout, erase_log{trial})
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
};

} // namespace

retention_actor spawn_retention(caf::actor_system& sys, retention_peers peers) {
  return sys.spawn<shell<retention_state, retention_actor, retention_peers>, caf::detached>(std::move(peers));
}

} // namespace troupe

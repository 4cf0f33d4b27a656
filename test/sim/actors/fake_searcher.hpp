#pragma once
// A search whose outcome depends only on its seed and never on timing: which trials it makes, which of them
// it prunes at which step, and which fail always or once. So every history of a seed must end with the same
// trials.

#include "model/rng.hpp"
#include "searchers/searcher.hpp"

#include <map>
#include <set>

namespace troupe::sim {

struct search_plan {
  std::uint64_t seed = 0;
  int trials = 4, concurrent = 2;
  int steps = 4;     ///< steps of a trial that is not pruned
  bool asha = false; ///< use the real adaptive ASHA, whose stops depend on timing
};

/// The behaviour of one trial of the search.
struct trial_plan {
  int prune_at = 0;      ///< the searcher stops the trial on the validation of this step; 0: never
  int fails = 0;         ///< runs that end with exit code 1
  int fail_at = 0;       ///< step after which these runs fail
  bool stubborn = false; ///< the script ignores every request to stop, so it has to be killed
  /// The searcher pauses the trial on its first validation, and resumes it on the next event.
  bool pauses = false;
  /// Once another trial has a checkpoint, the searcher gives this one the other's weights.
  bool perturbed = false;
};

inline trial_plan plan_of(const search_plan& search, const std::string& key) {
  auto bits = random_bits(search.seed, 77, std::hash<std::string>{}(key));
  trial_plan p;
  p.prune_at = bits % 3 == 0 ? 1 + int(bits / 3 % std::uint64_t(std::max(1, search.steps - 1))) : 0;
  auto kind = bits >> 20 & 15;
  p.fails = kind == 0 ? 1'000 : kind == 1 ? 1 : 0;
  p.fail_at = 1 + int((bits >> 24) % 2);
  if (p.fails) // the trial fails before it could be pruned
    p.prune_at = 0;
  if (search.asha)
    p.prune_at = 0; // the search itself decides
  p.stubborn = (bits >> 30 & 15) == 0;
  p.pauses = p.fails == 0 && (bits >> 34 & 3) == 0;
  p.perturbed = p.fails == 0 && (bits >> 36 & 3) == 0;
  return p;
}

class fake_searcher final : public searchers::searcher {
public:
  explicit fake_searcher(search_plan plan) : plan_(plan) {}

  result<std::vector<searchers::search_action>> apply(const searchers::search_event& event) override {
    std::vector<searchers::search_action> out;
    for (const auto& trial : std::exchange(paused_, {}))
      if (!closed_.contains(trial))
        out.push_back(searchers::resume_trial{trial, 0});
    if (std::holds_alternative<searchers::search_started>(event)) {
      while (created_ < std::min(plan_.concurrent, plan_.trials))
        create(out);
    } else if (auto* heard = std::get_if<searchers::trial_validated>(&event)) {
      if (!known(heard->trial))
        return error{errc::not_found, "trial " + heard->trial};
      auto p = plan_of(plan_, heard->trial);
      auto batches = heard->metrics.value("batches", 0);
      if (auto it = expected_.find(heard->trial); it != expected_.end()) {
        if (batches != it->second + 1)
          return error{errc::internal, "trial " + heard->trial + " was perturbed to step " +
                                         std::to_string(it->second) +
                                         ", and a report of its old weights at step " +
                                         std::to_string(batches) + " was heard"};
        expected_.erase(it);
      }
      if (p.prune_at && heard->metrics.value("batches", 0) >= p.prune_at && !closed_.contains(heard->trial) &&
          stopped_.insert(heard->trial).second)
        out.push_back(searchers::stop_trial{heard->trial, "pruned"});
      if (!stopped_.contains(heard->trial) && !closed_.contains(heard->trial))
        order_more(p, heard->trial, out);
    } else if (auto* saved = std::get_if<searchers::trial_checkpointed>(&event)) {
      if (expected_.contains(saved->trial))
        return error{errc::internal, "trial " + saved->trial +
                                       " was perturbed, and a checkpoint of its old weights was heard"};
      checkpoints_[saved->trial] = {saved->checkpoint, static_cast<int>(saved->step)};
    } else if (auto* exited = std::get_if<searchers::trial_exited>(&event)) {
      if (!known(exited->trial))
        return error{errc::not_found, "trial " + exited->trial};
      if (closed_.insert(exited->trial).second) {
        if (created_ < plan_.trials)
          create(out);
        if (int(closed_.size()) == plan_.trials)
          out.push_back(searchers::shut_down{});
      }
    }
    return out;
  }
  double progress() const override { return double(closed_.size()) / plan_.trials; }
  std::vector<searchers::bracket> brackets() const override { return {}; }
  std::int64_t max_trials() const override { return plan_.trials; }
  std::string snapshot() const override { return {}; }

private:
  bool known(const std::string& key) const {
    auto number = std::atoi(key.c_str());
    return number >= 1 && number <= created_;
  }
  void order_more(const trial_plan& p, const std::string& trial, std::vector<searchers::search_action>& out) {
    if (p.perturbed && !touched_.contains(trial))
      for (const auto& [source, saved] : checkpoints_)
        if (source != trial) {
          touched_.insert(trial);
          expected_[trial] = saved.second;
          out.push_back(searchers::perturb_trial{trial, source, saved.first, value{{"n", -1}}});
          return;
        }
    // Another trial has to run, because its next event resumes this one.
    if (p.pauses && int(closed_.size()) + 1 < created_ && rested_.insert(trial).second) {
      paused_.push_back(trial);
      out.push_back(searchers::pause_trial{trial});
    }
  }
  void create(std::vector<searchers::search_action>& out) {
    ++created_;
    out.push_back(searchers::create_trial{std::to_string(created_), value{{"n", created_}}, 1, ""});
  }

  search_plan plan_;
  int created_ = 0;
  std::set<std::string> stopped_, closed_, touched_, rested_;
  std::vector<std::string> paused_;
  /// The latest checkpoint of each trial, with its step.
  std::map<std::string, std::pair<std::string, int>> checkpoints_;
  /// The step from which a perturbed trial goes on, until it has reported.
  std::map<std::string, int> expected_;
};

inline std::unique_ptr<searchers::searcher> make_search(const search_plan& plan) {
  if (!plan.asha)
    return std::make_unique<fake_searcher>(plan);
  value config{{"name", "adaptive_asha"},
               {"metric", "loss"},
               {"smaller_is_better", true},
               {"time_metric", "batches"},
               {"max_time", plan.steps},
               {"max_trials", plan.trials},
               {"max_concurrent_trials", plan.concurrent},
               {"divisor", 2},
               {"mode", plan.seed & 1 ? "aggressive" : "standard"}};
  value space{{"lr", {{"type", "double"}, {"minval", 0.0}, {"maxval", 1.0}}}};
  return std::move(searchers::make_searcher(config, space, plan.seed)).value();
}

} // namespace troupe::sim

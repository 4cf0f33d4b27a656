#include "actors/pool/policy.hpp"

#include "actors/pool/shares.hpp"

#include <algorithm>
#include <climits>
#include <queue>

namespace troupe {
namespace {

// ---- by rank: fifo, priority

/// Less urgent runs, and those of the same priority that were submitted later; the last in rank first.
class ranked_victims final : public victim_source {
public:
  ranked_victims(const pool_run& who, const ranked_runs& running, duration min_run, time_point now)
      : who_(who.job->rank), runs_(running, true), min_run_(min_run), now_(now) {}
  pool_run* next() override {
    while (auto* run = runs_.next()) {
      const auto& rank = run->job->rank;
      const bool less = rank.priority > who_.priority;
      if (!less && (rank.priority < who_.priority || rank.submitted <= who_.submitted))
        break;
      if (!less && run->since + min_run_ > now_) {
        too_young(run->since + min_run_);
        continue;
      }
      return run;
    }
    return nullptr;
  }

private:
  job_rank who_;
  ranked_runs::walk runs_;
  duration min_run_;
  time_point now_;
};

class ranked_policy final : public pool_policy {
public:
  explicit ranked_policy(const pool_settings& settings) : settings_(settings) {}

  void changed(const pool_job&) override {}
  void forget(pool_job&) override {}
  void begin(run_queue& queue, pool_jobs&, int) override {
    heads_ = {};
    last_ = nullptr;
    blocked_at_ = reserved_at_ = INT_MAX;
    for (auto& [shape, runs] : queue)
      if (!runs.empty())
        heads_.push({runs.first(), &runs});
  }

  pool_turn next() override {
    if (auto* runs = std::exchange(last_, nullptr); runs && !runs->empty())
      heads_.push({runs->first(), runs});
    if (fifo() && blocked_at_ != INT_MAX)
      return {};
    while (!heads_.empty()) {
      const auto head = heads_.top();
      heads_.pop();
      auto* run = head.run;
      const bool backfills = !fifo() && settings_.preempts() && run->terms.preemptible;
      const int priority = run->job->rank.priority;
      if (!fifo() && priority > blocked_at_ && !backfills)
        continue; // and all behind it, which are no more urgent
      last_runs_ = head.runs;
      return {run, backfills && (priority > blocked_at_ || priority > reserved_at_)};
    }
    return {};
  }

  void ended(const pool_turn& turn, turn_end how) override {
    const int priority = turn.run->job->rank.priority;
    if (how != turn_end::placed) {
      if (turn.run->reserved && !fifo())
        reserved_at_ = std::min(reserved_at_, priority);
      else
        blocked_at_ = std::min(blocked_at_, priority);
    }
    if (how != turn_end::blocked)
      last_ = last_runs_;
  }

  bool before(const pool_run& a, const pool_run& b) const override { return by_rank()(&a, &b); }
  bool overrides(const pool_run& who, const pool_run& keeper) const override {
    return !fifo() && who.job->rank.priority < keeper.job->rank.priority;
  }
  std::unique_ptr<victim_source> victims(const pool_run& who, const ranked_runs& running, pool_jobs&,
                                         time_point now) const override {
    if (!settings_.preempts())
      return nullptr;
    return std::make_unique<ranked_victims>(who, running, settings_.min_run, now);
  }
  bool passes() const override { return !fifo(); }
  bool ranked() const override { return true; }

private:
  struct head {
    pool_run* run;
    ranked_runs* runs;
    friend bool operator<(const head& a, const head& b) { return by_rank()(b.run, a.run); }
  };
  bool fifo() const { return settings_.scheduler == scheduler_kind::fifo; }

  pool_settings settings_;
  std::priority_queue<head> heads_;
  ranked_runs *last_ = nullptr, *last_runs_ = nullptr;
  int blocked_at_ = INT_MAX, reserved_at_ = INT_MAX; ///< most urgent priority that waits
};

// ---- by turns: round robin, fair

/// How much a job has, for what it should have.
double ratio(const pool_job& job, int slots, bool weighted) {
  return weighted && job.terms.weight > 0 ? slots / job.terms.weight : slots;
}

/// Runs of jobs that are above their share, which they are not brought below; the job furthest above it
/// first, its newest run first.
class share_victims final : public victim_source {
public:
  share_victims(pool_jobs& jobs, const ranked_runs& running, duration min_run, time_point now)
      : now_(now), min_run_(min_run) {
    for (auto& [id, job] : jobs)
      if (const auto* line = job.held - job.stopping > job.share ? running.line_of(job) : nullptr) {
        above_.push_back({&job, job.held - job.stopping, {}});
        auto& runs = above_.back().oldest_first;
        for (const auto& x : *line)
          runs.push_back(x.run);
        std::stable_sort(runs.begin(), runs.end(), [](auto* a, auto* b) { return a->since < b->since; });
      }
  }
  pool_run* next() override {
    for (;;) {
      entry* furthest = nullptr;
      for (auto& x : above_)
        if (!x.oldest_first.empty() && x.held > x.job->share && (!furthest || further(x, *furthest)))
          furthest = &x;
      if (!furthest)
        return nullptr;
      auto* run = furthest->oldest_first.back();
      furthest->oldest_first.pop_back();
      if (furthest->held - run->held() < furthest->job->share)
        continue;
      if (run->since + min_run_ > now_) {
        too_young(run->since + min_run_);
        continue;
      }
      furthest->held -= run->held();
      return run;
    }
  }

private:
  struct entry {
    pool_job* job;
    int held;
    std::vector<pool_run*> oldest_first;
  };
  static bool further(const entry& a, const entry& b) {
    const bool free_a = a.job->terms.weight <= 0, free_b = b.job->terms.weight <= 0;
    if (free_a != free_b)
      return free_a; // has only what was left over
    const double x = ratio(*a.job, a.held, true), y = ratio(*b.job, b.held, true);
    return x != y ? x > y : older(*b.job, *a.job);
  }
  std::vector<entry> above_;
  time_point now_;
  duration min_run_;
};

class turn_policy final : public pool_policy {
public:
  explicit turn_policy(const pool_settings& settings) : settings_(settings) {}

  void changed(const pool_job& job) override { changed_.insert(job.terms.job); }
  void forget(pool_job& job) override {
    if (const auto turn = std::exchange(job.turn, std::nullopt))
      turns_.erase(*turn);
    by_age_.clear();
  }

  void begin(run_queue& queue, pool_jobs& jobs, int slots) override {
    if (fair()) { // the share of each depends on all
      share(jobs, slots);
      for (auto* job : by_age_)
        if (job->turn && job->turn->tier != tier_of(*job))
          take_turn(*job);
    }
    for (const auto id : std::exchange(changed_, {}))
      if (const auto job = jobs.find(id); job != jobs.end())
        take_turn(job->second);
    at_ = turns_.begin();
    served_ = nullptr;
    shut_.clear();
    shapes_ = queue.size();
  }

  pool_turn next() override {
    if (auto* job = std::exchange(served_, nullptr)) {
      const auto behind = std::next(at_);
      take_turn(*job);
      at_ = job->turn ? turns_.find(*job->turn) : behind;
      if (behind != turns_.end() && at_ != behind && behind->first < at_->first)
        at_ = behind;
    }
    for (; at_ != turns_.end() && shut_.size() < shapes_; ++at_) {
      pool_run* first = nullptr;
      for (auto& [shape, line] : at_->second->queue)
        if (auto* run = line->begin()->run; !shut_.contains(shape) && (!first || run->rank < first->rank))
          first = run;
      if (first)
        return {first, false};
    }
    return {};
  }

  void ended(const pool_turn& turn, turn_end how) override {
    if (how != turn_end::placed) {
      shut_.insert(turn.run->shape()); // a claim made a shape of its own
      if (how == turn_end::claimed)
        ++shapes_;
    }
    served_ = at_->second;
  }

  bool before(const pool_run& a, const pool_run& b) const override {
    if (a.job == b.job)
      return a.rank < b.rank;
    return key_of(*a.job) < key_of(*b.job);
  }
  bool overrides(const pool_run&, const pool_run&) const override { return false; }
  std::unique_ptr<victim_source> victims(const pool_run& who, const ranked_runs& running, pool_jobs& jobs,
                                         time_point now) const override {
    if (!settings_.preempts() || who.job->effective() + who.need() > who.job->share)
      return nullptr;
    return std::make_unique<share_victims>(jobs, running, settings_.min_run, now);
  }
  bool passes() const override { return true; }
  bool ranked() const override { return false; }

private:
  bool fair() const { return settings_.scheduler == scheduler_kind::fair; }
  turn_key key_of(const pool_job& job) const {
    const auto& terms = job.terms;
    return {tier_of(job), ratio(job, job.effective(), fair()), terms.submitted, terms.label, terms.job};
  }
  int tier_of(const pool_job& job) const {
    return !fair() ? 0 : job.terms.weight <= 0 ? 2 : job.effective() < job.share ? 0 : 1;
  }
  /// Where it stands, if it has runs that compete, as things are.
  void take_turn(pool_job& job) {
    auto key = job.queue.empty() ? std::optional<turn_key>() : key_of(job);
    if (key == job.turn)
      return;
    if (job.turn)
      turns_.erase(*job.turn);
    if (key)
      turns_.emplace(*key, &job);
    job.turn = std::move(key);
  }
  /// Demand is what a job holds and waits for, within its limit; within the quotas of a user or workspace,
  /// the older jobs demand first.
  void share(pool_jobs& jobs, int slots) {
    if (by_age_.size() != jobs.size()) {
      by_age_.clear();
      for (auto& [id, job] : jobs)
        by_age_.push_back(&job);
      std::sort(by_age_.begin(), by_age_.end(), [](auto* a, auto* b) { return older(*a, *b); });
    }
    std::map<std::pair<int, std::string>, int> room;
    const auto quota = [&](int kind, const std::string& name) -> int* {
      const slot_quota* found = nullptr;
      for (const auto& q : settings_.quotas)
        if (kind == 0 ? !q.user.empty() && (q.user == name || (q.user == "*" && !found))
                      : !q.workspace.empty() && q.workspace == name)
          found = &q;
      return found ? &room.try_emplace({kind, name}, found->max_slots).first->second : nullptr;
    };
    if (!settings_.quotas.empty())
      for (auto* job : by_age_)
        for (auto* left : {quota(0, job->terms.user), quota(1, job->terms.workspace)})
          if (left)
            *left -= job->held;
    demands_.clear();
    for (auto* job : by_age_) {
      int more = job->wanted;
      if (job->terms.max_slots >= 0)
        more = std::min(more, std::max(0, job->terms.max_slots - job->held));
      if (!settings_.quotas.empty()) {
        auto *user = quota(0, job->terms.user), *workspace = quota(1, job->terms.workspace);
        for (auto* left : {user, workspace})
          if (left)
            more = std::min(more, std::max(0, *left));
        for (auto* left : {user, workspace})
          if (left)
            *left -= more;
      }
      demands_.push_back({job->terms.weight, job->held + more, job->held - job->stopping});
    }
    const auto shares = fair_shares(demands_, slots);
    for (std::size_t i = 0; i < shares.size(); ++i)
      by_age_[i]->share = shares[i];
  }

  pool_settings settings_;
  std::map<turn_key, pool_job*> turns_; ///< jobs with runs that compete, as of begin() or their last turn
  std::map<turn_key, pool_job*>::iterator at_;
  std::set<experiment_id> changed_;   ///< jobs that may stand elsewhere since
  std::vector<pool_job*> by_age_;     ///< all, the older first; of a fair pool
  std::vector<share_demand> demands_; ///< of the jobs in `by_age_`, in its order
  std::set<run_shape> shut_;          ///< shapes of which no run fits in this pass
  std::size_t shapes_ = 0;
  pool_job* served_ = nullptr;
};

} // namespace

std::unique_ptr<pool_policy> make_policy(const pool_settings& settings) {
  if (settings.scheduler == scheduler_kind::fair || settings.scheduler == scheduler_kind::round_robin)
    return std::make_unique<turn_policy>(settings);
  return std::make_unique<ranked_policy>(settings);
}

bool older(const pool_job& a, const pool_job& b) {
  const auto& x = a.terms;
  const auto& y = b.terms;
  return std::tie(x.submitted, x.label, x.job) < std::tie(y.submitted, y.label, y.job);
}

int slots_in(const std::vector<placement>& on) {
  int n = 0;
  for (const auto& part : on)
    n += static_cast<int>(part.slots.size());
  return n;
}

int pool_run::held() const { return slots_in(on); }

run_shape pool_run::shape() const {
  return {need(),
          slots,
          terms.rules.single_node,
          terms.preemptible,
          view ? view->number : 0,
          preferred ? preferred->number : 0,
          kept.empty() ? allocation_id{} : id};
}

} // namespace troupe

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
      : who_(who), at_(running.rbegin()), end_(running.rend()), min_run_(min_run), now_(now) {}
  pool_run* next() override {
    for (; at_ != end_; ++at_) {
      auto* run = *at_;
      const bool less = run->rank.priority > who_.rank.priority;
      if (!less && (run->rank.priority < who_.rank.priority || run->rank.submitted <= who_.rank.submitted))
        break;
      if (!less && run->since + min_run_ > now_) {
        too_young(run->since + min_run_);
        continue;
      }
      ++at_;
      return run;
    }
    return nullptr;
  }

private:
  const pool_run& who_;
  ranked_runs::const_reverse_iterator at_, end_;
  duration min_run_;
  time_point now_;
};

class ranked_policy final : public pool_policy {
public:
  explicit ranked_policy(const pool_settings& settings) : settings_(settings) {}

  void begin(run_queue& queue, pool_jobs&, int) override {
    heads_ = {};
    last_ = nullptr;
    blocked_at_ = reserved_at_ = INT_MAX;
    for (auto& [shape, runs] : queue)
      if (!runs.empty())
        heads_.push({*runs.begin(), &runs});
  }

  pool_turn next() override {
    if (auto* runs = std::exchange(last_, nullptr); runs && !runs->empty())
      heads_.push({*runs->begin(), runs});
    if (fifo() && blocked_at_ != INT_MAX)
      return {};
    while (!heads_.empty()) {
      const auto head = heads_.top();
      heads_.pop();
      auto* run = head.run;
      const bool backfills = !fifo() && settings_.preempts() && run->terms.preemptible;
      const int priority = run->rank.priority;
      if (!fifo() && priority > blocked_at_ && !backfills)
        continue; // and all behind it, which are no more urgent
      last_runs_ = head.runs;
      return {run, backfills && (priority > blocked_at_ || priority > reserved_at_)};
    }
    return {};
  }

  void ended(const pool_turn& turn, turn_end how) override {
    const int priority = turn.run->rank.priority;
    if (how != turn_end::placed) {
      if (turn.run->reserved && !fifo())
        reserved_at_ = std::min(reserved_at_, priority);
      else
        blocked_at_ = std::min(blocked_at_, priority);
    }
    if (how != turn_end::blocked)
      last_ = last_runs_;
  }

  bool before(const pool_run& a, const pool_run& b) const override { return a.rank < b.rank; }
  bool overrides(const pool_run& who, const pool_run& keeper) const override {
    return !fifo() && who.rank.priority < keeper.rank.priority;
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
    friend bool operator<(const head& a, const head& b) { return b.run->rank < a.run->rank; }
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
  share_victims(pool_jobs& jobs, duration min_run, time_point now) : now_(now), min_run_(min_run) {
    for (auto& [id, job] : jobs)
      if (job.held - job.stopping > job.share && !job.running.empty()) {
        above_.push_back({&job, job.held - job.stopping, {job.running.begin(), job.running.end()}});
        auto& runs = above_.back().oldest_first;
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

  void begin(run_queue& queue, pool_jobs& jobs, int slots) override {
    if (fair())
      share(jobs, slots);
    std::vector<head> heads;
    heads.reserve(jobs.size());
    served_ = nullptr;
    shut_.clear();
    shapes_ = queue.size();
    for (auto& [id, job] : jobs)
      if (!job.queue.empty())
        heads.push_back({key_of(job), &job});
    heads_ = std::priority_queue<head>({}, std::move(heads));
  }

  pool_turn next() override {
    if (auto* job = std::exchange(served_, nullptr))
      heads_.push({key_of(*job), job});
    while (!heads_.empty() && shut_.size() < shapes_) {
      auto* job = heads_.top().job;
      heads_.pop();
      pool_run* first = nullptr;
      for (auto& [shape, runs] : job->queue)
        if (!runs.empty() && !shut_.contains(shape) && (!first || (*runs.begin())->rank < first->rank))
          first = *runs.begin();
      if (first) {
        job_ = job;
        return {first, false};
      }
    }
    return {};
  }

  void ended(const pool_turn& turn, turn_end how) override {
    if (how != turn_end::placed) {
      shut_.insert(turn.run->shape()); // a claim made a shape of its own
      if (how == turn_end::claimed)
        ++shapes_;
    }
    served_ = job_;
  }

  bool before(const pool_run& a, const pool_run& b) const override {
    if (a.job == b.job)
      return a.rank < b.rank;
    return key_of(*a.job) < key_of(*b.job);
  }
  bool overrides(const pool_run&, const pool_run&) const override { return false; }
  std::unique_ptr<victim_source> victims(const pool_run& who, const ranked_runs&, pool_jobs& jobs,
                                         time_point now) const override {
    if (!settings_.preempts() || who.job->effective() + who.need() > who.job->share)
      return nullptr;
    return std::make_unique<share_victims>(jobs, settings_.min_run, now);
  }
  bool passes() const override { return true; }
  bool ranked() const override { return false; }

private:
  struct turn_key {
    int tier;
    double has;
    const pool_job* job;
    friend bool operator<(const turn_key& a, const turn_key& b) {
      if (a.tier != b.tier)
        return a.tier < b.tier;
      return a.has != b.has ? a.has < b.has : older(*a.job, *b.job);
    }
  };
  struct head {
    turn_key key;
    pool_job* job;
    friend bool operator<(const head& a, const head& b) { return b.key < a.key; }
  };
  bool fair() const { return settings_.scheduler == scheduler_kind::fair; }
  turn_key key_of(const pool_job& job) const {
    if (!fair())
      return {0, double(job.effective()), &job};
    const int tier = job.terms.weight <= 0 ? 2 : job.effective() < job.share ? 0 : 1;
    return {tier, ratio(job, job.effective(), true), &job};
  }
  /// Demand is what a job holds and waits for, within its limit; within the quotas of a user or workspace,
  /// the older jobs demand first.
  void share(pool_jobs& jobs, int slots) {
    std::vector<pool_job*> order;
    order.reserve(jobs.size());
    for (auto& [id, job] : jobs)
      if (job.held + job.wanted > 0)
        order.push_back(&job);
      else
        job.share = 0;
    if (!std::is_sorted(order.begin(), order.end(),
                        [](auto* a, auto* b) { return older(*a, *b); })) // as ids are
      std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return older(*a, *b); });
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
      for (auto* job : order)
        for (auto* left : {quota(0, job->terms.user), quota(1, job->terms.workspace)})
          if (left)
            *left -= job->held;
    std::vector<share_demand> demands;
    demands.reserve(order.size());
    for (auto* job : order) {
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
      demands.push_back({job->terms.weight, job->held + more, job->held - job->stopping});
    }
    const auto shares = fair_shares(demands, slots);
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i]->share = shares[i];
  }

  pool_settings settings_;
  std::priority_queue<head> heads_;
  std::set<run_shape> shut_; ///< of which nobody fits
  std::size_t shapes_ = 0;
  pool_job *served_ = nullptr, *job_ = nullptr;
};

} // namespace

std::unique_ptr<pool_policy> make_policy(const pool_settings& settings) {
  if (settings.scheduler == scheduler_kind::fair || settings.scheduler == scheduler_kind::round_robin)
    return std::make_unique<turn_policy>(settings);
  return std::make_unique<ranked_policy>(settings);
}

bool by_rank::operator()(const pool_run* a, const pool_run* b) const { return a->rank < b->rank; }

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

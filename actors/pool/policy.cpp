#include "actors/pool/policy.hpp"

#include "actors/pool/shares.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <queue>

namespace troupe {
namespace {

// ---- by rank: fifo, priority

/// Less urgent runs, and runs of the same priority that were submitted later; the last in rank comes first.
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
        too_young(*run, run->since + min_run_);
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

  void changed(pool_job&) override {}
  void forget(pool_job&) override {}
  std::vector<pool_job*> risen() override { return {}; }
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
        continue; // the runs of this shape behind it are not more urgent
      last_runs_ = head.runs;
      return {run, backfills && (priority > blocked_at_ || priority > reserved_at_)};
    }
    return {};
  }

  void ended(const pool_turn& turn, turn_end how) override {
    const int priority = turn.run->job->rank.priority;
    if (how != turn_end::placed) {
      if (!turn.run->kept.empty() && !fifo()) // the others may use all slots but those that it keeps
        reserved_at_ = std::min(reserved_at_, priority);
      else
        blocked_at_ = std::min(blocked_at_, priority);
    }
    if (how != turn_end::blocked)
      last_ = last_runs_;
  }

  bool before(const pool_run& a, const pool_run& b) const override { return by_rank()(&a, &b); }
  bool job_before(const pool_job& a, const pool_job& b) const override { return a.rank < b.rank; }
  standing standing_of(const pool_job&) const override { return {}; }
  pool_run* first(const std::function<bool(const pool_run&)>&) const override { return nullptr; }
  bool overrides(const pool_run& who, const pool_run& keeper) const override {
    return !fifo() && who.job->rank.priority < keeper.job->rank.priority;
  }
  bool may_preempt(const pool_run&) const override { return settings_.preempts(); }
  std::unique_ptr<victim_source> victims(const pool_run& who, const ranked_runs& running, pool_jobs&,
                                         time_point now) const override {
    if (!may_preempt(who))
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
  int blocked_at_ = INT_MAX, reserved_at_ = INT_MAX; ///< most urgent priority of a run that waits
};

// ---- by turns: round robin, fair

/// How much a job has, in relation to what it should have.
double ratio(const pool_job& job, int slots, bool weighted) {
  return weighted && job.terms.weight > 0 ? slots / job.terms.weight : slots;
}

/// Runs of jobs that are above their share. No job is brought below its share. The job that is furthest above
/// its share comes first, and of its runs the newest.
class share_victims final : public victim_source {
public:
  share_victims(pool_jobs& jobs, const ranked_runs& running, duration min_run, time_point now)
      : now_(now), min_run_(min_run) {
    for (auto& [id, job] : jobs)
      if (const int held = job.held - job.stopping; held > job.share)
        if (const auto* line = running.line_of(job))
          above_.push_back({&job, held, line, {}});
    std::make_heap(above_.begin(), above_.end(), nearer);
  }
  pool_run* next() override {
    for (; !above_.empty(); above_.pop_back()) {
      std::pop_heap(above_.begin(), above_.end(), nearer);
      auto& furthest = above_.back();
      if (furthest.line)
        sort_runs(furthest);
      while (furthest.held > furthest.job->share && !furthest.oldest_first.empty()) {
        auto* run = furthest.oldest_first.back();
        furthest.oldest_first.pop_back();
        if (furthest.held - run->held() < furthest.job->share || (skips && skips(*run)))
          continue;
        if (run->since + min_run_ > now_) {
          too_young(*run, run->since + min_run_);
          continue;
        }
        furthest.held -= run->held();
        std::push_heap(above_.begin(), above_.end(), nearer);
        return run;
      }
    }
    return nullptr;
  }

private:
  struct entry {
    pool_job* job;
    int held;
    const ranked_runs::line* line; ///< null: the runs stand in `oldest_first` already
    std::vector<pool_run*> oldest_first;
  };
  static void sort_runs(entry& of) {
    auto& runs = of.oldest_first;
    for (const auto& x : *std::exchange(of.line, nullptr))
      runs.push_back(x.run);
    std::stable_sort(runs.begin(), runs.end(), [](auto* a, auto* b) { return a->since < b->since; });
  }
  static bool nearer(const entry& a, const entry& b) {
    const bool free_a = a.job->terms.weight <= 0, free_b = b.job->terms.weight <= 0;
    if (free_a != free_b)
      return free_b; // a job of weight 0 has only what was left over, so it is the first to lose it
    const double x = ratio(*a.job, a.held, true), y = ratio(*b.job, b.held, true);
    return x != y ? x < y : older(*a.job, *b.job);
  }
  std::vector<entry> above_; ///< a heap, with the job that is furthest above its share first
  time_point now_;
  duration min_run_;
};

/// The quotas of users and workspaces as caps that jobs share.
class quota_caps {
public:
  explicit quota_caps(const pool_settings& settings) : settings_(settings) {}
  /// The indexes of the caps of the job's user and workspace; -1 where there is no such quota.
  std::array<int, 2> of(const pool_job& job) {
    const auto &user = job.user, &workspace = job.workspace;
    return {cap(0, user, settings_.quota_of_user(user)),
            cap(1, workspace, settings_.quota_of_workspace(workspace))};
  }
  std::vector<int> caps;

private:
  int cap(int kind, const std::string& name, const slot_quota* found) {
    if (!found)
      return -1;
    const auto [known, fresh] = known_.try_emplace({kind, name}, static_cast<int>(caps.size()));
    if (fresh)
      caps.push_back(found->max_slots);
    return known->second;
  }
  const pool_settings& settings_;
  std::map<std::pair<int, std::string>, int> known_;
};

class turn_policy final : public pool_policy {
public:
  explicit turn_policy(const pool_settings& settings) : settings_(settings) {}

  void changed(pool_job& job) override {
    if (!std::exchange(job.notes.changed, true))
      changed_.push_back(&job);
  }
  void forget(pool_job& job) override {
    if (std::exchange(job.notes.changed, false))
      std::erase(changed_, &job);
    if (const auto turn = std::exchange(job.notes.turn, std::nullopt))
      turns_.erase(*turn);
    if (std::exchange(job.notes.place, std::nullopt)) {
      by_age_.erase(std::lower_bound(by_age_.begin(), by_age_.end(), &job, by_age));
      moved_ = true;
    }
    std::erase(risen_, &job);
  }
  std::vector<pool_job*> risen() override { return std::exchange(risen_, {}); }

  void begin(run_queue& queue, pool_jobs&, int slots) override {
    auto changed = std::exchange(changed_, {});
    for (auto* job : changed)
      job->notes.changed = false;
    if (fair())
      share(changed, slots);
    unshut_ = {};
    marks_open_ = 0;
    for (auto& [shape, runs] : queue) {
      if (runs.mark < 0)
        runs.mark = marks_++ % 64;
      ++unshut_[static_cast<std::size_t>(runs.mark)];
      marks_open_ |= std::uint64_t{1} << runs.mark;
    }
    for (auto* job : changed)
      take_turn(*job);
    at_ = turns_.begin();
    served_ = nullptr;
    ++pass_;
  }

  pool_turn next() override {
    if (auto* job = std::exchange(served_, nullptr)) {
      const auto behind = std::next(at_);
      take_turn(*job);
      at_ = job->notes.turn.value_or(behind);
      if (behind != turns_.end() && at_ != behind && behind->first < at_->first)
        at_ = behind;
    }
    for (; at_ != turns_.end() && marks_open_ != 0; ++at_) {
      if ((at_->second.shapes & marks_open_) == 0)
        continue;
      if (const auto* line = first_line(*at_->second.job)) {
        fetch_ahead();
        return {line->first.run, false};
      }
    }
    return {};
  }

  void ended(const pool_turn& turn, turn_end how) override {
    if (how != turn_end::placed) {
      auto& shape = *turn.run->queue;
      if (shape.mark < 0) // a claim has made a new shape with this run alone
        shape.mark = marks_++ % 64;
      else if (shape.shut != pass_)
        if (const auto mark = static_cast<std::size_t>(shape.mark); --unshut_[mark] == 0)
          marks_open_ &= ~(std::uint64_t{1} << mark);
      shape.shut = pass_;
    }
    served_ = at_->second.job;
  }

  bool before(const pool_run& a, const pool_run& b) const override {
    return a.job == b.job ? a.rank < b.rank : job_before(*a.job, *b.job);
  }
  bool job_before(const pool_job& a, const pool_job& b) const override { return key_of(a) < key_of(b); }
  standing standing_of(const pool_job& job) const override {
    return {tier_of(job), ratio(job, job.effective(), fair())};
  }
  pool_run* first(const std::function<bool(const pool_run&)>& may) const override {
    for (const auto& [key, turn] : turns_) {
      const shape_line* first = nullptr;
      for (const auto& line : turn.job->queue)
        if (may(*line.first.run) && (!first || line.first < first->first))
          first = &line;
      if (first)
        return first->first.run;
    }
    return nullptr;
  }
  bool overrides(const pool_run&, const pool_run&) const override { return false; }
  bool may_preempt(const pool_run& who) const override {
    return settings_.preempts() && who.job->effective() + who.need() <= who.job->share;
  }
  std::unique_ptr<victim_source> victims(const pool_run& who, const ranked_runs& running, pool_jobs& jobs,
                                         time_point now) const override {
    if (!may_preempt(who))
      return nullptr;
    return std::make_unique<share_victims>(jobs, running, settings_.min_run, now);
  }
  bool passes() const override { return true; }
  bool ranked() const override { return false; }

private:
  bool fair() const { return settings_.scheduler == scheduler_kind::fair; }
  /// Each turn is that of another job, of which no memory is in a cache. So memory that the next turns will
  /// read is prefetched while this one is served: for the third job from here the job itself, for the second
  /// its lines, and for the next the run that will be served.
  void fetch_ahead() const {
    auto next = at_;
    for (int ahead = 1; ahead <= 3 && ++next != turns_.end(); ++ahead) {
      const auto& job = *next->second.job;
      if (ahead == 3)
        fetch(&job, pool_job::served_bytes);
      else if (ahead == 2)
        fetch(job.queue.data(), job.queue.size() * sizeof(shape_line));
      else if (const auto* line = first_line(job)) {
        fetch(line->first.run, pool_run::served_bytes);
        fetch(line->runs, sizeof *line->runs);
        fetch(line->at, 240); // the leaf of the B-tree
      }
    }
  }
  /// The line from which the next run of the job is served; null: no run of the job fits.
  const shape_line* first_line(const pool_job& job) const {
    const shape_line* first = nullptr;
    for (const auto& line : job.queue)
      if (line.of->shut != pass_ && (!first || line.first < first->first))
        first = &line;
    return first;
  }
  turn_key key_of(const pool_job& job) const {
    return {tier_of(job), ratio(job, job.effective(), fair()), job.terms.submitted, &job};
  }
  int tier_of(const pool_job& job) const {
    return !fair() ? 0 : job.terms.weight <= 0 ? only_leftovers : job.effective() < job.share ? 0 : 1;
  }
  /// Puts the job at its place in the turns, or takes it out where none of its runs competes.
  void take_turn(pool_job& job) {
    auto& turn = job.notes.turn;
    if (job.queue.empty()) {
      if (turn)
        turns_.erase(*turn);
      turn.reset();
      return;
    }
    auto key = key_of(job);
    if (!turn) {
      turn = turns_.emplace(key, job_turn{&job}).first;
    } else if ((*turn)->first != key) {
      auto moved = turns_.extract(*turn);
      moved.key() = key;
      turn = turns_.insert(std::move(moved)).position;
    }
    auto& shapes = (*turn)->second.shapes = 0;
    for (const auto& line : job.queue)
      if (line.of->mark >= 0)
        shapes |= std::uint64_t{1} << line.of->mark;
  }

  /// Computes the shares again where something that they depend on has changed. Jobs whose shares change are
  /// added to `changed`. The share of each job may depend on all jobs.
  void share(std::vector<pool_job*>& changed, int slots) {
    bool matters = std::exchange(slots_, slots) != slots;
    const auto known = static_cast<std::ptrdiff_t>(by_age_.size());
    for (auto* job : changed)
      if (!job->notes.place)
        by_age_.push_back(job);
    const bool moved = std::exchange(moved_, false) || std::ssize(by_age_) > known;
    std::sort(by_age_.begin() + known, by_age_.end(), by_age);
    std::inplace_merge(by_age_.begin(), by_age_.begin() + known, by_age_.end(), by_age);
    if (moved || (!settings_.quotas.empty() && !changed.empty())) {
      demand_all();
      matters = true;
    } else {
      for (const auto* job : changed) {
        const auto demand = demand_of(*job);
        auto& known_demand = demands_[*job->notes.place];
        matters = matters || changes(split_, *job->notes.place, known_demand, demand);
        known_demand = demand;
      }
    }
    if (!matters)
      return;
    const auto before = std::exchange(split_, fair_shares(demands_, slots, caps_));
    for (std::size_t i = 0; i < by_age_.size(); ++i)
      if (moved || before.shares[i] != split_.shares[i]) {
        auto& job = *by_age_[i];
        if (split_.shares[i] > std::exchange(job.share, split_.shares[i]))
          risen_.push_back(&job);
        changed.push_back(&job);
      }
  }
  /// Collects the demands of all jobs, and the quotas that they share.
  void demand_all() {
    quota_caps quotas(settings_);
    demands_.clear();
    for (auto* job : by_age_) {
      job->notes.place = demands_.size();
      demands_.push_back(demand_of(*job));
      demands_.back().groups = quotas.of(*job);
    }
    caps_ = std::move(quotas.caps);
  }
  /// The demand of a job is what it holds and waits for, within its own limit.
  static share_demand demand_of(const pool_job& job) {
    int more = job.wanted;
    if (job.terms.max_slots >= 0)
      more = std::min(more, std::max(0, job.terms.max_slots - job.held));
    return {job.terms.weight, job.held + more, job.held - job.stopping};
  }
  static bool by_age(const pool_job* a, const pool_job* b) { return older(*a, *b); }

  pool_settings settings_;
  job_turns turns_; ///< jobs with runs that compete, as of begin() or their last turn
  job_turns::iterator at_;
  std::vector<pool_job*> changed_;    ///< jobs whose place in the turns may have changed
  std::vector<pool_job*> by_age_;     ///< all jobs of a fair pool, the older first
  std::vector<share_demand> demands_; ///< what each job of `by_age_` demands, in the same order
  std::vector<int> caps_;             ///< the quotas that these demands share
  std::vector<pool_job*> risen_;      ///< jobs whose shares have grown since risen() was called
  share_split split_;                 ///< how `slots_` are shared between these demands
  int slots_ = -1;
  bool moved_ = false;           ///< jobs have changed their places in `by_age_`
  std::uint64_t pass_ = 0;       ///< number of passes that began
  int marks_ = 0;                ///< number of marks given to shapes
  std::array<int, 64> unshut_{}; ///< for each mark, the number of shapes that may fit in this pass
  std::uint64_t marks_open_ = 0; ///< bits of the marks with such shapes
  pool_job* served_ = nullptr;
};

} // namespace

std::unique_ptr<pool_policy> make_policy(const pool_settings& settings) {
  if (settings.scheduler == scheduler_kind::fair || settings.scheduler == scheduler_kind::round_robin)
    return std::make_unique<turn_policy>(settings);
  return std::make_unique<ranked_policy>(settings);
}

bool operator<(const turn_key& a, const turn_key& b) {
  const auto first = std::tie(a.tier, a.has, a.submitted), second = std::tie(b.tier, b.has, b.submitted);
  return first != second ? first < second : older(*a.job, *b.job);
}

bool older(const pool_job& a, const pool_job& b) {
  const auto& x = a.terms;
  const auto& y = b.terms;
  return std::tie(x.submitted, x.label, x.job) < std::tie(y.submitted, y.label, y.job);
}

namespace {

template <class Parts>
int count_slots(const Parts& on) {
  int n = 0;
  for (const auto& part : on)
    n += static_cast<int>(part.slots.size());
  return n;
}

} // namespace

int slots_in(const agent_parts& on) { return count_slots(on); }
int slots_in(const std::vector<placement>& on) { return count_slots(on); }

std::vector<placement> placements(const agent_parts& on) {
  std::vector<placement> named;
  named.reserve(on.size());
  for (const auto& part : on) {
    auto& here = named.emplace_back();
    here.agent = part.agent->now.name;
    here.slots.assign(part.slots.begin(), part.slots.end());
  }
  return named;
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

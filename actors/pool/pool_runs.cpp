// The runs and jobs of a pool, their order, and the limits that hold for them.

#include "actors/pool/pool.hpp"
#include "model/chosen_name.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace troupe {

job_rank pool::rank_of(const pool_job& job) const {
  return {settings_.scheduler == scheduler_kind::fifo ? 0 : priority_of(job), job.terms.submitted};
}

int pool::priority_of(const pool_job& job) const {
  return job.terms.priority > 0 ? job.terms.priority : settings_.default_priority;
}

/// Makes an unknown run known to the pool. The run is in no index yet.
pool_run& pool::enter(allocation_id id, run_terms terms, int slots, int least) {
  auto& run = runs_[id];
  run.id = id;
  run.slots = slots;
  run.least = least;
  auto& job = jobs_[terms.job.job];
  run.job = &job;
  if (++job.runs == 1)
    if (const auto known = left_.find(terms.job.job); known != left_.end())
      job.served = known->second;
  run.rank = {terms.started, terms.started == time_point{} ? ++arrivals_ : 0, terms.label, id};
  take_terms(job, terms.job);
  job.rank = rank_of(job);
  run.terms = std::move(terms);
  run.single_node = run.terms.rules.single_node;
  use_views(run, true);
  return run;
}

void pool::take_terms(pool_job& job, const job_terms& terms) {
  if (job.told && terms.job)
    return;
  const auto ordered = [](const job_terms& x) {
    return std::tie(x.priority, x.submitted, x.label, x.weight, x.max_slots);
  };
  const bool same = ordered(job.terms) == ordered(terms);
  if (job.terms.submitted != terms.submitted || job.terms.label != terms.label)
    policy_->forget(job);
  const bool another = job.terms.user != terms.user || job.terms.workspace != terms.workspace;
  if (another && capped()) // what the job holds no longer counts for its old user and workspace
    count_used(job, -1);
  if (another)
    eased_.insert({{run_bar::user, job.user, {}}, {run_bar::workspace, job.workspace, {}}});
  const bool known = static_cast<bool>(job.terms.job);
  job.terms = terms;
  if (another) {
    job.user = case_folded(terms.user);
    job.workspace = case_folded(terms.workspace);
  }
  if (another)
    strained_.insert({{run_bar::user, job.user, {}}, {run_bar::workspace, job.workspace, {}}});
  if (another && capped())
    count_used(job, 1);
  policy_->changed(job);
  if (same)
    return;
  const auto rank = job.rank;
  rerank(job);
  if (!known)
    return;
  if (!policy_->ranked() || rank < job.rank) // it is decided anew what the runs of the job may claim
    for (const auto id : std::set(keepers_))
      if (auto& run = runs_.at(id); run.job == &job && !run.reserved)
        drop_kept(nullptr, run);
  if (settings_.preempts()) // its runs may preempt others now, or be preempted for others
    ease_all();
  else
    ease(job);
}

/// Moves the job to its new rank in all indexes. The order among its own runs stays.
void pool::rerank(pool_job& job) {
  const limit_key limit{run_bar::job, {}, job.terms.job};
  eased_.insert(limit);
  strained_.insert(limit);
  const auto rank = rank_of(job);
  if (rank == job.rank)
    return;
  for (auto* runs : {&aux_waiting_, &guests_, &aged_, &running_})
    runs->move(job, rank);
  for (const auto& line : job.queue)
    line.of->move(job, rank);
  for (auto& [key, shapes] : aside_)
    if (key.of != run_bar::job || key.job == job.terms.job)
      for (auto& [shape, runs] : shapes)
        runs.move(job, rank);
  job.rank = rank;
}

void pool::note_leaver(const pool_job& job) {
  constexpr std::size_t most = 4096;
  if (left_.insert_or_assign(job.terms.job, job.served).second)
    leavers_.push_back(job.terms.job);
  if (leavers_.size() > most) {
    left_.erase(leavers_.front());
    leavers_.pop_front();
  }
}

/// Forgets a run that is in no queue and holds nothing.
void pool::forget(pool_run& run) {
  auto& job = *run.job;
  --job.runs;
  stopping_.erase(run.id);
  elastic_.erase(run.id);
  use_views(run, false);
  runs_.erase(allocation_id(run.id));
  if (job.runs == 0) {
    const experiment_id id = job.terms.job;
    aside_.erase({run_bar::job, {}, id});
    policy_->forget(job);
    if (!policy_->ranked())
      note_leaver(job);
    jobs_.erase(id);
  }
}

// ---- the queue

namespace {

void find_first(shape_line& line) {
  const auto& first = *line.runs->begin();
  line.first = first;
  line.at = &first;
}

std::vector<shape_line>::iterator line_in(std::vector<shape_line>& lines, const pool_run& run) {
  return std::find_if(lines.begin(), lines.end(), [&](const auto& x) { return x.of == run.queue; });
}

} // namespace

void pool::compete(pool_run& run) {
  run.bar = {};
  run.queue = &queue_[run.shape()];
  auto& lines = run.job->queue;
  if (const auto at = line_in(lines, run); at != lines.end()) {
    ranked_runs::insert(*at->runs, run);
    find_first(*at);
  } else {
    auto& line = lines.emplace_back(shape_line{run.queue, &run.queue->insert(run), {}});
    find_first(line);
  }
  policy_->changed(*run.job);
  old_ += run.aged;
  index_aged(run);
}

void pool::step_aside(pool_run& run, limit_key bar) {
  if (bar.of == run_bar::impossible)
    run.job->wanted -= run.slots;
  if (run.came_from.of != run_bar::none && run.came_from != bar)
    eased_.insert(run.came_from); // another run that waited for the same limit may be placed instead
  run.came_from = {};
  run.bar = bar;
  aside_[bar][run.shape()].insert(run);
}

void pool::leave_queue(pool_run& run) {
  if (run.slots == 0 || run.guest)
    return;
  policy_->changed(*run.job);
  if (run.queue) {
    auto& lines = run.job->queue;
    const auto at = line_in(lines, run);
    TROUPE_ASSERT(at != lines.end());
    const bool last = at->runs->size() == 1;
    TROUPE_ASSERT(run.queue->erase(*at->runs, run));
    if (last) {
      lines.erase(at);
    } else {
      find_first(*at);
      fetch(at->first.run, pool_run::served_bytes); // often this run is served next
    }
    if (!passing_ && run.queue->empty())
      queue_.erase(run.shape());
    run.queue = nullptr;
    old_ -= run.aged;
    if (run.aged)
      aged_.erase(run);
    return;
  }
  const auto shape = run.shape();
  const auto aside = aside_.find(run.bar);
  TROUPE_ASSERT(aside != aside_.end());
  const auto runs = aside->second.find(shape);
  TROUPE_ASSERT(runs != aside->second.end() && runs->second.erase(run));
  if (runs->second.empty())
    aside->second.erase(runs);
  if (aside->second.empty())
    aside_.erase(aside);
  if (run.bar.of == run_bar::impossible)
    run.job->wanted += run.slots;
  run.bar = {};
}

/// All indexes of runs that wait for slots, except that of guests.
std::vector<const ranked_runs*> pool::queues() const {
  std::vector<const ranked_runs*> all;
  const auto add = [&](const run_queue& queue) {
    for (const auto& [shape, runs] : queue)
      all.push_back(&runs);
  };
  add(queue_);
  for (const auto& [key, queue] : aside_)
    add(queue);
  return all;
}

std::vector<pool_run*> pool::queued(std::size_t most) const {
  std::vector<ranked_runs::walk> walks; // each is in order already, and these are merged
  std::vector<std::pair<pool_run*, std::size_t>> heads;
  for (const auto* runs : queues())
    if (auto* first = walks.emplace_back(*runs).next())
      heads.emplace_back(first, walks.size() - 1);
  const auto later = [](const auto& a, const auto& b) { return by_rank()(b.first, a.first); };
  std::make_heap(heads.begin(), heads.end(), later);
  std::vector<pool_run*> all;
  while (!heads.empty() && all.size() < most) {
    std::pop_heap(heads.begin(), heads.end(), later);
    auto& [run, from] = heads.back();
    all.push_back(run);
    if (run = walks[from].next(); run)
      std::push_heap(heads.begin(), heads.end(), later);
    else
      heads.pop_back();
  }
  return all;
}

/// In a pool of turns the jobs are sorted, and then the runs of each: far fewer comparisons than between all
/// runs. To be called after refresh_turns().
std::vector<pool_run*> pool::queued_by_turns() const {
  if (policy_->ranked())
    return queued();
  std::vector<const ranked_runs::line*> lines;
  for (const auto* runs : queues())
    runs->collect_lines(lines);
  const auto job_of = [](const ranked_runs::line* line) { return line->begin()->run->job; };
  std::stable_sort(lines.begin(), lines.end(), [&](const auto* a, const auto* b) {
    return job_of(a) != job_of(b) && policy_->job_before(*job_of(a), *job_of(b));
  });
  std::vector<pool_run*> all;
  for (auto line = lines.begin(); line != lines.end();) {
    const auto* job = job_of(*line);
    const auto from = std::ssize(all);
    for (; line != lines.end() && job_of(*line) == job; ++line)
      for (const auto& one : **line)
        all.push_back(one.run);
    std::sort(all.begin() + from, all.end(), by_rank());
  }
  return all;
}

// ---- slots held

void pool::count_held(pool_run& run, int slots) {
  run.job->held += slots;
  policy_->changed(*run.job);
  if (capped())
    count_used(run, slots);
  if (slots >= 0 || (aside_.empty() && tried_.empty()))
    return;
  for (const auto& key : limits_of(run))
    tried_.erase(key);
  ease(*run.job);
  eased_.merge(std::exchange(unfit_below_, {}));
}

/// Lets runs that wait for a limit of the job compete again.
void pool::ease(const pool_job& job) {
  for (const auto& key : limits_of(job))
    if (aside_.contains(key))
      eased_.insert(key);
}
/// The same for all limits.
void pool::ease_all() {
  tried_.clear();
  for (const auto& [key, runs] : aside_)
    if (key.of != run_bar::impossible)
      eased_.insert(key);
}

void pool::count_used(const pool_run& run, int slots) {
  for (const auto& key : limits_of(run))
    if (key.of != run_bar::job)
      if (auto& used = used_[key]; (used += slots) == 0)
        used_.erase(key);
}

/// Adds `times` times the slots that the job holds to the use of its limits; -1 subtracts them.
void pool::count_used(const pool_job& job, int times) {
  for (const auto& [id, run] : runs_)
    if (run.job == &job && !run.on.empty())
      count_used(run, times * run.held());
}

/// Whether the pool, a user or a workspace has a limit.
bool pool::capped() const { return settings_.max_slots >= 0 || !settings_.quotas.empty(); }

/// Builds the indexes of holders again, which are kept only where the settings need them.
void pool::index_holders() {
  used_.clear();
  running_ = {};
  held_.clear();
  for (auto& [id, run] : runs_) {
    run.promisable = 0;
    count_promisable(run);
    if (capped())
      count_used(run, run.held());
    if (may_be_preempted(run) && !run.on.empty())
      running_.insert(run);
  }
}

bool pool::may_be_preempted(const pool_run& run) const {
  return settings_.preempts() && run.state == pool_run::phase::holding && run.terms.preemptible &&
         run.granted && run.slots > 0;
}

/// Gives the run these slots, which are free or kept for it.
void pool::hold(pool_run& run, agent_parts on, time_point since) {
  run.state = pool_run::phase::holding;
  run.since = since;
  run.on = std::move(on);
  run.offered = 0;
  int promisable = 0;
  for (const auto& part : run.on) {
    auto& agent = *part.agent;
    begin_change(agent);
    for (const int slot : part.slots) {
      const auto n = static_cast<std::size_t>(slot);
      if (agent.slots.size() <= n) { // the agent has not registered yet
        TROUPE_ASSERT(!agent.present);
        agent.slots.resize(n + 1, pool_agent::slot{nullptr, nullptr, pool_agent::closed});
      }
      auto& s = agent.slots[n];
      TROUPE_ASSERT(!s.holder);
      s.holder = &run;
      promisable += !s.keeper && !(s.bars & pool_agent::closed);
      set_bars(agent, s, s.bars | pool_agent::held);
    }
    end_change(agent);
    if (part.slots.empty()) {
      ++agent.aux_used;
      aux_holders_.insert(run.id);
    }
  }
  count_held(run, run.held());
  if (run.slots > 0)
    run.job->served = std::max(run.job->served, since);
  set_promisable(run, promisable);
  if (may_be_preempted(run))
    running_.insert(run);
  if (run.least > 0 && run.least < run.slots)
    elastic_.insert(run.id);
}

/// To be called when the slots that the run holds, or those of them that may be promised, have changed.
void pool::count_promisable(pool_run& run) {
  int count = 0;
  for (const auto& part : run.on)
    for (const int slot : part.slots) {
      const auto& s = part.agent->slots[static_cast<std::size_t>(slot)];
      count += s.holder == &run && !s.keeper && !(s.bars & pool_agent::closed);
    }
  set_promisable(run, count);
}

void pool::set_promisable(pool_run& run, int count) {
  if (!policy_->passes() || count == run.promisable)
    return;
  forget_promisable(run);
  run.promisable = count;
  if (count > 0) {
    auto& runs = held_[count];
    runs.insert(runs.end(), {run.since, &run}); // mostly the run is the newest
  }
}

void pool::forget_promisable(pool_run& run) {
  if (const int count = std::exchange(run.promisable, 0); count > 0)
    if (const auto at = held_.find(count); at->second.erase({run.since, &run}) == 1 && at->second.empty())
      held_.erase(at);
}

/// Releases the slots that the run holds on the agent `one`; null: all its slots.
void pool::let_go(pool_run& run, const pool_agent* one) {
  if (run.on.size() > 1) { // the agents of a gang lie apart in memory: prefetch all before the first is read
    for (const auto& part : run.on)
      fetch(part.agent, pool_agent::served_bytes);
  }
  forget_promisable(run);
  int count = 0;
  for (const auto& part : run.on) {
    auto& agent = *part.agent;
    if (one && one != &agent)
      continue;
    begin_change(agent);
    for (const int slot : part.slots) {
      auto& s = agent.slots[static_cast<std::size_t>(slot)];
      if (s.holder != &run)
        continue;
      s.holder = nullptr;
      set_bars(agent, s, s.bars & ~pool_agent::held);
    }
    end_change(agent);
    count += static_cast<int>(part.slots.size());
    if (part.slots.empty())
      --agent.aux_used;
  }
  if (one) {
    run.on.erase(std::remove_if(run.on.begin(), run.on.end(), [&](const auto& x) { return x.agent == one; }),
                 run.on.end());
    count_promisable(run);
  } else {
    run.on.clear();
  }
  if (run.on.empty())
    aux_holders_.erase(run.id);
  count_held(run, -count);
  if (count > 0)
    run.job->served = now_;
  if (run.state == pool_run::phase::stopping)
    run.job->stopping -= count;
  if (run.on.empty() && settings_.preempts())
    running_.erase(run);
}

/// Takes a slot from a run that no longer holds it.
void pool::lose_slot(pool_run& run, pool_agent& agent, int slot) {
  auto& s = agent.slots[static_cast<std::size_t>(slot)];
  s.holder = nullptr;
  set_bars(agent, slot, static_cast<std::uint8_t>(s.bars & ~pool_agent::held));
  for (auto part = run.on.begin(); part != run.on.end(); ++part)
    if (part->agent == &agent) {
      part->slots.erase(std::remove(part->slots.begin(), part->slots.end(), slot), part->slots.end());
      if (part->slots.empty())
        run.on.erase(part);
      break;
    }
  count_promisable(run);
  count_held(run, -1);
  run.job->served = now_;
  if (run.state == pool_run::phase::stopping)
    --run.job->stopping;
  if (run.on.empty() && settings_.preempts())
    running_.erase(run);
}

// ---- limits

const slot_quota* pool::quota_of(const limit_key& key) const {
  if (settings_.quotas.empty()) // most pools have none, and each grant asks
    return nullptr;
  return key.of == run_bar::user        ? settings_.quota_of_user(key.name)
         : key.of == run_bar::workspace ? settings_.quota_of_workspace(key.name)
                                        : nullptr;
}

std::optional<int> pool::most_of(const limit_key& key) const {
  int most = -1;
  if (key.of == run_bar::job) {
    const auto job = jobs_.find(key.job);
    most = job == jobs_.end() ? -1 : job->second.terms.max_slots;
  } else if (key.of == run_bar::pool) {
    most = settings_.max_slots;
  } else if (const auto* quota = quota_of(key)) {
    most = quota->max_slots;
  }
  return most < 0 ? std::optional<int>() : most;
}

std::optional<int> pool::room(const limit_key& key) const {
  const auto most = most_of(key);
  if (!most)
    return most;
  if (key.of == run_bar::job)
    return *most - jobs_.at(key.job).held;
  const auto it = used_.find(key);
  return *most - (it == used_.end() ? 0 : it->second);
}

std::array<limit_key, 4> pool::limits_of(const pool_job& job) {
  return {{{run_bar::job, {}, job.terms.job},
           {run_bar::user, job.user, {}},
           {run_bar::workspace, job.workspace, {}},
           {run_bar::pool, {}, {}}}};
}
std::array<limit_key, 4> pool::limits_of(const pool_run& run) { return limits_of(*run.job); }

/// The limits that the run would exceed. Slots that are kept for other runs count as used, unless this run
/// goes before those.
std::vector<limit_key> pool::full_limits(const pool_run& run) const {
  std::vector<limit_key> full;
  if (unlimited(*run.job))
    return full;
  for (const auto& key : limits_of(run))
    if (exceeds(run, key))
      full.push_back(key);
  return full;
}
limit_key pool::full_limit(const pool_run& run) const {
  if (unlimited(*run.job))
    return {};
  for (const auto& key : limits_of(run))
    if (exceeds(run, key))
      return key;
  return {};
}

bool pool::unlimited(const pool_job& job) const { return job.terms.max_slots < 0 && !capped(); }

bool pool::exceeds(const pool_run& run, const limit_key& key) const {
  const auto left = room_for(run, key, false);
  return left && *left < run.need();
}

bool pool::is_under(const pool_run& run, const limit_key& key) {
  switch (key.of) {
  case run_bar::job:
    return run.job->terms.job == key.job;
  case run_bar::user:
    return run.job->user == key.name;
  case run_bar::workspace:
    return run.job->workspace == key.name;
  default:
    return key.of == run_bar::pool;
  }
}

/// The slots that those who hold the run's reservation, and do not stop, release below the limit: the run
/// starts at the earliest when they have ended, or where another place has room for it below its limits.
int pool::released_for(const pool_run& reserved, const limit_key& key) const {
  std::vector<const pool_run*> holders;
  each_slot(reserved.kept, [&](const pool_agent& agent, int slot) {
    const auto* holder = agent.slots[static_cast<std::size_t>(slot)].holder;
    if (holder && holder->state == pool_run::phase::holding && is_under(*holder, key) &&
        std::find(holders.begin(), holders.end(), holder) == holders.end())
      holders.push_back(holder);
  });
  int released = 0;
  for (const auto* holder : holders)
    released += holder->held();
  return released;
}

/// The slots that the limit leaves for the run, now or when all runs that stop have ended; none: there is no
/// such limit. What is kept for runs before this one counts as used, as far as no run releases it to them.
std::optional<int> pool::room_for(const pool_run& run, const limit_key& key, bool later) const {
  const auto left = room(key);
  if (!left)
    return left;
  int kept = 0, coming = 0;
  for (const auto id : keepers_)
    if (const auto& keeper = runs_.at(id);
        id != run.id && is_under(keeper, key) && !policy_->overrides(run, keeper))
      kept += std::max(0, keeper.need() - (keeper.reserved ? released_for(keeper, key) : 0));
  if (later || kept > 0)
    for (const auto id : stopping_)
      if (const auto& one = runs_.at(id); is_under(one, key))
        coming += one.held();
  return later ? *left + coming - kept : *left - std::max(0, kept - coming);
}

/// The limits that the run would exceed even when all runs that stop have ended. `before`: the slots that
/// other runs of its job get first.
std::vector<pool::lack> pool::lacks_of(const pool_run& run, int before) const {
  std::vector<lack> lacks;
  if (unlimited(*run.job))
    return lacks;
  for (const auto& key : limits_of(run))
    if (const auto left = room_for(run, key, true); left && *left < before + run.need())
      lacks.push_back({key, before + run.need() - *left});
  return lacks;
}

/// Counts in `lacks` the slots that the end of the victim releases; with `times` -1 no longer counts them.
void pool::give(std::vector<lack>& lacks, const pool_run& victim, int times) {
  for (auto& x : lacks)
    if (is_under(victim, x.key))
      x.slots -= times * victim.held();
}
bool pool::is_lacking(const std::vector<lack>& lacks) {
  return std::any_of(lacks.begin(), lacks.end(), [](const lack& x) { return x.slots > 0; });
}

/// Whether the run may wait for the slots that are kept for it, although a limit may be full now: the runs
/// that stop, and those that hold its reservation, will make enough room below all its limits.
bool pool::claims(const pool_run& run) const {
  if (run.kept.empty())
    return false;
  const auto lacks = lacks_of(run);
  return std::all_of(lacks.begin(), lacks.end(),
                     [&](const lack& x) { return run.reserved && x.slots <= released_for(run, x.key); });
}

/// The limit for which the run has to stand aside.
limit_key pool::barred_by(const pool_run& run) const {
  auto limit = full_limit(run);
  return limit.of != run_bar::none && claims(run) ? limit_key() : limit;
}

int pool::most_within_limits(const pool_run& run) const {
  int most = std::numeric_limits<int>::max();
  for (const auto& key : limits_of(run))
    if (const auto left = room_for(run, key, false))
      most = std::min(most, *left);
  return most;
}

/// Lets runs compete again that may fit below a limit which has more room now.
void pool::readmit() {
  if (!policy_->ranked() && !eased_.empty() && !aside_.empty())
    begin_turns(); // until now the turns and shares are those of the last pass
  for (const auto& key : std::exchange(eased_, {})) {
    tried_.erase(key);
    unfit_below_.erase(key);
    ripe_below_.erase(key);
    const auto it = aside_.find(key);
    if (it == aside_.end())
      continue;
    const auto left = room(key);
    std::vector<pool_run*> back, gone;
    std::vector<std::pair<pool_run*, limit_key>> elsewhere;
    for (const auto& [shape, runs] : it->second) {
      const bool holdable = could_hold(*runs.first());
      if (holdable && left) {
        choose(back, elsewhere, runs, key, std::max(0, *left / shape.need));
        continue;
      }
      const auto all = runs.list();
      auto& to = holdable ? back : gone;
      to.insert(to.end(), all.begin(), all.end());
    }
    for (auto* run : back) {
      leave_queue(*run);
      run->came_from = key;
      compete(*run);
    }
    for (auto* run : gone) {
      leave_queue(*run);
      step_aside(*run, {run_bar::impossible, {}, {}});
    }
    for (const auto& [run, limit] : elsewhere) {
      leave_queue(*run);
      step_aside(*run, limit);
    }
  }
}

/// Chooses from `runs`, which have one shape and wait for the limit `key`, those that may get slots now.
/// `most` is the number of runs for which the limit has room. The first runs by rank are added to `chosen`
/// or, in a pool of turns, runs of the jobs whose turns come first; where a run may preempt others, at least
/// one is added. Runs that would be chosen but have reached another limit are added to `elsewhere`, with that
/// limit.
void pool::choose(std::vector<pool_run*>& chosen, std::vector<std::pair<pool_run*, limit_key>>& elsewhere,
                  const ranked_runs& runs, const limit_key& key, int most) const {
  const auto other_limit = [&](const pool_run& run) {
    auto limit = full_limit(run);
    return limit == key ? limit_key() : limit;
  };
  if (policy_->ranked()) {
    std::set<limit_key> others;
    ranked_runs::walk in_order(runs);
    for (int count = settings_.preempts() ? std::max(1, most) : most; count > 0;) {
      auto* run = in_order.next();
      if (!run)
        break;
      if (auto limit = other_limit(*run); limit.of != run_bar::none) {
        if (settings_.preempts() && others.insert(limit).second) // it may preempt others below that limit
          chosen.push_back(run);
        else
          elsewhere.emplace_back(run, std::move(limit));
        continue;
      }
      chosen.push_back(run);
      --count;
    }
    return;
  }
  std::vector<const ranked_runs::line*> lines;
  runs.collect_lines(lines);
  const auto first_of = [](const ranked_runs::line* line) { return line->begin()->run; };
  std::erase_if(lines, [&](const auto* line) {
    auto* first = first_of(line);
    const auto limit = other_limit(*first);
    if (limit.of != run_bar::none && policy_->may_preempt(*first))
      chosen.push_back(first);
    else if (limit.of != run_bar::none)
      for (const auto& entry : *line) // the runs of a job and shape have the same limits
        elsewhere.emplace_back(entry.run, limit);
    return limit.of != run_bar::none;
  });
  const auto count = std::min(std::ssize(lines), static_cast<std::ptrdiff_t>(most));
  std::partial_sort(lines.begin(), lines.begin() + count, lines.end(), [&](const auto* a, const auto* b) {
    return policy_->before(*first_of(a), *first_of(b));
  });
  for (auto it = lines.begin(); it != lines.end(); ++it)
    if (it - lines.begin() >= count) {
      if (policy_->may_preempt(*first_of(*it)))
        chosen.push_back(first_of(*it));
    } else {
      int rest = most;
      for (const auto& entry : **it)
        if (rest-- > 0)
          chosen.push_back(entry.run);
        else
          break;
    }
}

/// Preempts runs that are above a lowered limit, the newest first, where the pool preempts.
void pool::end_excess(actions& out) {
  for (const auto& key : std::exchange(strained_, {})) {
    const auto left = room(key);
    if (!left || *left >= 0 || !settings_.preempts())
      continue;
    const auto limited = [&](const pool_run& run) {
      const auto keys = limits_of(run);
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    int excess = -*left;
    for (const auto id : stopping_)
      if (const auto& run = runs_.at(id); limited(run))
        excess -= run.held();
    std::vector<pool_run*> newest;
    ranked_runs::walk running(running_, true);
    while (auto* run = running.next())
      if (limited(*run))
        newest.push_back(run);
    std::stable_sort(newest.begin(), newest.end(), [](auto* a, auto* b) { return a->since > b->since; });
    std::vector<pool_run*> victims;
    int given = 0;
    for (auto it = newest.begin(); it != newest.end() && given < excess; ++it) {
      victims.push_back(*it);
      given += (*it)->held();
    }
    std::sort(victims.begin(), victims.end(), by_rank());
    std::erase_if(victims, [&](auto* run) {
      if (given - run->held() < excess)
        return false;
      given -= run->held();
      return true;
    });
    for (auto* run : victims)
      preempt(out, *run, {}, key.of == run_bar::user || key.of == run_bar::workspace ? "quota" : "max_slots");
  }
}

} // namespace troupe

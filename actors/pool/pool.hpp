#pragma once
// The machine of one resource pool owns its queue and its slots, and decides who runs where. All its state is
// soft: after a restart it is rebuilt from the agents' inventories and from what the allocations hold and
// wait for. Three parts decide: a policy says whose turn it is (policy.hpp), fitting says which agents hold a
// run (fitting.hpp), and the pool says what may be given at all: within limits, by preemption, out of a
// reservation.

#include "actors/pool/policy.hpp"
#include "actors/provider/provisioner_events.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <unordered_map>

namespace troupe {

struct pool_capacity;

// Actions; report_unplaceable and preempt_allocation are two more.
struct grant_slots {
  allocation_id allocation;
  std::vector<placement> on; ///< a placement without slots is an aux unit of its agent
  bool backfilled = false;   ///< a more urgent request waits
};
/// An allocation that holds fewer slots than it asked for could have `slots` slots, if it were placed again.
/// The pool reports this once for each number, and only while no run waits for the free slots.
struct report_spare {
  allocation_id allocation;
  int slots = 0;
};
/// Tells people that these slots are reserved: no run behind this one gets them. It replaces an earlier
/// reservation.
struct reserve_slots {
  allocation_id allocation;
  std::vector<placement> on;
};
struct drop_reservation {
  allocation_id allocation;
};
using pool_action = std::variant<grant_slots, report_unplaceable, report_spare, preempt_allocation,
                                 reserve_slots, drop_reservation, fall_back, guest_waits>;

/// Not thread-safe: one actor owns the machine. Invariants: a slot is held by one allocation at most, and
/// nothing is granted above a limit.
///
///   recovering --holders_heard--> placing
///
/// A pool that was made again begins in the phase `recovering`, in which it hears what agents and allocations
/// hold, and places nothing.
class pool {
public:
  enum class phase { placing, recovering };
  explicit pool(phase begin = phase::placing, pool_settings settings = first_come());
  pool(pool&&) = default;
  pool& operator=(pool&&) = default;

  /// Decides at wall time `now`.
  [[nodiscard]] std::vector<pool_action> apply(const pool_event& ev, time_point now = {});
  /// Takes several events at once, and decides after the last one.
  [[nodiscard]] std::vector<pool_action> apply(const std::vector<pool_event>& events, time_point now);
  std::optional<time_point> deadline() const; ///< when `time_passed` can next matter; none: never

  int total_slots() const { return total_; }
  int used_slots() const;
  int reserved_slots() const;
  const pool_settings& settings() const { return settings_; }
  struct waiting_entry {
    allocation_id allocation;
    int slots = 1;
  };
  /// The first `most` runs that wait, in the order of ranks; runs without slots come last.
  std::vector<waiting_entry> waiting(std::size_t most = SIZE_MAX) const;
  bool has(const std::string& agent) const; ///< whether the agent is present
  /// The allocation in each slot of each present agent; an empty id: the slot is free.
  std::map<std::string, std::vector<allocation_id>> agents() const;
  /// The allocations that hold a slot or an aux unit of the agent, in the order of ids.
  std::vector<allocation_id> held_on(const std::string& agent);
  /// Whether no allocation holds anything on the agent, which may also be away or unknown. While the pool is
  /// recovering the answer is false, as not all holders have been heard.
  bool is_idle(const std::string& agent) const;
  /// Why a run waits: {reason: {code, text}, position, agents, wouldFree, reservation}; null: the pool does
  /// not know the run.
  value explain(allocation_id id, time_point now);
  /// The same explanation, completed by what others know of the runs that hold slots: costs and times in
  /// `wouldFree`, and `also`, `estimate`, `advice`, `slots`, `priority`, `weight`, `user`, `since`.
  value explain(allocation_id id, const std::vector<run_outlook>& outlooks, time_point now);
  std::string snapshot() const;
  value describe() const;                 ///< the state, for people
  value details();                        ///< details for pool.describe: jobs, quotas, number of waiting runs
  std::vector<queued_run> waiting_runs(); ///< all waiting runs, in the order of the queue, with their reasons
  /// What a provider has to know: the slots that runs wait for and may have, and the agents. In the order of
  /// jobs and of agents' names.
  pool_demand demand() const;
  /// What a submission is checked against.
  pool_capacity capacity() const;
  bool knows(allocation_id id) const { return runs_.contains(id); }

  static pool_settings first_come();

private:
  using actions = std::vector<pool_action>;
  actions decided(std::span<const pool_event> events, time_point now);
  struct allocation_hash {
    std::size_t operator()(allocation_id id) const {
      return std::hash<task_id>()(id.task) * 31 + std::hash<run_id>()(id.run);
    }
  };
  using bars = std::vector<std::pair<pool_agent*, int>>; ///< agents with slot and bar, as one number
  using agent_map = std::map<std::string, pool_agent, std::less<std::string>,
                             node_allocator<std::pair<const std::string, pool_agent>>>;

  void on(actions& out, const agent_up& ev);
  void on(actions& out, const agent_down& ev);
  void on(actions& out, const slots_requested& ev);
  void on(actions& out, const slots_released& ev);
  void on(actions& out, const agent_drain& ev);
  void on(actions& out, const slots_held& ev);
  void on(actions& out, const holders_heard& ev);
  void on(actions& out, const agent_forgotten& ev);
  void on(actions& out, const job_changed& ev);
  void on(actions& out, const pool_configured& ev);
  void on(actions& out, const time_passed& ev);
  void on(actions& out, const supply_told& ev);

  // Runs and jobs (pool_runs.cpp).
  pool_run& enter(allocation_id id, run_terms terms, int slots, int least);
  void forget(pool_run& run);
  void note_leaver(const pool_job& job);
  run_terms dated(run_terms terms) const;
  void withdraw(actions& out, pool_run& run);
  void take_holder(actions& out, allocation_id id, const run_terms& terms, std::pair<int, int> wanted,
                   agent_parts on, time_point since);
  void wait_at_home(pool_run& run);
  void stop_waiting(pool_run& run);
  void forget_strays(pool_agent& agent, int slots);
  void take_terms(pool_job& job, const job_terms& terms);
  void rerank(pool_job& job);
  job_rank rank_of(const pool_job& job) const;
  int priority_of(const pool_job& job) const;
  void compete(pool_run& run);
  void step_aside(pool_run& run, limit_key bar);
  void leave_queue(pool_run& run);
  std::vector<const ranked_runs*> queues() const;
  /// The first `most` runs that wait for slots, in the order of ranks.
  std::vector<pool_run*> queued(std::size_t most = SIZE_MAX) const;
  std::vector<pool_run*> queued_by_turns() const; ///< all of them, in the order of position()
  void hold(pool_run& run, agent_parts on, time_point since);
  void let_go(pool_run& run, const pool_agent* agent); ///< null: the slots on all agents
  void lose_slot(pool_run& run, pool_agent& agent, int slot);
  void count_held(pool_run& run, int slots);
  void count_used(const pool_run& run, int slots);
  void count_used(const pool_job& job, int times);
  void index_holders();
  bool may_be_preempted(const pool_run& run) const;
  agent_view* view_of(placement_rules rules);
  void use_views(pool_run& run, bool use);

  // Limits.
  std::optional<int> most_of(const limit_key& key) const; ///< none: there is no limit
  std::optional<int> room(const limit_key& key) const;    ///< slots left below the limit; none: no limit
  static std::array<limit_key, 4> limits_of(const pool_job& job);
  static std::array<limit_key, 4> limits_of(const pool_run& run);
  std::vector<limit_key> full_limits(const pool_run& run) const;
  limit_key full_limit(const pool_run& run) const;
  bool capped() const;
  bool unlimited(const pool_job& job) const;
  bool exceeds(const pool_run& run, const limit_key& key) const;
  static bool is_under(const pool_run& run, const limit_key& key);
  int released_for(const pool_run& reserved, const limit_key& key) const;
  std::optional<int> room_for(const pool_run& run, const limit_key& key, bool later) const;
  struct lack {
    limit_key key;
    int slots; ///< number of slots that have to be released under the limit
  };
  std::vector<lack> lacks_of(const pool_run& run, int before = 0) const;
  bool claims(const pool_run& run) const;
  limit_key barred_by(const pool_run& run) const;
  static void give(std::vector<lack>& lacks, const pool_run& victim, int times);
  static bool is_lacking(const std::vector<lack>& lacks);
  void ease(const pool_job& job);
  void ease_all();
  const pool_run* next_in_turn() const;
  /// `next`, the answer of next_in_turn(), where it goes before this run; null: this run is next.
  const pool_run* ahead_of(const pool_run& run, const pool_run* next) const;
  int most_within_limits(const pool_run& run) const;
  const slot_quota* quota_of(const limit_key& key) const; ///< null: none, or no limit of a quota
  void readmit();
  void choose(std::vector<pool_run*>& chosen, std::vector<std::pair<pool_run*, limit_key>>& elsewhere,
              const ranked_runs& runs, const limit_key& key, int most) const;
  void end_excess(actions& out);

  // Slots (pool_slots.cpp).
  pool_agent& agent_named(const std::string& name); ///< makes the entry of an unknown agent
  void number(agent_map::iterator one);
  pool_agent* known_agent(const std::string& name) const;
  void set_bars(pool_agent& agent, int slot, std::uint8_t bars);
  /// The same, to be called between begin_change() and end_change() of the agent.
  void set_bars(pool_agent& agent, pool_agent::slot& of, int bars) {
    kept_free_ += (bars == pool_agent::kept) - (of.bars == pool_agent::kept);
    agent.now.free += (bars == 0) - (of.bars == 0);
    of.bars = static_cast<std::uint8_t>(bars);
  }
  void refresh(pool_agent& agent);
  void index(pool_agent& agent, bool in);
  void join_views(pool_agent& agent);
  void join(pool_agent& agent, agent_view& view);
  void topology_changed(actions& out);
  agent_parts fit(const pool_run& run, int slots) const;
  agent_parts fit_beside_preferred(const pool_run& run, int slots) const;
  bool could_hold(const pool_run& run) const;
  bool could_ever_hold(const pool_run& run) const;
  int aux_of(const pool_agent& agent) const;
  agent_parts placed(const agent_shares& parts) const;
  template <class Use>
  void each_slot(const agent_parts& on, Use use) const {
    for (const auto& part : on)
      for (const int slot : part.slots)
        if (slot >= 0 && slot < static_cast<int>(part.agent->slots.size()))
          use(*part.agent, slot);
  }
  /// The same for a `use` that changes slots: each agent is put into the indexes once, after all its slots.
  template <class Use>
  void change_slots(const agent_parts& on, Use use) {
    for (const auto& part : on) {
      begin_change(*part.agent);
      for (const int slot : part.slots)
        if (slot >= 0 && slot < static_cast<int>(part.agent->slots.size()))
          use(*part.agent, slot);
      end_change(*part.agent);
    }
  }
  void begin_change(pool_agent& agent);
  void end_change(pool_agent& agent);
  void lift(bars& lifted, pool_agent& agent, int slot, std::uint8_t bar);
  void lift(bars& lifted, const agent_parts& on, std::uint8_t bar);
  void lower(const bars& lifted);
  void keep(pool_run& run, agent_parts on, bool reserve, time_point now);
  void drop_kept(actions* out, pool_run& run);

  // Decisions (pool.cpp).
  void decide(actions& out, time_point now);
  void begin_turns();
  void refresh_turns();
  void pass(actions& out, time_point now);
  void pass_aux(actions& out, time_point now);
  const pool_agent* aux_agent_for(const pool_run& run) const;
  void pass_guests(actions& out, time_point now);
  void let_fall_back(actions& out, time_point now);
  void report_unheld(actions& out);
  void judge_excluded(allocation_id id);
  void give_up_excluded(actions& out);
  bool lacks_excluded(const pool_run& run) const;
  bool let_aside(actions& out, std::vector<pool_run*>& blocked);
  agent_parts place(actions& out, pool_run& run);
  agent_parts fit_range(const pool_run& run) const;
  void grant(actions& out, pool_run& run, agent_parts on, bool backfill, time_point now);
  void take_from(actions& out, const std::vector<pool_run*>& keepers, const agent_parts& on);
  std::vector<pool_run*> holders();
  static std::string disabled_text(const pool_run& run);
  static std::string killed_text(const pool_run& run);
  void end_disabled(actions& out, pool_run& run);
  void offer_rest(actions& out);
  // Preemption (pool_preemption.cpp).
  bool make_room(actions& out, pool_run& run, time_point now);
  std::optional<allocation_id> preempt_for(actions& out, pool_run& run, std::vector<lack> lacks,
                                           const std::set<allocation_id>& spared, time_point now);
  bool will_be_free(const agent_parts& on) const;
  bool hopeless(const pool_run& run, const std::vector<lack>& lacks) const;
  void remember(const pool_run& run, const std::vector<lack>& lacks, std::optional<time_point> later);
  void stand_by(const pool_run& run, const std::vector<lack>& lacks);
  void preempt(actions& out, pool_run& victim, allocation_id wanted_by, const char* reason,
               std::string detail = {});
  // Reservations (pool_reservation.cpp).
  void age(time_point now);
  void grows_old(pool_run& run);
  static bool waits_longer(const pool_run& a, const pool_run& b);
  void index_aged(pool_run& run);
  void reserve(actions& out, time_point now);
  bool was_passed(const pool_run& run) const;
  void note_second_turn(const pool_job& job);
  pool_run* passed_by(const pool_run& run, const std::vector<pool_run*>& behind);
  bool reserve_for(actions& out, pool_run& run, time_point now);
  agent_parts chosen_for(const pool_run& run) const;
  agent_parts chosen_of_all(const pool_run& run) const;
  void count_promisable(pool_run& run);
  void set_promisable(pool_run& run, int count);
  void forget_promisable(pool_run& run);
  agent_parts chosen_in(const pool_run& run, const std::vector<pool_agent*>& among) const;
  // Explanations (pool_explain.cpp).
  using reason_text = std::pair<std::string, std::string>; ///< code, and text for people
  value explain(const pool_run& run, const reason_text& reason, time_point now);
  /// `next` as ahead_of() takes it.
  std::vector<reason_text> reasons(const pool_run& run, const pool_run* next, time_point now);
  struct possible_victims {
    std::set<allocation_id> now;
    std::map<allocation_id, double> later; ///< in how many seconds they will have run for min_run
  };
  std::vector<const pool_run*> spared_for(const pool_run& run, time_point now);
  possible_victims victims_of(const pool_run& run, time_point now);
  std::pair<bool, bool> rivals_below(const pool_run& run, const std::vector<lack>& lacks) const;
  const pool_run* comes_before(const pool_run& run, const std::vector<const pool_run*>& ended) const;
  value estimate(const pool_run& run, const pool_run* next, const std::vector<run_outlook>& outlooks,
                 time_point now, const pool_run*& rival);
  std::string advice(const pool_run& run, const std::string& code, time_point now);
  std::vector<const pool_run*> siblings_before(const pool_run& run) const;
  std::optional<int> priority_that_starts(const pool_run& run);
  std::vector<const pool_job*> jobs_in_turn() const;
  reason_text aux_reason(const pool_run& run) const;
  // pool_demand.cpp
  bool supply_can_hold(const pool_run& run, int blocked = 0) const {
    return supply_could_hold(run, run.terms.rules, blocked);
  }
  bool supply_could_hold(const pool_run& run, placement_rules rules, int blocked = 0) const;
  class idle_instances;
  bool is_of_instance(const std::string& name) const;
  bool may_bring(const placement_rules& rules) const;
  void learn_of_instance(const pool_agent& agent);
  bool is_launched_for(const pool_run& run) const;
  int launched_for(const pool_run& run, int most) const;
  std::int64_t most_supplied() const; ///< slots of all instances that the provider may launch
  std::optional<reason_text> supply_reason(const pool_run& run) const;
  reason_text impossible_reason(const pool_run& run) const;
  bool fits_bare(const pool_run& run, const placement_rules& rules) const;
  bool fits_with(const pool_run& run, const placement_rules& rules,
                 const std::function<int(const pool_agent&)>& slots_of) const;
  std::string enabling_text(const pool_run& run) const;
  struct away_agents {
    /// each: every one of them alone could hold the run; together: all of them with the present agents could;
    /// asked_for: the run names them, and how many slots they have is unknown.
    enum { each, together, asked_for } how = each;
    std::vector<std::string> names;     ///< ascending
    std::vector<std::string> returning; ///< agents whose leases are not over, and that the run may lack
  };
  bool may_return(const pool_agent& agent) const;
  away_agents away_for(const pool_run& run, time_point now) const;
  std::vector<std::string> away_together(const pool_run& run,
                                         const std::vector<const pool_agent*>& away) const;
  std::string away_text(const pool_run& run, time_point now) const;
  std::string closed_text(const pool_run& run) const;
  std::size_t position(const pool_run& run) const;
  bool is_held_back(const ranked_runs::line& line) const;
  std::vector<const pool_agent*> agents_shown(const pool_run& run, std::ptrdiff_t most) const;
  value agents_for(const pool_run& run, time_point now) const;
  static bool is_idle(const pool_agent& agent);
  bool never_fits(const pool_run& run) const;
  value would_free(const pool_run& run, time_point now);
  bool is_preemptible(const pool_run& run) const;
  static const pool_run* heir_of(const pool_run& run);

  pool_settings settings_;
  std::unique_ptr<pool_policy> policy_;
  phase phase_ = phase::placing;
  agent_map agents_;
  std::unordered_map<std::string_view, pool_agent*> by_name_; ///< agents_ again: a gang looks for many
  std::unordered_map<allocation_id, pool_run, allocation_hash, std::equal_to<allocation_id>,
                     node_allocator<std::pair<const allocation_id, pool_run>>>
    runs_; ///< no decision may depend on the order of this map
  pool_jobs jobs_;
  std::map<placement_rules, agent_view> views_;
  std::uint64_t next_view_ = 1;
  int total_ = 0;           ///< number of slots of present agents
  int open_ = 0;            ///< number of these slots that may be given out
  int kept_free_ = 0;       ///< number of slots that are kept for a run and held by none
  std::uint64_t clock_ = 0; ///< counts requests and grants
  std::uint64_t arrivals_ = 0;
  std::map<limit_key, int> used_; ///< slots by user, workspace and pool, where any of these has a limit
  run_queue queue_;               ///< runs that compete for slots
  bool passing_ = false;          ///< a pass is under way, during which empty shapes stay in the queue
  bool taken_ = false;            ///< a run lost slots that were kept for it, in this pass
  time_point now_;                ///< time of the event that is handled
  std::map<limit_key, run_queue> aside_; ///< runs that wait for a limit, or that no agents could hold
  std::set<limit_key> eased_;            ///< limits that may have more room than before
  std::set<limit_key> strained_;         ///< limits that may be exceeded now
  // The next three are empty where the pool never preempts.
  struct tried {
    job_rank rank;
    int need = 1;
  };
  /// Full limits under which too few runs can be preempted for a run of that rank and need, nor for any
  /// behind it that needs as many slots or more. Only in a pool of ranks.
  std::map<limit_key, tried> tried_;
  std::set<limit_key> unfit_below_; ///< limits for which a run waits that waits for something else, too
  std::map<limit_key, time_point>
    ripe_below_;                        ///< when a victim for a run above the limit has run for min_run
  ranked_runs aux_waiting_;             ///< runs that wait for an aux unit
  std::set<allocation_id> aux_holders_; ///< runs that hold an aux unit
  ranked_runs running_;                 ///< runs that may be preempted; empty where the pool never preempts
  held_runs held_;                      ///< runs by promisable slots; empty where no run is passed by others
  std::set<allocation_id> keepers_;     ///< runs that slots are kept for
  std::set<allocation_id> stopping_;    ///< runs that were preempted
  allocation_id reserved_for_;
  bool unreservable_ = false; ///< in this pass, no slots could be reserved for a run that would be passed
  young_runs young_;          ///< runs that have waited for less than reserve_after
  bool unsorted_ = false;     ///< `young_` is not sorted, as runs are still heard after a restart
  /// Runs that compete and have waited for reserve_after; in a pool of turns only those that were passed.
  ranked_runs aged_;
  std::size_t old_ = 0; ///< number of runs that compete and have waited for reserve_after
  /// Recent grants in the order of time: only those whose rank no later grant exceeds.
  std::deque<std::pair<std::uint64_t, run_rank>> grants_;
  /// In a pool of turns: jobs that got slots a second time. An entry is the job's standing just before the
  /// second grant, and the time at which the job last got or released slots before it. Standings ascend and
  /// times descend: an entry is removed when one with a higher standing has a later time. A grant changes few
  /// entries.
  std::vector<std::pair<pool_policy::standing, time_point>> second_turns_;
  /// In a pool of turns, jobs whose runs have all left while others wait, and when they were served last.
  /// They may ask again. `leavers_` has the same jobs, those that left first at the front; both are bounded.
  std::map<experiment_id, time_point> left_;
  std::deque<experiment_id> leavers_;
  std::optional<time_point> ripe_;  ///< when a possible victim will have run for min_run
  std::set<allocation_id> elastic_; ///< runs that hold fewer slots than they asked for
  std::set<std::pair<time_point, allocation_id>> patient_; ///< runs that have not waited for fallback_after
  ranked_runs guests_;                                     ///< runs that wait in another pool as well
  std::set<allocation_id> new_guests_;                     ///< runs of `guests_` that have no answer yet
  std::vector<allocation_id> unheld_; ///< runs that asked in these events and that no agents could hold
  /// Runs that wait, whose log policies exclude agents, and that are not given up.
  std::set<allocation_id> excluding_;
  std::set<allocation_id> unjudged_; ///< runs of `excluding_` for which something has changed
  supply_told supply_;               ///< newest report of the provider; no type: the pool has no provider
  /// What the agents of instances are like, and how they were called. Both are forgotten when other settings
  /// of the provider make other instances (`supply_told::changes`).
  std::optional<agent_traits> instance_traits_; ///< traits of the newest one; none: none has come
  std::set<std::string> instance_names_;
  /// Until when a waiting run counts on an instance whose slots only strays hold.
  time_point strays_until_;
};

} // namespace troupe

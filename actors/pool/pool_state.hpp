#pragma once
// The state of a pool: jobs, runs and agents, with the indexes that its machine and its policies read.

#include "actors/pool/pool_settings.hpp"
#include "actors/pool/ranked_runs.hpp"

#include <absl/container/inlined_vector.h>
#include <boost/intrusive/list.hpp>

namespace troupe {

/// Runs of one shape fit in the same places: where one run does not fit, no run of its shape behind it does.
struct run_shape {
  int need = 1, slots = 1;
  bool single_node = false, preemptible = true;
  std::uint64_t view = 0, preferred = 0; ///< numbers of views; preferred 0: the run prefers no agents
  allocation_id own; ///< a run for which slots are kept has a shape of its own; run 0: none
  friend auto operator<=>(const run_shape&, const run_shape&) = default;
};

struct shape_queue : ranked_runs {
  // Only a pool of turns uses these fields.
  std::uint64_t shut = 0; ///< number of the latest pass in which no run of this shape fits
  int mark = -1;          ///< number below 64 that several shapes may share; below 0: none yet
};
using run_queue = std::map<run_shape, shape_queue>;

struct pool_job;
/// The order of jobs in a pool of turns: smaller is served first.
struct turn_key {
  int tier = 0;
  double has = 0;       ///< slots that the job has, in relation to what it should have
  time_point submitted; ///< copied from the job, as it tells most keys apart
  const pool_job* job = nullptr;
  friend bool operator==(const turn_key&, const turn_key&) = default;
  friend bool operator<(const turn_key& a, const turn_key& b);
};
struct job_turn {
  pool_job* job = nullptr;
  std::uint64_t shapes = 0; ///< bits of the marks of the shapes that the job's runs have
};
using job_turns =
  std::map<turn_key, job_turn, std::less<turn_key>, node_allocator<std::pair<const turn_key, job_turn>>>;

/// What a policy stores with a job. It means nothing to another policy.
struct job_notes {
  bool changed = false;                    ///< whether the job has changed since the last pass began
  std::optional<job_turns::iterator> turn; ///< place of the job in the turns; none: no run of it competes
  std::optional<std::size_t> place;        ///< place among the jobs of a fair pool, by age
};

/// The runs of one job and one shape that compete for slots.
struct shape_line {
  shape_queue* of = nullptr;
  ranked_runs::line* runs = nullptr; ///< the line of the job in the queue `of`
  ranked_runs::entry first;
  const void* at = nullptr; ///< address of the first entry of the line, to be fetched in advance
};

struct pool_job {
  // The fields that a grant reads stand together, as they do in pool_run.
  int held = 0;     ///< number of slots that runs of the job hold
  int stopping = 0; ///< number of these slots whose runs were preempted
  int claimed = 0;  ///< number of slots that preempted runs will release for this job
  int wanted = 0;   ///< number of slots that its runs wait for, without runs that no agents could hold
  int share = 0;    ///< share of the job in a fair pool, as of the last pass
  int waits = 0;    ///< number of its runs that wait for slots
  int runs = 0;
  time_point served; ///< when a run of the job got or released slots last; the epoch: no run has yet
  bool told = false; ///< `terms` came with job_changed, so what its runs say no longer counts
  job_rank rank;     ///< rank of the job, the same for all its runs
  std::vector<shape_line> queue; ///< its runs that compete, a line for each shape
  job_notes notes;
  job_terms terms;
  std::string user, workspace; ///< those of the terms, by case_folded(), as quotas and limits name them
  static constexpr std::size_t served_bytes = 192; ///< size of the first fields, which a grant reads
  int effective() const { return held - stopping + claimed; }
};
/// Orders jobs by age, the older one first.
bool older(const pool_job& a, const pool_job& b);

/// Why a run that waits does not compete: a limit is reached, or no agents could hold it.
enum class run_bar { none, job, user, workspace, pool, impossible };
struct limit_key {
  run_bar of = run_bar::none;
  std::string name; ///< name of the user or of the workspace by case_folded(); empty for other limits
  experiment_id job;
  friend auto operator<=>(const limit_key&, const limit_key&) = default;
};

struct agent_view;
struct pool_agent;
/// The part of a run on one agent: a `placement` with a pointer, so that no name has to be looked for.
struct agent_part {
  pool_agent* agent = nullptr;
  absl::InlinedVector<int, 8> slots; ///< empty: an aux unit
};
using agent_parts = absl::InlinedVector<agent_part, 1>;
int slots_in(const agent_parts& on);
int slots_in(const std::vector<placement>& on);
std::vector<placement> placements(const agent_parts& on); ///< the same parts, with names of agents

using young_hook =
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

struct pool_run {
  enum class phase { waiting, holding, stopping };

  // A queue is larger than any cache, and a grant reads only a few fields of a run: these stand together.
  pool_job* job = nullptr;
  young_hook young; ///< links the runs that have waited for less than reserve_after
  int slots = 1, least = 0;
  phase state = phase::waiting;
  bool single_node = false;  ///< copy of `terms.rules.single_node`
  bool granted = false;      ///< its allocation has been heard; false: only an inventory has named the run
  bool passed = false;       ///< a run behind was served first, or a reservation prevented that
  bool aged = false;         ///< the run has waited for reserve_after
  bool guest = false;        ///< the run waits in another pool as well, and takes what is left over here
  bool loose = false;        ///< `kept` are slots of runs that were not preempted for this one
  bool fell_back = false;    ///< the run was told of the pools that it may fall back to
  bool killed = false;       ///< the run stops as its agent or its slots were disabled: it is killed
  int offered = 0;           ///< number of slots in the newest report_spare
  int promisable = 0;        ///< number of held slots that could be kept for another run when this one ends
  time_point since;          ///< since when the run waits, or holds its slots; the epoch: long ago
  std::uint64_t entered = 0; ///< value of the pool's `clock_` at the request or the grant
  agent_view* view = nullptr;
  agent_view* preferred = nullptr;
  shape_queue* queue = nullptr; ///< queue in which the run competes; null: the run does not compete
  allocation_id id;
  agent_parts on;
  agent_parts kept;                   ///< slots that no run behind this one gets
  std::optional<time_point> reserved; ///< since when `kept` is a reservation; none: victims will release it
  limit_key came_from;                ///< limit for which the run waited until this pass
  static constexpr std::size_t served_bytes = 272; ///< size of the first fields, which a grant reads
  limit_key bar;                                   ///< why the run does not compete
  start_rank rank;
  run_terms terms;

  int need() const { return least > 0 && least < slots ? least : slots; }
  int held() const;
  bool waits() const { return state == phase::waiting; }
  run_shape shape() const;
};

/// Prefetches `bytes` from `at` on into the cache, as they are read soon.
inline void fetch(const void* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(static_cast<const char*>(at) + i);
}

/// A run that holds slots which could be kept for another run; the run that has run longest comes first.
struct held_entry {
  time_point since;
  pool_run* run = nullptr; ///< null: comes before all others of the same time
  friend bool operator<(const held_entry& a, const held_entry& b) {
    if (a.since != b.since)
      return a.since < b.since;
    return a.run && b.run ? a.run->id < b.run->id : !a.run && b.run;
  }
};
using held_line = absl::btree_set<held_entry, std::less<held_entry>, node_allocator<held_entry>>;
using held_runs = std::map<int, held_line, std::greater<>>; ///< by the number of slots that could be kept

/// Young runs, the one that has waited longest first. A run is removed in constant time.
using young_runs =
  boost::intrusive::list<pool_run, boost::intrusive::member_hook<pool_run, young_hook, &pool_run::young>,
                         boost::intrusive::constant_time_size<false>>;

/// The agents that a set of rules allows. They form groups, and a gang is placed within one group: a group
/// has the agents with one value of `same_label`; without that rule there is one group.
struct agent_view {
  struct group {
    room_index now;   ///< slots that are available now
    room_index empty; ///< slots that would be available if no run held any
  };
  std::uint64_t number = 0;
  placement_rules rules;
  std::map<std::string, group> groups;
  int users = 0; ///< number of runs that use this view
};

struct pool_agent {
  enum bar : std::uint8_t { held = 1, kept = 2, closed = 4 };
  struct slot {
    pool_run *holder = nullptr, *keeper = nullptr;
    std::uint8_t bars = 0; ///< bits of `bar`; 0: available. Some are lifted while a question is answered
  };
  struct room : agent_room {
    pool_agent* of = nullptr;
  };
  // The fields that a grant reads stand together.
  room now;
  absl::InlinedVector<slot, 8> slots;
  absl::InlinedVector<agent_view::group*, 1> groups;
  bool changing = false; ///< several slots change together, and the agent is in no index meanwhile
  bool present = false;
  int aux_used = 0;
  agent_room empty;
  static constexpr std::size_t served_bytes = sizeof now + sizeof slots + sizeof groups + 8 + sizeof empty;
  agent_traits traits;
  bool expected = false; ///< the agent is present or was not removed; see pool::may_return
  time_point back_until; ///< when the lease of an agent that is away is over; the epoch: it is over
  bool seen = false;     ///< the agent has been present since the start: its slots and traits are known
  bool drained = false;
  std::set<int> disabled;
  bool ends = false;      ///< runs on the drained agent are ended at once
  std::set<int> ended;    ///< the disabled slots whose runs are ended at once
  std::string ordered_by; ///< the user who drained or disabled last; empty: unknown
  std::string leaves_for; ///< the agent is drained as it leaves for this pool; empty: it stays

  bool open(std::size_t slot) const {
    return present && !drained && !disabled.contains(static_cast<int>(slot));
  }
};

} // namespace troupe

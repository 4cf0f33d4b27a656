#pragma once
// What a pool knows of jobs, runs and agents, with the indexes that its machine and its policies read.

#include "actors/pool/pool_settings.hpp"
#include "actors/pool/ranked_runs.hpp"

#include <absl/container/inlined_vector.h>
#include <boost/intrusive/list.hpp>

namespace troupe {

/// Runs of one shape fit in the same places: where one does not, none behind it does.
struct run_shape {
  int need = 1, slots = 1;
  bool single_node = false, preemptible = true;
  std::uint64_t view = 0, preferred = 0; ///< numbers of views; preferred 0: none
  allocation_id own;                     ///< of a run that slots are kept for; it is a shape of its own
  friend auto operator<=>(const run_shape&, const run_shape&) = default;
};

struct shape_queue : ranked_runs {
  // Of a pool of turns:
  std::uint64_t shut = 0; ///< the latest pass in which none of them fits
  int mark = -1;          ///< one of 64, which other shapes may have, too; below 0: none yet
};
using run_queue = std::map<run_shape, shape_queue>;

struct pool_job;
/// The order of jobs in a pool of turns: smaller is served first.
struct turn_key {
  int tier = 0;
  double has = 0;       ///< for what it should have
  time_point submitted; ///< beside the job, as most are told apart by it
  const pool_job* job = nullptr;
  friend bool operator==(const turn_key&, const turn_key&) = default;
  friend bool operator<(const turn_key& a, const turn_key& b);
};
struct job_turn {
  pool_job* job = nullptr;
  std::uint64_t shapes = 0; ///< the marks of those that its runs have
};
using job_turns =
  std::map<turn_key, job_turn, std::less<turn_key>, node_allocator<std::pair<const turn_key, job_turn>>>;

/// What a policy keeps with a job; of another policy it says nothing.
struct job_notes {
  bool changed = false;                    ///< since the last pass began
  std::optional<job_turns::iterator> turn; ///< where it stands, if it has runs that compete
  std::optional<std::size_t> place;        ///< among the jobs of a fair pool, by age
};

/// The runs of a job that compete for slots, of one shape.
struct shape_line {
  shape_queue* of = nullptr;
  ranked_runs::line* runs = nullptr; ///< of these, those of the job
  ranked_runs::entry first;
  const void* at = nullptr; ///< where the first stands, to be fetched
};

struct pool_job {
  // What a grant reads stands together, as in a run.
  int held = 0;     ///< slots
  int stopping = 0; ///< of these, those of runs that were preempted
  int claimed = 0;  ///< slots that others give back for its runs
  int wanted = 0;   ///< by its runs that wait and could be placed
  int share = 0;    ///< of a fair pool, as of the last pass
  int waits = 0;    ///< runs of it that wait for slots
  int runs = 0;
  bool told = false;             ///< terms are those of job_changed: what its runs say no longer counts
  job_rank rank;                 ///< of all its runs
  std::vector<shape_line> queue; ///< of all its runs that compete
  job_notes notes;
  job_terms terms;
  std::string workspace; ///< of the terms, by case_folded(): quotas and limits know it so
  static constexpr std::size_t served_bytes = 192; ///< from the begin on: what a grant reads
  int effective() const { return held - stopping + claimed; }
};
/// The older job first.
bool older(const pool_job& a, const pool_job& b);

/// Why a run that waits does not compete.
enum class run_bar { none, job, user, workspace, pool, impossible };
struct limit_key {
  run_bar of = run_bar::none;
  std::string name; ///< of the user, or of the workspace by case_folded()
  experiment_id job;
  friend auto operator<=>(const limit_key&, const limit_key&) = default;
};

struct agent_view;
struct pool_agent;
/// The part of a run on one agent, as the pool keeps it: a `placement` without a name to look for.
struct agent_part {
  pool_agent* agent = nullptr;
  absl::InlinedVector<int, 8> slots; ///< none: an aux unit
};
using agent_parts = absl::InlinedVector<agent_part, 1>;
int slots_in(const agent_parts& on);
int slots_in(const std::vector<placement>& on);
std::vector<placement> placements(const agent_parts& on); ///< the same, for others

using young_hook =
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

struct pool_run {
  enum class phase { waiting, holding, stopping };

  // A grant reads little of a run, and a queue is larger than any cache: what it reads stands together.
  pool_job* job = nullptr;
  young_hook young; ///< among those that wait, not yet for reserve_after
  int slots = 1, least = 0;
  phase state = phase::waiting;
  bool single_node = false;  ///< as its rules say
  bool granted = false;      ///< by this pool or an earlier one, not only seen in an inventory
  bool passed = false;       ///< by one behind it, in a pool of turns, or perhaps before a restart
  bool aged = false;         ///< it has waited for reserve_after
  bool guest = false;        ///< it waits in another pool as well, and takes here what is left over
  bool fell_back = false;    ///< it was told of the pools that it may fall back to
  int offered = 0;           ///< slots that it was told of last
  int promisable = 0;        ///< of those it holds, those that could be kept for another when it ends
  time_point since;          ///< it waits or holds; the epoch: long ago
  std::uint64_t entered = 0; ///< counts requests and grants
  agent_view* view = nullptr;
  agent_view* preferred = nullptr;
  shape_queue* queue = nullptr; ///< where it competes; null: it does not
  allocation_id id;
  agent_parts on;
  agent_parts kept;                   ///< slots that nobody behind it gets
  std::optional<time_point> reserved; ///< since when `kept` is a reservation; none: others give it back
  limit_key came_from;                ///< the limit that it waited for until this pass
  static constexpr std::size_t served_bytes = 272; ///< from the begin on: what a grant reads
  limit_key bar;                                   ///< why it does not compete
  start_rank rank;
  run_terms terms;

  int need() const { return least > 0 && least < slots ? least : slots; }
  int held() const;
  bool waits() const { return state == phase::waiting; }
  run_shape shape() const;
};

/// Asks memory for what is read soon: `bytes` from `at` on.
inline void fetch(const void* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(static_cast<const char*>(at) + i);
}

/// Runs that hold slots which could be kept for another, by the number of these; the longest running first.
struct held_entry {
  time_point since;
  pool_run* run = nullptr; ///< null: before all others
  friend bool operator<(const held_entry& a, const held_entry& b) {
    if (a.since != b.since)
      return a.since < b.since;
    return a.run && b.run ? a.run->id < b.run->id : !a.run && b.run;
  }
};
using held_line = absl::btree_set<held_entry, std::less<held_entry>, node_allocator<held_entry>>;
using held_runs = std::map<int, held_line, std::greater<>>;

/// The longest waiting first. A run leaves without a look at others.
using young_runs =
  boost::intrusive::list<pool_run, boost::intrusive::member_hook<pool_run, young_hook, &pool_run::young>,
                         boost::intrusive::constant_time_size<false>>;

/// The agents that a set of rules allows, in groups of which a gang takes one: by the label that all its
/// agents must share, else one group.
struct agent_view {
  struct group {
    room_index now;   ///< slots that may be had at once
    room_index empty; ///< those that could be had if nobody held any
  };
  std::uint64_t number = 0;
  placement_rules rules;
  std::map<std::string, group> groups;
  int users = 0; ///< runs
};

struct pool_agent {
  enum bar : std::uint8_t { held = 1, kept = 2, closed = 4 };
  struct slot {
    pool_run *holder = nullptr, *keeper = nullptr;
    std::uint8_t bars = 0; ///< what keeps it from being had; some are lifted while a question is answered
  };
  struct room : agent_room {
    pool_agent* of = nullptr;
  };
  // What a grant reads stands together.
  room now;
  absl::InlinedVector<slot, 8> slots;
  absl::InlinedVector<agent_view::group*, 1> groups;
  bool changing = false; ///< several of its slots change at once: it is in no index meanwhile
  bool present = false;
  int aux_used = 0;
  agent_room empty;
  static constexpr std::size_t served_bytes = sizeof now + sizeof slots + sizeof groups + 8 + sizeof empty;
  agent_traits traits;
  bool expected = false; ///< it is there, or may come back
  bool seen = false;     ///< it has been there: its slots and traits are those of then
  bool drained = false;
  std::set<int> disabled;
  bool ends = false;   ///< what is drained here is ended as well
  std::set<int> ended; ///< of the disabled slots, the same

  bool open(std::size_t slot) const {
    return present && !drained && !disabled.contains(static_cast<int>(slot));
  }
};

} // namespace troupe

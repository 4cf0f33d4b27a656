#pragma once
// What happens to the sandboxes of one host: which launch waits for which, what an exit means, what is
// adopted after a restart, whose lease is renewed. Pure; the shell is worker_runtime_actor.cpp, whose threads
// write files and start processes. Nothing here is durable: what runs is what the sandboxes say.

#include "actors/agent_twin/agent_twin.hpp"
#include "actors/allocation/task_launch.hpp"
#include "actors/host/disk_watch.hpp"
#include "workers/task_spec.hpp"

#include <deque>
#include <set>

namespace troupe {

/// What of a launch is needed as long as its task is known here.
struct hosted_task {
  std::vector<int> slots;
  std::string token, checkpoint_dir;
  std::vector<int> ports;   ///< claimed on this host for it
  bool tells_ranks = false; ///< whether the failure of one rank is told before the end of all
  int first_rank = 0;       ///< the number in the gang of its first rank on this host
  bool from_zygote = false; ///< whether a zygote was asked for its process, which learns what it imported
  friend bool operator==(const hosted_task&, const hosted_task&) = default;
};
hosted_task hosted(const task_launch& launch);

/// What is known of a command and its files when its first process is to be made.
struct start_facts {
  bool one_host = true;       ///< whether the task is on one host alone
  bool hook = false;          ///< whether `startup-hook.sh` is there
  bool program = false;       ///< whether the command is one program, without anything of a shell's own
  bool python_script = false; ///< whether it is one Python script
  bool script_there = false;  ///< whether that is a file in the working directory
  bool zygotes = false;       ///< whether this host has zygotes and the task may use one
};
struct start_choice {
  bool forked = false;     ///< a zygote is asked first
  bool own_script = false; ///< a cold start runs the entrypoint script with the words of the Python command
  bool program = false;    ///< a cold start runs the program itself
  friend bool operator==(const start_choice&, const start_choice&) = default;
};
start_choice start_of(const start_facts& x);

struct start_order {
  allocation_id allocation;
  std::vector<int> slots;
  std::string spec; ///< msgpack of a task_launch
  std::string fence_token;
};

// Events. Orders come from the agent.
struct launch_ordered {
  start_order order;
  time_point lease_from;
};
struct kill_sandbox_ordered {
  allocation_id allocation;
};
struct drop_sandbox_ordered {
  allocation_id allocation;
};
struct leases_renewed {
  time_point from;              ///< none: only what follows counts
  duration freeze{0}, adopt{0}; ///< times of the lease; 0: unchanged
};

struct adoption_ordered {};
/// Its files are there; its process is started next.
struct task_prepared {
  allocation_id allocation;
  hosted_task task;
};
struct start_ended { ///< once for each `start_sandbox`
  allocation_id allocation;
  std::string failed; ///< why it was not started; empty: it was
};
struct sandbox_said { ///< by the process runtime, in its order
  workers::task_event event;
};
/// What an earlier life of the runtime has kept beside a task; none: it cannot be read.
struct task_recalled {
  allocation_id allocation;
  std::optional<hosted_task> task;
};
struct end_looked { ///< of the action `look_after_end`
  allocation_id allocation;
  std::optional<std::uint64_t> free_bytes; ///< of the fullest disk; none: not looked
};
struct disks_looked { ///< of the action `look_at_disks`
  std::optional<std::uint64_t> free_bytes;
};
using worker_runtime_event =
  std::variant<launch_ordered, kill_sandbox_ordered, drop_sandbox_ordered, leases_renewed, adoption_ordered,
               task_prepared, start_ended, sandbox_said, task_recalled, end_looked, disks_looked>;

// Actions. Those that take time run on threads of the shell, in any order.
struct start_sandbox { ///< on a thread: `task_prepared`, `start_ended`
  start_order order;
};
struct recall_task { ///< on a thread: `task_recalled`
  allocation_id allocation;
};
struct look_after_end { ///< on a thread: `end_looked`
  allocation_id allocation;
  std::vector<std::string> disks; ///< besides that of the tasks; looked at where `disks_too`
  bool disks_too = false;
  bool learn = false; ///< what its process has imported
};
struct look_at_disks { ///< on a thread: `disks_looked`
  std::vector<std::string> disks;
};
struct kill_sandbox {
  allocation_id allocation;
};
struct drop_sandbox {
  allocation_id allocation;
};
struct renew_lease {
  allocation_id allocation;
  std::chrono::milliseconds left; ///< at least 1
  bool thaw = false;
};
/// Of tasks that start from now on.
struct set_leases {
  duration freeze{0}, adopt{0};
};
struct adopt_sandboxes {};
struct keep_ports { ///< of a task that an earlier life has started
  allocation_id allocation;
  std::vector<int> ports;
};
struct release_task { ///< its ports and shared memory
  allocation_id allocation;
  std::string token;
};
struct tell_started {
  allocation_id allocation;
  std::int64_t pid = 0;
  bool adopted = false;
  hosted_task task;
};
struct tell_rank_failed {
  allocation_id allocation;
  int rank = 0; ///< of the gang
  std::string detail;
};
struct tell_ended {
  task_report task;
};
struct tell_all_adopted {};
using worker_runtime_action =
  std::variant<start_sandbox, recall_task, look_after_end, look_at_disks, kill_sandbox, drop_sandbox,
               renew_lease, set_leases, adopt_sandboxes, keep_ports, release_task, tell_started,
               tell_rank_failed, tell_ended, tell_all_adopted>;

/// Not thread-safe: one actor owns it.
///
///   waiting --a start is free--> starting --start_ended--> there --exit--> looking --end_looked--> gone
///        '--kill                     '--failed---------------------------------^
///   recalling (found in the folder; what its sandbox says waits) --task_recalled--> there
class worker_runtime {
public:
  /// `freeze`: length of a lease. `most_starts`: tasks that are prepared and started at once; the others wait
  /// in the order of their orders.
  worker_runtime(duration freeze, int most_starts) : freeze_(freeze), most_starts_(most_starts) {}

  [[nodiscard]] std::vector<worker_runtime_action> apply(worker_runtime_event ev, time_point now);
  value describe() const; ///< the state, for people

private:
  enum class phase { waiting, starting, recalling, there, looking };
  struct task {
    phase now = phase::waiting;
    start_order order; ///< while it waits
    time_point lease_from;
    std::optional<hosted_task> about;
    bool kill_wanted = false, frozen = false;
    std::deque<workers::task_event> held; ///< while it is recalled
    task_report end;                      ///< while it is looked after
  };
  using out = std::vector<worker_runtime_action>;
  using entry = std::map<allocation_id, task>::iterator;

  void on(out& o, launch_ordered& ev, time_point now);
  void on(out& o, const kill_sandbox_ordered& ev, time_point now);
  void on(out& o, const drop_sandbox_ordered& ev, time_point now);
  void on(out& o, const leases_renewed& ev, time_point now);
  void on(out& o, const adoption_ordered& ev, time_point now);
  void on(out& o, task_prepared& ev, time_point now);
  void on(out& o, const start_ended& ev, time_point now);
  void on(out& o, sandbox_said& ev, time_point now);
  void on(out& o, task_recalled& ev, time_point now);
  void on(out& o, const end_looked& ev, time_point now);
  void on(out& o, const disks_looked& ev, time_point now);

  void hear(out& o, entry it, const workers::task_event& ev);
  void start_waiting(out& o);
  void renew(out& o, entry it, time_point now);
  void end(out& o, entry it, task_report report);
  void check_adopted(out& o);
  std::vector<std::string> disks() const;

  duration freeze_;
  duration adopt_{0}; ///< as the runtime was told
  const int most_starts_;
  std::map<allocation_id, task> tasks_;
  std::deque<allocation_id> waiting_;
  int starting_ = 0;
  time_point lease_from_; ///< the newest word of the master
  bool inventory_due_ = false, looking_at_disks_ = false;
  disk_watch disks_;
};

} // namespace troupe

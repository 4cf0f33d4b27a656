#pragma once
// Decides what happens to the sandboxes of one host: which launch waits for which, what an exit means, what
// is adopted after a restart, whose lease is renewed. Pure; the shell is worker_runtime_actor.cpp, whose
// threads write files and start processes. Nothing here is durable: the sandboxes themselves say what runs.

#include "actors/agent_twin/agent_twin.hpp"
#include "actors/allocation/task_launch.hpp"
#include "actors/host/disk_watch.hpp"
#include "workers/task_spec.hpp"

#include <deque>
#include <set>

namespace troupe {

/// The part of a launch that is needed as long as its task is known here.
struct hosted_task {
  std::vector<int> slots;
  std::string token, checkpoint_dir;
  std::vector<int> ports;   ///< ports of this host that are claimed for the task
  bool tells_ranks = false; ///< whether the failure of one rank is reported before all ranks have ended
  int first_rank = 0;       ///< number in the gang of the first rank on this host
  /// Whether a zygote was asked for the process; that zygote learns which modules it imported.
  bool from_zygote = false;
  friend bool operator==(const hosted_task&, const hosted_task&) = default;
};
hosted_task hosted(const task_launch& launch);

/// What is known of a command and its files when the first process of a task is to be made.
struct start_facts {
  bool one_host = true;       ///< whether the whole task is on this host
  bool hook = false;          ///< whether the file `startup-hook.sh` exists
  bool program = false;       ///< whether the command is one program and needs no shell
  bool python_script = false; ///< whether the command is one Python script
  bool script_there = false;  ///< whether that script is a file in the working directory
  bool zygotes = false;       ///< whether this host has zygotes, and the task may use one
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
  launch_spec spec;
  std::string fence_token;
};

// Events. The agent sends the orders.
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
  time_point from;              ///< start of the lease; none: only the times below count
  duration freeze{0}, adopt{0}; ///< new times of the lease; 0: unchanged
};

struct adoption_ordered {};
/// The files of the task exist; its process is started next.
struct task_prepared {
  allocation_id allocation;
  hosted_task task;
};
struct start_ended { ///< once for each `start_sandbox`
  allocation_id allocation;
  std::string failed; ///< why it was not started; empty: it was started
};
struct sandbox_said { ///< sent by the process runtime, in the order in which things happened
  workers::task_event event;
};
/// What an earlier life of the runtime kept beside a task; none: it cannot be read.
struct task_recalled {
  allocation_id allocation;
  std::optional<hosted_task> task;
};
struct end_looked { ///< answer to the action `look_after_end`
  allocation_id allocation;
  /// Free space of the fullest disk; none: nobody looked.
  std::optional<std::uint64_t> free_bytes;
};
struct disks_looked { ///< answer to the action `look_at_disks`
  std::optional<std::uint64_t> free_bytes;
};
using worker_runtime_event =
  std::variant<launch_ordered, kill_sandbox_ordered, drop_sandbox_ordered, leases_renewed, adoption_ordered,
               task_prepared, start_ended, sandbox_said, task_recalled, end_looked, disks_looked>;

// Actions. Those that take time run on the shell's threads, in any order.
struct start_sandbox { ///< runs on a thread; answered by `task_prepared` and `start_ended`
  start_order order;
};
struct recall_task { ///< runs on a thread; answered by `task_recalled`
  allocation_id allocation;
};
struct look_after_end { ///< runs on a thread; answered by `end_looked`
  allocation_id allocation;
  /// Folders on further disks, besides the disk of the tasks; looked at only if `disks_too` is true.
  std::vector<std::string> disks;
  bool disks_too = false;
  bool learn = false; ///< whether the zygotes learn what the task's process has imported
};
struct look_at_disks { ///< runs on a thread; answered by `disks_looked`
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
  std::chrono::milliseconds left; ///< time until the lease ends, at least 1 ms
  bool thaw = false;
};
/// Lease of the tasks that start from now on.
struct set_leases {
  duration freeze{0}, adopt{0};
};
struct adopt_sandboxes {};
struct keep_ports { ///< ports of a task that an earlier life of the runtime started
  allocation_id allocation;
  std::vector<int> ports;
};
struct release_task { ///< frees the task's ports and shared memory
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
  int rank = 0; ///< number of the rank in the gang
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
  /// `freeze`: length of a lease. `most_starts`: limit of the tasks that are prepared and started at the same
  /// time; the other orders wait and are served in the order in which they arrived.
  worker_runtime(duration freeze, int most_starts) : freeze_(freeze), most_starts_(most_starts) {}

  [[nodiscard]] std::vector<worker_runtime_action> apply(worker_runtime_event ev, time_point now);
  value describe() const; ///< the state, for people

private:
  enum class phase { waiting, starting, recalling, there, looking };
  struct task {
    phase now = phase::waiting;
    start_order order; ///< kept while the task waits
    time_point lease_from;
    std::optional<hosted_task> about;
    bool kill_wanted = false, frozen = false;
    std::deque<workers::task_event> held; ///< what the sandbox reports while the task is recalled
    task_report end;                      ///< kept while the task's end is looked after
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
  duration adopt_{0}; ///< value that the runtime was told last
  const int most_starts_;
  std::map<allocation_id, task> tasks_;
  std::deque<allocation_id> waiting_;
  int starting_ = 0;
  time_point lease_from_; ///< time of the newest message from the master
  bool inventory_due_ = false, looking_at_disks_ = false;
  disk_watch disks_;
};

} // namespace troupe

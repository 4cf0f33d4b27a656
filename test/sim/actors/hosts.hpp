#pragma once
// The hosts. Each has an agent process that may die, and sandboxes (troupe-task) that outlive it, hold the
// lease, run the script and keep its exit record in a folder. Each host has its own clock.

#include "actors/agent/agent.hpp"
#include "test/sim/actors/master.hpp"

namespace troupe::sim {

class hosts;

/// One sandbox, from the creation of its folder to its death. Its script trains, validates, saves
/// checkpoints, and stops when asked.
struct sandbox {
  std::uint64_t serial = 0;
  int host = 0;
  task_report report; ///< report that the sandbox's folder holds
  int node_rank = 0, nodes = 1;
  bool recorded = false; ///< whether the exit record is written
  bool running = false;  ///< whether its process has started
  bool dead = false;     ///< none of its processes runs any more
  bool frozen = false;
  bool superseded = false; ///< a later process of its trial was started, so this one must never run again
  time_point lease_until;  ///< by the host's clock
  bool lease_watched = false;
  // State of the script, on rank 0 of node 0.
  experiment_id experiment;
  std::string key;
  std::int64_t step = 0, saved_step = 0;
  bool asked_to_stop = false;
  bool woken_while_frozen = false;
  std::uint64_t turn = 0; ///< a newer wake-up replaces an older one
  enum class waits { nothing, validation, checkpoint } waiting = waits::nothing;
  bool leaving = false; ///< its last checkpoint is being saved
  std::uint64_t sequence = 0;
  report_row pending_report;
  checkpoint pending_checkpoint;
  std::string process() const { return "p" + std::to_string(serial); }
};

struct agent_process {
  agent_process(std::string name, duration heartbeat, int life)
      : machine(std::move(name), heartbeat), life(life) {}
  agent machine;
  int life;
  alive_check alive;
  link_ptr line;
  time_point last_heard;
  time_point registered_at; ///< when the registration was sent, by the host's clock
  std::optional<time_point> armed;
  ~agent_process() { *alive.flag = false; }
};

struct host_state {
  std::string name;
  duration clock_ahead{0}; ///< how far the host's clock is ahead
  int life = 0;            ///< number of the agent's present life
  time_point cut_until;
  std::unique_ptr<agent_process> agent;
  std::map<allocation_id, sandbox*> folders;
};

class hosts {
public:
  hosts(world& w, std::function<master*()> current_master);
  void start();

  // The faults that a history can have.
  void crash_agent(int host, duration down);
  void crash_host(int host, duration down);
  void crash_some_sandbox(std::uint64_t pick);
  void kill_some_script(std::uint64_t pick);
  void break_link(int host, bool silent);
  void twin_died(int host, const link_ptr& line);
  void stall_link(int host, duration length);
  void cut_off(int host, duration length); ///< no message passes, and neither side notices at once
  void master_died();

  // Messages from the master over a link; whether the link is open is checked on arrival.
  void send_down(const link_ptr& line, address from, std::function<void(agent_process&)> what,
                 repeats again = repeats::at_once);
  void accepted(agent_process& a, const link_ptr& line, std::uint64_t epoch, time_point sent);
  void order(agent_process& a, int host, std::uint64_t epoch, const agent_order& x);
  void acked(agent_process& a, int host, const acknowledge_heartbeat& x);
  void answer(int host, const validation_answer& x);
  void answer(int host, const checkpoint_answer& x);
  void refuse_report(int host, allocation_id id, const std::string& process);

  bool quiet() const; ///< whether every sandbox is dead and forgotten
  std::string what_is_left() const;
  int index_of(const std::string& agent) const { return std::stoi(agent.substr(1)); }
  const host_state& host(int i) const { return hosts_[std::size_t(i)]; }

  /// Number of exits with code 1, by experiment and trial key.
  std::map<std::pair<std::uint64_t, std::string>, int> failures;
  /// Number of failures that the trial may count, SIGKILLs included.
  std::map<trial_id, int> failed_runs;
  struct promise {
    allocation_id allocation;
    std::string process;
    std::uint64_t sequence = 0; ///< sequence of a validation; 0 for a checkpoint
    std::string uuid;
  };
  std::uint64_t newest_epoch = 0; ///< epochs grow, also over restarts of the master
  std::map<int, int> newest_life; ///< newest life of the agent that has registered, by host
  std::vector<promise> promised;  ///< what scripts were told is durable

private:
  time_point clock(int host) const;
  void start_agent(int host);
  void dial(int host);
  void agent_step(agent_process& a, int host, const agent_event& ev);
  void run(agent_process& a, int host, const agent_action& x);
  void arm(agent_process& a, int host);
  void close_link(agent_process& a, int host);
  void send_up(const link_ptr& line, address to, std::function<void(master&)> what,
               repeats again = repeats::at_once);
  void tell_agent(int host, agent_event ev);

  void launch(int host, const launch_task& x);
  void begin_process(sandbox& s);
  void watch_lease(sandbox& s);
  void freeze_or_thaw(sandbox& s);
  void check_alone(const sandbox& s, bool starting);
  void die(sandbox& s, int code, int signal, bool with_record, const std::string& detail);
  void wake(sandbox& s, duration after);
  void act(sandbox& s);
  void train(sandbox& s);
  void send_pending(sandbox& s);
  void go_on(sandbox& s);
  sandbox* find(int host, allocation_id id);
  sandbox* some_live(std::uint64_t pick);

  world& w_;
  std::function<master*()> master_;
  std::vector<host_state> hosts_;
  std::vector<std::unique_ptr<sandbox>> sandboxes_;
  std::map<trial_id, std::vector<sandbox*>> by_trial_;
  std::uint64_t next_link_ = 1;
};

} // namespace troupe::sim

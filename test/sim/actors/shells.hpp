#pragma once
// The durable shells of one life of the master.

#include "test/sim/actors/master.hpp"

namespace troupe::sim {

template <class Derived, class Machine, class Fact, class Action>
class shell : public durable_shell<Derived, Machine, Fact, Action> {
public:
  using base = durable_shell<Derived, Machine, Fact, Action>;
  shell(master& m, address self, std::string entity, Machine fresh)
      : base(m.w, m.journal, self, std::move(entity), std::move(fresh)), m(m),
        incarnation(m.next_incarnation++) {}
  ~shell() { *alive_.flag = false; }
  shell(const shell&) = delete;

  alive_check guard() const { return alive_; }
  alive_check master_guard() const { return m.guard(); }
  void timer() {
    if constexpr (requires { this->step(time_passed{}); })
      this->step(time_passed{});
  }

  master& m;
  const std::uint64_t incarnation;

protected:
  alive_check alive_;
};

class cluster_shell : public shell<cluster_shell, cluster_machines, cluster_fact, members_action> {
public:
  cluster_shell(master& m, id_counters ids);
  void start() { begin(machine.who.resume()); }
  void tell_members(const members_event& ev, done_callback done = {});
  void run(const make_pool& x) {
    if (x.again)
      m.introduce_pool();
  }
  void run(const configure_pool&) {} // configurations name no pool here
  void run(const end_pool&) {}
  void run(const supply_pool&) {}
  void run(const make_twin& x);
  void run(const end_twin&) {}
  void run(const order_agent&) {}
  void run(const watch_agent&) {}
  void run(const forget_agent&) {}
  void run(const give_up& x) { fail("the cluster gave up: " + x.why.what); }
  std::optional<time_point> deadline() const { return std::nullopt; }
  void timer() {}
  void refused() { fail("the cluster's append was refused"); }
};

class experiment_shell : public shell<experiment_shell, experiment, experiment_fact, experiment_action> {
public:
  experiment_shell(master& m, experiment_id id);
  void start();
  void run(const ask_searcher& x);
  void run(const spawn_trial& x);
  void run(const order_trial& x);
  void run(const answer_validation& x);
  void run(const answer_orders&) {}
  void run(const keep_snapshot& x);
  void run(const tell_resources& x);
  void run(const report_experiment_end& x);
  std::optional<time_point> deadline() const { return std::nullopt; }
  void timer() {}
  void refused() { fail("the experiment's append was refused"); }
  void searcher_dies();

  const experiment_id id;
  std::uint64_t pool_life = m.pool_life; ///< life of the pool whose handle the shell has

private:
  void make_search_of(std::vector<searchers::search_event> past);
  void renew_searcher();
  void ask();

  std::unique_ptr<searchers::searcher> searcher_; ///< null between the searcher's death and its next life
  std::uint64_t searcher_life_ = 0;
  std::optional<ask_searcher> open_question_;
  std::vector<searchers::search_event> heard_; ///< events that the searcher has heard: its snapshot
};

class trial_shell : public shell<trial_shell, trial, trial_fact, trial_action> {
public:
  trial_shell(master& m, experiment_id owner, const trial_spec& spec);
  ~trial_shell();
  void start() { begin(machine.resume()); }
  void run(const start_allocation& x);
  void run(const stop_allocation& x);
  void run(const acknowledge_checkpoint& x);
  void run(const report_checkpoint& x);
  void run(const report_perturbed& x);
  void run(const report_trial_end& x);
  void run(const say_in_log&) {}
  std::optional<time_point> deadline() const { return machine.deadline(); }
  void refused();
  /// The trial's allocation died without a message.
  void resume_allocation();

  const experiment_id owner;
  const trial_spec spec;
  run_id run_;
  std::uint64_t pool_life = m.pool_life;
};

class allocation_shell : public shell<allocation_shell, allocation, allocation_fact, allocation_action> {
public:
  allocation_shell(master& m, const allocation_spec& spec, std::int64_t from_steps);
  void start() { begin(machine.resume()); }
  void run(const request_slots& x);
  void run(const release_slots& x);
  void run(const start_task& x);
  void run(const preempt_task& x);
  void run(const kill_task& x);
  void run(const watch_task& x);
  void run(const forget_task& x);
  void run(const answer_signals&) {} // preempt_task tells its tasks
  void run(const answer_gang&) {}
  void run(const order_worker&) {} // no trial runs C++ here
  void run(const ask_pool&) {}     // there is one pool
  void run(const leave_pool&) {}
  void run(const hold_slots& x);
  void run(const report_allocation_end& x);
  std::optional<time_point> deadline() const { return machine.deadline(); }
  void refused();
  template <class Message>
  void to_agents(const Message& x);
  void meet_pool(std::uint64_t life, std::function<void()> met);
  void meet_twin(const std::string& agent, std::uint64_t incarnation);

  const allocation_id id;
  std::uint64_t pool_life = m.pool_life;
  std::map<std::string, std::uint64_t> twins; ///< incarnations of the twins whose handles the shell has

private:
  template <class Order>
  void send_to(const std::string& agent, const Order& x);
  void forget(const std::string& agent);
  void leave_if_done();
  std::int64_t from_steps_;
  bool told_ = false, leaving_ = false;
  int unsent_ = 0;            ///< number of ends that a twin has not taken yet
  std::function<void()> met_; ///< runs once the pool knows what this allocation holds
};

} // namespace troupe::sim

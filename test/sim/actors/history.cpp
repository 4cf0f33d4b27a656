#include "test/sim/actors/history.hpp"

#include "test/sim/actors/hosts.hpp"
#include "test/sim/actors/shells.hpp"

namespace troupe::sim {
namespace {

constexpr duration longest = 3600s;     ///< a history that has not ended by then is taken to have no end
constexpr duration fault_window = 300s; ///< no fault begins after this time
/// Limit of the time from the end of the experiment until nothing of it is left anywhere.
constexpr duration time_to_clean = 200s;

class history {
public:
  history(const history_plan& plan, bool trace)
      : w_(plan), journal_(w_), hosts_(w_, [this] { return master_.get(); }) {
    w_.tracing = trace;
    w_.before_message = [this] { come_in(); };
  }

  void run() {
    w_.clock.at(w_.now(), [this] { start_master(); });
    hosts_.start();
    submit();
    auto begin = w_.now();
    check_sometimes();
    while (!finished_) {
      if (w_.now() - begin > longest)
        fail("no end after " + std::to_string(longest / 1s) + " s" +
             (over_at_ ? "; left: " + hosts_.what_is_left() : ""));
      w_.clock.step();
      if (master_)
        master_->bury();
    }
    check_end();
  }

  history_figures figures() const {
    history_figures f{w_.messages};
    for (const auto& [entity, facts] : journal_.facts()) {
      f.facts += facts.size();
      f.runs += entity.starts_with("allocation/");
    }
    return f;
  }

private:
  void start_master() {
    if (!master_)
      master_ = std::make_unique<master>(w_, journal_, hosts_, ++life_);
  }

  void crash_master(duration down) {
    if (!master_)
      return;
    w_.trace([] { return "the master crashes"; });
    hosts_.master_died();
    master_.reset();
    journal_.crash();
    check_promises();
    w_.clock.at(w_.now() + down, [this] { start_master(); });
  }

  /// Plays faults and users just before a message is delivered, so between any two steps.
  void come_in() {
    bool late = w_.now() > time_point{1'700'000'000s} + fault_window;
    const auto& faults = w_.plan.faults;
    while (!late && next_fault_ < faults.size() && w_.messages >= std::uint64_t(faults[next_fault_].after)) {
      const auto& f = faults[next_fault_++];
      w_.clock.at(w_.now(), [this, &f] { happen(f); });
    }
    const auto& commands = w_.plan.commands;
    while (next_command_ < commands.size() &&
           (late || w_.messages >= std::uint64_t(commands[next_command_].after)))
      wishes_.push_back(commands[next_command_++].wish);
    if (!wishing_ && !wishes_.empty())
      wish();
  }

  void happen(const fault& f) {
    auto host = int(f.pick % std::uint64_t(w_.plan.hosts));
    w_.trace(
      [&] { return "fault " + std::to_string(int(f.kind)) + " (host h" + std::to_string(host) + ")"; });
    switch (f.kind) {
    case fault_kind::master_crash:
      return crash_master(f.length);
    case fault_kind::agent_crash:
      return hosts_.crash_agent(host, f.length);
    case fault_kind::host_crash:
      return hosts_.crash_host(host, f.length);
    case fault_kind::everything_crash:
      for (int i = 0; i < w_.plan.hosts; ++i)
        hosts_.crash_host(i, f.length);
      return crash_master(f.length);
    case fault_kind::sandbox_crash:
      return hosts_.crash_some_sandbox(f.pick);
    case fault_kind::script_killed:
      return hosts_.kill_some_script(f.pick);
    case fault_kind::link_break:
      return hosts_.break_link(host, false);
    case fault_kind::link_silence:
      return hosts_.break_link(host, true);
    case fault_kind::host_cut_off:
      return hosts_.cut_off(host, f.length);
    case fault_kind::link_stall:
      return hosts_.stall_link(host, f.length);
    case fault_kind::trial_actor_dies:
    case fault_kind::allocation_actor_dies:
    case fault_kind::pool_actor_dies:
    case fault_kind::twin_actor_dies:
    case fault_kind::searcher_actor_dies:
      if (master_)
        master_->kill_actor(f.kind, f.pick);
      return;
    case fault_kind::start_order_lost:
      if (master_)
        ++(f.pick % 2 ? master_->lost_to_twins : master_->lost_to_agents);
      return;
    }
  }

  // ---- the user, who tries again until the answer has come

  void submit() {
    if (submitted_)
      return;
    if (master_)
      master_->create_experiment("the search", [this](experiment_id id) { submitted_ = id; });
    w_.clock.at(w_.now() + 1s, [this] { submit(); });
  }

  void wish() {
    if (wishes_.empty() || !submitted_) {
      wishing_ = false;
      return;
    }
    wishing_ = true;
    auto number = ++wish_number_;
    if (master_)
      master_->wish(wishes_.front(), [this, number] {
        if (number != wish_number_)
          return;
        wishes_.pop_front();
        ++wish_number_;
        w_.clock.at(w_.now(), [this] { wish(); });
      });
    w_.clock.at(w_.now() + 1s, [this, number] {
      if (number == wish_number_)
        wish();
    });
  }

  // ---- what must hold

  /// Checks that everything a script was told to be durable is in the journal, whatever crashed.
  void check_promises() {
    for (; checked_promises_ < hosts_.promised.size(); ++checked_promises_) {
      const auto& p = hosts_.promised[checked_promises_];
      if (p.sequence) {
        auto rows = journal_.reports().find(p.allocation.trial());
        if (rows == journal_.reports().end() ||
            std::none_of(rows->second.begin(), rows->second.end(), [&](const report_row& r) {
              return r.allocation == p.allocation && r.process == p.process && r.sequence == p.sequence;
            }))
          fail("a validation of " + to_string(p.allocation) + " was acknowledged and is lost");
      } else {
        const auto& facts = journal_.facts_of(entity(p.allocation.trial()));
        if (std::none_of(facts.begin(), facts.end(), [&](const std::string& bytes) {
              auto fact = decode_as<trial_fact>(bytes);
              auto* saved = std::get_if<checkpoint_recorded>(&*fact);
              return saved && saved->saved.uuid == p.uuid;
            }))
          fail("checkpoint " + p.uuid + " was acknowledged and is lost");
      }
    }
  }

  void check_sometimes() {
    bool over = submitted_ && master_ && master_->all_over() && !wishing_;
    if (!over) {
      over_at_.reset();
    } else if (!over_at_) {
      over_at_ = w_.now();
    } else if (hosts_.quiet() && w_.now() - *over_at_ > 61s) { // by then every forgotten lease has ended
      finished_ = true;
      return;
    } else if (w_.now() - *over_at_ > time_to_clean) {
      fail("not clean: " + hosts_.what_is_left());
    }
    w_.clock.at(w_.now() + 1s, [this] { check_sometimes(); });
  }

  void check_end() {
    check_promises();
    master_->check_quiet();
    auto state = experiment_state::active;
    std::map<trial_id, std::string> created;
    std::set<std::string> keys;
    for (const auto& bytes : journal_.facts_of(entity(*submitted_))) {
      auto fact = decode_as<experiment_fact>(bytes);
      if (auto* changed = std::get_if<experiment_changed>(&*fact))
        state = changed->state;
      else
        for (const auto& made : std::get<search_stepped>(*fact).created) {
          if (!keys.insert(made.key).second || !created.emplace(made.trial, made.key).second)
            fail("trial " + made.key + " was created twice");
        }
    }
    bool may_stop = std::any_of(w_.plan.commands.begin(), w_.plan.commands.end(), [](auto& c) {
      return c.wish == user_wish::cancel || c.wish == user_wish::kill;
    });
    auto search = w_.plan.search;
    search.seed = mix64(search.seed + submitted_->value);
    bool all_fail = search.asha && std::all_of(keys.begin(), keys.end(),
                                               [&](auto& k) { return plan_of(search, k).fails > 0; });
    if (state != experiment_state::completed && !(may_stop && state == experiment_state::canceled) &&
        !(all_fail && state == experiment_state::error))
      fail("the experiment ended as " + std::string(name(state)));
    if (state == experiment_state::completed && int(created.size()) != w_.plan.search.trials)
      fail("the search made " + std::to_string(created.size()) + " trials");
    for (const auto& [id, key] : created)
      check_trial(id, key, state == experiment_state::canceled);
    for (const auto& [entity, facts] : journal_.facts())
      if (entity.starts_with("allocation/") &&
          !std::holds_alternative<allocation_closed>(*decode_as<allocation_fact>(facts.back())))
        fail(entity + " is not closed");
  }

  void check_trial(trial_id id, const std::string& key, bool canceled) {
    auto plan = w_.plan.search;
    plan.seed = mix64(plan.seed + submitted_->value);
    auto p = plan_of(plan, key);
    int ended = 0, failures = 0;
    trial_state last = trial_state::queued;
    run_id open;
    for (const auto& bytes : journal_.facts_of(entity(id))) {
      auto fact = decode_as<trial_fact>(bytes);
      if (ended)
        fail("trial " + to_string(id) + " goes on after its end");
      if (auto* started = std::get_if<run_started>(&*fact)) {
        if (open)
          fail("trial " + to_string(id) + " has two open runs");
        open = started->run;
      } else if (auto* over = std::get_if<run_ended>(&*fact)) {
        if (over->run != open)
          fail("run " + to_string(over->run) + " of trial " + to_string(id) + " ended and was not open");
        open = {};
        failures += over->why == end::failed;
        if (over->why == end::lost && only_the_master_died())
          fail("run " + to_string(over->run) + " of trial " + to_string(id) +
               " was lost with the master alone");
        if (over->restarts > failures)
          fail("a run of trial " + to_string(id) + " that did not fail cost a restart");
      } else if (auto* done = std::get_if<trial_ended>(&*fact)) {
        ++ended;
        last = done->state;
      }
    }
    if (ended != 1 || open)
      fail("trial " + to_string(id) + " did not end");
    if (failures > hosts_.failed_runs[id])
      fail("trial " + to_string(id) + " has " + std::to_string(failures) +
           " failed runs; its scripts failed " + std::to_string(hosts_.failed_runs[id]) + " times");
    bool may_err = p.fails > w_.plan.max_restarts || hosts_.failed_runs[id] > w_.plan.max_restarts;
    bool must_err = p.fails > 3 && !w_.plan.search.asha; // ASHA may stop the trial before it fails
    if (canceled)
      return;
    if (last == trial_state::error ? !may_err : must_err || last != trial_state::completed)
      fail("trial " + to_string(id) + " ended as " + std::string(name(last)));
  }

  /// Whether only the master or its actors died. Agents and their tasks outlive the master, so what they run
  /// goes on, except for a gang that was just being started.
  bool only_the_master_died() const {
    return w_.plan.trial_slots == 1 && std::all_of(w_.plan.faults.begin(), w_.plan.faults.end(), [](auto& f) {
             return f.kind == fault_kind::master_crash || f.kind == fault_kind::trial_actor_dies ||
                    f.kind == fault_kind::allocation_actor_dies || f.kind == fault_kind::pool_actor_dies ||
                    f.kind == fault_kind::twin_actor_dies || f.kind == fault_kind::searcher_actor_dies ||
                    f.kind == fault_kind::start_order_lost;
           });
  }

  world w_;
  fake_journal journal_;
  hosts hosts_;
  std::unique_ptr<master> master_;
  int life_ = 0;
  std::size_t next_fault_ = 0, next_command_ = 0, checked_promises_ = 0;
  std::deque<user_wish> wishes_;
  bool wishing_ = false;
  std::uint64_t wish_number_ = 0;
  std::optional<experiment_id> submitted_;
  std::optional<time_point> over_at_;
  bool finished_ = false;
};

struct asserted {
  std::string what;
};

} // namespace

std::optional<std::string> run_history(const history_plan& plan, bool trace, history_figures* figures) {
  auto previous = set_assertion_handler([](const assertion_failed& x) {
    throw asserted{std::string(x.expression) + " at " + x.file + ":" + std::to_string(x.line)};
  });
  std::optional<std::string> broken;
  history h(plan, trace);
  try {
    h.run();
  } catch (const violation& x) {
    broken = x.what;
  } catch (const asserted& x) {
    broken = "assertion " + x.what;
  }
  if (figures)
    *figures = h.figures();
  set_assertion_handler(previous);
  return broken;
}

} // namespace troupe::sim

#include "test/sim/actors/hosts.hpp"
#include "test/sim/actors/planted.hpp"

#include <sstream>

namespace troupe::sim {
namespace {

constexpr duration patience = 10s; ///< time that an agent waits for the master's answer

address of_agent(int host) { return at(role::agent, std::uint64_t(host) + 1); }

/// The metrics that the trial with this key reports after `step`. One trial in eight diverges.
const std::string& metrics_of(const std::string& key, std::int64_t step) {
  static std::map<std::pair<std::string, std::int64_t>, std::string> all;
  auto [it, fresh] = all.try_emplace({key, step});
  if (fresh) {
    auto bits = mix64(std::hash<std::string>{}(key));
    auto loss =
      bits % 8 == 0 ? std::numeric_limits<double>::quiet_NaN() : double(bits >> 11 & 1023) / double(step + 1);
    it->second = to_msgpack({{"loss", loss}, {"batches", step}});
  }
  return it->second;
}

bool overlap(const std::vector<int>& a, const std::vector<int>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

} // namespace

hosts::hosts(world& w, std::function<master*()> current_master) : w_(w), master_(std::move(current_master)) {
  for (int i = 0; i < w_.plan.hosts; ++i) {
    hosts_.push_back({"h" + std::to_string(i)});
    hosts_.back().clock_ahead = w_.between(0s, 1000h);
  }
}

void hosts::start() {
  for (int i = 0; i < w_.plan.hosts; ++i)
    start_agent(i);
}

time_point hosts::clock(int host) const { return w_.now() + hosts_[std::size_t(host)].clock_ahead; }

// ---- the agent process

void hosts::start_agent(int host) {
  auto& h = hosts_[std::size_t(host)];
  if (h.agent)
    return;
  h.agent = std::make_unique<agent_process>(h.name, w_.plan.heartbeat, ++h.life);
  for (auto& [id, s] : h.folders) {
    if (s->dead && !s->recorded) { // the sandbox left no exit record, and nobody holds its socket
      s->report.exited = true;
      s->report.certain = false;
      s->report.detail = "its sandbox is gone";
    }
    agent_step(*h.agent, host, task_adopted{s->report});
  }
  dial(host);
}

void hosts::dial(int host) {
  auto& h = hosts_[std::size_t(host)];
  w_.clock.at(w_.now() + w_.between(1ms, 500ms), [this, host, &h, life = h.agent->alive] {
    if (!life() || h.agent->line)
      return;
    auto* m = master_();
    if (!m || w_.now() < h.cut_until)
      return dial(host);
    auto line = std::make_shared<link>(link{next_link_++, host, m->life, h.agent->life});
    h.agent->line = line;
    h.agent->last_heard = w_.now();
    auto sent = h.agent->registered_at = clock(host);
    agent_joined who{w_.now(), h.name, "id-" + h.name, w_.plan.slots, h.name};
    send_up(
      line, at(role::cluster),
      [line, who, inventory = h.agent->machine.inventory(), sent](master& to) {
        to.agent_registers(line, who, inventory, sent);
      },
      repeats::never);
    w_.clock.at(w_.now() + patience, [this, host, &h, line, life] { // the master has not answered
      if (life() && h.agent->line == line && !line->accepted)
        close_link(*h.agent, host);
    });
  });
}

void hosts::close_link(agent_process& a, int host) {
  auto line = std::exchange(a.line, nullptr);
  if (!line)
    return;
  line->agent_side = false;
  agent_step(a, host, link_down{});
  if (!line->silent)
    send_up(
      line, at(role::cluster), [line](master& m) { m.link_closed(line); }, repeats::never);
  dial(host);
}

void hosts::agent_step(agent_process& a, int host, const agent_event& ev) {
  auto actions = a.machine.apply(ev, clock(host));
  w_.trace([&] { return "agent h" + std::to_string(host) + ": " + show(ev) + " -> " + show(actions); });
  for (const auto& action : actions)
    run(a, host, action);
  arm(a, host);
}

void hosts::arm(agent_process& a, int host) {
  auto deadline = a.machine.deadline();
  if (!deadline || (a.armed && *a.armed <= *deadline))
    return;
  a.armed = *deadline;
  w_.clock.at(*deadline - hosts_[std::size_t(host)].clock_ahead, [this, &a, host, life = a.alive] {
    if (!life())
      return;
    a.armed.reset();
    agent_step(a, host, time_passed{});
  });
}

void hosts::run(agent_process& a, int host, const agent_action& action) {
  auto name = hosts_[std::size_t(host)].name;
  auto to_sandbox = [&](allocation_id id, auto what) {
    if (auto* s = find(host, id))
      w_.send(
        of_agent(host), at(role::sandbox, s->serial), [s, what] { what(*s); }, repeats::never);
  };
  std::visit(
    overloaded{
      [&](const launch_task& x) { launch(host, x); },
      [&](const stop_task& x) { to_sandbox(x.allocation, [](sandbox& s) { s.asked_to_stop = true; }); },
      [&](const destroy_task& x) {
        to_sandbox(x.allocation, [this](sandbox& s) { die(s, -1, 9, true, "killed"); });
      },
      [&](const drop_task& x) { hosts_[std::size_t(host)].folders.erase(x.allocation); },
      [](const tell_worker&) {}, // no trial runs C++ here
      [](const open_service&) {},
      [&](const register_again&) {
        if (a.line)
          w_.clock.at(w_.now(), [this, &a, host, line = a.line, life = a.alive] {
            if (life() && a.line == line)
              close_link(a, host);
          });
      },
      [&](const renew_leases& x) {
        const auto tick = planted == planted_bug::lease_one_tick_long ? w_.plan.heartbeat : duration{0};
        for (auto& [id, s] : hosts_[std::size_t(host)].folders)
          if (!s->dead)
            to_sandbox(id, [this, from = x.lease_from + tick](sandbox& s) {
              s.lease_until = std::max(s.lease_until, from + w_.plan.lease.freeze);
              freeze_or_thaw(s);
            });
      },
      [&](const send_heartbeat& x) {
        if (!a.line)
          return;
        if (w_.now() - a.last_heard > patience) {
          w_.clock.at(w_.now(), [this, &a, host, line = a.line, life = a.alive] {
            if (life() && a.line == line)
              close_link(a, host);
          });
          return;
        }
        send_up(a.line, at(role::twin, std::uint64_t(host) + 1), [name, x](master& m) {
          m.twins.at(name)->step(agent_heartbeat{x.epoch, x.sent});
        });
      },
      [&](const report_to_twin& x) {
        if (!a.line)
          return;
        send_up(
          a.line, at(role::twin, std::uint64_t(host) + 1),
          [name, x, epoch = a.machine.epoch()](master& m) {
            auto& twin = *m.twins.at(name);
            if (twin.machine.epoch() == epoch)
              std::visit([&](const auto& ev) { twin.step(ev); }, x.report);
          },
          repeats::late);
      },
    },
    action);
}

// ---- the link

void hosts::send_up(const link_ptr& line, address to, std::function<void(master&)> what, repeats again) {
  if (!line->agent_side && to != at(role::cluster))
    return;
  auto deliver = [this, line, what = std::move(what)](auto self) -> void {
    auto* m = master_();
    if (line->silent || !line->master_side || !m || m->life != line->master_life)
      return;
    if (w_.now() < line->stalled_until)
      return w_.clock.at(line->stalled_until, [self] { self(self); });
    what(*m);
  };
  w_.send(
    of_agent(line->host), to, [deliver] { deliver(deliver); }, again, line->id);
}

void hosts::send_down(const link_ptr& line, address from, std::function<void(agent_process&)> what,
                      repeats again) {
  auto deliver = [this, line, what = std::move(what)](auto self) -> void {
    auto& h = hosts_[std::size_t(line->host)];
    if (line->silent || !line->agent_side || !h.agent || h.agent->life != line->agent_life)
      return;
    if (w_.now() < line->stalled_until)
      return w_.clock.at(line->stalled_until, [self] { self(self); });
    h.agent->last_heard = w_.now();
    what(*h.agent);
  };
  w_.send(
    from, of_agent(line->host), [deliver] { deliver(deliver); }, again, line->id);
}

void hosts::accepted(agent_process& a, const link_ptr& line, std::uint64_t epoch, time_point sent) {
  if (a.line != line)
    return;
  line->accepted = true;
  agent_step(a, line->host, link_up{epoch, sent});
}
void hosts::order(agent_process& a, int host, std::uint64_t epoch, const agent_order& x) {
  const auto* start = std::get_if<start_ordered>(&x);
  const bool again = start && find(host, start->allocation);
  agent_step(a, host, order_received{epoch, x});
  if (again && planted == planted_bug::repeated_start_runs)
    launch(host, {start->allocation, start->slots, start->spec, clock(host)});
}
void hosts::acked(agent_process& a, int host, const acknowledge_heartbeat& x) {
  agent_step(a, host, heartbeat_acked{x.epoch, x.sent});
}

void hosts::break_link(int host, bool silent) {
  auto& h = hosts_[std::size_t(host)];
  if (!h.agent || !h.agent->line)
    return;
  auto line = h.agent->line;
  if (silent) {
    line->silent = true;
    return;
  }
  w_.clock.at(w_.now() + w_.between(0us, 300ms), [this, &h, line, host, life = h.agent->alive] {
    if (life() && h.agent->line == line)
      close_link(*h.agent, host);
  });
  w_.clock.at(w_.now() + w_.between(0us, 300ms), [this, line] {
    if (auto* m = master_(); m && m->life == line->master_life && line->master_side)
      m->link_closed(line);
  });
  line->silent = true; // messages on their way are lost
}

/// The twin's end of the link has closed; orders on their way still arrive.
void hosts::twin_died(int host, const link_ptr& line) {
  auto& h = hosts_[std::size_t(host)];
  if (!h.agent || h.agent->line != line)
    return;
  w_.clock.at(w_.now() + w_.between(0us, 300ms), [this, &h, line, host, life = h.agent->alive] {
    if (life() && h.agent->line == line)
      close_link(*h.agent, host);
  });
}

void hosts::stall_link(int host, duration length) {
  if (auto& h = hosts_[std::size_t(host)]; h.agent && h.agent->line)
    h.agent->line->stalled_until = w_.now() + length;
}

void hosts::cut_off(int host, duration length) {
  break_link(host, true);
  hosts_[std::size_t(host)].cut_until = w_.now() + length;
}

void hosts::master_died() {
  for (int i = 0; i < w_.plan.hosts; ++i)
    break_link(i, w_.random.chance(0.2));
}

// ---- crashes

void hosts::crash_agent(int host, duration down) {
  auto& h = hosts_[std::size_t(host)];
  if (!h.agent)
    return;
  if (auto line = h.agent->line) {
    line->agent_side = false;
    if (!line->silent)
      send_up(
        line, at(role::cluster), [line](master& m) { m.link_closed(line); }, repeats::never);
  }
  h.agent.reset();
  w_.clock.at(w_.now() + down, [this, host] { start_agent(host); });
  if (!w_.plan.tasks_die_with_agent)
    return;
  for (auto& [id, s] : h.folders)
    if (!s->dead)
      w_.clock.at(w_.now() + w_.between(500ms, 1500ms), [this, s = s, &h, host, id = id] {
        if (s->dead || h.agent)
          return;
        die(*s, -1, 9, w_.random.chance(0.5), "its agent died");
        auto tell = [this, id, host] {
          if (auto* m = master_())
            if (auto it = m->twins.find("h" + std::to_string(host)); it != m->twins.end())
              it->second->step(death_confirmed{id});
        };
        if (w_.random.chance(0.8))
          w_.send(at(role::sandbox, s->serial), at(role::twin, std::uint64_t(host) + 1), tell, repeats::late);
      });
}

void hosts::crash_host(int host, duration down) {
  auto& h = hosts_[std::size_t(host)];
  for (auto& [id, s] : h.folders)
    die(*s, -1, 0, false, "its host went down");
  if (h.agent && h.agent->line)
    h.agent->line->silent = true; // no process is left to close the link
  h.clock_ahead = w_.between(0s, 1000h);
  if (h.agent)
    crash_agent(host, down);
}

sandbox* hosts::some_live(std::uint64_t pick) {
  std::vector<sandbox*> live;
  for (const auto& s : sandboxes_)
    if (s->running && !s->dead)
      live.push_back(s.get());
  return live.empty() ? nullptr : live[pick % live.size()];
}

void hosts::crash_some_sandbox(std::uint64_t pick) {
  if (auto* s = some_live(pick))
    die(*s, -1, 0, false, "its sandbox crashed");
}

void hosts::kill_some_script(std::uint64_t pick) {
  if (auto* s = some_live(pick)) {
    ++failed_runs[s->report.allocation.trial()];
    die(*s, -1, 9, true, "out of memory");
  }
}

// ---- sandboxes

sandbox* hosts::find(int host, allocation_id id) {
  auto& folders = hosts_[std::size_t(host)].folders;
  auto it = folders.find(id);
  return it == folders.end() ? nullptr : it->second;
}

void hosts::tell_agent(int host, agent_event ev) {
  auto& h = hosts_[std::size_t(host)];
  if (!h.agent)
    return;
  auto id = std::visit(overloaded{[](const task_launched& x) { return x.allocation; },
                                  [](const task_is_over& x) { return x.task.allocation; },
                                  [](const auto&) { return allocation_id{}; }},
                       ev);
  w_.send(at(role::sandbox, find(host, id) ? find(host, id)->serial : 0), of_agent(host),
          [this, host, &h, ev, life = h.agent->alive] {
            if (life())
              agent_step(*h.agent, host, ev);
          });
}

void hosts::launch(int host, const launch_task& x) {
  for (const auto& [id, other] : hosts_[std::size_t(host)].folders)
    if (!other->dead && overlap(other->report.slots, x.slots))
      fail("task " + to_string(x.allocation) + " is started on a slot of h" + std::to_string(host) +
           " that " + to_string(id) + " still uses");
  sandboxes_.push_back(std::make_unique<sandbox>());
  auto& s = *sandboxes_.back();
  s.serial = sandboxes_.size();
  s.host = host;
  s.report = {x.allocation, x.slots};
  std::istringstream spec(x.spec);
  spec >> s.node_rank >> s.nodes >> s.step >> s.experiment.value >> s.key;
  s.saved_step = s.step;
  s.lease_until = x.lease_from + w_.plan.lease.freeze;
  hosts_[std::size_t(host)].folders[x.allocation] = &s;
  by_trial_[x.allocation.trial()].push_back(&s);
  freeze_or_thaw(s);
  w_.clock.at(w_.now() + w_.between(2ms, 60ms), [this, &s] { begin_process(s); });
}

void hosts::begin_process(sandbox& s) {
  if (s.dead)
    return;
  s.running = true;
  s.report.pid = 1000 + std::int64_t(s.serial);
  check_alone(s, true);
  tell_agent(s.host, task_launched{s.report.allocation, s.report.pid});
  if (s.node_rank == 0)
    wake(s, w_.between(1ms, 300ms));
}

void hosts::freeze_or_thaw(sandbox& s) {
  if (s.dead)
    return;
  bool over = clock(s.host) >= s.lease_until;
  if (s.frozen && !over) {
    w_.trace([&] {
      return "sandbox " + to_string(s.report.allocation) + " on h" + std::to_string(s.host) + " thaws";
    });
    s.frozen = false;
    if (s.running)
      check_alone(s, false);
    if (std::exchange(s.woken_while_frozen, false))
      wake(s, 0us);
  } else if (!s.frozen && over) {
    w_.trace([&] {
      return "sandbox " + to_string(s.report.allocation) + " on h" + std::to_string(s.host) + " freezes";
    });
    s.frozen = true;
  }
  if (!s.frozen && !std::exchange(s.lease_watched, true))
    w_.clock.at(s.lease_until - hosts_[std::size_t(s.host)].clock_ahead, [this, &s] {
      s.lease_watched = false;
      freeze_or_thaw(s);
    });
}

/// Checks that no process of a trial starts before its predecessor is dead or fenced for good by its lease,
/// and that no two run at once.
void hosts::check_alone(const sandbox& s, bool starting) {
  if (s.frozen && !starting)
    return;
  if (s.superseded)
    fail("run " + to_string(s.report.allocation) + " goes on after a later one was started");
  for (auto* other : by_trial_[s.report.allocation.trial()]) {
    if (other == &s || other->dead || !other->running)
      continue;
    bool same_gang = other->report.allocation == s.report.allocation && other->host != s.host;
    if (same_gang)
      continue;
    if (!other->frozen)
      fail("two processes of trial " + to_string(s.report.allocation.trial()) +
           " run at once: " + to_string(other->report.allocation) + " on h" + std::to_string(other->host) +
           " and " + to_string(s.report.allocation) + " on h" + std::to_string(s.host));
    other->superseded = true;
  }
}

void hosts::die(sandbox& s, int code, int signal, bool with_record, const std::string& detail) {
  if (s.dead)
    return;
  w_.trace([&] {
    return "sandbox " + to_string(s.report.allocation) + " on h" + std::to_string(s.host) +
           " is dead: " + detail + " " + std::to_string(code);
  });
  s.dead = true;
  s.recorded = with_record;
  s.report.exited = true;
  s.report.exit_code = code;
  s.report.signal = signal;
  s.report.detail = detail;
  s.report.certain = with_record;
  tell_agent(s.host, task_is_over{s.report});
  if (s.node_rank == 0 && with_record && signal == 0) // the other ranks of a gang end when rank 0 does
    for (auto* other : by_trial_[s.report.allocation.trial()])
      if (!other->dead && other != &s && other->report.allocation == s.report.allocation)
        w_.clock.at(w_.now() + w_.between(1ms, 500ms), [this, other, code] {
          if (!other->frozen)
            die(*other, code, 0, true, "rank 0 ended");
        });
}

// ---- the script

void hosts::wake(sandbox& s, duration after) {
  w_.clock.at(w_.now() + after, [this, &s, turn = ++s.turn] {
    if (s.dead || turn != s.turn)
      return;
    if (s.frozen)
      s.woken_while_frozen = true;
    else
      act(s);
  });
}

void hosts::act(sandbox& s) {
  if (s.waiting != sandbox::waits::nothing) { // no answer has come, so the script sends again
    send_pending(s);
    return wake(s, 3s);
  }
  int up = 0;
  for (auto* part : by_trial_[s.report.allocation.trial()])
    up += part->report.allocation == s.report.allocation && part->running && !part->dead;
  if (up < s.nodes)
    return wake(s, 500ms); // a collective call waits for the other ranks
  train(s);
}

void hosts::train(sandbox& s) {
  auto plan = w_.plan.search;
  plan.seed = mix64(plan.seed + s.experiment.value);
  auto p = plan_of(plan, s.key);
  auto save = [&] {
    s.pending_checkpoint = {s.process() + "-" + std::to_string(s.step), s.step};
    s.waiting = sandbox::waits::checkpoint;
  };
  if (s.leaving || s.step >= plan.steps)
    return die(s, 0, 0, true, "");
  if (s.asked_to_stop && !p.stubborn) {
    s.leaving = true;
    if (s.step == s.saved_step)
      return die(s, 0, 0, true, "");
    save();
  } else {
    ++s.step;
    if (s.step == p.fail_at && failures[{s.experiment.value, s.key}] < p.fails) {
      ++failures[{s.experiment.value, s.key}];
      ++failed_runs[s.report.allocation.trial()];
      return die(s, 1, 0, true, "exit code 1");
    }
    s.pending_report = {s.report.allocation, s.process(), ++s.sequence, s.step, metrics_of(s.key, s.step)};
    s.waiting = sandbox::waits::validation;
  }
  send_pending(s);
  wake(s, 3s);
}

void hosts::send_pending(sandbox& s) {
  auto& h = hosts_[std::size_t(s.host)];
  if (!h.agent || !h.agent->line || !h.agent->line->accepted)
    return; // the script tries again later
  auto line = h.agent->line;
  if (s.waiting == sandbox::waits::validation)
    send_up(
      line, at(role::journal), [line, row = s.pending_report](master& m) { m.report(line, row); },
      repeats::late);
  else
    send_up(
      line, at(role::twin, std::uint64_t(s.host) + 1),
      [name = h.name, x = task_checkpoint{s.report.allocation, s.pending_checkpoint}](master& m) {
        m.twins.at(name)->up(x);
      },
      repeats::late);
}

void hosts::answer(int host, const validation_answer& x) {
  auto* s = find(host, x.origin.allocation);
  if (!s || s->dead || s->process() != x.origin.process || s->waiting != sandbox::waits::validation ||
      s->sequence != x.origin.sequence)
    return;
  promised.push_back({x.origin.allocation, x.origin.process, x.origin.sequence, ""});
  s->asked_to_stop |= x.stop;
  s->waiting = sandbox::waits::nothing;
  if (s->step % 2 == 0 && s->step != s->saved_step) {
    s->pending_checkpoint = {s->process() + "-" + std::to_string(s->step), s->step};
    s->waiting = sandbox::waits::checkpoint;
  }
  go_on(*s);
}

void hosts::answer(int host, const checkpoint_answer& x) {
  auto* s = find(host, x.allocation);
  if (!s || s->dead || s->waiting != sandbox::waits::checkpoint || s->pending_checkpoint.uuid != x.uuid)
    return;
  if (!x.refused.empty())
    return die(*s, 1, 0, true, "its checkpoint was refused: " + x.refused);
  promised.push_back({x.allocation, "", 0, x.uuid});
  s->saved_step = s->pending_checkpoint.steps;
  s->waiting = sandbox::waits::nothing;
  go_on(*s);
}

void hosts::refuse_report(int host, allocation_id id, const std::string& process) {
  auto* s = find(host, id);
  if (s && !s->dead && s->process() == process && s->waiting == sandbox::waits::validation)
    die(*s, 1, 0, true, "its report was refused");
}

void hosts::go_on(sandbox& s) { wake(s, w_.between(50ms, 1500ms)); }

bool hosts::quiet() const {
  for (const auto& h : hosts_)
    if (!h.folders.empty() || !h.agent)
      return false;
  return true;
}

std::string hosts::what_is_left() const {
  std::string text;
  for (const auto& h : hosts_) {
    if (!h.agent)
      text += h.name + " has no agent; ";
    for (const auto& [id, s] : h.folders)
      text += "task " + to_string(id) + " on " + h.name +
              (s->dead ? " is dead but not forgotten; " : " still lives; ");
  }
  return text;
}

} // namespace troupe::sim

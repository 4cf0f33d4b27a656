#include "actors/host/worker_runtime.hpp"

#include <algorithm>

namespace troupe {
namespace {

using workers::end_reason;

bool failed_by_itself(const workers::rank_end& x) { return x.value != 0 && !x.killed; }

/// Keeps the reason of the first rank that failed.
void add_rank(task_report& t, const workers::rank_end& x) {
  if (t.exit_code != 0 || t.signal != 0 || x.value == 0)
    return;
  (x.signalled ? t.signal : t.exit_code) = x.value;
  t.detail = (x.signalled ? "signal " : "exit code ") + std::to_string(x.value) +
             (x.rank ? " (rank " + std::to_string(x.rank) + ")" : "") +
             (x.out_of_memory ? ", out of memory" : "");
}

task_report ended(allocation_id id, std::string detail) {
  task_report t;
  t.allocation = id;
  t.exited = true;
  t.detail = std::move(detail);
  return t;
}

task_report meaning_of(allocation_id id, const workers::task_exited& x) {
  auto t = ended(id, x.detail);
  if (x.why == end_reason::failed)
    t.exit_code = 127;
  // Ranks that were killed come last: they may have been killed because another rank failed.
  auto ranks = x.ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return std::pair(a.killed, a.at) < std::pair(b.killed, b.at);
  });
  for (const auto& rank : ranks)
    add_rank(t, rank);
  // A task that was killed, but not by its allocation, which would not ask for a reason, is lost and runs
  // again.
  t.certain = std::any_of(ranks.begin(), ranks.end(), failed_by_itself) ||
              (x.why != end_reason::killed && x.why != end_reason::lease);
  return t;
}

task_report lost(allocation_id id, std::string why) {
  auto t = ended(id, std::move(why));
  t.certain = false;
  return t;
}

std::string id_in(const workers::task_event& ev) {
  return std::visit(overloaded{[](const workers::inventory_taken&) { return std::string(); },
                               [](const auto& x) { return x.id; }},
                    ev);
}

} // namespace

hosted_task hosted(const task_launch& launch) {
  return {launch.slots,
          launch.token,
          launch.checkpoint_dir,
          launch.ports,
          launch.mode == launch_mode::per_slot && launch.ranks >= 2,
          launch.first_rank,
          false};
}

start_choice start_of(const start_facts& x) {
  const bool program = x.program && x.one_host && !x.hook;
  return {x.python_script && x.script_there && x.zygotes && !x.hook, x.python_script && !program, program};
}

std::vector<worker_runtime_action> worker_runtime::apply(worker_runtime_event ev, time_point now) {
  out o;
  std::visit([&](auto& x) { on(o, x, now); }, ev);
  return o;
}

void worker_runtime::on(out& o, launch_ordered& ev, time_point) {
  const auto id = ev.order.allocation;
  auto [it, fresh] = tasks_.try_emplace(id);
  if (!fresh)
    return; // a repeated order starts nothing
  it->second.order = std::move(ev.order);
  it->second.lease_from = ev.lease_from;
  waiting_.push_back(id);
  start_waiting(o);
}

void worker_runtime::start_waiting(out& o) {
  for (; starting_ < most_starts_ && !waiting_.empty(); waiting_.pop_front()) {
    auto& t = tasks_.at(waiting_.front());
    t.now = phase::starting;
    t.about.emplace().slots = t.order.slots;
    o.push_back(start_sandbox{std::move(t.order)});
    ++starting_;
  }
}

void worker_runtime::on(out& o, const kill_sandbox_ordered& ev, time_point) {
  auto it = tasks_.find(ev.allocation);
  if (it != tasks_.end() && it->second.now == phase::waiting) {
    std::erase(waiting_, ev.allocation);
    auto never = lost(ev.allocation, "killed before it ran");
    never.signal = 9;
    never.slots = it->second.order.slots;
    tasks_.erase(it);
    o.push_back(tell_ended{std::move(never)});
  } else if (it != tasks_.end() && it->second.now == phase::starting) {
    it->second.kill_wanted = true;
  } else {
    o.push_back(kill_sandbox{ev.allocation});
  }
}

void worker_runtime::on(out& o, const drop_sandbox_ordered& ev, time_point) {
  o.push_back(drop_sandbox{ev.allocation});
}

void worker_runtime::renew(out& o, entry it, time_point now) {
  auto& t = it->second;
  const auto from = std::max(t.lease_from, lease_from_);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(from + freeze_ - now);
  // 0 would mean that the task has no lease.
  o.push_back(
    renew_lease{it->first, std::max(left, std::chrono::milliseconds(1)), std::exchange(t.frozen, false)});
}

void worker_runtime::on(out& o, const leases_renewed& ev, time_point now) {
  const auto freeze = ev.freeze > duration{0} ? ev.freeze : freeze_;
  if (freeze != freeze_ || ev.adopt != adopt_)
    o.push_back(set_leases{freeze, ev.adopt});
  freeze_ = freeze;
  adopt_ = ev.adopt;
  if (ev.from == time_point{})
    return;
  lease_from_ = std::max(lease_from_, ev.from);
  if (!std::exchange(looking_at_disks_, true))
    o.push_back(look_at_disks{disks()});
  for (auto it = tasks_.begin(); it != tasks_.end(); ++it)
    if (it->second.now == phase::there)
      renew(o, it, now);
}

void worker_runtime::on(out& o, const adoption_ordered&, time_point) { o.push_back(adopt_sandboxes{}); }

void worker_runtime::on(out&, task_prepared& ev, time_point) {
  if (auto it = tasks_.find(ev.allocation); it != tasks_.end() && it->second.now == phase::starting)
    it->second.about = std::move(ev.task);
}

/// By now the sandbox may have reported more than this, even its end.
void worker_runtime::on(out& o, const start_ended& ev, time_point now) {
  --starting_;
  auto it = tasks_.find(ev.allocation);
  if (it != tasks_.end() && it->second.now == phase::starting) {
    it->second.now = phase::there;
    if (!ev.failed.empty()) {
      auto failed = ended(ev.allocation, ev.failed);
      failed.exit_code = 127;
      end(o, it, std::move(failed));
    } else {
      renew(o, it, now);
      if (it->second.kill_wanted)
        o.push_back(kill_sandbox{ev.allocation});
    }
  }
  start_waiting(o);
}

void worker_runtime::on(out& o, sandbox_said& ev, time_point) {
  if (std::holds_alternative<workers::inventory_taken>(ev.event)) {
    inventory_due_ = true;
    return check_adopted(o);
  }
  const auto id = parse_allocation(id_in(ev.event));
  auto it = tasks_.find(id);
  if (it == tasks_.end()) {
    const bool news = std::holds_alternative<workers::task_started>(ev.event) ||
                      std::holds_alternative<workers::task_exited>(ev.event) ||
                      std::holds_alternative<workers::task_lost>(ev.event);
    if (!news)
      return;
    it = tasks_.try_emplace(id).first;
    it->second.now = phase::recalling;
    o.push_back(recall_task{id});
  }
  if (it->second.now == phase::recalling)
    it->second.held.push_back(std::move(ev.event));
  else
    hear(o, it, ev.event);
}

void worker_runtime::on(out& o, task_recalled& ev, time_point) {
  auto it = tasks_.find(ev.allocation);
  if (it == tasks_.end() || it->second.now != phase::recalling)
    return;
  it->second.now = phase::there;
  it->second.about = std::move(ev.task);
  if (const auto& about = it->second.about; about && !about->ports.empty())
    o.push_back(keep_ports{ev.allocation, about->ports});
  for (const auto held = std::exchange(it->second.held, {}); const auto& event : held)
    if (auto still = tasks_.find(ev.allocation); still != tasks_.end())
      hear(o, still, event);
  check_adopted(o);
}

void worker_runtime::check_adopted(out& o) {
  const bool recalls =
    std::any_of(tasks_.begin(), tasks_.end(), [](const auto& x) { return x.second.now == phase::recalling; });
  if (!recalls && std::exchange(inventory_due_, false))
    o.push_back(tell_all_adopted{});
}

void worker_runtime::hear(out& o, entry it, const workers::task_event& ev) {
  auto& t = it->second;
  if (t.now == phase::looking)
    return;
  const auto id = it->first;
  std::visit(
    overloaded{
      [&](const workers::task_started& x) {
        o.push_back(tell_started{id, x.pid, x.adopted, t.about.value_or(hosted_task{})});
      },
      [&](const workers::rank_ended& x) {
        if (!failed_by_itself(x.end) || (t.about && !t.about->tells_ranks))
          return; // a rank that is alone: the end of the task reports it
        task_report failed;
        add_rank(failed, x.end);
        o.push_back(tell_rank_failed{id, x.end.rank + (t.about ? t.about->first_rank : 0), failed.detail});
      },
      [&](const workers::task_exited& x) { end(o, it, meaning_of(id, x)); },
      [&](const workers::task_lost& x) { end(o, it, lost(id, x.why)); },
      [&](const workers::task_frozen&) { t.frozen = true; },
      [&](const auto&) {},
    },
    ev);
}

/// A full disk is not a failure of the task, so that each failure waits for a look at the disks.
void worker_runtime::end(out& o, entry it, task_report report) {
  auto& t = it->second;
  if (t.about)
    report.slots = t.about->slots;
  const bool failed = report.exit_code != 0 && report.certain;
  const bool learn = t.about && t.about->from_zygote;
  t.now = phase::looking;
  t.end = std::move(report);
  if (failed || learn)
    o.push_back(look_after_end{it->first, failed ? disks() : std::vector<std::string>(), failed, learn});
  else
    on(o, end_looked{it->first, {}}, {});
}

void worker_runtime::on(out& o, const end_looked& ev, time_point now) {
  auto it = tasks_.find(ev.allocation);
  if (it == tasks_.end() || it->second.now != phase::looking)
    return;
  auto report = std::move(it->second.end);
  if (ev.free_bytes) {
    disks_.saw(*ev.free_bytes, now);
    if (disks_.full_lately(now)) {
      report.certain = false;
      report.detail += ", and its disk was full";
    }
  }
  o.push_back(release_task{ev.allocation, it->second.about ? it->second.about->token : std::string()});
  tasks_.erase(it);
  o.push_back(tell_ended{std::move(report)});
}

void worker_runtime::on(out&, const disks_looked& ev, time_point now) {
  looking_at_disks_ = false;
  if (ev.free_bytes)
    disks_.saw(*ev.free_bytes, now);
}

std::vector<std::string> worker_runtime::disks() const {
  std::set<std::string> folders;
  for (const auto& [id, t] : tasks_)
    if (t.about && !t.about->checkpoint_dir.empty())
      folders.insert(t.about->checkpoint_dir);
  return {folders.begin(), folders.end()};
}

value worker_runtime::describe() const {
  constexpr const char* words[] = {"waiting", "starting", "recalling", "there", "looking"};
  value tasks = value::array();
  for (const auto& [id, t] : tasks_)
    tasks.push_back({{"allocation", to_string(id)},
                     {"state", words[static_cast<int>(t.now)]},
                     {"frozen", t.frozen},
                     {"kill_wanted", t.kill_wanted}});
  return {{"tasks", tasks}, {"starting", starting_}, {"waiting", waiting_.size()}};
}

} // namespace troupe

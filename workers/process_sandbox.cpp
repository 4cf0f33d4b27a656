// One sandbox as its agent sees it: started, dialed, heard, and judged when its troupe-task is dead.

#include "workers/process_engine.hpp"

#include "workers/task_init/task_format.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace troupe::workers {
namespace {

constexpr std::chrono::milliseconds again{20};
constexpr std::chrono::seconds spare_pause{5}, nursery_pause{1};
constexpr std::chrono::milliseconds spare_idle{30'000};
constexpr std::size_t shown_bytes = 1024; ///< room for a sandbox's command line in `ps`

time_point wall_now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

} // namespace

std::string process_runtime::engine::path_of(const sandbox& box) const {
  return (options_.root / box.folder_name).string();
}

/// Starts a spare where `spec` is empty.
void process_runtime::engine::start(sandbox& box, const std::string& spec) {
  owned_fd its_end;
  auto link = task_link::make(its_end);
  if (!link)
    return lose(box, link.error().what);
  if (ask_nursery(box, spec, its_end)) {
    box.link.emplace(std::move(*link));
    return watch(box.link->socket(), source::socket, box.serial);
  }
  std::vector<std::string> all = {"--connected"};
  if (!options_.namespaces)
    all.insert(all.begin(), {"--isolation", "process-group"});
  if (spec.empty())
    all.insert(all.end(), {"--spare", path_of(box), std::to_string(spare_idle.count())});
  else
    all.push_back(path_of(box) + "/" + spec);
  auto pid = spawn(options_.program, all, options_.root / box.folder_name / task_format::complaint_file,
                   its_end.get());
  if (!pid)
    return lose(box, pid.error().what);
  box.link.emplace(std::move(*link));
  watch(box.link->socket(), source::socket, box.serial);
  box.starter_pid = *pid;
  box.starter.reset(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (box.starter)
    watch(box.starter.get(), source::starter, box.serial);
  else
    on_starter(box); // another part of this process reaps every child
}

/// One small process makes the sandboxes, one after the other, so that each costs no exec.
void process_runtime::engine::open_nursery() {
  if (nursery_ || !options_.namespaces || clock::now() < nursery_again_at_)
    return;
  nursery_again_at_ = clock::now() + nursery_pause;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return;
  owned_fd mine{ends[0]}, its{ends[1]};
  auto pid = spawn(options_.program, {"--nursery", options_.root.string(), std::string(shown_bytes, ' ')},
                   "/dev/null", its.get());
  if (!pid)
    return;
  nursery_ = std::move(mine);
  nursery_pid_ = *pid;
  watch(nursery_.get(), source::nursery, 0);
}

/// A sandbox that the nursery has half made ends with it; the others go on.
void process_runtime::engine::close_nursery(bool hangs) {
  forget_fd(nursery_);
  nursery_due_ = clock::time_point::max();
  if (nursery_pid_ <= 0)
    return;
  ::kill(nursery_pid_, SIGKILL);
  // A process that hangs in the kernel does not die now: it stays a zombie until this process ends.
  ::waitpid(std::exchange(nursery_pid_, 0), nullptr, hangs ? WNOHANG : 0);
}

void process_runtime::engine::replace_nursery() {
  const bool hangs = clock::now() >= nursery_due_;
  close_nursery(hangs);
  for (auto& [serial, box] : boxes_) {
    if (!std::exchange(box.in_nursery, false) || box.done)
      continue;
    if (hangs) {
      drop_link(box);
      box.kill_at = clock::now() + again;
    }
    if (!box.link)
      box.retry_at = clock::now() + again; // dialing shows whether the sandbox was made
  }
}

/// Orders and answers are packets.
bool process_runtime::engine::ask_nursery(sandbox& box, const std::string& spec, owned_fd& its_end) {
  open_nursery();
  if (!nursery_)
    return false;
  const std::string fields[] = {"make", std::to_string(box.serial), path_of(box), spec,
                                std::to_string(spare_idle.count())};
  std::string order;
  for (const auto& field : fields)
    order += field + '\0';
  box.in_nursery = send_with(nursery_.get(), order, {its_end.get()});
  if (box.in_nursery && nursery_due_ == clock::time_point::max())
    nursery_due_ = clock::now() + 3 * options_.kill_patience;
  return box.in_nursery;
}

void process_runtime::engine::on_nursery() {
  char text[1024];
  ssize_t n = 0;
  while (nursery_ && (n = ::recv(nursery_.get(), text, sizeof text - 1, MSG_DONTWAIT)) > 0) {
    text[n] = 0;
    unsigned long long serial = 0;
    int why = 0;
    const bool failed = std::sscanf(text, "failed %llu %n", &serial, &why) == 1;
    if (!failed && std::sscanf(text, "made %llu", &serial) != 1)
      continue;
    auto it = boxes_.find(serial);
    if (it == boxes_.end() || !std::exchange(it->second.in_nursery, false))
      continue;
    auto& box = it->second;
    if (failed) {
      drop_link(box);
      lose(box, "troupe-task: " + std::string(text + why));
    } else if (!box.link && !box.done) {
      dial(box);
    }
  }
  if (nursery_ && (n == 0 || (errno != EAGAIN && errno != EINTR)))
    return replace_nursery();
  const bool more =
    std::any_of(boxes_.begin(), boxes_.end(), [](const auto& box) { return box.second.in_nursery; });
  nursery_due_ = more ? clock::now() + 3 * options_.kill_patience : clock::time_point::max();
}

void process_runtime::engine::on_starter(sandbox& box) {
  if (box.starter_pid == 0)
    return; // the event came twice
  int status = 0;
  auto reaped = ::waitpid(box.starter_pid, &status, WNOHANG);
  if (reaped == 0)
    return;
  forget_fd(box.starter);
  box.starter_pid = 0;
  if (reaped < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    if (!box.link && !box.done)
      dial(box);
    return;
  }
  drop_link(box);
  auto why = read_file(box.folder.get(), task_format::complaint_file);
  if (why && !why->empty())
    return lose(box, "troupe-task: " + why->substr(0, why->find('\n')));
  lose(box, "troupe-task ended with status " + std::to_string(status) + " and said nothing");
}

void process_runtime::engine::dial(sandbox& box) {
  box.retry_at = clock::time_point::max();
  auto link = task_link::dial(box.folder.get());
  if (link) {
    auto helper = link->take_helper();
    box.link.emplace(std::move(*link));
    watch(box.link->socket(), source::socket, box.serial);
    if (!box.helper) {
      box.helper = std::move(helper);
      watch(box.helper.get(), source::helper, box.serial);
    }
    for (const auto& line : std::exchange(box.unsent, {}))
      say(box, line);
    if (box.kill_wanted)
      say(box, "kill\n");
    return;
  }
  if (!box.helper)
    if ((box.helper = open_helper(box.folder.get())))
      watch(box.helper.get(), source::helper, box.serial);
  if (box.helper) {
    box.retry_at = clock::now() + again; // it is starting or dying, or has too many callers
    return;
  }
  box.dead = true;
  judge(box);
}

void process_runtime::engine::on_socket(sandbox& box) {
  std::vector<std::string> lines;
  bool open = box.link && box.link->receive(lines);
  auto serial = box.serial;
  for (const auto& line : lines) {
    std::visit([&](const auto& news) { hear(box, news); }, decode_news(line));
    if (!boxes_.contains(serial))
      return;
  }
  if (open)
    return;
  drop_link(box);
  if (!box.done && box.starter_pid == 0 && !box.in_nursery) // otherwise the process that makes it decides
    box.retry_at = clock::now() + again;
}

void process_runtime::engine::on_helper(sandbox& box) {
  if (!box.helper)
    return; // the event came twice
  // The last lines of troupe-task may still lie in the socket.
  auto serial = box.serial;
  if (box.link) {
    on_socket(box);
    if (!boxes_.contains(serial))
      return;
  }
  drop_link(box);
  forget_fd(box.helper);
  box.retry_at = box.kill_at = clock::time_point::max();
  box.dead = true;
  if (!box.done)
    judge(box);
}

void process_runtime::engine::give_up(sandbox& box, const std::string& why) {
  box.given_up = why;
  kill_helper(box);
}

/// Offers the spare to the next launch, unless a task has it already.
void process_runtime::engine::offer(sandbox& box) {
  box.ready = true;
  {
    std::lock_guard lock(mutex_);
    for (auto& [id, spare] : prepared_)
      if (spare.serial == box.serial) {
        spare.socket = box.link->socket();
        return;
      }
    const bool taken = std::any_of(orders_.begin(), orders_.end(), [&](const order& x) {
      const auto* launch = std::get_if<launch_order>(&x);
      return launch && launch->spare == box.serial;
    });
    if (!taken) {
      std::erase_if(ready_, [&](const auto& spare) { return spare.serial == box.serial; });
      ready_.push_back({box.serial, box.link->socket(), box.folder_name});
      return;
    }
  }
  say(box,
      "status\n"); // the spare may have heard its task over an earlier connection; the answer counts once it
                   // has the task's name
}

/// Ends a spare of a dead agent.
void process_runtime::engine::clear_away(sandbox& box) {
  box.retry_at = clock::time_point::max();
  box.helper = open_helper(box.folder.get());
  if (box.helper) {
    watch(box.helper.get(), source::helper, box.serial);
    return kill_helper(box);
  }
  box.dead = true;
  judge(box);
}

void process_runtime::engine::retry(sandbox& box) {
  box.retry_at = clock::time_point::max();
  if (box.done)
    return;
  if (box.id.empty() && box.adopted && !box.dead)
    return clear_away(box);
  if (box.dead)
    judge(box);
  else
    dial(box);
}

void process_runtime::engine::say(sandbox& box, const std::string& line) {
  if (!box.link || box.link->send(line))
    return;
  drop_link(box);
  if (!box.done)
    box.retry_at = clock::now() + again;
}

void process_runtime::engine::kill_helper(sandbox& box) {
  box.kill_at = clock::time_point::max();
  if (box.helper)
    ::syscall(SYS_pidfd_send_signal, box.helper.get(), SIGKILL, nullptr, 0);
  else if (!box.done && !box.dead)
    box.kill_at = clock::now() + again;
}

void process_runtime::engine::hear(sandbox& box, const sandbox_state& x) {
  box.how = x.how;
  box.remark = x.remark;
  if (!box.helper && box.link && (box.helper = helper_behind(box.link->socket(), x.helper_pid)))
    watch(box.helper.get(), source::helper, box.serial);
  if (x.phase == "spare") {
    if (box.run_due)
      return run(box); // the order was lost with its connection
    if (box.id.empty() && x.how == isolation::process_group) {
      // Tasks would see the path of the folder, which changes with the name, and a spare has nothing to
      // prepare.
      spares_of_use_ = false;
      return kill_helper(box);
    }
    if (box.id.empty())
      return offer(box);
    // The agent died between taking the spare and ordering the run.
    return kill_helper(box);
  }
  if (x.phase == "starting")
    return; // the task waits for its zygote
  tell_started(box, x.rank0_pid);
  if (x.phase == "running" && box.frozen_told)
    hear(box, sandbox_thawed{});
  if (x.phase == "ended")
    hear(box, sandbox_ended{});
}

void process_runtime::engine::hear(sandbox& box, const sandbox_started& x) { tell_started(box, x.rank0_pid); }

void process_runtime::engine::tell_started(sandbox& box, int pid) {
  box.run_due = false;
  box.zygote.reset();
  if (!box.given_up.empty())
    return;
  if (!box.kill_wanted)
    box.kill_at = clock::time_point::max();
  if (std::exchange(box.started_told, true))
    return;
  if (pid == 0)
    return; // no rank could be started: only the end is reported
  set_phase(box.id, task_phase::running, pid);
  tell_(task_started{box.id, pid, box.how, box.remark, box.adopted});
  settle(box);
}

void process_runtime::engine::hear(sandbox& box, const rank_end& x) {
  if (box.started_told && !box.done)
    tell_(rank_ended{box.id, x});
}

void process_runtime::engine::hear(sandbox& box, const sandbox_frozen& x) {
  if (std::exchange(box.frozen_told, true))
    return;
  set_phase(box.id, task_phase::frozen, 0);
  tell_(task_frozen{box.id, x.why});
}

void process_runtime::engine::hear(sandbox& box, const sandbox_thawed&) {
  if (!std::exchange(box.frozen_told, false))
    return;
  set_phase(box.id, task_phase::running, 0);
  tell_(task_thawed{box.id});
}

void process_runtime::engine::hear(sandbox& box, const sandbox_ended&) {
  if (box.done || !box.given_up.empty())
    return;
  auto record = read_file(box.folder.get(), task_format::exit_file);
  auto how = record ? decode_end(*record) : result<task_end>(record.error());
  if (how)
    return end(box, std::move(*how));
  // The record exists, or troupe-task would not report the end: only a damaged disk leads here.
  end(box, task_lost{box.id, "its exit record: " + how.error().what});
}

void process_runtime::engine::hear(sandbox&, const sandbox_complaint&) {}

/// Judges a sandbox whose troupe-task is dead. The record says how it ended. Where there is none, this writes
/// one, under the lock that a starting troupe-task needs, so that no late start can bring the task back.
void process_runtime::engine::judge(sandbox& box) {
  auto folder = box.folder.get();
  auto record = read_file(folder, task_format::exit_file);
  if (auto how = record ? decode_end(*record) : result<task_end>(record.error()); how && !box.id.empty())
    return end(box, std::move(*how));
  owned_fd lock{::openat(folder, task_format::lock_file, O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    box.dead = false; // another process starts it just now: dial again
    box.retry_at = clock::now() + again;
    return;
  }
  // A process in the middle of an exec has no visible environment, so one empty search proves nothing.
  if (box.how == isolation::process_group || box.adopted) {
    box.empty_searches = kill_marked(folder) ? 0 : box.empty_searches + 1;
    if (box.empty_searches < 2) {
      box.retry_at = clock::now() + again;
      return;
    }
  }
  if (box.id.empty())
    return lose(box, "a spare ended");
  task_end how = task_lost{box.id, why_lost(box)};
  if (box.kill_wanted)
    how = task_exited{box.id,
                      end_reason::killed,
                      "troupe-task did not answer and was killed with all of its sandbox",
                      {},
                      wall_now()};
  (void)write_durable(folder, task_format::exit_file, encode(how));
  end(box, std::move(how));
}

/// A former spare may have begun its task before it died, so the task is not started again here; the owner of
/// the lost task decides.
std::string process_runtime::engine::why_lost(const sandbox& box) const {
  if (!box.given_up.empty())
    return box.given_up;
  if (box.run_due)
    return "its sandbox died while it was being started";
  return box.started_told ? "troupe-task died without a record: it was killed from outside"
                          : "it was never started, or the host was restarted";
}

void process_runtime::engine::lose(sandbox& box, const std::string& why) {
  if (!box.id.empty())
    return end(box, task_lost{box.id, why});
  if (!box.adopted)
    spares_again_at_ = clock::now() + spare_pause;
  {
    std::lock_guard lock(mutex_);
    sweeps_.push_back({box.folder_name, true, {}, {}});
  }
  swept_.notify_all();
  settle(box);
  erase(box.serial);
}

void process_runtime::engine::end(sandbox& box, task_end how) {
  box.done = true;
  box.zygote.reset();
  box.retry_at = box.kill_at = clock::time_point::max();
  bool lost = std::holds_alternative<task_lost>(how);
  set_phase(box.id, lost ? task_phase::lost : task_phase::exited, 0);
  std::visit([this](auto& x) { tell_(std::move(x)); }, how);
  settle(box);
}

/// Called when one of the sandboxes that adopt_all() found was reported.
void process_runtime::engine::settle(sandbox& box) {
  if (std::exchange(box.inventory, false))
    --inventory_open_;
  check_inventory();
}

void process_runtime::engine::check_inventory() {
  if (inventory_told_ || inventory_open_ > 0)
    return;
  inventory_told_ = true;
  tell_(inventory_taken{std::exchange(inventory_size_, 0)});
}

} // namespace troupe::workers

#include "workers/task_init/supervisor.hpp"

#include "workers/task_init/task_format.hpp"

#include <climits>
#include <csignal>
#include <fcntl.h>
#include <initializer_list>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

namespace troupe::task_init {

using namespace task_format;

namespace {

constexpr std::int64_t never = INT64_MAX;
constexpr std::int64_t retry_ms = 20;
constexpr std::int64_t ask_again_ms = 1000;
constexpr std::int64_t sync_after_ms = 1000;
constexpr std::int64_t listen_again_ms = 1000;

/// Makes "NAME=VALUE", which is never freed: the process reads one spec.
char* assignment(const char* name, const char* value) {
  char* text = nullptr;
  if (asprintf(&text, "%s=%s", name, value) < 0)
    abort();
  return text;
}

} // namespace

void supervisor::run(int spec) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  children_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  timer_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  lonely_since_ms_ = boot_ms();
  // Room for the exit record is taken now, so that a full disk cannot hide the end of a task. A folder that
  // is used again has that room.
  draft_ = openat(box_.folder, exit_draft, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  struct stat about {};
  if (draft_ >= 0 && (fstat(draft_, &about) != 0 || about.st_blocks * 512 < 4096) &&
      fallocate(draft_, FALLOC_FL_KEEP_SIZE, 0, 4096) != 0)
    (void)!ftruncate(draft_, 0);
  spool_.open(box_.folder);
  if (spec >= 0)
    start(spec, -1);
  if (box_.agent >= 0) {
    connections_[0].fd = box_.agent;
    lonely_since_ms_ = 0;
    tell_state(connections_[0]); // the first line says how the task is isolated
  }
  while (!gone_)
    wait_for_news();
}

void supervisor::start(int spec, int zygote) {
  phase_ = phase::running;
  zygote_ = zygote;
  auto f = read_spec(spec, spec_);
  close(spec);
  if (f)
    return fail(f);
  if (draft_ >= 0 && spec_.ranks.size > 32)
    (void)!fallocate(draft_, 0, 0, static_cast<off_t>(128 * spec_.ranks.size));
  spool_.limit(spec_.spool_file_bytes, spec_.spool_files);
  if (*spec_.fence)
    fence_.set({spec_.fence, spec_.fence_ask, spec_.fence_dead, spec_.fence_ca,
                *spec_.fence_program ? open_host_program(box_.host, spec_.fence_program) : -1,
                *spec_.fence_program != 0});
  for (auto* line : spec_.notes)
    note(line);
  if (*spec_.refusal)
    return fail(complain("%s", spec_.refusal));
  if (box_.pid_namespace) {
    for (auto* path : spec_.keep_read_only)
      if ((f = show_host_path(box_.host, path)))
        return fail(f);
    for (auto* path : spec_.keep)
      if ((f = keep_host_path(box_.host, path)))
        return fail(f);
    for (auto* path : spec_.keep_if_there)
      keep_if_there(box_.host, path);
    if ((f = make_mounts(box_.host, box_.folder, spec_)))
      return fail(f);
    if (auto missed = over_etc_.watch(spec_))
      note(missed.text);
  } else if ((f = do_without_mounts(spec_))) {
    return fail(f);
  } else if (spec_.shm_bytes >= 0) {
    note("resources.shm_size has no effect here: without namespaces the task shares /dev/shm with its host");
  }
  lease_end_ms_ = spec_.lease_ms ? boot_ms() + spec_.lease_ms : never;
  char here[PATH_MAX] = ".";
  if (!box_.pid_namespace && !getcwd(here, sizeof here))
    return fail(complain("the task's folder has no path: %s", strerror(errno)));
  struct stat about {};
  fstat(box_.folder, &about);
  char mark[64];
  snprintf(mark, sizeof mark, "%llu-%llu", static_cast<unsigned long long>(about.st_dev),
           static_cast<unsigned long long>(about.st_ino));
  for (auto& rank : spec_.ranks) {
    for (auto* env : {&rank.env, &rank.direct_env}) {
      env->push(assignment("TROUPE_TASK_ID", spec_.id));
      env->push(assignment("TROUPE_SANDBOX", mark));
      if (box_.pid_namespace)
        env->push(assignment("TROUPE_RUN_DIR", "/run/determined"));
      else {
        char path[PATH_MAX + 16];
        snprintf(path, sizeof path, "%s/%s", here, run_folder);
        env->push(assignment("TROUPE_RUN_DIR", path));
        snprintf(path, sizeof path, "%s/%s", here, tmp_folder);
        env->push(assignment("TMPDIR", path));
      }
    }
    rank.env.push(nullptr);
    ranks_.push(rank_state{});
    streams_.push(source{});
    streams_.push(source{});
  }
  if (spec_.ranks[0].direct_argv.size > 1) {
    if (auto f = ask_zygote())
      start_cold(f.text);
    return;
  }
  for (std::size_t n = 0; n < ranks_.size; ++n)
    start_one(n);
  // Programs remember the process number of a server of theirs in a file of the home directory, which tasks
  // of one account share: the number must not be that of another program in the next task.
  std::uint16_t random = 0;
  if (box_.pid_namespace && getrandom(&random, sizeof random, GRND_NONBLOCK) == sizeof random)
    set_last_pid(1000 + random % 30'000u);
  tell_started();
}

void supervisor::tell_started() {
  char text[64];
  snprintf(text, sizeof text, "started %d\n", ranks_[0].host_pid);
  tell_all(text);
  oom_before_ = out_of_memory_kills(); // last, because it takes longer than all of the above
  spool_.flush();
  check_end();
}

void supervisor::start_one(std::size_t n) {
  rank_pipes pipes;
  auto f = start_rank(spec_, spec_.ranks[n], box_.host.proc, ranks_[n], pipes);
  streams_[2 * n].fd = pipes.out;
  streams_[2 * n + 1].fd = pipes.err;
  for (std::size_t i = 2 * n; i < 2 * n + 2; ++i)
    if (!streams_[i].line && !(streams_[i].line = static_cast<char*>(malloc(max_payload_bytes))))
      abort();
  if (!f)
    return;
  char text[640];
  int bytes = snprintf(text, sizeof text, "troupe-task: rank %zu: %s", n, f.text);
  spool_.add(static_cast<unsigned>(n), spool_stream::notice, 0, text, static_cast<std::size_t>(bytes));
  if (!*failure_.text)
    failure_ = f;
}

/// Writes a line of troupe-task's own to the task's log.
void supervisor::note(const char* text) {
  char line[1024];
  const int bytes = snprintf(line, sizeof line, "troupe: %s", text);
  spool_.add(0, spool_stream::notice, 0, line,
             static_cast<std::size_t>(bytes) < sizeof line ? static_cast<std::size_t>(bytes)
                                                           : sizeof line - 1);
}

void supervisor::fail(const fault& why) {
  note(why.text);
  spool_.flush();
  failure_ = why;
  why_ = "failed";
  phase_ = phase::ending;
  check_end();
}

void supervisor::wait_for_news() {
  static list<pollfd> polled;
  polled.size = 0;
  polled.push({box_.listener, POLLIN, 0});
  polled.push({children_, POLLIN, 0});
  polled.push({timer_, POLLIN, 0});
  for (auto& c : connections_)
    polled.push({c.fd, POLLIN, 0}); // poll ignores descriptors below 0
  polled.push(fence_.waits_for());
  // A frozen task starts no rank.
  polled.push({asking() && !frozen_ ? zygote_ : -1, POLLIN, 0});
  polled.push({frozen_ ? -1 : gate_, POLLIN, 0});
  polled.push({phase_ == phase::running ? over_etc_.fd() : -1, POLLIN, 0});
  for (auto& s : streams_)
    polled.push({s.fd, POLLIN, 0});
  arm_timer();
  if (poll(polled.data, polled.size, -1) < 0)
    return;
  // Output comes first: what a rank wrote before it died is spooled before its death is reported.
  constexpr std::size_t fence_at = 3 + max_connections, zygote_at = fence_at + 1, gate_at = fence_at + 2,
                        etc_at = fence_at + 3, first_stream = fence_at + 4;
  for (std::size_t i = first_stream; i < polled.size; ++i)
    if (polled[i].revents)
      read_stream((i - first_stream) / 2, (i - first_stream) % 2, false);
  spool_.flush();
  if (polled[1].revents)
    reap();
  if (polled[2].revents)
    on_timer();
  for (unsigned i = 0; i < max_connections; ++i)
    if (polled[3 + i].revents && connections_[i].fd == polled[3 + i].fd)
      read_connection(connections_[i]);
  if (polled[fence_at].revents && fence_.open())
    hear_master(fence_.on_ready());
  if (polled[zygote_at].revents && asking() && zygote_ >= 0)
    hear_zygote();
  if (polled[gate_at].revents && asking())
    hear_gate();
  if (polled[etc_at].revents)
    if (auto f = over_etc_.on_ready())
      note(f.text);
  if (polled[0].revents)
    accept_connection();
}

void supervisor::ask_master() {
  next_ask_ms_ = boot_ms() + ask_again_ms;
  if (fence_.open())
    fence_.give_up();
  else
    fence_.begin(phase_ == phase::ended);
}

void supervisor::hear_master(fence::answer said) {
  if (phase_ == phase::ended)
    death_told_ = death_told_ || said == fence::answer::go_on;
  else if (said == fence::answer::kill &&
           lonely_since_ms_) { // otherwise an agent came meanwhile, and decides
    fenced_ = true;
    next_ask_ms_ = 0;
    kill_all("killed");
  }
}

std::int64_t supervisor::fence_deadline() const {
  if (!fence_.known())
    return never;
  if (fence_.open())
    return fence_.gives_up_at_ms();
  if (phase_ == phase::running && lonely_since_ms_)
    return lonely_since_ms_ + spec_.adopt_ms > next_ask_ms_ ? lonely_since_ms_ + spec_.adopt_ms
                                                            : next_ask_ms_;
  return phase_ == phase::ended && fenced_ && !death_told_ ? next_ask_ms_ : never;
}

std::int64_t supervisor::next_deadline() const {
  auto first = life_deadline();
  for (auto other :
       {fence_deadline(), listen_deadline(), state_deadline(), asking() && !frozen_ ? ask_until_ms_ : never})
    first = other < first ? other : first;
  return first;
}

std::int64_t supervisor::life_deadline() const {
  switch (phase_) {
  case phase::spare:
    return lonely_since_ms_ ? lonely_since_ms_ + box_.spare_idle_ms : never;
  case phase::running:
    return frozen_ ? frozen_since_ms_ + spec_.frozen_kill_ms : lease_end_ms_;
  case phase::ending:
    return retry_at_ms_ ? retry_at_ms_ : never;
  case phase::ended: {
    const auto over = ended_at_ms_ + spec_.linger_ms;
    return record_synced_ || ended_at_ms_ + sync_after_ms > over ? over : ended_at_ms_ + sync_after_ms;
  }
  }
  return never;
}

/// When to listen again: without an agent this waits at its socket, and where the socket could not be made it
/// tries again.
std::int64_t supervisor::listen_deadline() const {
  return lonely_since_ms_ && box_.listener < 0 ? next_listen_ms_ : never;
}

void supervisor::wait_for_an_agent() {
  if (box_.listener >= 0)
    return;
  next_listen_ms_ = listen_here(box_.listener) ? boot_ms() + listen_again_ms : never;
}

void supervisor::arm_timer() {
  static std::int64_t armed = -1;
  auto deadline = next_deadline();
  if (deadline == armed)
    return;
  armed = deadline;
  itimerspec when{};
  if (deadline != never) {
    when.it_value.tv_sec = deadline / 1000;
    when.it_value.tv_nsec = deadline % 1000 * 1'000'000 + 1;
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void supervisor::on_timer() {
  std::uint64_t count;
  (void)!read(timer_, &count, sizeof count);
  if (boot_ms() >= fence_deadline())
    ask_master();
  if (boot_ms() >= listen_deadline())
    wait_for_an_agent();
  if (asking() && !frozen_ && boot_ms() >= ask_until_ms_)
    start_cold("the zygote did not answer in time");
  give_states();
  if (boot_ms() < life_deadline())
    return;
  switch (phase_) {
  case phase::running:
    if (!frozen_)
      freeze("lease");
    else
      kill_all("lease");
    return;
  case phase::ending:
    retry_at_ms_ = 0;
    signal_everything(box_.pid_namespace, SIGKILL);
    reap();
    return;
  case phase::ended:
    if (!record_synced_) {
      sync_record();
      if (boot_ms() < life_deadline())
        return;
    }
    [[fallthrough]];
  case phase::spare:
    gone_ = true;
  }
}

void supervisor::reap() {
  signalfd_siginfo told[16];
  while (read(children_, told, sizeof told) > 0)
    ;
  (void)collect();
  check_end();
}

bool supervisor::collect() {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
    for (std::size_t n = 0; n < ranks_.size; ++n)
      if (ranks_[n].pid == pid && !ranks_[n].ended)
        note_end(n, status);
  return pid < 0 && errno == ECHILD;
}

void supervisor::note_end(std::size_t n, int status) {
  auto& rank = ranks_[n];
  rank.ended = true;
  rank.at_us = wall_us();
  if (rank.value == 0) { // otherwise `value` is the code of a command that could not be run
    rank.signalled = WIFSIGNALED(status);
    rank.value = rank.signalled ? WTERMSIG(status) : WEXITSTATUS(status);
  }
  rank.killed = killed_ && rank.signalled && rank.value == SIGKILL;
  rank.oom = !rank.killed && rank.signalled && rank.value == SIGKILL && out_of_memory_kills() > oom_before_;
  char text[128];
  describe_end(n, text, sizeof text);
  tell_all(text);
}

/// Kills what is left once every rank has ended; the end is reported when nothing is left.
void supervisor::check_end() {
  if (phase_ == phase::running) {
    for (auto& rank : ranks_)
      if (!rank.ended)
        return;
    phase_ = phase::ending;
    signal_everything(box_.pid_namespace, SIGKILL);
  }
  if (phase_ != phase::ending)
    return;
  if (collect())
    return finish();
  // Without a pid namespace a fork may have escaped the search: search again.
  if (!box_.pid_namespace && !retry_at_ms_)
    retry_at_ms_ = boot_ms() + retry_ms;
}

void supervisor::finish() {
  for (std::size_t i = 0; i < streams_.size; ++i)
    if (streams_[i].fd >= 0) {
      read_stream(i / 2, i % 2, true);
      close_stream(i / 2, i % 2);
    }
  spool_.flush();
  if (!ended_us_)
    ended_us_ = wall_us();
  if (!write_record()) {
    retry_at_ms_ = boot_ms() + 10 * retry_ms;
    return;
  }
  phase_ = phase::ended;
  frozen_ = false;
  ended_at_ms_ = boot_ms();
  if (lonely_since_ms_)
    sync_record();
  tell_all("exited\n");
}

/// An agent that hears of the end forgets the task when the master has it on disk, mostly within
/// milliseconds. So the record is synced only where no agent hears of it, or none has forgotten the task yet.
void supervisor::sync_record() {
  record_synced_ = true;
  if (draft_ >= 0)
    fsync(draft_);
  fsync(box_.folder);
}

bool supervisor::write_record() {
  static char text[128 * max_ranks + 2048];
  int n = snprintf(text, sizeof text, "troupe-exit 1\nid %s\nat %lld\nwhy %s%s%s\n", spec_.id,
                   static_cast<long long>(ended_us_), why_, *failure_.text ? " " : "", failure_.text);
  for (std::size_t i = 0; i < ranks_.size; ++i) {
    auto& rank = ranks_[i];
    n += snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "rank %zu %s %d at %lld %s%s%s\n", i,
                  rank.signalled ? "signal" : "code", rank.value, static_cast<long long>(rank.at_us),
                  rank.killed ? "k" : "", rank.oom ? "o" : "", rank.killed || rank.oom ? "" : "-");
  }
  n += snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "end\n");
  if (draft_ < 0)
    draft_ = openat(box_.folder, exit_draft, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  struct stat about {};
  return draft_ >= 0 && pwrite(draft_, text, static_cast<std::size_t>(n), 0) == n &&
         ((fstat(draft_, &about) == 0 && about.st_size == n) || ftruncate(draft_, n) == 0) &&
         renameat(box_.folder, exit_draft, box_.folder, exit_file) == 0;
}

void supervisor::freeze(const char* why) {
  if (phase_ != phase::running || frozen_)
    return;
  frozen_ = true;
  frozen_since_ms_ = boot_ms();
  frozen_why_ = why;
  stop_all();
  char text[64];
  snprintf(text, sizeof text, "frozen %s\n", why);
  tell_all(text);
}

/// Without a pid namespace a fork can escape a search; a stopped process cannot fork, so a few searches find
/// all.
void supervisor::stop_all() {
  for (int search = 0; search < 50; ++search)
    if (signal_everything(box_.pid_namespace, SIGSTOP) == 0)
      return;
}

void supervisor::thaw(std::int64_t lease_ms) {
  lease_end_ms_ = lease_ms ? boot_ms() + lease_ms : never;
  if (!frozen_ || phase_ != phase::running)
    return;
  frozen_ = false;
  signal_everything(box_.pid_namespace, SIGCONT);
  tell_all("thawed\n");
}

void supervisor::kill_all(const char* why) {
  if (phase_ == phase::spare)
    gone_ = true;
  if (phase_ != phase::running)
    return;
  why_ = why;
  killed_ = true;
  stop_asking();
  phase_ = phase::ending;
  if (!box_.pid_namespace)
    stop_all();
  signal_everything(box_.pid_namespace, SIGKILL);
  if (!box_.pid_namespace)
    retry_at_ms_ = boot_ms() + retry_ms;
  reap();
}

void supervisor::signal_ranks(int number) {
  for (auto& rank : ranks_)
    if (rank.pid > 0 && !rank.ended)
      kill(-rank.pid, number);
}

} // namespace troupe::task_init

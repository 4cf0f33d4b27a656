#include "runtime/launch/node_keeper.hpp"
#include "runtime/launch/ssh_words.hpp"
#include "system/sh_word.hpp"

#include "workers/owned_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::launch {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 200ms;
constexpr auto end_limit = 30s;

std::string text(const value& x, const char* key) {
  auto it = x.is_object() ? x.find(key) : x.end();
  return x.is_object() && it != x.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// Starts a child with its output in `log`, in its own process group, so that only this process gets Ctrl-C.
/// The child gets SIGTERM when the calling thread ends. Makes only calls that are safe after fork.
pid_t spawn(const std::vector<std::string>& words, const std::filesystem::path& log, bool dies_with_us) {
  std::vector<char*> argv;
  for (const auto& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  workers::owned_fd out{::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
  workers::owned_fd in{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  if (!out || !in)
    return -1;
  const auto parent = ::getpid();
  const auto child = ::fork();
  if (child != 0)
    return child;
  ::setpgid(0, 0);
  if (dies_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent)
      ::_exit(0);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(in.get(), 0);
  ::dup2(out.get(), 1);
  ::dup2(out.get(), 2);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); // sockets of libraries: the child would keep our port taken
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

std::string slots_words(const value& node) {
  auto slots = node.find("slots");
  return slots != node.end() && slots->is_number_integer() ? slots->dump() : std::string();
}

} // namespace

node_keeper::node_keeper(keeper_setup setup)
    : setup_(std::move(setup)), machine_((setup_.data_dir / "nodes").string()), thread_([this] { work(); }) {}

node_keeper::~node_keeper() { stop(); }

void node_keeper::want(const value& configuration) {
  std::lock_guard lock(mutex_);
  auto nodes = configuration.is_object() ? configuration.find("nodes") : configuration.end();
  wanted_ = configuration.is_object() && nodes != configuration.end() ? *nodes : value::array();
  wake_.notify_all();
}

void node_keeper::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable())
    thread_.join();
}

void node_keeper::work() {
  for (;;) {
    std::optional<value> news;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, look_every, [this] { return stop_ || wanted_; });
      if (stop_)
        break;
      news = std::exchange(wanted_, std::nullopt);
    }
    if (news)
      step(nodes_wanted{std::move(*news)});
    reap();
    step(clock_ticked{});
  }
  std::vector<std::thread> ends; // all hosts are told at once
  for (const auto& one : machine_.stop()) {
    const auto pid = taken_pid(one.name);
    ends.emplace_back([this, one, pid] { end(one.name, one.node, pid); });
  }
  for (auto& one : ends)
    one.join();
}

void node_keeper::step(const keeper_event& ev) {
  const auto now = time_point{std::chrono::duration_cast<duration>(clock::now().time_since_epoch())};
  for (const auto& action : machine_.apply(ev, now))
    std::visit([this](const auto& x) { run(x); }, action);
}

void node_keeper::reap() {
  std::vector<child_ended> ended;
  for (auto it = pids_.begin(); it != pids_.end();) {
    int status = 0;
    if (::waitpid(it->second, &status, WNOHANG) == 0) {
      ++it;
      continue;
    }
    ended.push_back(
      {it->first, WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0});
    it = pids_.erase(it);
  }
  for (const auto& one : ended)
    step(one);
}

void node_keeper::run(const kill_ssh& x) {
  if (auto it = pids_.find(x.name); it != pids_.end())
    ::kill(-it->second, SIGKILL); // reaped at the next check
}

void node_keeper::run(const end_agent& x) { end(x.name, x.node, taken_pid(x.name)); }

void node_keeper::run(const start_agent& x) {
  const auto pid = start(x.name, x.node);
  const auto fault = errno;
  if (pid > 0)
    pids_[x.name] = pid;
  step(start_tried{x.name, pid > 0 ? std::string() : std::strerror(fault)});
}

/// Returns 0 where no child is kept under this name.
pid_t node_keeper::taken_pid(const std::string& name) {
  auto found = pids_.extract(name);
  return found ? found.mapped() : 0;
}

std::vector<std::string> node_keeper::agent_words(const std::string& name, const value& node) const {
  std::vector<std::string> words{setup_.program.string(),
                                 "agent",
                                 "--master",
                                 setup_.master,
                                 "--name",
                                 name,
                                 "--data-dir",
                                 (setup_.data_dir / "nodes" / name).string()};
  if (auto slots = slots_words(node); !slots.empty())
    words.insert(words.end(), {"--slots", slots});
  if (!setup_.tls_dir.empty())
    words.insert(words.end(), {"--tls-dir", setup_.tls_dir.string()});
  return words;
}

/// A script for the shell of the other host: it starts the agent unless it runs. `key=value` comes first, so
/// that `ps` shows it.
std::string node_keeper::start_script(const std::string& name, const value& node) const {
  const auto& ssh = node["ssh"];
  const auto dir = text(ssh, "data_dir"), binary = text(ssh, "binary"), master = text(ssh, "master");
  std::string script =
    fmt::format("set -e; umask 077; dir={}; ",
                dir.empty() ? "$HOME/.local/share/troupe-agent/" + sh_word(name) : sh_word(dir));
  script += "mkdir -p \"$dir\"; ";
  // Whoever holds the lock is alive; the pid in it is needed to end the agent.
  script += "if [ -e \"$dir/lock\" ] && ! flock -n \"$dir/lock\" true; then exit 0; fi; ";
  if (!setup_.tls_dir.empty())
    script += "[ -e \"$dir/tls/agent.key\" ] || exit 45; ";
  script += fmt::format("bin={}; ", sh_word(binary.empty() ? setup_.program.string() : binary));
  if (binary.empty())
    script += "[ -x \"$bin\" ] || bin=\"$HOME/.local/share/troupe-program/bin/troupe\"; ";
  script += "[ -x \"$bin\" ] || exit 44; ";
  script += fmt::format("exec \"$bin\" agent --daemon --master {} --name {} --data-dir \"$dir\"",
                        sh_word(master.empty() ? setup_.master : master), sh_word(name));
  if (auto slots = slots_words(node); !slots.empty())
    script += " --slots " + slots;
  if (!setup_.tls_dir.empty())
    script += " --tls-dir \"$dir/tls\"";
  return script;
}

pid_t node_keeper::start(const std::string& name, const value& node) {
  std::error_code ignored;
  std::filesystem::create_directories(setup_.data_dir / "nodes", ignored);
  const auto log = setup_.data_dir / "nodes" / (name + ".log");
  if (!is_remote(node)) {
    return spawn(agent_words(name, node), log, true);
  } else {
    auto line = [&](const std::string& script) { return command_line(ssh_words(node, script)) + " "; };
    // Exit code 44: the program is missing there; 45: the certificates are. What is missing is copied.
    std::string tar = "tar czf - ";
    for (const auto& path : setup_.copied)
      tar +=
        fmt::format("-C {} {} ", sh_word(path.parent_path().string()), sh_word(path.filename().string()));
    const auto unpack = std::string("set -e; d=$HOME/.local/share/troupe-program; rm -rf \"$d.new\"; mkdir "
                                    "-p \"$d.new/bin\" \"$d.new/share/troupe/python\"; "
                                    "tar xzf - -C \"$d.new/bin\"; mv \"$d.new/bin/python\"/* "
                                    "\"$d.new/share/troupe/python/\"; rm -rf \"$d\"; mv \"$d.new\" \"$d\"");
    const auto dir = text(node["ssh"], "data_dir");
    const auto folder = dir.empty() ? "$HOME/.local/share/troupe-agent/" + sh_word(name) : sh_word(dir);
    const auto keys = fmt::format("set -e; umask 077; mkdir -p {}/tls; tar xzf - -C {}/tls", folder, folder);
    const auto begin = line(start_script(name, node));
    std::string all = fmt::format("for try in 1 2 3; do {}; code=$?; case $code in ", begin);
    all += fmt::format("44) echo 'the program is copied there'; {}| {} || exit 44;; ", tar, line(unpack));
    all += fmt::format("45) echo 'the certificates are copied there'; tar czf - -C {} ca.pem agent.pem "
                       "agent.key join-token | {} || exit 45;; ",
                       sh_word(setup_.tls_dir.string()), line(keys));
    all += "*) exit $code;; esac; done; exit 44";
    return spawn({"sh", "-c", all}, log, true);
  }
}

void node_keeper::end(const std::string& name, const value& node, pid_t child) {
  const auto until = clock::now() + end_limit;
  auto wait_for = [&](pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (clock::now() > until) {
        ::kill(-pid, SIGKILL);
        ::waitpid(pid, &status, 0);
        return;
      }
      std::this_thread::sleep_for(20ms);
    }
  };
  if (!is_remote(node)) {
    if (child > 0) {
      ::kill(child, SIGUSR1); // ends its tasks too
      wait_for(child);
    }
    return;
  }
  if (child > 0) {
    ::kill(-child, SIGTERM);
    wait_for(child);
  }
  const auto dir = text(node["ssh"], "data_dir");
  const auto script =
    fmt::format("dir={}; [ -e \"$dir/lock\" ] || exit 0; flock -n \"$dir/lock\" true && exit 0; kill -USR1 "
                "$(sed -n 's/^pid //p' \"$dir/lock\"); flock -w 20 \"$dir/lock\" true",
                dir.empty() ? "$HOME/.local/share/troupe-agent/" + sh_word(name) : sh_word(dir));
  if (auto pid = spawn(ssh_words(node, script), setup_.data_dir / "nodes" / (name + ".log"), false); pid > 0)
    wait_for(pid);
}

std::string join_command(const value& node, const std::string& master, const std::filesystem::path& tls_dir) {
  std::string out =
    fmt::format("troupe agent --master {} --name {} --data-dir DIR", master, text(node, "name"));
  if (auto slots = slots_words(node); !slots.empty())
    out += " --slots " + slots;
  if (!tls_dir.empty())
    out +=
      fmt::format(" --tls-dir TLS   (ca.pem, agent.pem, agent.key and join-token of {})", tls_dir.string());
  return out;
}

} // namespace troupe::launch

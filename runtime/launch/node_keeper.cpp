#include "runtime/launch/node_keeper.hpp"
#include "runtime/launch/ssh_words.hpp"

#include "workers/owned_fd.hpp"

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
constexpr auto longest_wait = std::chrono::milliseconds(30s);
constexpr auto good_life = 60s;    ///< life after which the back-off begins anew
constexpr auto remote_every = 20s; ///< an agent on another host is looked for
constexpr auto ssh_limit = 120s;
constexpr auto end_limit = 30s;

std::string text(const value& x, const char* key) {
  auto it = x.is_object() ? x.find(key) : x.end();
  return x.is_object() && it != x.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// A child with its output in `log`, in a process group of its own, so that Ctrl-C reaches this process
/// alone. It hears SIGTERM when the calling thread ends. Only calls that are safe after fork stand between.
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
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

std::string slots_words(const value& node) {
  auto slots = node.find("slots");
  return slots != node.end() && slots->is_number_integer() ? slots->dump() : std::string();
}

} // namespace

bool node_keeper::kept::is_remote() const { return node.contains("ssh") && node["ssh"].is_object(); }

node_keeper::node_keeper(keeper_setup setup) : setup_(std::move(setup)), thread_([this] { work(); }) {}

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
      reconcile(*news);
    for (auto& [name, one] : nodes_)
      tend(name, one);
  }
  std::vector<std::thread> ends; // hosts are told at once
  for (auto& [name, one] : nodes_)
    ends.emplace_back([this, &name = name, &one = one] { end(name, one); });
  for (auto& one : ends)
    one.join();
}

void node_keeper::reconcile(const value& nodes) {
  std::map<std::string, value> named;
  for (const auto& one : nodes)
    if (!one.value("manual", false))
      named[text(one, "name")] = one;
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    auto same = named.find(it->first);
    if (same != named.end() && same->second == it->second.node) {
      ++it;
      continue;
    }
    setup_.say("node " + it->first +
               (same == named.end() ? ": its agent is stopped" : ": its agent is started again"));
    end(it->first, it->second);
    it = nodes_.erase(it);
  }
  for (auto& [name, one] : named)
    if (!nodes_.contains(name)) {
      kept fresh;
      fresh.node = one;
      nodes_.emplace(name, std::move(fresh));
    }
}

void node_keeper::tend(const std::string& name, kept& one) {
  const auto now = clock::now();
  if (one.pid > 0) {
    int status = 0;
    const auto got = ::waitpid(one.pid, &status, WNOHANG);
    if (got == 0) {
      if (one.is_remote() && now > one.begun + ssh_limit)
        ::kill(-one.pid, SIGKILL); // the next look reaps it
      return;
    }
    one.pid = 0;
    const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (one.is_remote() && good) {
      if (!std::exchange(one.up, true))
        setup_.say("node " + name + ": its agent runs on " + text(one.node, "host"));
      one.wait = 500ms;
      one.due = now + remote_every;
      return;
    }
    one.up = false;
    if (now - one.begun > good_life)
      one.wait = 500ms;
    setup_.say("node " + name + ": " + (one.is_remote() ? "ssh" : "its agent") +
               (WIFEXITED(status) ? " ended with exit code " + std::to_string(WEXITSTATUS(status))
                                  : " was killed by signal " + std::to_string(WTERMSIG(status))) +
               "; again in " + std::to_string(one.wait.count()) + " ms; its log is " +
               (setup_.data_dir / "nodes" / (name + ".log")).string());
    one.due = now + one.wait;
    one.wait = std::min(one.wait * 2, longest_wait);
    return;
  }
  if (now >= one.due)
    start(name, one);
}

std::vector<std::string> node_keeper::agent_words(const std::string& name, const kept& one) const {
  std::vector<std::string> words{setup_.program.string(),
                                 "agent",
                                 "--master",
                                 setup_.master,
                                 "--name",
                                 name,
                                 "--data-dir",
                                 (setup_.data_dir / "nodes" / name).string()};
  if (auto slots = slots_words(one.node); !slots.empty())
    words.insert(words.end(), {"--slots", slots});
  if (!setup_.tls_dir.empty())
    words.insert(words.end(), {"--tls-dir", setup_.tls_dir.string()});
  return words;
}

/// Run by the shell of the other host: starts the agent unless it runs. `key=value` first, so that a reader
/// of `ps` sees them.
std::string node_keeper::start_script(const std::string& name, const kept& one) const {
  const auto& ssh = one.node["ssh"];
  const auto dir = text(ssh, "data_dir"), binary = text(ssh, "binary"), master = text(ssh, "master");
  std::string script = "set -e; umask 077; dir=" +
                       (dir.empty() ? "$HOME/.local/share/troupe-agent/" + quoted(name) : quoted(dir)) + "; ";
  script += "mkdir -p \"$dir\"; ";
  // Alive is who holds the lock; its pid is for the end.
  script += "if [ -e \"$dir/lock\" ] && ! flock -n \"$dir/lock\" true; then exit 0; fi; ";
  if (!setup_.tls_dir.empty())
    script += "[ -e \"$dir/tls/agent.key\" ] || exit 45; ";
  script += "bin=" + quoted(binary.empty() ? setup_.program.string() : binary) + "; ";
  if (binary.empty())
    script += "[ -x \"$bin\" ] || bin=\"$HOME/.local/share/troupe-program/bin/troupe\"; ";
  script += "[ -x \"$bin\" ] || exit 44; ";
  script += "exec \"$bin\" agent --daemon --master " + quoted(master.empty() ? setup_.master : master) +
            " --name " + quoted(name) + " --data-dir \"$dir\"";
  if (auto slots = slots_words(one.node); !slots.empty())
    script += " --slots " + slots;
  if (!setup_.tls_dir.empty())
    script += " --tls-dir \"$dir/tls\"";
  return script;
}

void node_keeper::start(const std::string& name, kept& one) {
  std::error_code ignored;
  std::filesystem::create_directories(setup_.data_dir / "nodes", ignored);
  const auto log = setup_.data_dir / "nodes" / (name + ".log");
  one.begun = clock::now();
  if (!one.is_remote()) {
    one.pid = spawn(agent_words(name, one), log, true);
  } else {
    auto line = [&](const std::string& script) { return command_line(ssh_words(one.node, script)) + " "; };
    // 44: the program is missing there, 45: the certificates are. What is missing is copied.
    std::string tar = "tar czf - ";
    for (const auto& path : setup_.copied)
      tar += "-C " + quoted(path.parent_path().string()) + " " + quoted(path.filename().string()) + " ";
    const auto unpack = std::string("set -e; d=$HOME/.local/share/troupe-program; rm -rf \"$d.new\"; mkdir "
                                    "-p \"$d.new/bin\" \"$d.new/share/troupe/python\"; "
                                    "tar xzf - -C \"$d.new/bin\"; mv \"$d.new/bin/python\"/* "
                                    "\"$d.new/share/troupe/python/\"; rm -rf \"$d\"; mv \"$d.new\" \"$d\"");
    const auto dir = text(one.node["ssh"], "data_dir");
    const auto folder = dir.empty() ? "$HOME/.local/share/troupe-agent/" + quoted(name) : quoted(dir);
    const auto keys = "set -e; umask 077; mkdir -p " + folder + "/tls; tar xzf - -C " + folder + "/tls";
    const auto begin = line(start_script(name, one));
    std::string all = "for try in 1 2 3; do " + begin + "; code=$?; case $code in ";
    all += "44) echo 'the program is copied there'; " + tar + "| " + line(unpack) + " || exit 44;; ";
    all += "45) echo 'the certificates are copied there'; tar czf - -C " + quoted(setup_.tls_dir.string()) +
           " ca.pem agent.pem agent.key join-token | " + line(keys) + " || exit 45;; ";
    all += "*) exit $code;; esac; done; exit 44";
    one.pid = spawn({"sh", "-c", all}, log, true);
  }
  if (one.pid <= 0) {
    one.pid = 0;
    setup_.say("node " + name + ": cannot start it: " + std::strerror(errno));
    one.due = clock::now() + one.wait;
    one.wait = std::min(one.wait * 2, longest_wait);
  }
}

void node_keeper::end(const std::string& name, kept& one) {
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
  if (!one.is_remote()) {
    if (one.pid > 0) {
      ::kill(one.pid, SIGUSR1); // with its tasks
      wait_for(one.pid);
    }
    one.pid = 0;
    return;
  }
  if (one.pid > 0) {
    ::kill(-one.pid, SIGTERM);
    wait_for(one.pid);
    one.pid = 0;
  }
  const auto dir = text(one.node["ssh"], "data_dir");
  const auto script =
    "dir=" + (dir.empty() ? "$HOME/.local/share/troupe-agent/" + quoted(name) : quoted(dir)) +
    "; [ -e \"$dir/lock\" ] || exit 0; flock -n \"$dir/lock\" true && exit 0; "
    "kill -USR1 $(sed -n 's/^pid //p' \"$dir/lock\"); flock -w 20 \"$dir/lock\" true";
  if (auto pid = spawn(ssh_words(one.node, script), setup_.data_dir / "nodes" / (name + ".log"), false);
      pid > 0)
    wait_for(pid);
}

std::string join_command(const value& node, const std::string& master, const std::filesystem::path& tls_dir) {
  std::string out = "troupe agent --master " + master + " --name " + text(node, "name") + " --data-dir DIR";
  if (auto slots = slots_words(node); !slots.empty())
    out += " --slots " + slots;
  if (!tls_dir.empty())
    out += " --tls-dir TLS   (ca.pem, agent.pem, agent.key and join-token of " + tls_dir.string() + ")";
  return out;
}

} // namespace troupe::launch

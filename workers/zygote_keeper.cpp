#include "workers/zygote_keeper.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

namespace troupe::workers {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t kept_output = 2000;
constexpr int control_fd = 3;
constexpr int most_heard = 100; ///< messages of one zygote that are read before the next zygote's turn

/// Only a forked process opens it, and has put the script's name into its place by then.
std::string placeholder() { return "/troupe-zygote/" + std::string(4080, '-'); }

bool is_own(std::string_view pair) {
  const auto name = pair.substr(0, pair.find('='));
  for (std::string_view prefix : {"DET_", "TROUPE_"})
    if (name.starts_with(prefix))
      return true;
  for (std::string_view one :
       {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
        "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_MAX_RESTARTS", "DTRAIN_SSH_PORT", "INTER_TRAIN_PROCESS_COMM_PORT_1",
        "INTER_TRAIN_PROCESS_COMM_PORT_2", "C10D_PORT", "CUDA_VISIBLE_DEVICES"})
    if (name == one)
      return true;
  return false;
}

std::string value_of(const std::vector<std::string>& env, std::string_view name) {
  for (const auto& pair : env)
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=')
      return pair.substr(name.size() + 1);
  return {};
}

void set(std::vector<std::string>& env, const std::string& name, const std::string& text) {
  std::erase_if(env, [&](const auto& pair) { return pair.starts_with(name + "="); });
  env.push_back(name + "=" + text);
}

bool send_text(int socket, const std::string& text, const int* fds = nullptr, std::size_t count = 0) {
  iovec bytes{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(text.size());
}

std::int64_t modified_ns(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    return -1;
  return about.st_mtim.tv_sec * 1'000'000'000ll + about.st_mtim.tv_nsec;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    auto end = std::min(text.find('\0', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The last line that was written: where Python fails, it names the error.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

} // namespace

std::vector<std::string> shared_variables(const std::vector<std::string>& env) {
  std::vector<std::string> shared;
  std::copy_if(env.begin(), env.end(), std::back_inserter(shared),
               [](const auto& pair) { return !is_own(pair); });
  std::sort(shared.begin(), shared.end());
  return shared;
}

std::string zygote_key(const zygote_order& order) {
  std::string key = order.program + '\0' + order.name;
  for (const auto& pair : shared_variables(order.env))
    key += '\0' + pair;
  return key;
}

class zygote_keeper::inside {
public:
  explicit inside(zygote_options options) : options_(std::move(options)) {}

  result<void> open() {
    for (const auto& path : {options_.library, options_.hook / "sitecustomize.py"})
      if (::access(path.c_str(), R_OK) != 0)
        return error{errc::not_found, "zygote: " + path.string() + ": " + strerror(errno)};
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_)
      return error{errc::io, std::string("zygote: ") + strerror(errno)};
    thread_ = std::thread([this] { work(); });
    return {};
  }

  ~inside() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    if (wake_)
      ::eventfd_write(wake_.get(), 1);
    if (thread_.joinable())
      thread_.join();
  }

  result<owned_fd> attach(zygote_order order) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      return error{errc::io, std::string("zygote: ") + strerror(errno)};
    owned_fd theirs{ends[0]};
    {
      std::lock_guard lock(mutex_);
      wanted_.push_back({std::move(order), owned_fd{ends[1]}});
    }
    ::eventfd_write(wake_.get(), 1);
    return theirs;
  }

  void learn(const std::string& key, const std::string& modules) {
    std::lock_guard lock(mutex_);
    auto known = learned_.find(key);
    if (known == learned_.end()) {
      if (learned_.size() >= most_learned_keys)
        return;
      known = learned_.emplace(key, learned{}).first;
    }
    auto& names = known->second.names;
    for (std::size_t begin = 0; begin < modules.size();) {
      const auto end = std::min(modules.find('\n', begin), modules.size());
      const auto name = modules.substr(begin, end - begin);
      begin = end + 1;
      if (is_module(name) && names.size() < most_learned &&
          known->second.bytes + name.size() < most_learned_bytes &&
          std::find(names.begin(), names.end(), name) == names.end()) {
        known->second.bytes += name.size() + 1;
        names.push_back(name);
      }
    }
  }

private:
  struct learned {
    std::vector<std::string> names; ///< modules in the order of their first import
    std::size_t bytes = 0;
    bool over = false; ///< whether one of the modules cannot be warm: nothing more is learned
  };
  static constexpr std::size_t most_learned_keys = 64, most_learned = 600,
                               most_learned_bytes = 16'000; // a message to a zygote holds 64 KiB

  static bool is_module(const std::string& name) {
    return !name.empty() && name.size() < 200 && !std::isdigit(static_cast<unsigned char>(name[0])) &&
           std::all_of(name.begin(), name.end(),
                       [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  }

  std::string learned_for(const std::string& key) {
    std::lock_guard lock(mutex_);
    std::string text;
    if (auto it = learned_.find(key); it != learned_.end() && !it->second.over)
      for (const auto& name : it->second.names)
        text += (text.empty() ? "" : " ") + name;
    return text;
  }

  struct request {
    zygote_order order;
    owned_fd connection;
  };
  struct zygote {
    int pid = 0;
    owned_fd control, output;
    bool warming = true; ///< true from its start on
    std::string output_tail, failure;
    std::vector<std::string> contexts; ///< contexts that the zygote was asked to serve, the newest last
    std::map<std::string, std::int64_t> watched;
    clock::time_point used, heard;
    int unanswered = 0; ///< pings that it has not answered
  };

  void work() {
    while (true) {
      std::deque<request> now;
      {
        std::lock_guard lock(mutex_);
        if (stopping_)
          break;
        now.swap(wanted_);
      }
      for (auto& x : now)
        hand_on(x);
      now.clear(); // others hold the connections now
      std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
      std::vector<std::string> keys;
      for (auto& [key, z] : zygotes_) {
        polled.push_back({z.control.get(), POLLIN, 0});
        polled.push_back({z.output.get(), POLLIN, 0});
        keys.push_back(key);
      }
      if (::poll(polled.data(), polled.size(), wait_ms()) < 0)
        continue;
      eventfd_t count;
      if (polled[0].revents)
        ::eventfd_read(wake_.get(), &count);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        auto& z = zygotes_.at(keys[i]);
        if (polled[2 * i + 2].revents)
          read_output(z);
        if (polled[2 * i + 1].revents)
          listen_to(keys[i]);
      }
      on_time();
    }
    for (auto& [key, z] : zygotes_)
      end(z);
  }

  /// Reads what the zygote has written so far, and drops a zygote that has ended.
  void listen_to(const std::string& key) {
    auto& z = zygotes_.at(key);
    auto got = heard::more;
    for (int n = 0; n < most_heard && got == heard::more; ++n)
      if ((got = hear(z)) == heard::end) {
        if (z.failure.starts_with("learned ")) { // an import that the script did not ask for is not a reason
                                                 // to do without a zygote
          std::lock_guard lock(mutex_);
          learned_[key].over = true;
          z.failure.clear();
          z.warming = false;
        }
        return drop(key, z.failure.empty() ? "it ended: " + last_line(z.output_tail) : z.failure);
      }
  }

  void hand_on(request& x) {
    const auto shared = shared_variables(x.order.env);
    const auto key = zygote_key(x.order);
    const auto now = clock::now();
    if (auto it = zygotes_.find(key); it != zygotes_.end() && has_changed(it->second))
      drop(key, {});
    if (auto it = off_.find(key + '\0' + x.order.context); it != off_.end()) {
      if (now < it->second.until) {
        send_text(x.connection.get(), "no " + it->second.why);
        return;
      }
      off_.erase(it);
    }
    auto it = zygotes_.find(key);
    if (it == zygotes_.end()) {
      make_room();
      zygote fresh;
      if (auto ok = spawn(fresh, x.order, shared); !ok) {
        send_text(x.connection.get(), "no " + ok.error().what);
        return;
      }
      fresh.used = fresh.heard = now;
      it = zygotes_.emplace(key, std::move(fresh)).first;
    }
    auto& z = it->second;
    z.used = now;
    if (z.unanswered == 0)
      z.heard = now;
    std::erase(z.contexts, x.order.context);
    z.contexts.push_back(x.order.context);
    const int fds[] = {x.connection.get(), x.order.folder.get()};
    if (send_text(z.control.get(),
                  "serve" + std::string(1, '\0') + x.order.context + '\0' + x.order.script + '\0' +
                    learned_for(key),
                  fds, 2) &&
        send_text(z.control.get(), "ping"))
      ++z.unanswered;
    else if (const bool ended = errno == EPIPE || errno == ECONNRESET; !ended)
      send_text(x.connection.get(), "no the zygote takes no more: it is busy");
    else if (listen_to(key); !zygotes_.contains(key))
      hand_on(x); // gives it to a new zygote, or says why there is none
    else
      send_text(x.connection.get(), "no the zygote ended");
  }

  result<void> spawn(zygote& z, const zygote_order& order, const std::vector<std::string>& shared) {
    int control[2], output[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0)
      return error{errc::io, std::string("zygote: ") + strerror(errno)};
    z.control.reset(control[0]);
    owned_fd its_control{control[1]};
    if (::pipe2(output, O_CLOEXEC) != 0)
      return error{errc::io, std::string("zygote: ") + strerror(errno)};
    z.output.reset(output[0]);
    owned_fd its_output{output[1]};
    ::fcntl(z.output.get(), F_SETFL, O_NONBLOCK);

    auto env = shared;
    // Otherwise numerical libraries start threads while they are imported, and a fork keeps only one thread.
    // The zygote also gets the trials' own numbers.
    for (const char* library :
         {"OMP", "MKL", "OPENBLAS", "GOTO", "NUMEXPR", "BLIS", "VECLIB_MAXIMUM", "RAYON"}) {
      const auto name = std::string(library) + "_NUM_THREADS";
      if (auto wanted = value_of(env, name); !wanted.empty())
        set(env, "TROUPE_ZYGOTE_" + name, wanted);
      if (name != "GOTO_NUM_THREADS")
        set(env, name, "1");
    }
    // The threads that a forked process starts spin for 2 to the power of this number of processor cycles
    // before they first sleep. The default of 28 is a tenth of a second for each, more than a short trial's
    // own work. With 20 a product takes no longer than before.
    if (value_of(env, "OPENBLAS_THREAD_TIMEOUT").empty())
      set(env, "OPENBLAS_THREAD_TIMEOUT", "20");
    if (value_of(env, "JE_ARROW_MALLOC_CONF").empty()) // pyarrow's allocator, which pandas brings in
      set(env, "JE_ARROW_MALLOC_CONF", "background_thread:false");
    set(env, "PYTORCH_NVML_BASED_CUDA_CHECK", "1");
    auto path = value_of(env, "PYTHONPATH");
    set(env, "PYTHONPATH", options_.hook.string() + (path.empty() ? "" : ":" + path));
    set(env, "TROUPE_ZYGOTE_CONTROL", std::to_string(control_fd));
    set(env, "TROUPE_ZYGOTE_OWNER", options_.owner);
    set(env, "TROUPE_ZYGOTE_LIBRARY", options_.library.string());
    std::vector<char*> variables;
    for (auto& pair : env)
      variables.push_back(pair.data());
    variables.push_back(nullptr);
    auto name = order.name, script = placeholder();
    char* arguments[] = {name.data(), script.data(), nullptr};

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, its_output.get(), 1);
    posix_spawn_file_actions_adddup2(&files, its_output.get(), 2);
    posix_spawn_file_actions_adddup2(&files, its_control.get(), control_fd);
    posix_spawn_file_actions_addclosefrom_np(&files, control_fd + 1);
    posix_spawn_file_actions_addchdir_np(&files, "/");
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    int why = ::posix_spawn(&z.pid, order.program.c_str(), &files, &attributes, arguments, variables.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (why != 0)
      return error{errc::io, "starting " + order.program + ": " + strerror(why)};
    return {};
  }

  void read_output(zygote& z) {
    char bytes[4096];
    auto n = ::read(z.output.get(), bytes, sizeof bytes);
    if (n <= 0) {
      if (n == 0 || errno != EAGAIN)
        z.output.reset(); // poll then skips it
      return;
    }
    z.output_tail.append(bytes, static_cast<std::size_t>(n));
    if (z.output_tail.size() > kept_output)
      z.output_tail.erase(0, z.output_tail.size() - kept_output);
  }

  enum class heard { nothing, more, end };
  heard hear(zygote& z) {
    char bytes[8192];
    auto n = ::recv(z.control.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0) // after a reset, what the zygote wrote before it ended can still be read
      return errno == EINTR || errno == ECONNRESET ? heard::more : heard::nothing;
    if (n == 0) {
      if (z.output)
        read_output(z);
      return heard::end;
    }
    const std::string text(bytes, static_cast<std::size_t>(n));
    z.heard = clock::now();
    if (text == "pong")
      --z.unanswered;
    else if (text == "warming" || text == "ready")
      z.warming = text == "warming";
    else if (text.starts_with("failed "))
      z.failure = text.substr(7);
    else if (text.starts_with("hello")) {
      const auto parts = split(text);
      for (std::size_t i = 1; i + 1 < parts.size(); i += 2)
        z.watched[parts[i]] = std::strtoll(parts[i + 1].c_str(), nullptr, 10);
    } else if (text.starts_with("stale "))
      z.watched["stale"] = 0; // no such file exists, so it counts as changed
    return heard::more;
  }

  static bool has_changed(const zygote& z) {
    return std::any_of(z.watched.begin(), z.watched.end(),
                       [](const auto& x) { return modified_ns(x.first) != x.second; });
  }

  clock::time_point deadline(const zygote& z) const {
    if (z.unanswered == 0)
      return z.used + options_.idle;
    return z.heard + (z.warming ? options_.warm_up : options_.answer);
  }

  int wait_ms() const {
    auto first = clock::time_point::max();
    for (const auto& [key, z] : zygotes_)
      first = std::min(first, deadline(z));
    if (first == clock::time_point::max())
      return -1;
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(first - clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left + 1, 0, 1'000'000));
  }

  void on_time() {
    const auto now = clock::now();
    std::vector<std::string> due;
    for (const auto& [key, z] : zygotes_)
      if (deadline(z) <= now)
        due.push_back(key);
    for (const auto& key : due) {
      const auto& z = zygotes_.at(key);
      const bool idle = z.unanswered == 0;
      const bool warming = z.warming;
      drop(key, idle ? std::string()
                : warming
                  ? "its warm-up took longer than " + std::to_string(options_.warm_up.count() / 1000) + " s"
                  : std::string());
    }
  }

  /// Where `why` is not empty, trials of its last context start without a zygote for a while.
  void drop(const std::string& key, const std::string& why) {
    auto& z = zygotes_.at(key);
    if (!why.empty() && z.warming && !z.contexts.empty())
      off_[key + '\0' + z.contexts.back()] = {why, clock::now() + options_.off};
    end(z);
    zygotes_.erase(key);
    if (off_.size() > 1000)
      off_.clear();
  }

  static void end(zygote& z) {
    ::kill(z.pid, SIGKILL); // the process is not reaped yet, so the number is still its own
    while (::waitpid(z.pid, nullptr, 0) < 0 && errno == EINTR)
      ;
  }

  void make_room() {
    while (zygotes_.size() >= options_.most) {
      auto oldest = std::min_element(zygotes_.begin(), zygotes_.end(), [](const auto& a, const auto& b) {
        return a.second.used < b.second.used;
      });
      drop(std::string(oldest->first), {});
    }
  }

  struct switched_off {
    std::string why;
    clock::time_point until;
  };

  const zygote_options options_;
  owned_fd wake_;
  std::mutex mutex_; ///< guards the next three members
  std::deque<request> wanted_;
  bool stopping_ = false;
  std::map<std::string, learned> learned_; ///< by zygote key; guarded by mutex_
  std::map<std::string, zygote> zygotes_;
  std::map<std::string, switched_off> off_;
  std::thread thread_;
};

zygote_keeper::zygote_keeper(std::unique_ptr<inside> i) : inside_(std::move(i)) {}
zygote_keeper::~zygote_keeper() = default;

result<std::unique_ptr<zygote_keeper>> zygote_keeper::start(zygote_options options) {
  auto i = std::make_unique<inside>(std::move(options));
  if (auto ok = i->open(); !ok)
    return ok.error();
  return std::unique_ptr<zygote_keeper>(new zygote_keeper(std::move(i)));
}

void zygote_keeper::learn(const std::string& key, const std::string& modules) {
  inside_->learn(key, modules);
}

result<owned_fd> zygote_keeper::attach(zygote_order order) { return inside_->attach(std::move(order)); }

} // namespace troupe::workers

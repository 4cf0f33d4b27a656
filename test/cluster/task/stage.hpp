#pragma once
// A process runtime on a fresh folder, its events in order, and looks into /proc.

#include "workers/log_spool.hpp"
#include "workers/process_runtime.hpp"

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <sys/stat.h>

namespace troupe::test {

using namespace workers;

inline constexpr auto patience = std::chrono::seconds(20);

inline std::string task_program() {
  const char* given = std::getenv("TROUPE_TASK_PROGRAM");
  return given ? given : TROUPE_TASK_PROGRAM;
}

/// Pids whose environment has TROUPE_TASK_ID=`id`, zombies aside.
inline std::vector<int> processes_of(const std::string& id) {
  std::vector<int> found;
  std::error_code fault;
  for (std::filesystem::directory_iterator it("/proc", fault), end; it != end; it.increment(fault)) {
    int pid = std::atoi(it->path().filename().c_str());
    if (pid <= 0)
      continue;
    std::ifstream file(it->path() / "environ", std::ios::binary);
    std::string environ{std::istreambuf_iterator<char>(file), {}};
    if (('\0' + environ).find('\0' + ("TROUPE_TASK_ID=" + id) + '\0') != std::string::npos)
      found.push_back(pid);
  }
  return found;
}

/// The state letter of a process: 'T' stopped, 0 gone.
inline char process_state(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string
    text; // getline: reading of one that ends right now fails, which the iterators of the buffer throw
  std::getline(file, text);
  auto at = text.rfind(')');
  return at == std::string::npos ? '\0' : text[at + 2];
}

inline bool eventually(const std::function<bool()>& holds) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline)
      return false;
    never.wait_for(lock, std::chrono::milliseconds(2));
  }
  return true;
}

class stage {
public:
  explicit stage(bool namespaces = true) {
    static int count = 0;
    char pattern[] = "/tmp/troupe-stage-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    prefix_ = "t" + std::to_string(::getpid()) + "." + std::to_string(++count) + ".";
    options.root = folder_ / "tasks";
    options.program = task_program();
    options.namespaces = namespaces;
    options.sandbox.lease = std::chrono::seconds(60);
  }
  ~stage() {
    if (runtime) {
      for (const auto& task : runtime->list()) {
        if (runtime->kill(task.id))
          eventually([&] { return has_ended(task.id); });
        (void)runtime->forget(task.id);
      }
      eventually([&] { return runtime->list().empty(); });
    }
    runtime.reset();
    std::error_code fault;
    std::filesystem::remove_all(folder_, fault);
  }

  void open() {
    runtime.reset();
    auto made = process_runtime::start(options, [this](const task_event& event) {
      std::lock_guard lock(mutex_);
      events_.push_back(event);
      arrived_.notify_all();
    });
    ASSERT_TRUE(made) << made.error().what;
    runtime = std::move(*made);
  }

  /// Runs `sh -c script` in one rank.
  std::string run(const std::string& script, const std::function<void(task_spec&)>& change = {},
                  owned_fd zygote = {}) {
    task_spec spec;
    spec.id = prefix_ + std::to_string(++tasks_);
    spec.ranks.push_back({{"sh", "-c", script}, {"PATH=/usr/local/bin:/usr/bin:/bin"}, "/"});
    if (change)
      change(spec);
    auto ok = runtime->launch(spec, std::move(zygote));
    EXPECT_TRUE(ok) << ok.error().what;
    return spec.id;
  }

  /// The first event of kind T about `id` that was not taken yet; fails the test after `patience`.
  template <class T>
  T await(const std::string& id) {
    std::unique_lock lock(mutex_);
    T found{};
    bool ok = arrived_.wait_for(lock, patience, [&] {
      for (auto it = events_.begin(); it != events_.end(); ++it)
        if (auto* event = std::get_if<T>(&*it); event && event->id == id) {
          found = *event;
          events_.erase(it);
          return true;
        }
      return false;
    });
    EXPECT_TRUE(ok) << "no such event of task " << id;
    return found;
  }

  template <class T>
  bool heard(const std::string& id) {
    std::lock_guard lock(mutex_);
    for (const auto& event : events_)
      if (auto* x = std::get_if<T>(&event); x && x->id == id)
        return true;
    return false;
  }

  std::size_t await_inventory() {
    std::unique_lock lock(mutex_);
    std::size_t tasks = 0;
    bool ok = arrived_.wait_for(lock, patience, [&] {
      for (auto it = events_.begin(); it != events_.end(); ++it)
        if (auto* event = std::get_if<inventory_taken>(&*it)) {
          tasks = event->tasks;
          events_.erase(it);
          return true;
        }
      return false;
    });
    EXPECT_TRUE(ok) << "no inventory";
    return tasks;
  }

  bool has_ended(const std::string& id) const {
    for (const auto& task : runtime->list())
      if (task.id == id)
        return task.phase == task_phase::exited || task.phase == task_phase::lost;
    return true;
  }

  std::vector<log_line> log(const std::string& id) {
    std::vector<log_line> all;
    log_position at;
    while (true) {
      auto batch = read_log(runtime->spool(id), at, 1000, 1 << 20);
      EXPECT_TRUE(batch) << batch.error().what;
      if (!batch)
        return all;
      all.insert(all.end(), batch->lines.begin(), batch->lines.end());
      at = batch->next;
      if (batch->at_end)
        return all;
    }
  }

  /// The text of a stream, lines joined by newlines.
  std::string text(const std::string& id, log_stream stream = log_stream::out) {
    std::string all;
    for (const auto& line : log(id))
      if (line.stream == stream)
        all += line.text + (line.continues || line.unended ? "" : "\n");
    return all;
  }

  int helper_pid(const std::string& id) {
    std::ifstream file(options.root / id / "helper");
    int pid = 0;
    file >> pid;
    return pid;
  }

  std::filesystem::path folder() const { return folder_; }

  process_runtime_options options;
  std::unique_ptr<process_runtime> runtime;

private:
  std::filesystem::path folder_;
  std::string prefix_;
  int tasks_ = 0;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<task_event> events_;
};

/// Every test runs in namespaces and in a process group.
class EitherIsolation : public ::testing::TestWithParam<isolation> {
protected:
  void SetUp() override { s.open(); }
  bool namespaces() const { return GetParam() == isolation::namespaces; }
  stage s{GetParam() == isolation::namespaces};
};

inline const auto both_isolations = ::testing::Values(isolation::namespaces, isolation::process_group);

inline std::string isolation_name(const ::testing::TestParamInfo<isolation>& info) {
  return info.param == isolation::namespaces ? "InNamespaces" : "InAProcessGroup";
}

} // namespace troupe::test

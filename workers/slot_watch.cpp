#include "workers/slot_watch.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace troupe::workers {

namespace {

struct process {
  std::int64_t parent = 0;
  process_use use;
};

/// The text of a file, empty where it cannot be read. A process may end between opening and reading: the read
/// then fails, for which an istreambuf_iterator would throw.
std::string whole(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

// Field 4 is the parent, 14 to 17 the times, 24 the resident pages; field 2, the name, may hold anything but
// ends at the last ')'.
std::optional<process> read_stat(const std::filesystem::path& file) {
  const auto text = whole(file);
  const auto name_end = text.rfind(')');
  if (name_end == text.npos)
    return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  process p;
  fields >> skipped >> p.parent;
  for (int i = 5; i < 14; ++i)
    fields >> skipped;
  for (int i = 0; i < 4; ++i) {
    std::uint64_t n = 0;
    fields >> n;
    p.use.ticks += n;
  }
  if (!fields)
    return std::nullopt;
  for (int i = 18; i < 24; ++i)
    fields >> skipped;
  std::uint64_t pages = 0;
  if (fields >> pages)
    p.use.resident_bytes = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return p;
}

/// Bytes read from and written to disks; they stay 0 where the kernel does not count them or does not show
/// them.
void read_io(const std::filesystem::path& file, process_use& into) {
  std::istringstream lines(whole(file));
  std::string name;
  for (std::uint64_t bytes = 0; lines >> name >> bytes;)
    if (name == "read_bytes:")
      into.read_bytes += bytes;
    else if (name == "write_bytes:")
      into.written_bytes += bytes;
}

} // namespace

std::map<std::int64_t, process_use> use_of_trees(const std::vector<std::int64_t>& roots,
                                                 const std::string& proc) {
  std::map<std::int64_t, process_use> sums;
  for (const auto root : roots)
    sums[root] = {};
  if (roots.empty())
    return sums;
  std::map<std::int64_t, process> all;
  std::error_code fault;
  for (std::filesystem::directory_iterator it(proc, fault), end; !fault && it != end; it.increment(fault)) {
    const auto name = it->path().filename().string();
    std::int64_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size())
      continue;
    if (auto p = read_stat(it->path() / "stat"))
      all[pid] = *p;
  }
  for (const auto& [pid, p] : all) {
    auto at = pid;
    for (int depth = 0; depth < 64; ++depth) {
      if (auto sum = sums.find(at); sum != sums.end()) {
        sum->second.ticks += p.use.ticks;
        sum->second.resident_bytes += p.use.resident_bytes;
        read_io(std::filesystem::path(proc) / std::to_string(pid) / "io", sum->second);
        break;
      }
      auto up = all.find(at);
      if (up == all.end())
        break;
      at = up->second.parent;
    }
  }
  return sums;
}

slot_watch::slot_watch(std::shared_ptr<slot_devices> devices, int slots, std::chrono::milliseconds every)
    : devices_(std::move(devices)), slots_(slots), every_(every),
      processor_(devices_ ? "" : processor_name()), thread_([this] { run(); }) {}

slot_watch::~slot_watch() {
  {
    std::lock_guard guard(lock_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void slot_watch::hold(std::vector<held> tasks) {
  std::lock_guard guard(lock_);
  held_ = std::move(tasks);
}

std::vector<slot_look> slot_watch::newest() const {
  std::lock_guard guard(lock_);
  return newest_;
}

std::vector<task_look> slot_watch::newest_of_tasks() const {
  std::lock_guard guard(lock_);
  return tasks_;
}

std::uint64_t slot_watch::looks() const {
  std::lock_guard guard(lock_);
  return looks_;
}

void slot_watch::run() {
  std::unique_lock guard(lock_);
  while (!closing_) {
    const auto held = held_;
    guard.unlock();
    auto tasks = look_at_tasks(held);
    auto seen = devices_ ? devices_->look() : look_at_processors(held, tasks);
    guard.lock();
    newest_ = std::move(seen);
    tasks_ = std::move(tasks);
    ++looks_;
    changed_.wait_for(guard, every_, [this] { return closing_; });
  }
}

std::vector<task_look> slot_watch::look_at_tasks(const std::vector<held>& tasks) {
  std::vector<std::int64_t> roots;
  for (const auto& task : tasks)
    if (task.pid > 0)
      roots.push_back(task.pid);
  auto used = use_of_trees(roots);
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - looked_at_).count();
  std::vector<task_look> looks;
  for (const auto& [pid, use] : used) {
    auto& look = looks.emplace_back();
    look.pid = pid;
    if (use.resident_bytes > 0)
      look.memory_bytes = static_cast<double>(use.resident_bytes);
    const auto before = used_.find(pid);
    if (before == used_.end() || seconds <= 0)
      continue;
    // The newer sum may lack what processes used that have ended meanwhile.
    const auto rate = [&](std::uint64_t older, std::uint64_t newer) {
      return static_cast<double>(newer - std::min(older, newer)) / seconds;
    };
    look.cpu_percent =
      std::round(1000 * rate(before->second.ticks, use.ticks) / static_cast<double>(sysconf(_SC_CLK_TCK))) /
      10;
    look.read_bytes_per_s = std::round(rate(before->second.read_bytes, use.read_bytes));
    look.write_bytes_per_s = std::round(rate(before->second.written_bytes, use.written_bytes));
  }
  used_ = std::move(used);
  looked_at_ = now;
  return looks;
}

std::vector<slot_look> slot_watch::look_at_processors(const std::vector<held>& tasks,
                                                      const std::vector<task_look>& used) const {
  std::vector<slot_look> looks(static_cast<std::size_t>(slots_));
  for (auto& x : looks) {
    x.kind = "cpu";
    x.name = processor_;
    x.utilization_percent = 0;
  }
  for (const auto& task : tasks) {
    const auto look =
      std::find_if(used.begin(), used.end(), [&](const task_look& x) { return x.pid == task.pid; });
    for (const int slot : task.slots) {
      if (slot < 0 || slot >= slots_)
        continue;
      auto& shown = looks[static_cast<std::size_t>(slot)].utilization_percent;
      shown.reset(); // unknown before the second look
      if (look != used.end() && look->cpu_percent)
        shown = std::round(10 * *look->cpu_percent / static_cast<double>(task.slots.size())) / 10;
    }
  }
  return looks;
}

} // namespace troupe::workers

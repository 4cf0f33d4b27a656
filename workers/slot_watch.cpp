#include "workers/slot_watch.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

namespace troupe::workers {

namespace {

struct process {
  std::int64_t parent = 0;
  std::uint64_t ticks = 0;
};

// Field 4 is the parent, 14 to 17 the times; field 2, the name, may hold anything but ends at the last ')'.
std::optional<process> read_stat(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text((std::istreambuf_iterator<char>(in)), {});
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
    p.ticks += n;
  }
  return fields ? std::optional(p) : std::nullopt;
}

} // namespace

std::map<std::int64_t, std::uint64_t> ticks_of_trees(const std::vector<std::int64_t>& roots,
                                                     const std::string& proc) {
  std::map<std::int64_t, std::uint64_t> sums;
  for (const auto root : roots)
    sums[root] = 0;
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
        sum->second += p.ticks;
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

std::uint64_t slot_watch::looks() const {
  std::lock_guard guard(lock_);
  return looks_;
}

void slot_watch::run() {
  std::unique_lock guard(lock_);
  while (!closing_) {
    guard.unlock();
    auto seen = devices_ ? devices_->look() : look_at_processors();
    guard.lock();
    newest_ = std::move(seen);
    ++looks_;
    changed_.wait_for(guard, every_, [this] { return closing_; });
  }
}

std::vector<slot_look> slot_watch::look_at_processors() {
  std::vector<held> tasks;
  {
    std::lock_guard guard(lock_);
    tasks = held_;
  }
  std::vector<std::int64_t> roots;
  for (const auto& task : tasks)
    if (task.pid > 0)
      roots.push_back(task.pid);
  auto ticks = ticks_of_trees(roots);
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - looked_at_).count();
  std::vector<slot_look> looks(static_cast<std::size_t>(slots_));
  for (auto& x : looks) {
    x.kind = "cpu";
    x.name = processor_;
    x.utilization_percent = 0;
  }
  for (const auto& task : tasks) {
    auto before = ticks_.find(task.pid);
    const auto used = ticks.find(task.pid);
    for (const int slot : task.slots) {
      if (slot < 0 || slot >= slots_)
        continue;
      auto& shown = looks[static_cast<std::size_t>(slot)].utilization_percent;
      shown.reset(); // not known before the second look
      if (before == ticks_.end() || used == ticks.end() || seconds <= 0)
        continue;
      const auto more = static_cast<double>(used->second - std::min(before->second, used->second));
      shown = std::round(1000 * more / static_cast<double>(sysconf(_SC_CLK_TCK)) / seconds /
                         static_cast<double>(task.slots.size())) /
              10;
    }
  }
  ticks_ = std::move(ticks);
  looked_at_ = now;
  return looks;
}

} // namespace troupe::workers

#include "runtime/provider/local_provider.hpp"

#include "system/run_command.hpp"
#include "system/whole_file.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <set>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace troupe::provider {
namespace fs = std::filesystem;
namespace {

using clock = std::chrono::steady_clock;
constexpr const char* record_name = "instance.json";
constexpr auto end_limit = std::chrono::seconds(20);

/// The pid in a lock file if a process holds the lock (0: the file has no pid); none if nobody holds it.
std::optional<int> holder_of(const fs::path& lock) {
  const int fd = ::open(lock.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return std::nullopt;
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0;
  ::close(fd);
  if (!held)
    return std::nullopt;
  int pid = 0;
  if (const auto text = read_whole(lock); text && *text)
    if (const auto at = (*text)->find("pid "); at != std::string::npos)
      std::from_chars((*text)->data() + at + 4, (*text)->data() + (*text)->size(), pid);
  return pid;
}

/// Whether the process with this pid was started with this folder; the system uses pids again.
bool is_agent(int pid, const fs::path& folder) {
  const auto words = read_whole(fs::path("/proc") / std::to_string(pid) / "cmdline");
  return pid > 0 && words && *words && (*words)->find(folder.string()) != std::string::npos;
}

} // namespace

local_provider::local_provider(const value& settings, world where)
    : where_(std::move(where)), slots_(settings.value("instance_slots", 1)) {
  if (const auto all = settings.value("labels", value()); all.is_object())
    for (const auto& [key, content] : all.items())
      labels_.push_back(key + "=" + (content.is_string() ? content.get<std::string>() : to_json(content)));
}

bool local_provider::is_ours(const std::string& id) const {
  const auto prefix = where_.pool + "-";
  return id.starts_with(prefix) && id.size() > prefix.size() && id.size() < prefix.size() + 8 &&
         std::all_of(id.begin() + static_cast<std::ptrdiff_t>(prefix.size()), id.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> local_provider::names() const {
  std::vector<std::string> out;
  std::error_code fault;
  for (const auto& one : fs::directory_iterator(where_.folder, fault))
    if (const auto name = one.path().filename().string(); is_ours(name) && one.is_directory(fault))
      out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<local_provider::local_agent> local_provider::look(const std::string& id) const {
  const auto folder = where_.folder / id;
  const auto record = read_whole(folder / record_name);
  local_agent out;
  if (record && *record)
    if (const auto said = parse_json(**record); said && said->is_object()) {
      out.pid = said->value("pid", 0);
      out.launched = from_rfc3339(said->value("launched", std::string())).value_or(time_point{});
    }
  if (const auto holder = holder_of(folder / "lock")) {
    out.running = true;
    out.pid = *holder;
    return out;
  }
  return is_agent(out.pid, folder) ? std::optional(out) : std::nullopt;
}

result<std::vector<cloud_instance>> local_provider::list() {
  std::vector<cloud_instance> out;
  for (const auto& id : names())
    if (const auto agent = look(id))
      out.push_back({id, agent->running ? cloud_instance::phase::running : cloud_instance::phase::starting,
                     id, agent->launched});
  return out;
}

result<std::vector<std::string>> local_provider::launch(int count) {
  std::error_code fault;
  fs::create_directories(where_.folder, fault);
  if (fault)
    return error{errc::io, "launch: " + where_.folder.string() + " cannot be made: " + fault.message()};
  std::vector<std::string> ids;
  for (int n = 1; static_cast<int>(ids.size()) < count; ++n) {
    const auto id = where_.pool + "-" + std::to_string(n);
    if (look(id))
      continue;
    const auto folder = where_.folder / id;
    fs::create_directories(folder, fault);
    std::vector<std::string> words{where_.program.string(),
                                   "agent",
                                   "--master",
                                   where_.master,
                                   "--name",
                                   id,
                                   "--pool",
                                   where_.pool,
                                   "--slots",
                                   std::to_string(slots_),
                                   "--data-dir",
                                   folder.string()};
    for (const auto& label : labels_)
      words.insert(words.end(), {"--label", label});
    if (!where_.tls_dir.empty())
      words.insert(words.end(), {"--tls-dir", where_.tls_dir.string()});
    const auto pid = start_detached(words, (where_.folder / (id + ".log")).string());
    if (!pid) {
      if (ids.empty())
        return error{pid.error().code, "launch: " + pid.error().what};
      break;
    }
    const auto now = std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
    const value record{{"pid", *pid}, {"launched", to_rfc3339(time_point{now.time_since_epoch()})}};
    static_cast<void>(replace_file(folder / record_name, to_json(record)));
    ids.push_back(id);
  }
  return ids;
}

/// Ends instances together with their tasks.
result<void> local_provider::terminate(const std::vector<std::string>& ids) {
  std::set<std::string> left;
  for (const auto& id : ids) {
    if (!is_ours(id))
      continue;
    if (const auto agent = look(id); agent && agent->pid > 0) {
      ::kill(agent->pid, agent->running ? SIGUSR1 : SIGTERM);
      left.insert(id);
    }
  }
  for (const auto until = clock::now() + end_limit; !left.empty();) {
    std::erase_if(left, [&](const std::string& id) {
      const auto agent = look(id);
      if (agent && agent->pid > 0 && clock::now() > until)
        ::kill(agent->pid, SIGKILL);
      return !agent;
    });
    if (clock::now() > until)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (left.empty())
    return {};
  return error{errc::timeout,
               "terminate: the agent " + *left.begin() + " did not end in 20 s and was killed"};
}

void local_provider::close() {
  const auto all = names();
  static_cast<void>(terminate(all));
}

} // namespace troupe::provider

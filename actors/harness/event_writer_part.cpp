#include "actors/harness/event_writer_part.hpp"

#include "actors/allocation/task_launch.hpp"
#include "actors/host/task_files_part.hpp"
#include "workers/event_files.hpp"
#include "workers/owned_fd.hpp"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using workers::owned_fd;

time_point now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

/// The folder `name` in `above`, made if it does not exist. A link is not followed, because a task may own
/// the folder.
owned_fd folder_in(const owned_fd& above, const std::string& name) {
  constexpr int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  owned_fd found{::openat(above.get(), name.c_str(), how)};
  if (!found && errno == ENOENT && (::mkdirat(above.get(), name.c_str(), 0755) == 0 || errno == EEXIST))
    found = owned_fd{::openat(above.get(), name.c_str(), how)};
  return found;
}

/// Whether the folder holds a file with this ending.
bool has_file(const owned_fd& folder, std::string_view ending) {
  owned_fd again{::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  DIR* const all = again ? ::fdopendir(again.get()) : nullptr;
  if (!all)
    return false;
  again.release();
  bool found = false;
  while (const auto* one = found ? nullptr : ::readdir(all))
    found = std::string_view(one->d_name).ends_with(ending);
  ::closedir(all);
  return found;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "host";
}

} // namespace

event_writer::event_writer(fs::path tasks, std::function<void(const std::string&)> complain)
    : tasks_(std::move(tasks)), complain_(std::move(complain)), thread_([this] { work(); }) {}

event_writer::~event_writer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (auto& [id, one] : files_)
    if (one.fd >= 0)
      ::close(one.fd);
}

void event_writer::add(allocation_id of, std::vector<storage::report_batch::report> reports) {
  if (reports.empty())
    return;
  {
    std::lock_guard lock(mutex_);
    if (waiting_ + reports.size() > most_waiting)
      return;
    waiting_ += reports.size();
    jobs_.push_back({of, std::move(reports)});
  }
  changed_.notify_one();
}

void event_writer::end(allocation_id of) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({of, {}});
  }
  changed_.notify_one();
}

void event_writer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty())
      return;
    auto todo = std::exchange(jobs_, {});
    waiting_ = 0;
    lock.unlock();
    for (const auto& one : todo)
      write(one);
    lock.lock();
  }
}

void event_writer::write(const job& x) {
  if (x.reports.empty()) {
    if (auto it = files_.find(x.of); it != files_.end()) {
      if (it->second.fd >= 0)
        ::close(it->second.fd);
      files_.erase(it);
    }
    return;
  }
  auto& to = open(x.of);
  if (to.fd < 0)
    return;
  std::string bytes;
  for (const auto& one : x.reports)
    if (const auto values = workers::event_values(one.metrics, one.group == "validation"); !values.empty())
      bytes += workers::event_scalars(one.at, one.steps, values);
  if (!write_all(to.fd, bytes))
    refuse(x.of, to, std::strerror(errno));
}

void event_writer::refuse(allocation_id of, file& x, const std::string& why) {
  if (x.fd >= 0)
    ::close(x.fd);
  x.fd = -1;
  x.refused = true;
  complain_("event files of " + to_string(of) + ": " + why);
}

/// Opens the event file of an allocation: each run and each life of the agent has a file of its own.
event_writer::file& event_writer::open(allocation_id of) {
  auto& to = files_[of];
  if (to.fd >= 0 || to.refused)
    return to;
  std::ifstream in(tasks_ / to_string(of) / launch_file, std::ios::binary);
  const auto launch = decode_launch(std::string(std::istreambuf_iterator<char>(in), {}));
  // The launch order of a task that an earlier version started does not say where event files go.
  if (!of.task.is_trial() || !launch || launch->checkpoint_dir.empty() || launch->cluster_id.empty() ||
      launch->experiment.value == 0) {
    to.refused = true;
    return to;
  }
  owned_fd folder{::open(launch->checkpoint_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  for (const auto& part : {launch->cluster_id, std::string("tensorboard"), std::string("experiment"),
                           to_string(launch->experiment), std::string("trial"), to_string(of.task)})
    if (folder)
      folder = folder_in(folder, part);
  struct stat about {};
  const auto at = now();
  const auto ending = "." + std::to_string(of.run.value) + ".troupe";
  const auto name = "events.out.tfevents." + std::to_string(at.time_since_epoch().count() / 1'000'000) + "." +
                    host_name() + "." + std::to_string(::getpid()) + ending;
  // The agent was started again while this run goes on.
  const bool goes_on = folder && has_file(folder, ending);
  if (folder)
    to.fd =
      ::openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (to.fd < 0 || ::fstat(to.fd, &about) != 0) {
    refuse(of, to, std::strerror(errno));
    return to;
  }
  struct stat of_folder {};
  if (::fstat(folder.get(), &of_folder) == 0 && of_folder.st_uid != ::geteuid())
    (void)!::fchown(to.fd, of_folder.st_uid, of_folder.st_gid);
  if (about.st_size > 0)
    return to; // the file was opened again within the same second
  auto begin = workers::event_file_header(at);
  // Makes TensorBoard forget what earlier runs reported beyond the checkpoint from which this run resumes.
  // TensorBoard takes the first such record of a trial for the trial's beginning, so that the first run
  // writes one, too.
  if (!goes_on)
    begin += workers::event_restart(at, launch->resume_steps > 0 ? launch->resume_steps + 1 : 0);
  if (!write_all(to.fd, begin))
    refuse(of, to, std::strerror(errno));
  return to;
}

} // namespace troupe

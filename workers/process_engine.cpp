#include "workers/process_engine.hpp"

#include "workers/task_init/task_format.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace troupe::workers {
namespace {

constexpr std::size_t max_orders = 4096;
constexpr std::size_t max_unsent = 16;
constexpr char spare_prefix[] = "spare-";
constexpr char free_prefix[] = ".free-";
constexpr std::size_t most_free = 64;
constexpr char run_line[] = "run\n";

owned_fd open_folder(int root, const std::string& name) {
  return owned_fd{::openat(root, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
}

bool send_run(int socket, int spec, const owned_fd& zygote) {
  return zygote ? send_with(socket, run_line, {spec, zygote.get()}) : send_with(socket, run_line, {spec});
}

bool has(int folder, const char* name) { return ::faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0; }

} // namespace

result<void> process_runtime::engine::open() {
  std::error_code fault;
  std::filesystem::create_directories(options_.root, fault);
  root_.reset(::open(options_.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root_)
    return error{errc::io, "task folder " + options_.root.string() + ": " +
                             (fault ? fault.message() : std::string(strerror(errno)))};
  if (::access(options_.program.c_str(), X_OK) != 0)
    return error{errc::io, "troupe-task at " + options_.program.string() + ": " + strerror(errno)};
  poll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!poll_ || !wake_)
    return error{errc::io, std::string("task runtime: ") + strerror(errno)};
  for (const auto& entry : std::filesystem::directory_iterator(options_.root, fault))
    if (auto name = entry.path().filename().string();
        name.starts_with(stage_prefix) || name.starts_with(free_prefix))
      remove_tree(root_.get(), name.c_str()); // prepared for a launch that never came
  // Where this succeeds, no sandbox has to cover /run to add the folder.
  (void)::mkdir("/run/determined", 0755);
  watch(wake_.get(), source::wake, 0);
  open_nursery();
  worker_ = std::thread([this] { work(); });
  sweeper_ = std::thread([this] { remove_folders(); });
  return {};
}

process_runtime::engine::~engine() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  swept_.notify_all();
  if (wake_)
    ::eventfd_write(wake_.get(), 1);
  if (worker_.joinable())
    worker_.join();
  if (sweeper_.joinable())
    sweeper_.join();
  for (const auto& name : free_)
    remove_tree(root_.get(), name.c_str());
  close_nursery();
  for (auto& [serial, box] : boxes_) {
    if (box.starter_pid) // lives for milliseconds; nobody else reaps it
      ::waitpid(box.starter_pid, nullptr, 0);
    if (!box.id.empty())
      continue;
    if (!box.helper)
      box.helper = open_helper(box.folder.get());
    kill_helper(box);
    remove_tree(root_.get(), box.folder_name.c_str());
  }
}

// Orders

result<void> process_runtime::engine::queue(order x, bool wake) {
  // The caller holds the lock.
  if (orders_.size() >= max_orders)
    return error{errc::busy, "task runtime: " + std::to_string(max_orders) + " orders wait"};
  orders_.push_back(std::move(x));
  if (wake)
    ::eventfd_write(wake_.get(), 1);
  return {};
}

result<void> process_runtime::engine::launch(const task_spec& spec, owned_fd zygote) {
  auto bytes = encode(spec, settings_now());
  std::lock_guard lock(mutex_);
  if (known_.contains(spec.id))
    return error{errc::conflict, "task " + spec.id + ": is known already, " + name(known_[spec.id].phase)};
  // A spare is told here, which saves a task the way through the other thread. The order is queued first, so
  // that the thread knows whose start it hears of. A folder that exists already cannot be the spare's.
  ready_spare spare;
  auto mine = prepared_.find(spec.id);
  const bool prepared = mine != prepared_.end();
  if (prepared)
    spare = mine->second;
  else if (!ready_.empty() && !has(root_.get(), spec.id.c_str()) &&
           !has(root_.get(), (stage_prefix + spec.id).c_str()))
    spare = ready_.back();
  auto file = spare.serial ? file_in_memory(bytes) : result<owned_fd>(owned_fd{});
  if (!file && prepared)
    return file.error();
  if (!file)
    spare = {};
  if (prepared)
    prepared_.erase(mine);
  else if (spare.serial)
    ready_.pop_back();
  owned_fd to_send{spare.serial && zygote ? ::fcntl(zygote.get(), F_DUPFD_CLOEXEC, 0) : -1};
  if (auto ok =
        queue(launch_order{spec.id, std::move(bytes), spare.serial, std::move(zygote)}, !spare.serial);
      !ok) {
    if (prepared)
      prepared_[spec.id] = spare;
    else if (spare.serial)
      ready_.push_back(spare);
    return ok;
  }
  // Where this fails the connection is broken, and the order is sent again over the next one.
  if (spare.serial) {
    if (spare.socket >= 0)
      (void)send_run(spare.socket, file->get(), to_send);
    ::eventfd_write(wake_.get(), 1);
  }
  known_[spec.id] = {spec.id, task_phase::starting, 0};
  return {};
}

result<std::filesystem::path> process_runtime::engine::prepare(const std::string& id) {
  if (!valid_task_id(id))
    return error{errc::invalid, "task '" + id.substr(0, 140) + "': not an id"};
  const auto stage = stage_prefix + id;
  std::lock_guard lock(mutex_);
  if (known_.contains(id) || prepared_.contains(id) || has(root_.get(), stage.c_str()))
    return error{errc::conflict, "task " + id + ": is known already"};
  if (!ready_.empty() &&
      !has(root_.get(), id.c_str())) { // a folder that exists already cannot be the spare's
    auto spare = ready_.back();
    ready_.pop_back();
    prepared_[id] = spare;
    return options_.root / spare.folder_name;
  }
  while (!free_.empty() && !has(root_.get(), id.c_str())) {
    const auto used = std::move(free_.back());
    free_.pop_back();
    if (::renameat2(root_.get(), used.c_str(), root_.get(), stage.c_str(), RENAME_NOREPLACE) == 0)
      return options_.root / stage;
  }
  const auto run = stage + "/" + task_format::run_folder;
  if (::mkdirat(root_.get(), stage.c_str(), 0755) != 0 || ::mkdirat(root_.get(), run.c_str(), 0755) != 0)
    return error{errno == ENOSPC ? errc::no_space : errc::io,
                 "task " + id + ": a folder for its files: " + strerror(errno)};
  return options_.root / stage;
}

void process_runtime::engine::discard(const std::string& id) {
  std::lock_guard lock(mutex_);
  if (auto it = prepared_.find(id); it != prepared_.end()) {
    if (it->second.socket >= 0)
      (void)::send(it->second.socket, "bye\n", 4, MSG_NOSIGNAL | MSG_DONTWAIT); // ends it and its folder
    prepared_.erase(it);
  }
  sweeps_.push_back({stage_prefix + id, true, {}, {}});
  swept_.notify_all();
}

result<void> process_runtime::engine::adopt_all() {
  std::lock_guard lock(mutex_);
  return queue(adopt_order{});
}

void process_runtime::engine::set_leases(std::chrono::milliseconds lease, std::chrono::milliseconds adopt) {
  lease_ms_ = lease.count();
  adopt_ms_ = adopt.count();
}

sandbox_settings process_runtime::engine::settings_now() const {
  auto settings = options_.sandbox;
  if (const auto lease = lease_ms_.load(); lease > 0)
    settings.lease = std::chrono::milliseconds(lease);
  if (const auto adopt = adopt_ms_.load(); adopt >= 0)
    settings.adopt = std::chrono::milliseconds(adopt);
  return settings;
}

result<void> process_runtime::engine::renew_all() {
  std::lock_guard lock(mutex_);
  return queue(renew_all_order{});
}

result<task_phase> process_runtime::engine::phase_of(const std::string& id) const {
  auto it = known_.find(id);
  if (it == known_.end())
    return error{errc::not_found, "task " + id + ": not known on this host"};
  return it->second.phase;
}

result<void> process_runtime::engine::send(const std::string& id, std::string line) {
  std::lock_guard lock(mutex_);
  auto phase = phase_of(id);
  if (!phase)
    return phase.error();
  if (*phase == task_phase::exited || *phase == task_phase::lost)
    return error{errc::conflict, "task " + id + ": has ended"};
  return queue(line_order{id, std::move(line)});
}

result<void> process_runtime::engine::kill(const std::string& id) {
  std::lock_guard lock(mutex_);
  if (auto phase = phase_of(id); !phase)
    return phase.error();
  return queue(kill_order{id});
}

result<void> process_runtime::engine::forget(const std::string& id) {
  std::lock_guard lock(mutex_);
  auto phase = phase_of(id);
  if (!phase)
    return phase.error();
  if (*phase != task_phase::exited && *phase != task_phase::lost)
    return error{errc::conflict, "task " + id + ": has not ended"};
  return queue(forget_order{id});
}

result<void> process_runtime::engine::drop(const std::string& id) {
  if (!valid_task_id(id))
    return error{errc::invalid, "task '" + id.substr(0, 140) + "': not an id"};
  std::lock_guard lock(mutex_);
  auto phase = phase_of(id);
  if (phase && *phase != task_phase::exited && *phase != task_phase::lost)
    return error{errc::conflict, "task " + id + ": has not ended"};
  if (phase)
    return queue(forget_order{id, true});
  sweeps_.push_back({id, true, {}, {}});
  swept_.notify_all();
  return {};
}

result<void> process_runtime::engine::drop_spool(const std::string& id) {
  if (!valid_task_id(id))
    return error{errc::invalid, "task '" + id.substr(0, 140) + "': not an id"};
  std::lock_guard lock(mutex_);
  bool sweeping =
    std::any_of(sweeps_.begin(), sweeps_.end(), [&](const auto& s) { return s.forget_id == id; });
  if (known_.contains(id) && !sweeping)
    return error{errc::conflict, "task " + id + ": the task must be forgotten first"};
  sweeps_.push_back({id, true, {}, {}});
  swept_.notify_all();
  return {};
}

std::vector<task_summary> process_runtime::engine::list() const {
  std::lock_guard lock(mutex_);
  std::vector<task_summary> all;
  for (const auto& [id, summary] : known_)
    all.push_back(summary);
  return all;
}

int process_runtime::engine::spares_ready() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(ready_.size());
}

void process_runtime::engine::set_phase(const std::string& id, task_phase phase, int pid) {
  std::lock_guard lock(mutex_);
  auto& summary = known_[id];
  summary = {id, phase, pid ? pid : summary.pid};
}

// The thread

void process_runtime::engine::work() {
  std::vector<epoll_event> events(64);
  while (true) {
    run_orders();
    {
      std::lock_guard lock(mutex_);
      if (stopping_)
        break;
    }
    keep_spares();
    int n = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), wait_ms(clock::now()));
    run_orders(); // before the events that these orders cause
    for (int i = 0; i < n; ++i)
      on_event(static_cast<source>(events[static_cast<std::size_t>(i)].data.u64 & ((1 << source_bits) - 1)),
               events[static_cast<std::size_t>(i)].data.u64 >> source_bits);
    on_time(clock::now());
  }
}

void process_runtime::engine::run_orders() {
  std::deque<order> now;
  {
    std::lock_guard lock(mutex_);
    now.swap(orders_);
  }
  for (auto& x : now)
    std::visit([this](auto& y) { obey(y); }, x);
}

void process_runtime::engine::watch(int fd, source what, std::uint64_t serial) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = serial << source_bits | static_cast<std::uint64_t>(what);
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
}

/// Closing alone would do, except for a child that was forked elsewhere in this process and has not executed
/// yet: it holds every descriptor, and the poll set would go on to report this one.
void process_runtime::engine::forget_fd(owned_fd& fd) {
  if (fd)
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
  fd.reset();
}

void process_runtime::engine::on_event(source what, std::uint64_t serial) {
  if (what == source::wake) {
    eventfd_t count;
    ::eventfd_read(wake_.get(), &count);
    return;
  }
  if (what == source::nursery)
    return on_nursery();
  auto it = boxes_.find(serial);
  if (it == boxes_.end())
    return;
  if (what == source::starter)
    on_starter(it->second);
  else if (what == source::socket)
    on_socket(it->second);
  else
    on_helper(it->second);
}

int process_runtime::engine::wait_ms(clock::time_point now) const {
  auto first = nursery_due_;
  for (const auto& [serial, box] : boxes_)
    first = std::min({first, box.retry_at, box.kill_at});
  if (options_.spares > 0 && spares_again_at_ > now)
    first = std::min(first, spares_again_at_);
  if (first == clock::time_point::max())
    return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(first - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3600'000));
}

void process_runtime::engine::on_time(clock::time_point now) {
  if (now >= nursery_due_)
    replace_nursery();
  std::vector<std::uint64_t> due;
  for (const auto& [serial, box] : boxes_)
    if (box.retry_at <= now || box.kill_at <= now)
      due.push_back(serial);
  for (auto serial : due) {
    auto it = boxes_.find(serial);
    if (it == boxes_.end())
      continue;
    auto& box = it->second;
    if (box.kill_at <= now)
      kill_helper(box);
    if (box.retry_at <= now)
      retry(box);
  }
}

process_runtime::engine::sandbox* process_runtime::engine::find(const std::string& id) {
  auto it = serials_.find(id);
  return it == serials_.end() ? nullptr : &boxes_.at(it->second);
}

process_runtime::engine::sandbox& process_runtime::engine::add(std::string folder_name, owned_fd folder) {
  auto serial = next_serial_++;
  auto& box = boxes_[serial];
  box.serial = serial;
  box.folder_name = std::move(folder_name);
  box.folder = std::move(folder);
  return box;
}

void process_runtime::engine::erase(std::uint64_t serial) {
  auto it = boxes_.find(serial);
  if (it == boxes_.end())
    return;
  if (it->second.starter_pid) // lives for milliseconds; nobody else reaps it
    ::waitpid(it->second.starter_pid, nullptr, 0);
  if (!it->second.id.empty())
    serials_.erase(it->second.id);
  boxes_.erase(it);
}

void process_runtime::engine::obey(launch_order& x) {
  if (auto it = boxes_.find(x.spare); it != boxes_.end())
    return name_spare(it->second, x);
  if (x.spare) { // the spare died with the order, which it may have begun to follow
    auto& box = add(x.id, {});
    box.id = x.id;
    serials_[x.id] = box.serial;
    return lose(box, "its sandbox died while it was being started");
  }
  // The folder may exist, with the spool of an earlier task. Mostly it does not, and the stage becomes it.
  const bool whole =
    ::renameat2(root_.get(), (stage_prefix + x.id).c_str(), root_.get(), x.id.c_str(), RENAME_NOREPLACE) == 0;
  bool made = whole || ::mkdirat(root_.get(), x.id.c_str(), 0755) == 0 || errno == EEXIST;
  int why = errno;
  auto& box = add(x.id, made ? open_folder(root_.get(), x.id) : owned_fd{});
  box.id = x.id;
  serials_[x.id] = box.serial;
  if (!box.folder)
    return lose(box, "the folder of the task: " + std::string(strerror(made ? errno : why)));
  if (!whole &&
      (has(box.folder.get(), task_format::spec_file) || has(box.folder.get(), task_format::exit_file)))
    return lose(box, "its folder is that of an earlier task with this id; adopt or forget that first");
  if (auto ok = whole ? result<void>{} : move_stage(root_.get(), stage_prefix + x.id, box.folder.get());
      !ok && ok.error().code != errc::not_found)
    return lose(box, "its prepared files: " + ok.error().what);
  if (auto ok = write_file(box.folder.get(), task_format::spec_file, x.spec); !ok)
    return lose(box, ok.error().what);
  if (!x.zygote)
    return start(box, task_format::spec_file);
  // The connection to the zygote can only be handed to a sandbox that exists.
  box.zygote = std::move(x.zygote);
  box.run_due = true;
  start(box, {});
}

/// A spare was told to run this task, and does so while this thread waits for the disk. Should this process
/// die before the folder has its name, its successor kills what runs in the folder of a spare, of which
/// nobody was told.
void process_runtime::engine::name_spare(sandbox& box, launch_order& x) {
  box.ready = false;
  box.run_due = true;
  box.zygote = std::move(x.zygote);
  box.id = x.id;
  serials_[x.id] = box.serial;
  auto ok = write_file(box.folder.get(), task_format::spec_file, x.spec);
  if (ok &&
      ::renameat2(root_.get(), box.folder_name.c_str(), root_.get(), x.id.c_str(), RENAME_NOREPLACE) != 0)
    ok = error{errc::io, "the folder of the task: " + std::string(strerror(errno))};
  if (!ok)
    return give_up(box, ok.error().what);
  box.folder_name = x.id;
}

/// Tells a former spare over a new connection what it is to run.
void process_runtime::engine::run(sandbox& box) {
  owned_fd spec{::openat(box.folder.get(), task_format::spec_file, O_RDONLY | O_CLOEXEC)};
  if (!spec || !box.link || !send_run(box.link->socket(), spec.get(), box.zygote))
    kill_helper(box); // the death is judged when it is noticed
}

void process_runtime::engine::drop_link(sandbox& box) {
  std::lock_guard lock(mutex_);
  std::erase_if(ready_, [&](const auto& spare) { return spare.serial == box.serial; });
  for (auto& [id, spare] : prepared_)
    if (spare.serial == box.serial)
      spare.socket = -1;
  if (box.link && box.link->socket() >= 0)
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, box.link->socket(), nullptr);
  box.link.reset();
}

void process_runtime::engine::obey(adopt_order&) {
  int again = ::openat(root_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = again < 0 ? nullptr : ::fdopendir(again);
  std::vector<std::string> names;
  while (auto* entry = entries ? ::readdir(entries) : nullptr)
    names.push_back(entry->d_name);
  if (entries)
    ::closedir(entries);
  std::sort(names.begin(), names.end());
  inventory_told_ = false;
  for (const auto& folder_name : names) {
    auto folder = open_folder(root_.get(), folder_name);
    if (!folder || serials_.contains(folder_name))
      continue;
    if (folder_name.starts_with(spare_prefix)) {
      if (std::any_of(boxes_.begin(), boxes_.end(),
                      [&](const auto& b) { return b.second.folder_name == folder_name; }))
        continue;
      // The sandbox may hold a task that nobody was told of: it must be dead before the inventory is
      // complete.
      auto& box = add(folder_name, std::move(folder));
      box.adopted = box.inventory = true;
      ++inventory_open_;
      continue;
    }
    if (!valid_task_id(folder_name) ||
        (!has(folder.get(), task_format::spec_file) && !has(folder.get(), task_format::exit_file)))
      continue; // the folder holds only a spool, or files for a task that was never launched
    auto& box = add(folder_name, std::move(folder));
    box.id = folder_name;
    box.adopted = box.inventory = true;
    box.kill_at = clock::now() + 10 * options_.kill_patience; // a sandbox that never answers counts as dead
    serials_[box.id] = box.serial;
    set_phase(box.id, task_phase::starting, 0);
    ++inventory_open_;
    ++inventory_size_;
  }
  std::vector<std::uint64_t> found;
  for (const auto& [serial, box] : boxes_)
    if (box.inventory)
      found.push_back(serial);
  for (auto serial : found)
    boxes_.at(serial).id.empty() ? clear_away(boxes_.at(serial)) : dial(boxes_.at(serial));
  check_inventory();
}

void process_runtime::engine::obey(renew_all_order&) {
  auto line = "renew " + std::to_string(settings_now().lease.count()) + "\n";
  for (auto& [serial, box] : boxes_)
    if (box.started_told && !box.done)
      say(box, line);
}

void process_runtime::engine::obey(line_order& x) {
  auto* box = find(x.id);
  if (!box || box->done)
    return;
  if (box->link)
    say(*box, x.line);
  else if (box->unsent.size() < max_unsent)
    box->unsent.push_back(std::move(x.line));
}

void process_runtime::engine::obey(kill_order& x) {
  auto* box = find(x.id);
  if (!box || box->done || box->kill_wanted)
    return;
  box->kill_wanted = true;
  box->kill_at = clock::now() + options_.kill_patience;
  say(*box, "kill\n");
}

void process_runtime::engine::obey(forget_order& x) {
  auto* box = find(x.id);
  if (!box || !box->done)
    return;
  kill_helper(*box); // the process only lingers: nothing else runs in its sandbox
  if (box->helper)   // the sweeper waits for its death; the poll set would report it again and again
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, box->helper.get(), nullptr);
  {
    std::lock_guard lock(mutex_);
    sweeps_.push_back({box->folder_name, x.with_spool, box->id,
                       x.with_spool && options_.spares > 0 ? std::move(box->helper) : owned_fd{}});
    sweeps_.back().kept = static_cast<bool>(sweeps_.back().helper);
  }
  swept_.notify_all();
  erase(box->serial);
}

void process_runtime::engine::keep_spares() {
  if (options_.spares <= 0 || !spares_of_use_ || !options_.namespaces || clock::now() < spares_again_at_)
    return;
  int spares = 0;
  for (const auto& [serial, box] : boxes_) {
    // One spare is made at a time, and none while a task waits for the processor.
    if (!box.done && !box.ready && !box.started_told)
      return;
    spares += box.ready;
  }
  if (spares >= options_.spares)
    return;
  const auto folder_name = spare_prefix + std::to_string(::getpid()) + "-" + std::to_string(next_serial_);
  std::string used;
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      used = std::move(free_.back());
      free_.pop_back();
    } else if (keeps_folders_ && !sweeps_.empty() && sweeps_.front().kept) {
      spare_waits_ = true; // A folder of an ended task comes soon, and a new one costs more than the wait.
      return;
    }
  }
  const bool made =
    !used.empty() && ::renameat(root_.get(), used.c_str(), root_.get(), folder_name.c_str()) == 0;
  if (!made && ::mkdirat(root_.get(), folder_name.c_str(), 0755) != 0) {
    spares_again_at_ = clock::now() + std::chrono::seconds(5);
    return;
  }
  auto& box = add(folder_name, open_folder(root_.get(), folder_name));
  if (!made)
    (void)write_file(box.folder.get(), task_format::spec_file, ""); // for the launch to fill
  start(box, {});
}

/// Files and folders of tasks are used again where possible: ext4 reuses the inode number of a deleted file
/// only after seconds, and looks through all such numbers whenever it makes a file.
bool process_runtime::engine::keep_folder(const sweep& job) {
  pollfd dead{job.helper.get(), POLLIN, 0};
  auto folder = open_folder(root_.get(), job.folder_name);
  // A task that ran as another account may leave a process of that account elsewhere, which could write here.
  struct stat about {};
  if (!folder || ::fstatat(folder.get(), task_format::run_folder, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
      about.st_uid != ::geteuid() || about.st_gid != ::getegid())
    return false;
  if (::poll(&dead, 1, 3000) != 1 || !make_reusable(folder.get(), options_.reuse))
    return false;
  std::lock_guard lock(mutex_);
  if (free_.size() >= most_free)
    return false;
  auto name = free_prefix + std::to_string(next_folder_++);
  if (::renameat2(root_.get(), job.folder_name.c_str(), root_.get(), name.c_str(), RENAME_NOREPLACE) != 0)
    return false;
  free_.push_back(std::move(name));
  return true;
}

void process_runtime::engine::remove_folders() {
  std::unique_lock lock(mutex_);
  while (true) {
    swept_.wait(lock, [this] { return stopping_ || !sweeps_.empty(); });
    if (stopping_)
      return; // the next runtime finds what is left, and forgets it again
    auto job = std::move(sweeps_.front());
    lock.unlock();
    const bool kept = job.helper && keep_folder(job);
    if (kept)
      ;
    else if (job.with_spool)
      remove_tree(root_.get(), job.folder_name.c_str());
    else if (auto folder = open_folder(root_.get(), job.folder_name))
      remove_remains(folder.get());
    lock.lock();
    if (sweeps_.front().kept)
      keeps_folders_ = kept;
    sweeps_.pop_front();
    if (!job.forget_id.empty())
      known_.erase(job.forget_id);
    if (std::exchange(spare_waits_, false))
      ::eventfd_write(wake_.get(), 1);
  }
}

} // namespace troupe::workers

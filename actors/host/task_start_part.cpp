#include "actors/host/task_start_part.hpp"

#include "actors/host/direct_start.hpp"
#include "actors/host/platform_paths.hpp"
#include "actors/host/task_environment.hpp"
#include "actors/host/task_files_part.hpp"
#include "actors/host/task_owner_part.hpp"
#include "actors/host/task_sandbox.hpp"
#include "workers/context_files.hpp"
#include "workers/process_runtime.hpp"
#include "workers/zygote_keeper.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Limit of a context that is kept in memory for the next task.
constexpr std::size_t most_context_bytes = 4 << 20;
constexpr std::chrono::seconds platform_lasts{1};
constexpr std::size_t most_platforms = 16;

/// The modules that a task listed in this file. The task may have written anything: only a part of a plain
/// file is read, or nothing.
std::string learned_modules(const fs::path& file) {
  workers::owned_fd fd{::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat about {};
  if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return {};
  std::string text(16'384, 0);
  const auto n = ::read(fd.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

std::string read_whole(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

result<void> make_checkpoint_folder(const std::string& dir) {
  if (dir.empty() || ::access(dir.c_str(), W_OK | X_OK) == 0)
    return {};
  std::error_code fault;
  fs::create_directories(dir, fault);
  if (fault)
    return error{errc::io, "cannot make the checkpoint folder '" + dir + "': " + fault.message()};
  if (::access(dir.c_str(), W_OK | X_OK) != 0)
    return error{errc::io, "cannot write to the checkpoint folder '" + dir + "': " + std::strerror(errno)};
  return {};
}

/// Whether the configuration leaves zygotes on; `runtime: {zygote: false}` turns them off.
bool zygote_wanted(const task_launch& launch) {
  const value& config = launch.config;
  const auto runtime = config.is_object() ? config.value("runtime", value::object()) : value::object();
  const auto said = runtime.is_object() ? runtime.value("zygote", value()) : value();
  return said != value(false) && said != value("off");
}

std::vector<std::string> forbidden_paths(const fs::path& data) {
  std::vector<std::string> all = {"/proc", "/sys"};
  std::error_code ignored;
  if (const auto at = fs::canonical(data, ignored); !ignored)
    all.push_back(at.string());
  return all;
}

std::string variable_in(const std::vector<std::string>& env, const std::string& name) {
  for (const auto& pair : env)
    if (pair.starts_with(name + "="))
      return pair.substr(name.size() + 1);
  return {};
}

} // namespace

task_starter::task_starter(const worker_runtime_setup& setup, workers::process_runtime& runtime,
                           workers::zygote_keeper* zygotes)
    : setup_(setup), forbidden_(forbidden_paths(setup.data)), runtime_(runtime), zygotes_(zygotes),
      shell_(::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh") {}

/// The ports that the task gets here; none unless this is the chief's agent, whose ports the rest of a gang
/// learns at the rendezvous.
result<std::vector<int>> task_starter::ports_of(const start_order& order, const task_launch& launch) {
  if (launch.node_rank != 0)
    return std::vector<int>();
  std::lock_guard lock(mutex_);
  return ports_.claim(to_string(order.allocation), {12350, 12360, 12365, 29400});
}

result<void> task_starter::start(const start_order& order, const std::function<void(hosted_task)>& prepared) {
  auto launch = order.spec.read();
  if (!launch)
    return error{launch.error().code, "its launch order cannot be read: " + launch.error().what};
  if (auto made = make_checkpoint_folder(launch->checkpoint_dir); !made)
    return made;
  auto ports = ports_of(order, *launch);
  if (!ports)
    return ports.error();
  launch->slots = order.slots;
  launch->ports = std::move(*ports);
  if (!setup_.gpu_uuids.empty()) {
    auto& uuids = launch->gpu_uuids.emplace();
    for (const int slot : order.slots)
      if (slot >= 0 && static_cast<std::size_t>(slot) < setup_.gpu_uuids.size())
        uuids.push_back(setup_.gpu_uuids[static_cast<std::size_t>(slot)]);
  }
  const auto id = to_string(order.allocation);
  auto folder = runtime_.prepare(id);
  if (!folder)
    return folder.error();
  auto started = start_in(*folder, order, *launch, prepared);
  if (!started)
    runtime_.discard(id);
  return started;
}

result<void> task_starter::start_in(const fs::path& folder, const start_order& order, task_launch& launch,
                                    const std::function<void(hosted_task)>& prepared) {
  auto ports = launch.ports;
  ports.resize(4);
  task_surroundings around{setup_.agent,
                           setup_.agent_id,
                           setup_.harness_endpoint(),
                           setup_.harness_file.string(),
                           setup_.python.string(),
                           setup_.python_bin,
                           setup_.programs,
                           setup_.master_url,
                           shell_,
                           {ports.at(0), ports.at(1), ports.at(2), ports.at(3)},
                           {},
                           {},
                           own_account(),
                           forbidden_};
  around.platform = [&](const std::string& path_variable) { return platform(around, path_variable); };
  around.config = [&](const task_launch& x) { return config(x); };
  if (auto ok = write_task_files(folder, order.allocation, launch, around,
                                 [this](const std::string& name) { return fetch(name); });
      !ok)
    return ok;
  auto spec = task_spec_of(order.allocation, launch, around);
  if (spec.account)
    if (auto ok = give_to_account(folder, launch, *spec.account); !ok)
      return ok;
  auto zygote = choose_start(spec, launch, folder);
  if (setup_.fence && !order.fence_token.empty())
    spec.fence = fence_of(order);
  auto about = hosted(launch);
  about.from_zygote = static_cast<bool>(zygote);
  prepared(std::move(about));
  return runtime_.launch(spec, std::move(zygote));
}

/// Sets the commands of `spec`. Returns a connection to a zygote if a zygote is asked first.
workers::owned_fd task_starter::choose_start(workers::task_spec& spec, const task_launch& launch,
                                             const fs::path& folder) {
  std::error_code ignored;
  const auto work = folder / "run" / "workdir";
  const auto& env = spec.ranks.at(0).env;
  const auto path = variable_in(env, "PYTHONUSERBASE") + "/bin:" + variable_in(env, "PATH");
  start_facts facts;
  facts.one_host = launch.nodes == 1;
  facts.hook = fs::exists(work / "startup-hook.sh", ignored) || !launch.sandbox.startup_hook.empty() ||
               !launch.sandbox.work_dir.empty();
  const auto python = direct_start_of(launch.entrypoint, path);
  facts.python_script = python.has_value();
  facts.script_there = python && fs::is_regular_file(work / python->script, ignored);
  facts.zygotes = python && zygotes_ && zygote_wanted(launch) && !spec.account && spec.refusal.empty();
  std::optional<std::vector<std::string>> words;
  if (facts.one_host && !facts.hook)
    words = program_start_of(launch.entrypoint, path, work.string());
  facts.program = words.has_value();

  const auto choice = start_of(facts);
  if (!choice.forked && !choice.own_script && !choice.program)
    return {};
  std::vector<std::vector<std::string>> direct; // variables of each rank
  if (choice.forked || choice.program)
    for (const auto& rank : spec.ranks)
      direct.push_back(direct_variables(rank.env));
  workers::owned_fd zygote;
  if (choice.forked)
    zygote = ask_zygote(spec.id, python->program, python->argv, python->script, direct[0], launch, work);
  for (std::size_t n = 0; n < spec.ranks.size(); ++n) {
    auto& rank = spec.ranks[n];
    if (choice.own_script)
      rank.argv =
        // No shell starts it, so that the tree of processes is the same either way.
        stock_command(python->argv, shell_);
    if (choice.program)
      rank.argv = *words;
    if (zygote) {
      rank.direct_argv = python->argv;
      rank.direct_env = direct[n];
    }
    if (choice.program)
      rank.env = std::move(direct[n]);
  }
  return zygote;
}

workers::owned_fd task_starter::ask_zygote(const std::string& id, const std::string& program,
                                           const std::vector<std::string>& argv, const std::string& script,
                                           const std::vector<std::string>& env, const task_launch& launch,
                                           const fs::path& work) {
  workers::owned_fd files{::open(work.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  workers::zygote_order order{program, argv.at(0), env, launch.context, script, std::move(files)};
  auto key = workers::zygote_key(order);
  auto connection = zygotes_->attach(std::move(order));
  if (!connection)
    return {};
  std::lock_guard lock(mutex_);
  zygote_keys_[parse_allocation(id)] = std::move(key);
  return std::move(*connection);
}

workers::fence_spec task_starter::fence_of(const start_order& order) const {
  auto at = setup_.fence();
  value claim{
    {"agent", setup_.agent}, {"allocation", to_string(order.allocation)}, {"token", order.fence_token}};
  claim["dead"] = false;
  at.ask = to_json(claim);
  claim["dead"] = true;
  at.dead = to_json(claim);
  return at;
}

/// Returns the tar of a context. Tasks of one experiment often follow each other, so that the newest context
/// is kept.
result<std::string> task_starter::fetch(const std::string& name) {
  {
    std::lock_guard lock(mutex_);
    if (newest_context_ && newest_context_->name == name)
      return newest_context_->tar;
  }
  auto tar = setup_.fetch(name);
  if (!tar || tar->size() > most_context_bytes)
    return tar;
  if (workers::archive_is_empty(*tar))
    tar->clear(); // no task has to unpack it
  auto kept = std::make_shared<const context>(context{name, *tar});
  std::lock_guard lock(mutex_);
  newest_context_ = std::move(kept);
  return tar;
}

/// The configuration of a task as text. Tasks of one experiment share theirs, so that the newest is kept.
std::string task_starter::config(const task_launch& launch) {
  {
    std::lock_guard lock(mutex_);
    if (newest_config_ && same(newest_config_->config, launch.config) &&
        newest_config_->checkpoint_dir == launch.checkpoint_dir)
      return newest_config_->text;
  }
  auto kept = std::make_shared<const config_text>(
    config_text{launch.config, launch.checkpoint_dir, to_json(config_for_task(launch))});
  std::lock_guard lock(mutex_);
  newest_config_ = kept;
  return kept->text;
}

std::vector<std::string> task_starter::platform(const task_surroundings& around,
                                                const std::string& path_variable) {
  const auto now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    if (auto known = platforms_.find(path_variable); known != platforms_.end() && now < known->second.until)
      return known->second.paths;
  }
  auto paths = platform_paths(around, path_variable);
  std::lock_guard lock(mutex_);
  if (platforms_.size() >= most_platforms)
    platforms_.clear();
  platforms_[path_variable] = {paths, now + platform_lasts};
  return paths;
}

std::optional<hosted_task> task_starter::recall(allocation_id id) const {
  auto stored = decode_launch(read_whole(setup_.tasks / to_string(id) / launch_file));
  return stored ? std::optional(hosted(*stored)) : std::nullopt;
}

void task_starter::keep_ports(allocation_id id, const std::vector<int>& ports) {
  std::lock_guard lock(mutex_);
  ports_.restore(to_string(id), ports);
}

void task_starter::release(allocation_id id) {
  std::lock_guard lock(mutex_);
  ports_.release(to_string(id));
  zygote_keys_.erase(id);
}

void task_starter::learn(allocation_id id) {
  std::string key;
  {
    std::lock_guard lock(mutex_);
    if (auto it = zygote_keys_.find(id); it != zygote_keys_.end())
      key = it->second;
  }
  if (!key.empty() && zygotes_)
    zygotes_->learn(key, learned_modules(setup_.tasks / to_string(id) / "run" / "modules"));
}

} // namespace troupe

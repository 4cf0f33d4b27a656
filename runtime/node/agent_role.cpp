#include "runtime/node/agent_role.hpp"

#include "actors/allocation/task_launch.hpp"
#include "actors/host/task_files_part.hpp"
#include "runtime/node/master_role.hpp"
#include "system/whole_file.hpp"
#include "workers/port_holder.hpp"
#include "workers/slot_devices.hpp"

#include <caf/all.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sched.h>

namespace troupe::node {
namespace {

namespace fs = std::filesystem;

int processors() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// Finds out to which task a port belongs. An answer is kept for a second; "nobody listens" is not kept,
/// because another task could begin to listen. One thread asks.
class port_owners {
public:
  explicit port_owners(fs::path tasks) : tasks_(std::move(tasks)) {}

  /// errc::busy if another task listens at the port.
  result<void> check(allocation_id id, int port) {
    const auto now = std::chrono::steady_clock::now();
    if (known_.size() > most_known)
      known_.clear();
    const std::pair asked{id, port};
    auto one = known_.find(asked);
    if (one == known_.end() || now - one->second.at > std::chrono::seconds(1)) {
      const auto holder = workers::holder_of(tasks_, to_string(id), port);
      if (one != known_.end())
        known_.erase(one);
      if (holder == workers::port_holder::unknown)
        return {};
      one = known_.emplace(asked, owner{now, holder == workers::port_holder::other_task}).first;
    }
    if (one->second.of_another)
      return error{errc::busy, "port " + std::to_string(port) + " of this host belongs to another task"};
    return {};
  }

private:
  static constexpr std::size_t most_known = 1000;
  struct owner {
    std::chrono::steady_clock::time_point at{};
    bool of_another = false;
  };
  const fs::path tasks_;
  std::map<std::pair<allocation_id, int>, owner> known_;
};

} // namespace

agent_role::agent_role(role_ground on, places where, const master_role* master)
    : on_(std::move(on)), places_(std::move(where)), master_(master) {}

result<void> agent_role::start(std::function<void()> registered) {
  if (!master_)
    if (auto ok = open_link(); !ok)
      return ok;
  auto setup = setup_of_host();
  if (on_.options.host.http) {
    if (auto ok = open_listener(setup.dir); !ok)
      return ok;
    setup.master_url = "http://127.0.0.1:" + std::to_string(listener_->port());
    make_opener(setup.dir / "tasks");
    setup.open_service = [opener = opener_](service_ordered x, bool runs) {
      opener->open({x.allocation, std::move(x.service), std::move(x.connection), std::move(x.secret), runs});
    };
  }
  setup.kill_on_stop = [this] { return master_ || end_tasks_.load(); };
  setup.on_fatal = [link = link_, stop = on_.ask_to_stop](const error& why) {
    const auto refusal = link ? link->refusal() : std::nullopt;
    stop(refusal && refusal->what == why.what ? *refusal : why);
  };
  setup.say = [this](const std::string& line) { on_.say(line); };
  setup.on_registered = [link = link_, told = std::move(registered)](std::uint16_t http_port) {
    if (link)
      link->learn_http_port(http_port);
    told();
  };
  if (master_) {
    setup.join_token = master_->join_token();
    setup.fetch = [reads = master_->reads()](const std::string& blob) { return reads->blob(blob); };
  } else {
    setup.join_token = link_->join_token();
    setup.fetch = [link = link_](const std::string& blob) { return link->fetch(blob); };
    setup.fence = [link = link_] { return link->fence(); };
    setup.inspector = caf::actor_cast<caf::actor>(on_.shell.inspector());
  }
  agent_ = spawn_agent(on_.system, std::move(setup), dialler());
  if (!master_)
    on_.shell.tell(agent_);
  return {};
}

result<void> agent_role::open_link() {
  const auto& how = on_.options;
  auto link = master_link::to(on_.system, how.master_address, how.tls_dir, how.join_token);
  if (!link)
    return link.error();
  link_ = std::move(*link);
  return {};
}

agent_setup agent_role::setup_of_host() const {
  const auto& slots = on_.options.slots;
  agent_setup setup;
  setup.name = on_.agent_name;
  setup.host = host_name();
  if (!slots) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    setup.devices =
      workers::find_nvidia_devices(visible ? std::optional<std::string>(visible) : std::nullopt);
  }
  setup.slots = setup.devices ? static_cast<int>(setup.devices->count()) : slots.value_or(processors());
  setup.dir = on_.dir.path() / "agent" / on_.agent_name;
  setup.data = on_.dir.path();
  setup.program = places_.troupe_task;
  setup.python = places_.python;
  setup.python_bin = places_.python_bin.string();
  setup.programs = places_.programs.string();
  setup.labels = on_.options.labels;
  setup.pool = on_.options.pool;
  return setup;
}

std::function<void(const agent_actor&)> agent_role::dialler() const {
  if (link_)
    return [link = link_](const agent_actor& who) { link->dial(who); };
  return [cluster = master_->cluster()](const agent_actor& who) {
    caf::anon_send(who, master_found{caf::actor_cast<caf::actor>(cluster)});
  };
}

/// The port stays the same after a restart, because tasks of an earlier life know it.
result<void> agent_role::open_listener(const fs::path& folder) {
  forward::forward_options how;
  how.master = master_address();
  std::error_code fault;
  fs::create_directories(folder, fault);
  const auto file = folder / "listener";
  int port = 0;
  std::ifstream(file) >> port;
  how.port = static_cast<std::uint16_t>(port > 0 && port <= 65535 ? port : 0);
  auto opened = forward::forwarder::start(how);
  if (!opened && how.port != 0) {
    on_.say("the port " + std::to_string(port) +
            " of this agent's earlier life is taken; its tasks reach the master no more over HTTP");
    how.port = 0;
    opened = forward::forwarder::start(how);
  }
  if (!opened)
    return opened.error();
  listener_ = std::move(*opened);
  return replace_file(file, std::to_string(listener_->port()) + "\n", 0644, durability::written);
}

std::function<std::optional<http::master_address>()> agent_role::master_address() const {
  if (link_)
    return [link = link_] { return link->http_address(); };
  return [own = master_->http_address()] { return std::optional{own}; };
}

/// Connects only to what the task's own record names, and only if the task was started with it.
void agent_role::make_opener(const fs::path& tasks) {
  proxy::opener_options how;
  how.master = master_address();
  how.find = [tasks](allocation_id id, const std::string& service) -> result<proxy::service_target> {
    const auto folder = tasks / to_string(id);
    auto bytes = read_whole(folder / launch_file);
    auto launch = bytes && *bytes ? decode_launch(**bytes) : result<task_launch>(error{errc::not_found, ""});
    if (launch)
      for (const auto& one : launch->services)
        if (one.id == service)
          return one.socket ? proxy::service_target{0, folder.string(), service_socket_file}
                            : proxy::service_target{one.port, {}, {}};
    return error{errc::not_found, "this task has no such service"};
  };
  how.own = [known = std::make_shared<port_owners>(tasks)](allocation_id id, int port) {
    return known->check(id, port);
  };
  if (!link_)
    how.hand_over = [table = master_->junctions()](const std::string& connection, const std::string& secret,
                                                   result<workers::owned_fd> socket) {
      return table->bring(connection, secret,
                          socket ? result<proxy::service_end>(proxy::service_end(std::move(*socket)))
                                 : result<proxy::service_end>(socket.error()));
    };
  opener_ = std::make_shared<proxy::service_opener>(std::move(how));
}

void agent_role::stop_dialling() {
  if (link_)
    link_->stop();
}

void agent_role::end() {
  std::lock_guard lock(mutex_);
  if (!agent_)
    return;
  on_.shell.told_no_more();
  end_actor(on_.system, agent_);
}

} // namespace troupe::node

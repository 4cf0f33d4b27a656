#include "runtime/node/node.hpp"

#include "actors/shells/borrowed_system.hpp"
#include "actors/shells/log_levels.hpp"
#include "runtime/node/agent_role.hpp"
#include "runtime/node/master_role.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <optional>

namespace troupe::node {
class node::inside {
public:
  inside(node_options options, data_dir dir) : options_(std::move(options)), dir_(std::move(dir)) {
    if (options_.host.actors)
      options_.host.link = false;
  }

  result<void> open() {
    auto found = find_places();
    if (!found)
      return found.error();
    if (!host_.python_bin.empty())
      found->python_bin = host_.python_bin;
    if (auto ok = host_.actors ? borrow() : own_system(); !ok)
      return ok.error();
    if (host_.now)
      clock_.emplace(system_->clock(), host_.now);
    const auto name = options_.agent_name.empty() ? host_name() : options_.agent_name;
    const auto role = options_.master ? (options_.agent ? "master,agent" : "master") : "agent";
    shell_.emplace(*system_, inspector_setup{options_.master ? "master" : name, role, options_.version});
    const role_ground ground{
      *system_, options_, dir_, *shell_, [this](const error& why) { ask_to_stop(why); }, name};
    if (options_.master) {
      master_.emplace(ground);
      if (auto ok = master_->open(); !ok)
        return ok;
    }
    agent_.emplace(ground, std::move(*found), master_ ? &*master_ : nullptr);
    return {};
  }

  result<void> start_agent() {
    return agent_->start([this] {
      std::lock_guard lock(mutex_);
      registered_ = true;
      wake_.notify_all();
    });
  }

  const master_role* master() const { return master_ ? &*master_ : nullptr; }
  agent_role& agent() { return *agent_; }
  caf::actor_system& actors() const { return *system_; }

  std::vector<std::pair<std::string, double>> measures() const {
    if (!probes_)
      return {};
    std::uint64_t done = 0, waiting = 0;
    const auto live = probes_->all();
    for (const auto& p : live) {
      done += p->done();
      waiting += p->backlog();
    }
    return {{"actors", static_cast<double>(live.size())},
            {"messages_handled", static_cast<double>(done)},
            {"messages_waiting", static_cast<double>(waiting)}};
  }

  result<value> command(const std::string& name, value fields) const {
    if (!master_)
      return error{errc::unsupported, "this node is not a master"};
    auto answered = std::make_shared<std::promise<result<value>>>();
    auto got = answered->get_future();
    master_->commands().call({"admin", true, ""}, name, std::move(fields),
                             [answered](result<value> x) { answered->set_value(std::move(x)); });
    if (got.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      return error{errc::timeout, "the cluster does not answer"};
    return got.get();
  }

  error wait() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_why_.has_value(); });
    return *stop_why_;
  }

  result<void> wait_registered(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, limit, [this] { return registered_ || stop_why_.has_value(); });
    if (registered_)
      return {};
    if (stop_why_)
      return *stop_why_;
    return error{errc::unreachable,
                 (options_.master ? std::string("the cluster") : "the master at " + options_.master_address) +
                   " took no agent within " + std::to_string(limit.count() / 1000) +
                   " s\nhint: start it first, or look into the agent's log"};
  }

  void ask_to_stop(error why) {
    std::lock_guard lock(mutex_);
    if (!stop_why_)
      stop_why_ = std::move(why);
    wake_.notify_all();
  }

  void stop() {
    if (!system_)
      return;
    if (master_)
      master_->close_port();
    if (agent_) {
      // From the top down, each part before those that it uses: the journal answers until nobody can ask.
      agent_->stop_dialling();
      agent_->end();
      agent_->close_listener();
    }
    if (master_)
      master_->end_actors();
    if (shell_)
      shell_->stop();
    if (master_)
      master_->let_go();
    await_own_threads(*system_, detached_before_);
    shell_.reset();
    clock_.reset();
    borrowed_.reset();
    system_ = nullptr;
    own_system_.reset();
  }

private:
  result<void> own_system() {
    config_ = std::make_unique<link_config>(options_.tls_dir, options_.master, host_.link);
    add_shell_messages(*config_);
    config_->probes->allow_faults = options_.allow_faults;
    config_->probes->log_level = log_level_of(options_.log_level);
    if (options_.scheduler_threads > 0)
      config_->set("scheduler.max-threads", static_cast<std::size_t>(options_.scheduler_threads));
    probes_ = config_->probes;
    if (!options_.trace_actors.empty())
      if (auto ok = config_->probes->trace_to(options_.trace_actors.string()); !ok)
        return ok.error();
    if (auto ok = config_->check(); !ok)
      return ok.error();
    own_system_ = std::make_unique<caf::actor_system>(*config_);
    system_ = own_system_.get();
    detached_before_ = system_->detached_actors();
    return {};
  }

  result<void> borrow() {
    const auto& types = host_.actors->types();
    if (types.portable_name(0, &typeid(client_command)) == types.default_type_name())
      return error{
        errc::invalid,
        "this actor system does not know the node's messages\nhint: call troupe::add_message_types(config) "
        "before the actor system is made"};
    auto taken = borrowed_system::take(*host_.actors);
    if (!taken)
      return taken.error();
    borrowed_ = std::move(*taken);
    system_ = host_.actors;
    detached_before_ = system_->detached_actors();
    return {};
  }

  node_options options_;
  const host_process& host_ = options_.host;
  data_dir dir_;
  std::unique_ptr<link_config> config_;
  std::unique_ptr<caf::actor_system> own_system_;
  caf::actor_system* system_ = nullptr;
  std::shared_ptr<probe_register> probes_; ///< null in a borrowed system
  std::size_t detached_before_ = 0;        ///< number of actors with threads of their own before the node's
  std::unique_ptr<borrowed_system> borrowed_;
  std::optional<other_wall_time> clock_;
  std::optional<shell_keeper> shell_;
  std::optional<master_role> master_;
  std::optional<agent_role> agent_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<error> stop_why_;
  bool registered_ = false;
};

node::node(std::unique_ptr<inside> x) : inside_(std::move(x)) {}
node::~node() { stop(); }

result<std::unique_ptr<node>> node::start(node_options options) {
  auto dir = data_dir::hold(options.data_dir);
  if (!dir)
    return dir.error();
  auto inner = std::make_unique<inside>(std::move(options), std::move(*dir));
  auto opened = inner->open();
  std::unique_ptr<node> out(new node(std::move(inner)));
  if (!opened)
    return opened.error();
  return out;
}

result<void> node::start_agent() { return inside_->start_agent(); }
const std::string& node::url() const {
  static const std::string none;
  return inside_->master() ? inside_->master()->url() : none;
}
const std::string& node::address() const {
  static const std::string none;
  return inside_->master() ? inside_->master()->address() : none;
}
api::gate& node::commands() const { return inside_->master()->commands(); }
std::shared_ptr<api::accounts> node::users() const {
  return inside_->master() ? inside_->master()->users() : nullptr;
}
std::string node::web_link(const std::string& user, const std::string& path) const {
  return inside_->master() ? inside_->master()->web_link(user, path) : std::string();
}
const cluster_ids& node::ids() const { return inside_->master()->ids(); }
caf::actor_system& node::actors() const { return inside_->actors(); }
std::vector<std::pair<std::string, double>> node::measures() const { return inside_->measures(); }
std::shared_ptr<storage::reader> node::reads() const {
  return inside_->master() ? inside_->master()->reads() : nullptr;
}
result<value> node::command(const std::string& name, value fields) const {
  return inside_->command(name, std::move(fields));
}
void node::end_tasks_with_agent() { inside_->agent().end_tasks_with_agent(); }
result<void> node::wait_registered(std::chrono::milliseconds limit) {
  return inside_->wait_registered(limit);
}
error node::wait() { return inside_->wait(); }
void node::ask_to_stop(error why) { inside_->ask_to_stop(std::move(why)); }
void node::end_agent() { inside_->agent().end(); }
void node::stop() { inside_->stop(); }

} // namespace troupe::node

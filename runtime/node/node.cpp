#include "runtime/node/node.hpp"

#include "actors/agent/agent_actor.hpp"
#include "actors/cluster/cluster_actor.hpp"
#include "actors/journal/journal_actor.hpp"
#include "actors/shells/borrowed_system.hpp"
#include "actors/shells/probed.hpp"
#include "runtime/api/server.hpp"
#include "runtime/node/cluster_gate.hpp"
#include "runtime/node/fence_tokens.hpp"
#include "runtime/node/link.hpp"
#include "runtime/node/places.hpp"
#include "runtime/node/shell_keeper.hpp"
#include "runtime/node/task_records.hpp"
#include "storage/own_threads.hpp"
#include "workers/slot_devices.hpp"

#include <caf/all.hpp>

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <future>
#include <sched.h>
#include <unistd.h>

namespace troupe::node {
namespace {

namespace fs = std::filesystem;

time_point now() { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }

std::string host_name() {
  char text[256] = "localhost";
  ::gethostname(text, sizeof text - 1);
  return text;
}

int processors() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

} // namespace

class node::inside {
public:
  explicit inside(node_options options, data_dir dir) : options_(std::move(options)), dir_(std::move(dir)) {
    if (options_.host.actors)
      options_.host.link = false;
  }

  result<void> open() {
    auto found = find_places();
    if (!found)
      return found.error();
    places_ = std::move(*found);
    if (!host_.python_bin.empty())
      places_.python_bin = host_.python_bin;
    if (auto ok = host_.actors ? borrow() : own_system(); !ok)
      return ok.error();
    if (host_.now)
      clock_.emplace(system_->clock(), host_.now);
    const auto role = options_.master ? (options_.agent ? "master,agent" : "master") : "agent";
    shell_.emplace(*system_,
                   inspector_setup{options_.master ? master_node : agent_name(), role, options_.version});
    return options_.master ? open_master() : result<void>{};
  }

  result<void> start_agent() {
    auto name = agent_name();
    if (!options_.master) {
      auto link = master_link::to(*system_, options_.master_address, options_.tls_dir, options_.join_token);
      if (!link)
        return link.error();
      link_ = std::move(*link);
    }
    agent_setup setup;
    setup.name = name;
    setup.host = host_name();
    setup.join_token = join_token_;
    if (!options_.slots) {
      const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
      setup.devices =
        workers::find_nvidia_devices(visible ? std::optional<std::string>(visible) : std::nullopt);
    }
    setup.slots =
      setup.devices ? static_cast<int>(setup.devices->count()) : options_.slots.value_or(processors());
    setup.dir = dir_.path() / "agent" / name;
    setup.program = places_.troupe_task;
    setup.python = places_.python;
    setup.python_bin = places_.python_bin.string();
    setup.programs = places_.programs.string();
    setup.kill_on_stop = [this] { return options_.master || end_tasks_.load(); };
    if (host_.http) {
      if (auto ok = open_listener(setup.dir); !ok)
        return ok.error();
      setup.master_url = "http://127.0.0.1:" + std::to_string(listener_->port());
    }
    setup.on_fatal = [this](const error& why) { ask_to_stop(why); };
    std::function<void(const agent_actor&)> dial;
    setup.on_registered = [this](std::uint16_t http_port) {
      if (link_)
        link_->learn_http_port(http_port);
      std::lock_guard lock(mutex_);
      registered_ = true;
      wake_.notify_all();
    };
    if (options_.master) {
      setup.fetch = [reads = journal_->reads()](const std::string& blob) { return reads->blob(blob); };
      dial = [cluster = cluster_](const agent_actor& who) {
        caf::anon_send(who, master_found{caf::actor_cast<caf::actor>(cluster)});
      };
    } else {
      setup.join_token = link_->join_token();
      setup.fetch = [link = link_](const std::string& blob) { return link->fetch(blob); };
      setup.fence = [link = link_] { return link->fence(); };
      dial = [link = link_](const agent_actor& who) { link->dial(who); };
      setup.inspector = caf::actor_cast<caf::actor>(shell_->inspector());
    }
    agent_ = spawn_agent(*system_, std::move(setup), std::move(dial));
    if (!options_.master)
      shell_->tell(agent_);
    return {};
  }

  const std::string& url() const { return url_; }
  api::gate& commands() const { return *gate_; }
  std::shared_ptr<api::accounts> users() const { return accounts_; }
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
  std::shared_ptr<storage::reader> reads() const { return journal_ ? journal_->reads() : nullptr; }

  result<value> command(const std::string& name, value fields) const {
    if (!gate_)
      return error{errc::unsupported, "this node is no master"};
    auto answered = std::make_shared<std::promise<result<value>>>();
    auto got = answered->get_future();
    gate_->call({"admin", true, ""}, name, std::move(fields),
                [answered](result<value> x) { answered->set_value(std::move(x)); });
    if (got.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      return error{errc::timeout, "the cluster does not answer"};
    return got.get();
  }

  void end_tasks_with_agent() { end_tasks_ = true; }

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

  /// Ends the agent, and with it its tasks where this node is the master too; waits some seconds at most.
  void end_agent() {
    std::lock_guard lock(agent_mutex_);
    if (shell_)
      shell_->told_no_more();
    end(agent_);
  }

  void stop() {
    if (!system_)
      return;
    if (server_)
      server_->stop(std::chrono::milliseconds(500));
    if (link_)
      link_->stop();
    // Top down, each before what it stands on: the journal answers until nobody can ask.
    end_agent();
    listener_.reset();
    if (published_)
      unpublish(*system_, published_);
    if (shell_)
      shell_->stop_desk();
    configuration_.reset(); // it asks the cluster
    end(cluster_);
    auto journal = caf::actor_cast<caf::strong_actor_ptr>(journal_actor_);
    end(journal_actor_);
    if (shell_)
      shell_->stop();
    gate_.reset();
    server_.reset();
    if (host_.actors && journal)
      await_children(std::move(journal));
    journal = nullptr;
    journal_.reset();
    shell_.reset();
    clock_.reset();
    borrowed_.reset();
    system_ = nullptr;
    own_system_.reset();
  }

private:
  static constexpr const char* master_node = "master"; ///< its name in the shell
  std::string agent_name() const { return options_.agent_name.empty() ? host_name() : options_.agent_name; }

  result<void> open_desk() {
    const auto file = dir_.path() / "master" / "audit";
    auto audit = storage::audit_log::open(file);
    if (!audit)
      return audit.error();
    shell_->open_desk({master_node,
                       options_.agent ? agent_name() : std::string(),
                       {},
                       cluster_,
                       std::move(*audit),
                       [file] { return standing_orders(file); },
                       options_.allow_faults});
    return {};
  }

  result<void> own_system() {
    config_ = std::make_unique<link_config>(options_.tls_dir, options_.master, host_.link);
    add_shell_messages(*config_);
    config_->probes->allow_faults = options_.allow_faults;
    probes_ = config_->probes;
    if (!options_.trace_actors.empty())
      if (auto ok = config_->probes->trace_to(options_.trace_actors.string()); !ok)
        return ok.error();
    if (auto ok = config_->check(); !ok)
      return ok.error();
    own_system_ = std::make_unique<caf::actor_system>(*config_);
    system_ = own_system_.get();
    return {};
  }

  result<void> borrow() {
    system_ = host_.actors;
    const auto& types = system_->types();
    if (types.portable_name(0, &typeid(client_command)) == types.default_type_name())
      return error{
        errc::invalid,
        "this actor system does not know the node's messages\nhint: call troupe::add_message_types(config) "
        "before the actor system is made"};
    auto taken = borrowed_system::take(*system_);
    if (!taken)
      return taken.error();
    borrowed_ = std::move(*taken);
    detached_before_ = system_->detached_actors();
    return {};
  }

  void say(const std::string& line) const {
    if (host_.say)
      host_.say(line);
    else
      std::fprintf(stderr, "%s\n", line.c_str());
  }
  time_point wall_now() const { return host_.now ? host_.now() : now(); }

  /// The node cannot go on without it: it ends with the reason, and a new start recovers from the journal.
  template <class Handle>
  void watch(const Handle& actor, const std::string& what) {
    actor->attach_functor([this, what](const caf::error& why) {
      if (why && why != caf::exit_reason::user_shutdown)
        ask_to_stop({from_caf(why).code, what + " died: " + from_caf(why).what});
    });
  }

  template <class Handle>
  void end(Handle& actor) {
    if (!actor)
      return;
    caf::scoped_actor self{*system_};
    self->send_exit(actor, caf::exit_reason::user_shutdown);
    self->wait_for(actor);
    actor = nullptr;
  }

  /// Of a borrowed system, which goes on: owners end their children and do not wait for them, but all of them
  /// know the journal.
  void await_children(caf::strong_actor_ptr journal) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto wait_while = [&](auto true_) {
      while (true_() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    wait_while([&] { return journal->strong_refs > 1; });
    journal = nullptr;
    wait_while([&] { return system_->detached_actors() > detached_before_; });
  }

  /// What this agent's tasks know as the master. The port stays the same over restarts: tasks of an earlier
  /// life have it.
  result<void> open_listener(const fs::path& dir) {
    forward::forward_options how;
    if (link_)
      how.master = [link = link_] { return link->http_address(); };
    else
      how.master = [own = own_address()] { return std::optional{own}; };
    std::error_code fault;
    fs::create_directories(dir, fault);
    const auto file = dir / "listener";
    int port = 0;
    std::ifstream(file) >> port;
    how.port = static_cast<std::uint16_t>(port > 0 && port <= 65535 ? port : 0);
    auto opened = forward::forwarder::start(how);
    if (!opened && how.port != 0) {
      say("the port " + std::to_string(port) +
          " of this agent's earlier life is taken; its tasks reach the master no more over HTTP");
      how.port = 0;
      opened = forward::forwarder::start(how);
    }
    if (!opened)
      return opened.error();
    listener_ = std::move(*opened);
    std::ofstream out(file, std::ios::trunc);
    out << listener_->port() << '\n';
    return out.flush() ? result<void>{}
                       : error{errc::io, "cannot write to the agent's folder '" + dir.string() + "'"};
  }

  /// Of the HTTP server in this process, by the name that its certificate has.
  forward::master_address own_address() const {
    forward::master_address at;
    const auto begin = url_.find("://") + 3, colon = url_.rfind(':');
    at.host = url_.substr(begin, colon - begin);
    if (at.host.starts_with('['))
      at.host = at.host.substr(1, at.host.size() - 2);
    at.port = http_port_.load();
    if (!options_.tls_dir.empty())
      at.ca_file = options_.tls_dir / "ca.pem";
    return at;
  }

  result<void> open_master() {
    std::error_code fault;
    fs::create_directories(dir_.path() / "master", fault);
    if (fault)
      return error{errc::io,
                   "the data directory '" + dir_.path().string() + "' cannot be written: " + fault.message()};
    if (host_.in_memory) {
      journal_ = storage::make_memory_journal();
    } else {
      storage::journal_options options;
      options.directory = dir_.path() / "master" / "db";
      auto opened = storage::open_journal(options, host_.shared_rocksdb ? storage::background::shared
                                                                        : storage::background::own);
      if (!opened)
        return opened.error();
      journal_ = std::move(*opened);
    }
    auto where = api::parse_listen(options_.listen.empty() ? "127.0.0.1:8080" : options_.listen);
    if (!where)
      return where.error();
    if (options_.any_port && options_.listen.empty())
      where->port = 0;
    auto link_where =
      api::parse_listen(options_.agent_listen.empty() ? "127.0.0.1:0" : options_.agent_listen);
    if (!link_where)
      return link_where.error();
    if (options_.tls_dir.empty() && !api::is_loopback(link_where->host))
      return error{errc::invalid,
                   "--agent-listen " + options_.agent_listen +
                     " is reachable from other hosts, so the node link needs TLS\nhint: troupe tls init"
                     " --dir DIR, then start with --tls-dir DIR"};
    journal_peers peers;
    peers.on_commit = [this](const storage::commit_summary& what) {
      if (host_.committed)
        host_.committed();
      if (auto* server = listening_.load(std::memory_order_acquire))
        server->committed(what);
    };
    peers.on_fatal = [this](const error& why) { ask_to_stop(why); };
    peers.on_validation = [this](storage::recorded_validation v) {
      const auto sequence = v.rank == http_rank ? 0 : v.sequence; // over HTTP nobody waits for the decision
      caf::anon_send(cluster_, route_validation{v.experiment,
                                                {v.allocation.trial(),
                                                 {v.allocation, v.rank, v.process, sequence},
                                                 v.row,
                                                 v.steps,
                                                 std::move(v.metrics),
                                                 v.allocation.run}});
    };
    journal_actor_ = spawn_journal(*system_, journal_, std::move(peers));
    auto token = read_join_token(options_.tls_dir);
    if (!token)
      return token.error();
    join_token_ = *token;
    api::accounts::options users;
    if (!host_.in_memory)
      users.file = dir_.path() / "master" / "users";
    users.loopback = api::is_loopback(where->host);
    if (auto initial = client::process_environment("TROUPE_INITIAL_USER_PASSWORD"); !initial.empty())
      users.initial_password = initial;
    auto opened_accounts = api::accounts::open(users, wall_now());
    if (!opened_accounts)
      return opened_accounts.error();
    accounts_ = std::move(*opened_accounts);
    const auto& accounts = accounts_;
    for (const auto& [user, password] : accounts->take_generated())
      say("password of the user " + user + ": " + password);
    cluster_setup setup;
    setup.tokens.session = [accounts](allocation_id id) { return accounts->allocation_token(id); };
    setup.tokens.user = [accounts](experiment_id id, const std::string& owner) {
      auto user = accounts->find(owner);
      return user ? accounts->experiment_token(id, user->id) : std::string();
    };
    setup.checkpoint_dir = (dir_.path() / "checkpoints").string();
    setup.join_token = join_token_;
    auto fences = fence_tokens::open(dir_.path() / "master" / "fence-secret");
    if (!fences)
      return fences.error();
    setup.fence_token = [tokens = std::move(*fences)](const std::string& agent) { return tokens.of(agent); };
    if (host_.http)
      setup.http_port = [this] { return http_port_.load(); };
    setup.shut_down = [this] { ask_to_stop({errc::invalid, ""}); };
    setup.on_node = [this](node_joined x) { shell_->joined(std::move(x)); };
    auto configuration = configuration_store::open(
      {dir_.path() / "master" / "configuration", users, accounts, options_.configured});
    if (!configuration)
      return configuration.error();
    configuration_ = std::move(*configuration);
    setup.configuration = configuration_->at_start();
    cluster_ = spawn_cluster(*system_, std::move(setup), {journal_actor_, journal_->reads()});
    watch(journal_actor_, "the journal");
    watch(cluster_, "the cluster's actor");
    if (auto ok = open_desk(); !ok)
      return ok;
    if (host_.link) {
      auto link_port = publish(*system_, cluster_, link_where->host, link_where->port, options_.tls_dir);
      if (!link_port)
        return link_port.error();
      published_ = *link_port;
    }
    gate_ = std::make_unique<cluster_gate>(*system_, cluster_, journal_actor_, *shell_, *configuration_);
    configuration_->serve(*gate_);
    if (!host_.http)
      return dir_.publish("");
    api::server_options how;
    how.host = where->host;
    how.port = where->port;
    how.about = {"troupe", "troupe", options_.cluster_name.empty() ? "troupe" : options_.cluster_name,
                 options_.version};
    how.about.link_port = published_;
    how.now = host_.now;
    how.about.link_tls = !options_.tls_dir.empty();
    how.about.join_token = join_token_;
    how.about.link_protocol = link_protocol;
    if (!options_.tls_dir.empty())
      how.tls = api::tls_files{options_.tls_dir / "master.pem", options_.tls_dir / "master.key"};
    if (!options_.tls_cert.empty())
      how.tls = api::tls_files{options_.tls_cert, options_.tls_key};
    auto server = api::server::start(how, *gate_, journal_->reads(), accounts);
    if (!server)
      return error{server.error().code,
                   server.error().what + "\nhint: choose another one with --listen 127.0.0.1:PORT"};
    server_ = std::move(*server);
    http_port_ = server_->port();
    listening_.store(server_.get(), std::memory_order_release);
    auto url = client::reachable_url(
      (where->host.find(':') == std::string::npos ? where->host : "[" + where->host + "]") + ":" +
        std::to_string(server_->port()),
      how.tls.has_value());
    if (!url)
      return url.error();
    url_ = *url;
    if (auto ok = dir_.publish(url_); !ok)
      return ok.error();
    return host_.remembered ? client::remember_data_dir(dir_.path()) : result<void>{};
  }

  node_options options_;
  const host_process& host_ = options_.host;
  data_dir dir_;
  places places_;
  std::unique_ptr<link_config> config_;
  std::unique_ptr<caf::actor_system> own_system_;
  caf::actor_system* system_ = nullptr;
  std::shared_ptr<probe_register> probes_; ///< null in a borrowed system
  std::size_t detached_before_ = 0;        ///< the host's
  std::unique_ptr<borrowed_system> borrowed_;
  std::optional<other_wall_time> clock_;
  std::shared_ptr<api::accounts> accounts_;
  std::shared_ptr<storage::journal> journal_;
  journal_actor journal_actor_;
  cluster_actor cluster_;
  std::optional<shell_keeper> shell_;
  std::mutex agent_mutex_; ///< end_agent is called by whoever comes first
  agent_actor agent_;
  std::shared_ptr<master_link> link_;
  std::unique_ptr<forward::forwarder> listener_;
  std::string join_token_;
  std::uint16_t published_ = 0;
  std::unique_ptr<cluster_gate> gate_;
  std::unique_ptr<api::server> server_;
  std::atomic<api::server*> listening_{nullptr};
  std::atomic<std::uint16_t> http_port_{0};
  std::string url_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<error> stop_why_;
  bool registered_ = false;
  std::unique_ptr<configuration_store> configuration_; ///< before the gate's actors end
  std::atomic<bool> end_tasks_{false};
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
const std::string& node::url() const { return inside_->url(); }
api::gate& node::commands() const { return inside_->commands(); }
std::shared_ptr<api::accounts> node::users() const { return inside_->users(); }
caf::actor_system& node::actors() const { return inside_->actors(); }
std::vector<std::pair<std::string, double>> node::measures() const { return inside_->measures(); }
std::shared_ptr<storage::reader> node::reads() const { return inside_->reads(); }
result<value> node::command(const std::string& name, value fields) const {
  return inside_->command(name, std::move(fields));
}
void node::end_tasks_with_agent() { inside_->end_tasks_with_agent(); }
result<void> node::wait_registered(std::chrono::milliseconds limit) {
  return inside_->wait_registered(limit);
}
error node::wait() { return inside_->wait(); }
void node::ask_to_stop(error why) { inside_->ask_to_stop(std::move(why)); }
void node::end_agent() { inside_->end_agent(); }
void node::stop() { inside_->stop(); }

} // namespace troupe::node

#include "runtime/launch/cluster_service.hpp"

#include "model/config/duration_text.hpp"
#include "model/config/from_determined.hpp"
#include "runtime/api/context.hpp"
#include "runtime/node/configuration_store.hpp"
#include "runtime/node/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iostream>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

void print(const std::string& line) { std::cout << line << std::endl; }

result<commands::experiment_create> as_command(const client::new_experiment& x) {
  commands::experiment_create order;
  order.config = x.config;
  order.config_name = x.config_name;
  order.name = x.name;
  order.activate = x.activate;
  order.key = x.key;
  if (!x.context.empty()) {
    auto packed = api::checked_context(x.context);
    if (!packed)
      return packed.error();
    order.context.held = std::move(*packed);
  }
  return order;
}

} // namespace

struct cluster_service::impl {
  fs::path file;
  bool determined = false;
  config::cluster_file read; ///< the file when it was last read without a fault
  fs::path data_dir, tls_dir;
  const node::node* running = nullptr; ///< outlives this object
  client::server_options health;
  mutable std::mutex mutex;
  value in_force;
  std::unique_ptr<node_keeper> keeper;
  std::thread reloading;
  std::atomic<bool> busy{false}, again{false};

  config::cluster_file load() const {
    auto world = client::host_files(client::process_environment);
    if (determined)
      world = config::as_determined(std::move(world), file.string(),
                                    [](const std::string& notes) { std::cerr << notes << std::flush; });
    return config::load_cluster_file(file.string(), world);
  }

  void heard(const value& configuration) {
    std::lock_guard lock(mutex);
    in_force = configuration;
    if (keeper)
      keeper->want(configuration);
  }

  /// Does what `troupe apply --yes` does over HTTP.
  result<void> put(const config::cluster_file& what) const {
    auto experiments = client::experiments_of(what.config); // a bad file of an experiment changes nothing
    if (!experiments)
      return experiments.error();
    auto live = running->command(commands::configuration_get{});
    if (!live)
      return live.error();
    const auto before = live->value("configuration", value());
    auto plan = config::plan_cluster(before, what.config, live->value("by_hand", value::object()), false);
    if (!before.is_null() && plan.counted() > 0)
      std::cout << plan.text() << std::flush;
    auto done = running->command(
      commands::configuration_put{what.config, what.secrets, {}, live->value("revision", std::uint64_t{0})});
    if (!done)
      return done.error();
    for (const auto& warning : done->value("warnings", value::array()))
      if (warning.is_string())
        print("warning: " + warning.get<std::string>());
    for (const auto& token : done->value("tokens", value::array()))
      print(fmt::format("token {}.{} is in {}", token.value("user", std::string()),
                        token.value("name", std::string()), token.value("file", std::string())));
    auto known = running->reads()->experiments();
    for (const auto& [name, one] : *experiments) {
      auto order = as_command(one);
      auto made = order ? running->command(std::move(*order)) : result<value>(order.error());
      if (!made)
        return error{made.error().code, fmt::format("experiments.{}: {}", name, made.error().what)};
      const auto id = made->value("id", std::uint64_t{0});
      if (!known ||
          std::none_of(known->begin(), known->end(), [&](const auto& row) { return row.id.value == id; }))
        print(fmt::format("experiment {} {}", id, name));
    }
    return {};
  }
};

cluster_service::cluster_service(fs::path file, bool determined) : inside_(std::make_unique<impl>()) {
  inside_->file = std::move(file);
  inside_->determined = determined;
}
cluster_service::~cluster_service() { stop(); }

namespace {

/// Takes what the process needs from a cluster file before it starts; options that are set already stay.
void take(node::node_options& options, const value& config, const value& secrets) {
  const auto cluster = config.value("cluster", value::object());
  auto text = [&](const char* key) {
    return cluster.contains(key) && cluster[key].is_string() ? cluster[key].get<std::string>()
                                                             : std::string();
  };
  if (options.data_dir.empty())
    options.data_dir = text("data_dir").empty() ? client::default_data_dir(client::process_environment)
                                                : fs::path(text("data_dir"));
  if (options.listen.empty())
    options.listen = text("listen");
  if (options.agent_listen.empty())
    options.agent_listen = text("agent_listen");
  options.cluster_name = text("name");
  options.plain_http = options.plain_http || cluster.value("plain_http", value()) == value(true);
  for (const auto& name : cluster.value("web_hosts", value::array()))
    options.web_hosts.push_back(name.get<std::string>());
  options.proxy_domain = text("proxy_domain");
  options.roles = text("authz") == "rbac";
  if (const auto tokens = cluster.find("tokens"); tokens != cluster.end() && tokens->is_object()) {
    options.token_longest = config::parse_duration(tokens->value("longest", "30d")).value_or(duration{});
    options.token_usual = config::parse_duration(tokens->value("default", "30d")).value_or(duration{});
  }
  options.configuration = config;
  options.strict_queue = cluster.value("strict_job_queue_control", value()) == value(true);
  options.proxy_listen = text("proxy_listen");
  if (const auto key = secrets.value(value::json_pointer("/webhooks/signing_key"), value()); key.is_string())
    options.webhook_key = key.get<std::string>();
  if (const auto threads = config.value(value::json_pointer("/actors/scheduler_threads"), value());
      threads.is_number_integer())
    options.scheduler_threads = threads.get<int>();
  if (const auto level = config.value(value::json_pointer("/actors/log_level"), value()); level.is_string())
    options.log_level = level.get<std::string>();
  if (auto tls = cluster.find("tls"); tls != cluster.end() && tls->is_object()) {
    if (options.tls_dir.empty())
      options.tls_dir = tls->value("dir", std::string());
    options.tls_cert = tls->value("cert", std::string());
    options.tls_key = tls->value("key", std::string());
  }
}

/// The configuration in force that an earlier start left in the data directory; null where there is none.
value left_configuration(const fs::path& data_dir) {
  const auto text =
    client::host_files(client::process_environment).read(node::configuration_copy(data_dir).string());
  auto config = text ? parse_json(*text) : result<value>(text.error());
  return config && config->is_object() ? std::move(*config) : value();
}

} // namespace

result<void> cluster_service::read(node::node_options& options) {
  if (inside_->file.empty()) {
    if (options.data_dir.empty())
      options.data_dir = client::default_data_dir(client::process_environment);
    if (auto config = left_configuration(options.data_dir); config.is_object())
      take(options, config, value::object());
    options.configuration = {}; // the journal holds it
    return {};
  }
  std::error_code ignored;
  inside_->read = inside_->load();
  std::cerr << inside_->read.rendered() << std::flush;
  if (!inside_->read.ok())
    return error{errc::invalid,
                 fmt::format("the file '{}' cannot be used\nhint: troupe check {}{}", inside_->file.string(),
                             inside_->determined ? "--determined " : "", inside_->file.string())};
  inside_->file = fs::absolute(inside_->file, ignored); // a daemon may change its folder
  take(options, inside_->read.config, inside_->read.secrets);
  return {};
}

void cluster_service::attach(node::node_options& options) {
  options.configured = [x = inside_.get()](const value& configuration) { x->heard(configuration); };
}

result<void> cluster_service::begin(const node::node& running, const node::node_options& how) {
  auto& x = *inside_;
  std::error_code ignored;
  x.running = &running;
  x.data_dir = fs::absolute(how.data_dir, ignored);
  x.tls_dir = how.tls_dir.empty() ? how.tls_dir : fs::absolute(how.tls_dir, ignored);
  x.health.ca_file = !how.tls_cert.empty() ? how.tls_cert.string()
                     : x.tls_dir.empty()   ? std::string()
                                           : (x.tls_dir / "ca.pem").string();
  x.health.timeout = std::chrono::seconds(10);
  if (!x.file.empty())
    if (auto ok = x.put(x.read); !ok)
      return ok;
  auto places = node::find_places();
  if (!places)
    return places.error();
  keeper_setup keep;
  keep.program = fs::read_symlink("/proc/self/exe", ignored);
  keep.data_dir = x.data_dir;
  keep.master = running.url().substr(running.url().find("://") + 3);
  keep.tls_dir = x.tls_dir;
  for (const auto& path : {keep.program, places->troupe_task,
                           places->troupe_task.parent_path() / "libtroupe-zygote.so", places->python})
    if (fs::exists(path, ignored))
      keep.copied.push_back(path);
  keep.say = print;
  std::lock_guard lock(x.mutex);
  x.keeper = std::make_unique<node_keeper>(std::move(keep));
  if (!x.in_force.is_null())
    x.keeper->want(x.in_force);
  return {};
}

bool cluster_service::has_nodes() const {
  std::lock_guard lock(inside_->mutex);
  return inside_->in_force.is_object() && !inside_->in_force.value("nodes", value::array()).empty();
}

std::string cluster_service::to_do() const {
  std::lock_guard lock(inside_->mutex);
  std::string out;
  if (inside_->in_force.is_object())
    for (const auto& one : inside_->in_force.value("nodes", value::array()))
      if (one.value("manual", false))
        out += fmt::format(
          "\nstart the agent of {} there: {}", one.value("name", std::string()),
          join_command(one, inside_->running->url().substr(inside_->running->url().find("://") + 3),
                       inside_->tls_dir));
  return out;
}

result<void> cluster_service::wait_for_nodes() {
  std::vector<std::string> names;
  {
    std::lock_guard lock(inside_->mutex);
    for (const auto& one :
         inside_->in_force.is_object() ? inside_->in_force.value("nodes", value::array()) : value::array())
      if (!one.value("manual", false))
        names.push_back(one.value("name", std::string()));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    auto got = inside_->running->command(commands::agent_list{});
    if (!got)
      return got.error();
    const auto agents = got->value("agents", value::array());
    std::string missing;
    for (const auto& name : names)
      if (std::none_of(agents.begin(), agents.end(), [&](const value& a) {
            return a.value("name", value()) == name &&
                   a.value("state", value()) != "away"; // drained agents count too
          }))
        missing += (missing.empty() ? "" : ", ") + name;
    if (missing.empty())
      return {};
    if (std::chrono::steady_clock::now() > until)
      return error{errc::unreachable, fmt::format("no agent has come from {}\nhint: see the log in {}",
                                                  missing, (inside_->data_dir / "nodes").string())};
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void cluster_service::reload(std::function<void()> begun, std::function<void()> done) {
  auto& x = *inside_;
  x.again = true;
  if (x.file.empty() || x.busy.exchange(true))
    return;
  if (x.reloading.joinable())
    x.reloading.join();
  x.reloading = std::thread([&x, begun = std::move(begun), done = std::move(done)] {
    begun();
    while (x.again.exchange(false)) {
      auto read = x.load();
      std::cerr << read.rendered() << std::flush;
      auto ok = read.ok() ? x.put(read) : result<void>(error{errc::invalid, "it has faults"});
      if (ok)
        std::cout << "read " << x.file.string() << " again" << std::endl;
      else
        std::cerr << "error: " << x.file.string()
                  << " was not put in force, the configuration stays as it was: " << ok.error().what
                  << std::endl;
    }
    x.busy = false;
    done();
  });
}

void cluster_service::stop() {
  auto& x = *inside_;
  if (x.reloading.joinable())
    x.reloading.join();
  std::unique_ptr<node_keeper> keeper;
  {
    std::lock_guard lock(x.mutex);
    keeper = std::move(x.keeper);
  }
  keeper.reset();
}

bool cluster_service::answers() const {
  client::server here({inside_->running->url(), "this process", inside_->data_dir, 0}, inside_->health);
  return bool(here.get("/health"));
}

} // namespace troupe::launch

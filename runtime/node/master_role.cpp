#include "runtime/node/master_role.hpp"

#include "model/config/cluster_config.hpp"
#include "runtime/node/fence_tokens.hpp"
#include "runtime/node/first_facts.hpp"
#include "runtime/node/link.hpp"
#include "runtime/node/task_records.hpp"
#include "runtime/provider/providers.hpp"
#include "runtime/web/page.hpp"
#include "storage/audit_log.hpp"
#include "storage/own_threads.hpp"
#include "system/random.hpp"
#include "system/whole_file.hpp"

#include <caf/all.hpp>

#include <thread>

namespace troupe::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* master_node = "master"; ///< name of the master in the operators' shell

/// The operators' settings, in the form in which the desk takes orders of earlier lives.
value settings_in(const storage::reader& reads) {
  value out = value::array();
  if (auto settings = reads.settings())
    for (const auto& one : *settings)
      out.push_back({{"name", "config"}, {"fields", {{"key", one.key}, {"value", one.to}}}});
  return out;
}

time_point system_now() { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }

/// If roles decide, and nobody has the role in an older directory, makes the first admin a cluster admin, who
/// can then give roles. See first_facts.cpp for a new directory.
std::shared_ptr<api::role_book> roles_of(api::gate& cluster, std::shared_ptr<storage::reader> reads) {
  auto book = std::make_shared<api::role_book>(std::move(reads));
  if (!book->has_admin()) {
    commands::role_assign with;
    with.roles.push_back({authority::cluster_admin, user_id{1}, {}, {}});
    // Before this is durable, and if it fails, the book already holds it.
    cluster.order({.user = "troupe", .admin = true, .allocation = {}}, std::move(with), [](result<value>) {});
  }
  return book;
}

} // namespace

result<void> master_role::open() {
  auto where = checked_addresses();
  if (!where)
    return where.error();
  auto token = read_join_token(on_.options.tls_dir);
  if (!token)
    return token.error();
  join_token_ = std::move(*token);
  const auto users = accounts_options(where->http);
  if (auto ok = open_journal(); !ok)
    return ok;
  if (auto ok = make_ids(); !ok)
    return ok;
  if (auto ok = open_users(users); !ok) // while nobody else has the journal
    return ok;
  start_journal();
  if (auto ok = open_cluster(users); !ok)
    return ok;
  if (auto ok = open_desk(); !ok)
    return ok;
  if (host_.link)
    if (auto ok = open_link(where->link); !ok)
      return ok;
  gate_ = std::make_unique<cluster_gate>(on_.system, cluster_, journal_actor_, on_.shell, *configuration_);
  configuration_->serve(*gate_);
  return host_.http ? open_http(where->http, where->pages) : on_.dir.publish("");
}

result<master_role::addresses> master_role::checked_addresses() const {
  const auto& how = on_.options;
  const bool certified = !how.tls_dir.empty();
  auto http = api::parse_listen(how.listen.empty() ? "127.0.0.1:8080" : how.listen);
  if (!http)
    return http.error();
  if (how.any_port && how.listen.empty())
    http->port = 0;
  std::optional<api::listen_address> pages;
  if (!how.proxy_listen.empty()) {
    auto at = api::parse_listen(how.proxy_listen);
    if (!at)
      return error{at.error().code, "cluster.proxy_listen: " + at.error().what};
    if (at->port == 0 || at->port == http->port)
      return error{errc::invalid,
                   "cluster.proxy_listen: " + how.proxy_listen + ": a port of its own has to be named"};
    pages = *at;
  }
  auto link = api::parse_listen(how.agent_listen.empty() ? "127.0.0.1:0" : how.agent_listen);
  if (!link)
    return link.error();
  if (!certified && !api::is_loopback(link->host))
    return error{errc::invalid,
                 "--agent-listen " + how.agent_listen +
                   " is reachable from other hosts, so the node link needs TLS\nhint: troupe tls init"
                   " --dir DIR, then start with --tls-dir DIR"};
  const auto* seen = !api::is_loopback(http->host)             ? &*http
                     : pages && !api::is_loopback(pages->host) ? &*pages
                                                               : nullptr;
  if (host_.http && !certified && how.tls_cert.empty() && !how.plain_http && seen)
    return error{errc::invalid,
                 "other hosts reach " + api::to_string(*seen) +
                   ", and without certificates passwords and tokens would cross the network in the clear\n"
                   "hint: troupe tls init --dir DIR, then start with --tls-dir DIR; or --plain-http where a"
                   " proxy that speaks TLS stands in front"};
  return addresses{*http, *link, pages};
}

result<void> master_role::open_journal() {
  const auto folder = on_.dir.path() / "master";
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (fault)
    return error{errc::io, "the data directory '" + on_.dir.path().string() +
                             "' cannot be written: " + fault.message()};
  // The folder holds configurations, files and logs of all users, and tasks may run as other accounts of this
  // host.
  fs::permissions(folder, fs::perms::others_all, fs::perm_options::remove, fault);
  if (host_.in_memory) {
    journal_ = storage::make_memory_journal();
  } else {
    storage::journal_options options;
    options.directory = folder / "db";
    auto opened = storage::open_journal(options, host_.shared_rocksdb ? storage::background::shared
                                                                      : storage::background::own);
    if (!opened)
      return opened.error();
    journal_ = std::move(*opened);
  }
  return {};
}

void master_role::start_journal() {
  journal_actor_ = spawn_journal(on_.system, journal_, peers_of_journal());
  watch(caf::actor_cast<caf::actor>(journal_actor_), "the journal");
}

result<void> master_role::make_ids() {
  ids_ = {random_uuid(), random_uuid()};
  if (host_.in_memory)
    return {};
  const auto file = on_.dir.path() / "master" / "cluster-id";
  auto stored = read_whole(file);
  if (!stored)
    return stored.error();
  if (*stored && (*stored)->size() >= ids_.cluster.size()) {
    ids_.cluster = (*stored)->substr(0, ids_.cluster.size());
    return {};
  }
  return replace_file(file, ids_.cluster + "\n", 0644);
}

journal_peers master_role::peers_of_journal() {
  journal_peers peers;
  peers.on_commit = [this](const storage::commit_summary& what) {
    if (host_.committed)
      host_.committed();
    if (auto* server = listening_.load(std::memory_order_acquire))
      server->committed(what);
  };
  peers.on_fatal = on_.ask_to_stop;
  peers.on_validation = [this](storage::recorded_validation v) { route(std::move(v)); };
  lines_ = std::make_shared<log_watch>([reads = journal_->reads()](task_id id) {
    auto row = reads->task(id);
    return row ? row->experiment : experiment_id{};
  });
  peers.lines = lines_;
  peers.cluster = [this] { return cluster_; };
  return peers;
}

void master_role::route(storage::recorded_validation v) const {
  const auto sequence = v.rank == http_rank ? 0 : v.sequence; // over HTTP, nobody waits for the decision
  caf::anon_send(cluster_, route_validation{v.experiment,
                                            {v.allocation.trial(),
                                             {v.allocation, v.rank, v.process, sequence},
                                             v.row,
                                             v.steps,
                                             std::move(v.metrics),
                                             v.allocation.run}});
}

/// The node cannot run without this actor: if it dies, the node ends with the reason, and a new start
/// recovers from the journal.
void master_role::watch(const caf::actor& who, const std::string& what) {
  who->attach_functor([stop = on_.ask_to_stop, what](const caf::error& why) {
    if (why && why != caf::exit_reason::user_shutdown)
      stop({from_caf(why).code, what + " died: " + from_caf(why).what});
  });
}

api::accounts::options master_role::accounts_options(const api::listen_address& http) const {
  api::accounts::options how;
  how.loopback = api::is_loopback(http.host);
  if (auto initial = client::process_environment("TROUPE_INITIAL_USER_PASSWORD"); !initial.empty())
    how.initial_password = initial;
  return how;
}

result<void> master_role::open_users(const api::accounts::options& how) {
  auto opened = open_accounts(*journal_, host_.in_memory ? fs::path() : on_.dir.path() / "master", how,
                              host_.now ? host_.now() : system_now());
  if (!opened)
    return opened.error();
  accounts_ = std::move(*opened);
  for (const auto& [user, password] : accounts_->take_generated())
    on_.say("password of the user " + user + ": " + password);
  return {};
}

/// Called on the thread of the pool's provider. Agents of new instances dial the HTTP port, which may begin
/// to listen a moment later.
std::unique_ptr<instance_provider> master_role::make_provider(const std::string& pool,
                                                              const value& settings) {
  for (int i = 0; i < 500 && host_.http && !http_port_.load(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (!http_port_.load())
    return nullptr; // agents of other processes cannot join
  provider::world where;
  where.pool = pool;
  where.master = url_.substr(url_.find("://") + 3);
  std::error_code ignored;
  where.program = fs::read_symlink("/proc/self/exe", ignored);
  where.folder = on_.dir.path() / "instances" / pool;
  where.tls_dir = on_.options.tls_dir;
  where.ends = ends_;
  if (const auto token = on_.options.tls_dir / "join-token";
      !on_.options.tls_dir.empty() && fs::exists(token))
    where.join_token_file = token;
  return provider::make_provider(settings, std::move(where));
}

result<void> master_role::open_cluster(const api::accounts::options& users) {
  const auto folder = on_.dir.path() / "master";
  cluster_setup setup;
  setup.tokens.cluster_id = ids_.cluster;
  setup.tokens.master_id = ids_.start;
  setup.tokens.session = [accounts = accounts_](allocation_id id) { return accounts->allocation_token(id); };
  setup.tokens.user = [accounts = accounts_](experiment_id id, const std::string& owner) {
    auto user = accounts->owner(owner);
    return user ? accounts->experiment_token(id, user->id) : std::string();
  };
  setup.tokens.of_task = [accounts = accounts_](task_id id, const std::string& owner) {
    auto user = accounts->owner(owner);
    return user ? accounts->task_token(id, user->id) : std::string();
  };
  setup.tokens.service = [accounts = accounts_](task_id id, const std::string& owner) {
    auto user = accounts->owner(owner);
    return user ? accounts->service_token(id, user->id) : std::string();
  };
  setup.tokens.reveal = [accounts = accounts_](const std::string& concealed) {
    auto text = accounts->reveal(concealed);
    return text ? *text : std::string();
  };
  setup.checkpoint_dir = (on_.dir.path() / "checkpoints").string();
  setup.join_token = join_token_;
  auto fences = fence_tokens::open(folder / "fence-secret");
  if (!fences)
    return fences.error();
  setup.fence_token = [tokens = std::move(*fences)](const std::string& agent) { return tokens.of(agent); };
  if (host_.http)
    setup.http_port = [this] { return http_port_.load(); };
  setup.shut_down = [stop = on_.ask_to_stop] { stop({errc::invalid, ""}); };
  setup.on_node = [&shell = on_.shell](node_joined x) { shell.joined(std::move(x)); };
  setup.recorded = [accounts = accounts_](const catalogue_fact& fact) { accounts->take(fact); };
  auto in_force = journal_->reads()->configuration();
  if (!in_force)
    return in_force.error();
  setup.configuration = *in_force ? (*in_force)->configuration : value();
  setup.say = [this](const std::string& line) { on_.say(line); };
  setup.make_provider = [this](const std::string& pool, const value& settings) {
    return make_provider(pool, settings);
  };
  const auto& asked = on_.options.configuration.is_null() ? setup.configuration : on_.options.configuration;
  const auto leases = config::leases(asked);
  setup.lease = {leases.freeze, leases.give_away, leases.heartbeat, leases.adopt, leases.give_away};
  if (auto ok = open_courier(asked, users.loopback); !ok)
    return ok;
  setup.deliver = [courier = courier_](std::vector<webhook_delivery> what, webhook_ear done) {
    courier->send(std::move(what), std::move(done));
  };
  if (asked.is_object())
    if (const auto base = asked.value(value::json_pointer("/cluster/webhooks/base_url"), value());
        base.is_string())
      setup.base_url = base;
  setup.lines = lines_;
  setup.roles = on_.options.roles;
  // A later start without a cluster file reads this copy before it opens the journal.
  const auto keep_copy = [this, copy = host_.in_memory ? fs::path() : configuration_copy(on_.dir.path()),
                          next = on_.options.configured](const value& now) {
    if (!copy.empty() && !now.is_null())
      if (auto kept = replace_file(copy, to_json(now)); !kept)
        on_.say(copy.string() + " cannot be written: " + kept.error().what);
    if (next)
      next(now);
  };
  configuration_ = std::make_unique<configuration_store>(configuration_store::setup{
    folder, users.loopback, accounts_, in_force->value_or(configuration_changed{}), keep_copy});
  for (const auto& order : standing_orders(folder / "audit"))
    if (const auto& fields = order["fields"]; order["name"] == "drain" && fields.value("on", true))
      setup.drained_before.emplace_back(fields.value("node", std::string()),
                                        order.value("user", std::string()));
  cluster_ = spawn_cluster(on_.system, std::move(setup), {journal_actor_, journal_->reads()});
  watch(caf::actor_cast<caf::actor>(cluster_), "the cluster's actor");
  return {};
}

/// If the cluster file has no key for signatures, one is made at the first start.
result<void> master_role::open_courier(const value& configuration, bool loopback) {
  const auto settings = configuration.is_object()
                          ? configuration.value(value::json_pointer("/cluster/webhooks"), value::object())
                          : value::object();
  webhook_courier::settings how;
  how.targets.local = loopback;
  if (const auto allow = settings.value("allow", value()); allow.is_array())
    for (const auto& one : allow)
      how.targets.allow.push_back(one);
  if (!on_.options.webhook_key.empty()) {
    how.key = on_.options.webhook_key;
  } else if (const auto named = settings.value("signing_key_file", value()); named.is_string()) {
    auto key = read_whole(named.get<std::string>());
    if (!key || !*key)
      return error{errc::io, "cluster.webhooks.signing_key_file: '" + named.get<std::string>() + "' " +
                               (key ? "is not there" : "cannot be read: " + key.error().what)};
    how.key = (*key)->substr(0, (*key)->find_first_of("\r\n"));
  } else if (host_.in_memory) {
    how.key = random_hex(16);
  } else {
    const auto file = on_.dir.path() / "master" / "webhook-key";
    auto stored = read_whole(file);
    if (!stored)
      return stored.error();
    how.key = *stored ? (*stored)->substr(0, (*stored)->find('\n')) : random_hex(16);
    if (!*stored)
      if (auto ok = replace_file(file, how.key + "\n"); !ok)
        return ok;
  }
  courier_ = std::make_shared<webhook_courier>(std::move(how));
  return {};
}

result<void> master_role::open_desk() {
  const auto file = on_.dir.path() / "master" / "audit";
  auto audit = storage::audit_log::open(file);
  if (!audit)
    return audit.error();
  on_.shell.open_desk({master_node,
                       on_.options.agent ? on_.agent_name : std::string(),
                       {},
                       cluster_,
                       std::move(*audit),
                       [reads = journal_->reads()] { return settings_in(*reads); },
                       on_.options.allow_faults});
  return {};
}

result<void> master_role::open_link(const api::listen_address& where) {
  auto port = publish(on_.system, cluster_, where.host, where.port, on_.options.tls_dir);
  if (!port)
    return port.error();
  link_port_ = *port;
  return {};
}

result<void> master_role::open_http(const api::listen_address& where,
                                    const std::optional<api::listen_address>& pages) {
  const auto& options = on_.options;
  api::server_options how;
  how.host = where.host;
  how.port = where.port;
  how.pages = pages;
  how.about = {ids_.cluster, ids_.start, options.cluster_name.empty() ? "troupe" : options.cluster_name,
               options.version};
  how.about.link_port = link_port_;
  how.about.link_tls = !options.tls_dir.empty();
  how.about.join_token = join_token_;
  how.about.link_protocol = link_protocol;
  how.now = host_.now;
  if (options.web)
    how.more_routes = web::page_routes(options.web_dir);
  how.browsers.hosts = options.web_hosts;
  how.empty_journal = storage::make_memory_journal;
  how.browsers.codes = codes_;
  how.browsers.proxy_domain = options.proxy_domain;
  if (options.roles)
    how.roles = roles_of(*gate_, journal_->reads());
  how.strict_queue = options.strict_queue;
  how.junctions = junctions_;
  if (options.token_usual != duration{})
    how.tokens.usual = options.token_usual;
  if (options.token_longest != duration{})
    how.tokens.longest = options.token_longest;
  if (!options.tls_dir.empty())
    how.tls = api::tls_files{options.tls_dir / "master.pem", options.tls_dir / "master.key"};
  if (!options.tls_cert.empty())
    how.tls = api::tls_files{options.tls_cert, options.tls_key};
  auto server = api::server::start(how, *gate_, journal_->reads(), accounts_);
  if (!server)
    return error{server.error().code,
                 server.error().what + "\nhint: choose another one with --listen 127.0.0.1:PORT"};
  server_ = std::move(*server);
  listening_.store(server_.get(), std::memory_order_release);
  const auto asked = api::to_string({where.host, server_->port()});
  auto url = client::reachable_url(asked, how.tls.has_value());
  if (!url)
    return url.error();
  url_ = std::move(*url);
  address_ = (how.tls ? "https://" : "http://") + asked;
  http_port_ = server_->port();
  if (auto ok = on_.dir.publish(url_); !ok)
    return ok;
  return host_.remembered ? client::remember_data_dir(on_.dir.path()) : result<void>{};
}

forward::master_address master_role::http_address() const {
  forward::master_address at;
  const auto begin = url_.find("://") + 3, colon = url_.rfind(':');
  at.host = url_.substr(begin, colon - begin);
  if (at.host.starts_with('['))
    at.host = at.host.substr(1, at.host.size() - 2);
  at.port = http_port_.load();
  if (!on_.options.tls_dir.empty())
    at.ca_file = on_.options.tls_dir / "ca.pem";
  return at;
}

std::string master_role::web_link(const std::string& user, const std::string& path) const {
  if (url_.empty() || !on_.options.web)
    return {};
  auto who = accounts_->find(user);
  if (!who)
    return url_ + "/ui/" + path;
  return url_ + "/ui/login?next=/ui/" + path +
         "#code=" + codes_->make({who->id, who->generation, {}}, host_.now ? host_.now() : system_now());
}

void master_role::close_port() {
  if (server_)
    server_->stop(std::chrono::milliseconds(500));
}

void master_role::end_actors() {
  *ends_ = true; // a provider's command that hangs is not waited for
  if (link_port_)
    unpublish(on_.system, link_port_);
  on_.shell.stop_desk();
  configuration_.reset();
  if (accounts_)
    accounts_->keep_last_logins();
  end_actor(on_.system, cluster_);
  courier_.reset();
  last_of_journal_ = caf::actor_cast<caf::strong_actor_ptr>(journal_actor_);
  end_actor(on_.system, journal_actor_);
}

void master_role::let_go() {
  listening_ = nullptr;
  gate_.reset();
  server_.reset();
  const auto journal = std::exchange(last_of_journal_, nullptr);
  wait_while([&] { return journal && journal->strong_refs > 1; });
  journal_.reset();
}

} // namespace troupe::node

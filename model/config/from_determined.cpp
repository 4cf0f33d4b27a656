#include "model/config/from_determined.hpp"

#include "model/config/document.hpp"
#include "model/config/effects.hpp"
#include "model/config/master_config.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace troupe::config {
namespace {

constexpr std::int64_t longest_days = 36500; ///< stands for "for ever"
constexpr const char* means_nothing = "has no effect in Troupe";

/// Keys without a counterpart, and why; `path` leaves out the numbers of lists.
struct idle_key {
  const char *path, *why;
};
constexpr idle_key idle_keys[] = {
  {"config_file", "the file is named by --determined"},
  {"root", "the web page is in the binary"},
  {"enable_cors", "the page has the API's own origin, and no other origin may call it"},
  {"reserved_ports", "agents take free ports only"},
  {"cache", "there is none"},
  {"log", "set the level with `actors.log_level`"},
  {"db", "the database is a folder of the master (`cluster.data_dir`)"},
  {"telemetry", "nothing is reported to anybody"},
  {"observability", "there is no Prometheus page yet"},
  {"logging", "logs are kept by the master"},
  {"ui_customization", "the page has one look"},
  {"integrations", "Pachyderm is not offered"},
  {"scim", "users come from the cluster file or `det user create`"},
  {"oidc", "single sign-on is not offered"},
  {"saml", "single sign-on is not offered"},
  {"__internal", "it is Determined's own"},
  {"retention_policy.schedule", "logs are looked through by themselves"},
  {"security.default_task", "set the account of a user or workspace: `det user link-with-agent-user`"},
  {"security.ssh", "shells have Ed25519 keys"},
  {"security.initial_user_password",
   "set TROUPE_INITIAL_USER_PASSWORD for the first start, or passwords with `det user change-password`"},
  {"security.authz.fallback", "there is no other form"},
  {"security.authz.rbac_ui_enabled", "it follows security.authz.type"},
  {"security.authz.workspace_creator_assign_role", "who makes a workspace is its WorkspaceAdmin"},
  {"resource_manager.cluster_name", "the cluster's name is `cluster_name`"},
  {"resource_manager.default_aux_resource_pool", "tasks without slots go to the default pool, too"},
  {"resource_manager.no_default_resource_pools", "there is always a default pool"},
  {"resource_manager.require_authentication", "agents show the join token of `troupe tls init`"},
  {"resource_manager.client_ca", "agents show the join token of `troupe tls init`"},
  {"resource_manager.metadata", "nobody reads it"},
  {"scheduler.allow_heterogeneous_fits", "a trial may take free slots of any agents (`gangs: any`)"},
  {"resource_pools.description", "pools have none"},
  {"resource_pools.agent_reconnect_wait", "set `cluster.leases.give_away`"},
  {"resource_pools.agent_reattach_enabled", "tasks always outlive their agent"},
  {"resource_pools.provider", "elastic pools run commands of yours: see configs/providers/"},
  {"checkpoint_storage.access_key",
   "tasks take it from `cluster.task_container_defaults.environment_variables` (AWS_ACCESS_KEY_ID), or from "
   "`checkpoint_storage` of the experiment or its workspace"},
  {"checkpoint_storage.secret_key",
   "tasks take it from `cluster.task_container_defaults.environment_variables` (AWS_SECRET_ACCESS_KEY), or "
   "from `checkpoint_storage` of the experiment or its workspace"},
  {"checkpoint_storage.connection_string",
   "put it into `checkpoint_storage` of the experiment or its workspace"},
  {"checkpoint_storage.credential", "put it into `checkpoint_storage` of the experiment or its workspace"},
  {"checkpoint_storage.account_url", "put it into `checkpoint_storage` of the experiment or its workspace"},
  {"checkpoint_storage.propagation", "nothing is mounted"},
};

struct contradiction {
  const char *path, *why, *mend;
};
constexpr contradiction contradictions[] = {
  {"task_container_defaults.image", "images are not offered: tasks are processes on the hosts",
   "install what tasks need on the hosts, and remove the key"},
  {"task_container_defaults.cpu_pod_spec", "Kubernetes is not offered", "remove the key"},
  {"task_container_defaults.gpu_pod_spec", "Kubernetes is not offered", "remove the key"},
  {"task_container_defaults.slurm", "Slurm is not offered", "remove the key"},
  {"task_container_defaults.pbs", "PBS is not offered", "remove the key"},
  {"additional_resource_managers", "further resource managers are not offered", "remove the key"},
  {"resource_pools.kubernetes_namespace", "Kubernetes is not offered", "remove the key"},
};

/// Whether keys of either kind lie within the section.
bool is_section(std::string_view path) {
  static const std::set<std::string_view> all = {
    "resource_manager", "scheduler",        "resource_pools",          "security",           "security.authz",
    "webhooks",         "retention_policy", "task_container_defaults", "checkpoint_storage",
  };
  return all.contains(path);
}

template <class Key, std::size_t N>
const Key* found(const Key (&keys)[N], const std::string& path) {
  const auto it =
    std::find_if(std::begin(keys), std::end(keys), [&](const Key& one) { return path == one.path; });
  return it == std::end(keys) ? nullptr : it;
}

class mover {
public:
  mover(const node& root, std::string_view file) : file_(file) { look(root, "", ""); }

  std::vector<diagnostic> faults, notes;

  void note(const node& at, const std::string& path, const std::string& message,
            const std::string& hint = {}) {
    notes.push_back({file_, at.at.line, at.at.column, path, message, hint, true});
  }
  void fault(const entry& at, const std::string& path, const std::string& message, const std::string& hint) {
    faults.push_back({file_, at.at.line, at.at.column, path, message, hint});
  }

private:
  /// `shown` is the path as the text has it. `path` leaves out the numbers of lists, and names the scheduler
  /// and the defaults of a pool as those of the cluster.
  void look(const node& x, const std::string& path, const std::string& shown) {
    for (const auto& e : x.entries) {
      const auto inner = path.empty() ? e.key : path + "." + e.key;
      const auto name = shown.empty() ? e.key : shown + "." + e.key;
      if (e.what.is(kind::null))
        continue;
      if (const auto* why = found(contradictions, inner)) {
        const bool empty =
          (e.what.is(kind::list) && e.what.items.empty()) || (e.what.is(kind::string) && e.what.text.empty());
        if (!empty)
          faults.push_back({file_, e.at.line, e.at.column, name, why->why, why->mend});
        continue;
      }
      if (const auto why = idle(inner); !why.empty()) {
        if (said_.insert(inner).second)
          notes.push_back({file_, e.at.line, e.at.column, name,
                           std::string(means_nothing) + ": " + std::string(why), "", true});
        continue;
      }
      below(e.what, inner, name);
    }
  }
  /// Why a key has no effect; empty where it has one.
  static std::string_view idle(const std::string& path) {
    constexpr std::string_view tasks = "task_container_defaults.";
    if (path.starts_with(tasks))
      return idle_task_default(std::string_view(path).substr(tasks.size()));
    const auto* one = found(idle_keys, path);
    return one ? one->why : "";
  }
  void below(const node& x, const std::string& path, const std::string& shown) {
    if (path == "resource_pools") {
      for (std::size_t i = 0; i < x.items.size(); ++i)
        look(x.items[i], path, shown + "[" + std::to_string(i) + "]");
      return;
    }
    const auto last = path.rfind('.');
    const auto own = last == path.npos ? path : path.substr(last + 1);
    if (own == "scheduler" || own == "task_container_defaults")
      look(x, own, shown);
    else if (is_section(path))
      look(x, path, shown);
  }
  std::string file_;
  std::set<std::string> said_;
};

value given(const node& root, const char* key) {
  const auto* at = root.find(key);
  return at ? to_value(*at) : value();
}

void put(value& into, const char* key, value x) {
  if (!x.is_null() && !(x.is_structured() && x.empty()))
    into[key] = std::move(x);
}

std::string seconds_text(std::int64_t seconds) { return std::to_string(seconds) + "s"; }

/// The part of `task_container_defaults` that has an effect; names the rest.
value task_defaults_of(const value& said) {
  value out = value::object();
  if (said.is_object())
    for (const auto& [key, x] : said.items())
      if (idle_task_default(key).empty())
        put(out, key.c_str(), x);
  return out;
}

/// Sets a pool by a scheduler; `x` may be null.
void add_scheduler(value& pool, const value& x) {
  const auto text = [&](const char* key) { return x.is_object() ? x.value(key, value()) : value(); };
  const bool fair = text("type") == "fair_share";
  pool["scheduler"] = fair ? "fair" : "priority";
  if (fair || text("preemption") == true) // Determined's fair share always preempts
    pool["preemption"] = true;
  put(pool, "default_priority", text("default_priority"));
  put(pool, "fitting", text("fitting_policy"));
}

value storage_of(const value& x) {
  const auto text = [&](const char* key) {
    const auto at = x.value(key, value());
    return at.is_string() ? at.get<std::string>() : std::string();
  };
  value out{{"type", text("type")}};
  auto path = text("type") == "shared_fs" ? text("host_path") : text("container_path");
  if (const auto below = text("storage_path"); !below.empty() && text("type") == "shared_fs")
    path = below.starts_with('/') ? below : path + "/" + below;
  const auto bucket = text("type") == "azure" ? text("container") : text("bucket");
  for (const auto& [key, is] : {std::pair{"path", path},
                                {"bucket", bucket},
                                {"prefix", text("prefix")},
                                {"endpoint", text("endpoint_url")}})
    if (!is.empty())
      out[key] = is;
  return out;
}

/// A name in Determined is any text; here it has letters, digits and . _ - @ +.
std::string cluster_name_of(std::string_view text) {
  constexpr std::size_t longest = 64;
  std::string name;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) || std::string_view("._-@+").find(c) != text.npos)
      name += c;
    else if (!name.empty() && !name.ends_with('-'))
      name += '-';
  name.erase(0, name.find_first_not_of(".-"));
  return name.substr(0, longest);
}

/// Days (-1: for ever) become `cluster.tokens`. A value that is not given is made to fit the given ones.
value token_lives_of(const value& lives) {
  constexpr std::int64_t usual_days = 30;
  const auto days = [&](const char* key) -> std::optional<std::int64_t> {
    const auto said = lives.value(key, value());
    if (!said.is_number_integer())
      return std::nullopt;
    return said == -1 ? longest_days : said.get<std::int64_t>();
  };
  const auto usual = days("default_lifespan_days"), longest = days("max_lifespan_days");
  const auto most = longest.value_or(std::max(usual_days, usual.value_or(0)));
  return {{"default", std::to_string(usual.value_or(std::min(usual_days, most))) + "d"},
          {"longest", std::to_string(most) + "d"}};
}

/// Reports contradictions: a pool of experiments that does not exist, a relative folder of checkpoints, a
/// certificate without its key.
void add_faults(const value& x, const node& root, mover& says) {
  const auto entry_in = [](const node* in, const char* key) { return in ? in->entry_of(key) : nullptr; };
  for (const char* key : {"default_compute_resource_pool", "default_gpu_resource_pool"})
    if (const auto* named = entry_in(root.find("resource_manager"), key);
        named && named->what.is(kind::string))
      if (std::none_of(x["resource_pools"].begin(), x["resource_pools"].end(),
                       [&](const value& pool) { return pool["pool_name"] == named->what.text; }))
        says.fault(*named, std::string("resource_manager.") + key,
                   "there is no pool '" + named->what.text + "' in resource_pools",
                   "name one of them, or add it there");
  const auto* storage = root.find("checkpoint_storage");
  const auto type = x.value(value::json_pointer("/checkpoint_storage/type"), value());
  const char* folder = type == "shared_fs" ? "host_path" : type == "directory" ? "container_path" : "";
  if (const auto* named = entry_in(storage, folder);
      named && named->what.is(kind::string) && !named->what.text.starts_with('/'))
    says.fault(*named, std::string("checkpoint_storage.") + folder,
               "expected an absolute path, got '" + named->what.text + "'",
               "name the folder from / on, as every host has it there");
  const auto* security = root.find("security");
  const auto* tls = security ? security->find("tls") : nullptr;
  const auto names_file = [](const auto* x) {
    return x && x->what.is(kind::string) && !x->what.text.empty();
  };
  for (const auto& [one, other] : {std::pair{"cert", "key"}, {"key", "cert"}})
    if (const auto* named = entry_in(tls, one); names_file(named))
      if (!names_file(entry_in(tls, other)))
        says.fault(*named, std::string("security.tls.") + one, std::string("has no ") + other + " beside it",
                   std::string("add security.tls.") + other);
}

/// The keys of the checked and completed file; `root` shows which of them the text has.
value cluster_file_of(const value& x, const node& root, mover& says) {
  value cluster = value::object();
  if (const auto said = x.value("cluster_name", std::string()); !said.empty()) {
    const auto name = cluster_name_of(said);
    if (name != said)
      says.note(*root.find("cluster_name"), "cluster_name",
                "is '" + name + "' here: a name has letters, digits and . _ - @ +");
    put(cluster, "name", name);
  }
  const auto security = given(root, "security");
  const auto tls = security.is_object() ? security.value("tls", value()) : value();
  const auto cert = tls.is_object() ? tls.value("cert", value()) : value();
  const bool has_tls = cert.is_string() && cert != ""; // an empty one counts as none, as in Determined
  const auto port = root.find("port") ? x.value("port", 8080) : has_tls ? 8443 : 8080;
  cluster["listen"] = "0.0.0.0:" + std::to_string(port);
  if (has_tls) {
    cluster["tls"] = {{"cert", tls["cert"]}, {"key", tls.value("key", value())}};
  } else {
    cluster["plain_http"] = true;
    says.note(root, "security.tls", "missing: HTTP is plain, as it was there, also for other hosts");
  }
  if (const auto rights = security.is_object() ? security.value("authz", value()) : value();
      rights.is_object()) {
    if (rights.value("type", value()) == "rbac")
      cluster["authz"] = "rbac";
    if (rights.value("strict_job_queue_control", value()) == true)
      cluster["strict_job_queue_control"] = true;
  }
  if (const auto lives = security.is_object() ? security.value("token", value()) : value(); lives.is_object())
    cluster["tokens"] = token_lives_of(lives);
  for (const char* key : {"notebook_timeout", "tensorboard_timeout"})
    if (const auto seconds = given(root, key); seconds.is_number_integer())
      cluster[key] = seconds_text(seconds.get<std::int64_t>());
  if (const auto webhooks = given(root, "webhooks"); webhooks.is_object())
    for (const char* key : {"base_url", "signing_key"})
      if (const auto text = webhooks.value(key, value()); text.is_string() && text != "")
        cluster["webhooks"][key] = text;
  put(cluster, "feature_switches", given(root, "feature_switches"));
  put(cluster, "task_container_defaults", task_defaults_of(given(root, "task_container_defaults")));
  if (const auto kept = given(root, "retention_policy"); kept.is_object())
    if (const auto days = kept.value("log_retention_days", value()); days.is_number_integer() && days >= 0)
      cluster["log_retention"] = std::to_string(std::min(days.get<std::int64_t>(), longest_days)) + "d";

  value out{{"troupe", 1}, {"cluster", std::move(cluster)}};
  value defaults = value::object();
  if (const auto storage = given(root, "checkpoint_storage"); storage.is_object()) {
    out["storage"] = {{"default", storage_of(storage)}};
    for (const char* key : {"save_experiment_best", "save_trial_best", "save_trial_latest"})
      if (const auto count = storage.value(key, value()); !count.is_null())
        defaults["checkpoint_storage"][key] = count;
  }
  put(out, "defaults", std::move(defaults));

  const auto manager = x.value("resource_manager", value::object());
  const auto usual = manager.value("default_compute_resource_pool", std::string("default"));
  const auto* written = root.find("resource_pools");
  for (std::size_t i = 0; i < x["resource_pools"].size(); ++i) {
    const auto& from = x["resource_pools"][i];
    const node* own = written && i < written->items.size() ? &written->items[i] : nullptr;
    value pool = value::object();
    if (from["pool_name"] == usual)
      pool["default"] = true;
    const auto scheduler = own ? given(*own, "scheduler") : value();
    add_scheduler(pool, scheduler.is_object() ? scheduler : manager.value("scheduler", value()));
    pool["aux_per_agent"] = from.value("max_aux_containers_per_agent", 100);
    if (x.value("launch_error", true))
      pool["launch_error"] = true;
    if (own)
      put(pool, "task_container_defaults", task_defaults_of(given(*own, "task_container_defaults")));
    out["pools"][from["pool_name"].get<std::string>()] = std::move(pool);
  }
  return out;
}

/// Determined's files have no variables: their `${` belongs to a shell, not to the cluster file.
void escape_variables(value& x) {
  if (x.is_structured())
    for (auto& part : x)
      escape_variables(part);
  if (!x.is_string())
    return;
  auto text = x.get<std::string>();
  for (std::size_t at = 0; (at = text.find("${", at)) != std::string::npos; at += 3)
    text.insert(at, "$");
  x = std::move(text);
}

/// The path in the master's file from which `path` of the cluster file was made.
std::string origin_of(const std::string& path, const node& root) {
  static const std::vector<std::pair<std::string, std::string>> sources = {
    {"cluster.name", "cluster_name"},
    {"cluster.listen", "port"},
    {"cluster.tls", "security.tls"},
    {"cluster.tokens.default", "security.token.default_lifespan_days"},
    {"cluster.tokens.longest", "security.token.max_lifespan_days"},
    {"cluster.log_retention", "retention_policy.log_retention_days"},
    {"cluster.", ""},
    {"storage.default.path", "checkpoint_storage.host_path"},
    {"storage.default", "checkpoint_storage"},
    {"defaults.", ""},
  };
  if (const auto* pools = root.find("resource_pools"); pools && path.starts_with("pools."))
    for (std::size_t i = 0; i < pools->items.size(); ++i) {
      const auto* name = pools->items[i].find("pool_name");
      const auto own = "pools." + (name ? name->text : std::string());
      const auto here = "resource_pools[" + std::to_string(i) + "]";
      if (path == own)
        return here + ".pool_name";
      if (path.starts_with(own + "."))
        return here + path.substr(own.size());
    }
  for (const auto& [from, to] : sources)
    if (path.starts_with(from))
      return to + path.substr(from.size());
  return path;
}

/// The faults that the cluster file's own reader finds in the result, with places in the original file.
std::vector<diagnostic> faults_of(const value& cluster_file, const node& root, std::string_view file) {
  file_world world;
  world.read = [&](const std::string&) -> result<std::string> { return to_json(cluster_file, 2); };
  world.exists = [](const std::string&) { return false; };
  world.folder = "/";
  world.environment = [](const std::string&) { return std::nullopt; };
  auto faults = load_cluster_file(std::string(file), world).faults;
  for (auto& one : faults) {
    one.path = origin_of(one.path, root);
    const auto at = place_of(root, one.path);
    one.line = at.line;
    one.column = at.column;
  }
  return faults;
}

void append(std::vector<diagnostic>& to, std::vector<diagnostic> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// A fault where the file is of the other kind.
std::optional<diagnostic> fault_of_kind(const node& root, std::string_view file, bool agent_wanted) {
  const auto* host = root.find("master_host");
  if (!agent_wanted && host)
    return diagnostic{std::string(file),
                      host->at.line,
                      host->at.column,
                      "master_host",
                      "this is the file of an agent",
                      "troupe agent --determined " + std::string(file)};
  for (const char* key : {"db", "resource_manager", "resource_pools", "checkpoint_storage", "cluster_name"})
    if (const auto* of_master = root.find(key); agent_wanted && !host && of_master)
      return diagnostic{std::string(file),
                        of_master->at.line,
                        of_master->at.column,
                        key,
                        "this is the file of a master",
                        "troupe master --determined " + std::string(file)};
  return std::nullopt;
}

} // namespace

moved_master move_master(std::string_view text, std::string_view file) {
  moved_master out;
  if (auto other = fault_of_kind(read_document(text, file).root, file, false)) {
    out.faults.push_back(std::move(*other));
    return out;
  }
  if (const auto all = read_document(text, file); all.faults.empty() && all.root.is(kind::null))
    text = "{}"; // every line is a comment, as in the file of Determined's packages
  auto checked = complete_as("master-config", text, file, level::complete);
  if (!checked.ok()) {
    out.faults = checked.faults;
    return out;
  }
  if (auto& pools = checked.config["resource_pools"]; pools.empty()) // an empty list counts as none
    pools = value::array({{{"pool_name", "default"}}});
  const auto read = read_document(text, file);
  mover says(read.root, file);
  add_faults(checked.config, read.root, says);
  out.cluster_file = cluster_file_of(checked.config, read.root, says);
  escape_variables(out.cluster_file);
  append(out.faults, std::move(says.faults));
  if (out.faults.empty())
    out.faults = faults_of(out.cluster_file, read.root, file);
  append(out.notes, std::move(says.notes));
  return out;
}

bool is_of_agent(std::string_view text, std::string_view file) {
  return read_document(text, file).root.find("master_host") != nullptr;
}

moved_agent move_agent(std::string_view text, std::string_view file) {
  moved_agent out;
  if (auto other = fault_of_kind(read_document(text, file).root, file, true)) {
    out.faults.push_back(std::move(*other));
    return out;
  }
  const auto checked = complete_as("agent-config", text, file, level::complete);
  if (!checked.ok()) {
    out.faults = checked.faults;
    return out;
  }
  const auto read = read_document(text, file);
  const auto& x = checked.config;
  const bool tls = x.value(value::json_pointer("/security/tls/enabled"), false);
  const auto port = given(read.root, "master_port");
  out.master = x.value("master_host", std::string()) + ":" +
               std::to_string(port.is_number_integer() ? port.get<int>()
                              : tls                    ? 443
                                                       : 80);
  if (const auto name = given(read.root, "agent_id"); name.is_string())
    out.name = name.get<std::string>();
  if (const auto pool = given(read.root, "resource_pool"); pool.is_string())
    out.pool = pool.get<std::string>();
  const auto kind_of_slot = x.value("slot_type", std::string("auto"));
  if (const auto artificial = x.value("artificial_slots", 0); artificial > 0)
    out.slots = artificial;
  else if (kind_of_slot == "none")
    out.slots = 0;
  else if (kind_of_slot == "cpu")
    out.slots = 1; // in Determined all processors of a host are one slot
  static const std::set<std::string> used = {"master_host",   "master_port",      "agent_id",
                                             "resource_pool", "artificial_slots", "slot_type"};
  for (const auto& e : read.root.entries) {
    if (used.contains(e.key) || e.what.is(kind::null))
      continue;
    std::string message = means_nothing, hint;
    if (e.key == "security")
      hint = "with TLS, copy the folder that `troupe tls init` made and name it with --tls-dir";
    out.notes.push_back({std::string(file), e.at.line, e.at.column, e.key, message, hint, true});
  }
  return out;
}

std::string rendered(const std::vector<diagnostic>& faults, const std::vector<diagnostic>& notes,
                     std::string_view text) {
  std::string out;
  for (const auto& one : faults)
    out += render(one, text) + "\n";
  for (const auto& one : notes)
    out += render(one, "");
  return out;
}

file_world as_determined(file_world world, const std::string& path,
                         std::function<void(const std::string&)> say) {
  world.read = [inner = std::move(world.read), path,
                say = std::move(say)](const std::string& wanted) -> result<std::string> {
    auto text = inner(wanted);
    if (!text || wanted != path)
      return text;
    auto moved = move_master(*text, path);
    if (!moved.faults.empty())
      return error{errc::invalid, "\n" + rendered(moved.faults, {}, *text)};
    if (say)
      say(rendered({}, moved.notes, *text));
    return to_json(moved.cluster_file, 2);
  };
  return world;
}

} // namespace troupe::config

#include "model/chosen_name.hpp"
#include "model/config/cluster_file_reader.hpp"
#include "model/config/duration_text.hpp"
#include "model/config/effects.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace troupe::config {
namespace {

bool is_local(std::string_view host) { return host == "localhost" || host == "127.0.0.1" || host == "::1"; }
bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

std::string text_of(const node* x) { return x && x->is(kind::string) ? x->text : std::string(); }
bool is_true(const node* x) { return x && x->is(kind::boolean) && x->flag; }

std::string numbered(const char* list, std::size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

const std::vector<node>& items_of(const node& root, std::string_view key) {
  static const std::vector<node> none;
  const auto* list = root.find(key);
  return list && list->is(kind::list) ? list->items : none;
}

const std::vector<entry>& entries_of(const node* x) {
  static const std::vector<entry> none;
  return x && x->is(kind::map) ? x->entries : none;
}

/// The name of a pool that is nearest to `text`.
std::string pool_name_of(std::string_view text) {
  std::string name;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
      name += c;
    else if (!name.empty() && !name.ends_with('-'))
      name += '-';
  name.resize(std::min<std::size_t>(name.size(), 64));
  while (name.ends_with('-'))
    name.pop_back();
  return name.empty() ? "pool" : name;
}

class cluster_checker {
public:
  cluster_checker(const node& root, cluster_reader& out) : root_(root), out_(out) {}

  void all() {
    master();
    storages();
    pools();
    nodes();
    users();
    defaults(root_.find("defaults"), "defaults");
    without_effect();
  }

private:
  void master() {
    const auto* cluster = root_.find("cluster");
    leases(cluster ? cluster->find("leases") : nullptr);
    task_defaults(cluster ? cluster->find("task_container_defaults") : nullptr, "cluster");
    tokens(cluster ? cluster->find("tokens") : nullptr);
    const auto* tls = cluster ? cluster->find("tls") : nullptr;
    const auto* listen = cluster ? cluster->find("listen") : nullptr;
    if (auto at = text_of(listen); !at.empty() && !tls && !is_true(cluster->find("plain_http")) &&
                                   !is_loopback(at.substr(0, at.rfind(':'))))
      out_.warn(listen->at, "cluster.listen",
                "other hosts reach " + at + ", and this file names no certificates",
                "set cluster.tls.dir or start with --tls-dir; or cluster.plain_http where a proxy that "
                "speaks TLS stands before it");
    if (!tls)
      return;
    const auto *cert = tls->find("cert"), *key = tls->find("key");
    if (cert && !key)
      out_.fault(cert->at, "cluster.tls.cert", "its key is missing", "add key: FILE");
    if (key && !cert)
      out_.fault(key->at, "cluster.tls.key", "its certificate is missing", "add cert: FILE");
    if (cert && !tls->find("dir") && !items_of(root_, "nodes").empty())
      out_.fault(cert->at, "cluster.tls", "nodes need dir, by whose authority they know the master",
                 "troupe tls init --dir tls --host HOST, then dir: tls");
  }

  void tokens(const node* said) {
    const auto life = [&](const char* key) {
      const auto* at = said ? said->find(key) : nullptr;
      return parse_duration(at ? text_of(at) : "30d");
    };
    const auto usual = life("default"), longest = life("longest");
    if (said && usual && longest && *usual > *longest)
      out_.fault((said->find("default") ? said->find("default") : said->find("longest"))->at,
                 "cluster.tokens.default", "longer than cluster.tokens.longest", "make it shorter");
  }

  void storages() {
    for (const auto& e : entries_of(root_.find("storage"))) {
      const auto type = text_of(e.what.find("type"));
      const auto path = "storage." + e.key;
      if ((type == "directory" || type == "shared_fs") && !e.what.find("path"))
        out_.fault(e.what.at, path, "the key 'path' is missing", "add path: /FOLDER");
      if ((type == "s3" || type == "gcs" || type == "azure") && !e.what.find("bucket"))
        out_.fault(e.what.at, path, "the key 'bucket' is missing", "add bucket: NAME");
    }
  }

  void pools() {
    const entry* first = nullptr;
    bindings();
    for (const auto& e : entries_of(root_.find("pools"))) {
      if (e.key.empty() || e.key.size() > 64 || !std::all_of(e.key.begin(), e.key.end(), [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) ||
                   std::string_view("_-").find(c) != std::string_view::npos;
          }))
        out_.fault(e.at, "pools." + e.key, "a pool's name has 1 to 64 letters, digits, _ and -",
                   "call it " + pool_name_of(e.key));
      const auto* tasks = e.what.find("task_container_defaults");
      task_defaults(tasks, "pools." + e.key);
      for (const char* key : {"startup_hook", "work_dir"})
        if (const auto* own = e.what.entry_of(key); own && tasks && tasks->find(key))
          out_.fault(own->at, "pools." + e.key + "." + key, "task_container_defaults of this pool has it too",
                     "leave one of them out");
      quotas(e.what.find("quotas"), "pools." + e.key + ".quotas");
      fallbacks(e);
      provider(e.what.find("provider"), "pools." + e.key + ".provider");
      if (!is_true(e.what.find("default")) && e.what.is(kind::map)) {
        defaults(e.what.find("defaults"), "pools." + e.key + ".defaults");
        continue;
      }
      defaults(e.what.find("defaults"), "pools." + e.key + ".defaults");
      if (e.what.is(kind::map) && first)
        out_.fault(e.what.entry_of("default")->at, "pools." + e.key + ".default",
                   "a second default pool; the first is '" + first->key + "' in line " +
                     std::to_string(first->at.line),
                   "leave default: true to one of them");
      if (e.what.is(kind::map) && !first)
        first = &e;
    }
  }

  /// Only where the file is applied is it known which workspaces exist.
  void bindings() {
    const auto& pools = entries_of(root_.find("pools"));
    const bool chosen =
      std::any_of(pools.begin(), pools.end(), [](const entry& e) { return is_true(e.what.find("default")); });
    for (std::size_t i = 0; i < pools.size(); ++i) {
      const auto* list = pools[i].what.find("workspaces");
      if (!list || !list->is(kind::list) || list->items.empty())
        continue;
      const auto path = "pools." + pools[i].key + ".workspaces";
      if (chosen ? is_true(pools[i].what.find("default")) : i == 0)
        out_.fault(list->at, path, "the default pool is everyone's: it cannot be bound to workspaces",
                   chosen ? "leave workspaces out" : "give another pool default: true");
      std::set<std::string> named;
      for (std::size_t k = 0; k < list->items.size(); ++k)
        if (const auto& one = list->items[k]; one.is(kind::string) && !named.insert(one.text).second)
          out_.fault(one.at, path + "[" + std::to_string(k) + "]", "'" + one.text + "' is named twice",
                     "leave one out");
    }
  }

  /// Names each key without effect once, at its first place.
  void task_defaults(const node* x, const std::string& of) {
    for (const auto& e : entries_of(x))
      if (const auto why = idle_task_default(e.key);
          !why.empty() && !e.what.is(kind::null) && idle_.insert(e.key).second)
        out_.warn(e.at, of + ".task_container_defaults." + e.key, "has no effect: " + std::string(why));
  }

  const node* fallback_of(const std::string& pool) const {
    const auto* pools = root_.find("pools");
    const auto* one = pools ? pools->find(pool) : nullptr;
    const auto* list = one ? one->find("fallback") : nullptr;
    return list && list->is(kind::list) ? list : nullptr;
  }

  /// The names of pools on the way to `to`; empty: there is no way.
  std::vector<std::string> way(const std::string& from, const std::string& to,
                               std::set<std::string>& seen) const {
    if (const auto* list = fallback_of(from); list && seen.insert(from).second)
      for (const auto& next : list->items) {
        if (text_of(&next) == to)
          return {from, to};
        if (auto rest = way(text_of(&next), to, seen); !rest.empty()) {
          rest.insert(rest.begin(), from);
          return rest;
        }
      }
    return {};
  }

  void fallbacks(const entry& pool) {
    const auto* list = fallback_of(pool.key);
    const auto* pools = root_.find("pools");
    std::set<std::string> named;
    for (std::size_t i = 0; list && i < list->items.size(); ++i) {
      const auto& one = list->items[i];
      if (!one.is(kind::string))
        continue; // the schema reports it
      const auto path = "pools." + pool.key + ".fallback[" + std::to_string(i) + "]";
      std::set<std::string> seen;
      if (one.text == pool.key)
        out_.fault(one.at, path, "a pool does not fall back to itself", "leave it out");
      else if (!pools->find(one.text))
        known_pool(&one, path, pool.key);
      else if (!named.insert(one.text).second)
        out_.fault(one.at, path, "'" + one.text + "' is named twice", "leave one out");
      else if (const auto circle = way(one.text, pool.key, seen); !circle.empty()) {
        std::string text = pool.key;
        for (const auto& name : circle)
          text += " -> " + name;
        out_.fault(one.at, path, "the pools fall back in a circle: " + text, "leave one of them out");
      }
    }
  }

  static double number_of(const node* x, double standard) {
    return x && x->is_integer() ? x->as_double() : standard;
  }

  void provider(const node* x, const std::string& path) {
    if (!x || !x->is(kind::map))
      return;
    const auto *least = x->find("min_instances"), *most = x->find("max_instances");
    if (number_of(least, 0) > number_of(most, 5))
      out_.fault((least ? least : most)->at, path + (least ? ".min_instances" : ".max_instances"),
                 "min_instances is above max_instances", "lower min_instances, or raise max_instances");
    if (text_of(x->find("type")) != "command") {
      for (const char* key : {"list", "launch", "terminate"})
        if (const auto* entry = x->entry_of(key))
          out_.warn(entry->at, path + "." + key, "has no effect: only a provider of type command calls it");
      return;
    }
    for (const auto& label : entries_of(x->find("labels")))
      if (label.key.find_first_of(",=") != label.key.npos ||
          text_of(&label.what).find(',') != std::string::npos)
        out_.fault(label.at, path + ".labels",
                   "TROUPE_LABELS, as rack=a3,spot=yes, cannot carry '" + label.key + "'",
                   "leave , and = out");
    for (const char* key : {"list", "launch", "terminate"}) {
      const auto* words = x->find(key);
      if (words && words->is(kind::list) && !words->items.empty() && text_of(&words->items.front()).empty())
        out_.fault(words->at, path + "." + key, "the first word names the program, and is empty",
                   std::string("write ") + key + ": [PROGRAM, ARGUMENT...]");
      if (!words || (words->is(kind::list) && words->items.empty()))
        out_.fault(x->at, path, std::string("the command '") + key + "' is missing",
                   std::string("add ") + key + ": [PROGRAM, ARGUMENT...]");
    }
    if (!x->find("instance_slots"))
      out_.fault(x->at, path, "the key 'instance_slots' is missing", "add instance_slots: NUMBER");
  }

  void leases(const node* x) {
    if (!x || !x->is(kind::map))
      return;
    const auto time = [&](const char* key, const char* standard) {
      const auto* said = x->find(key);
      return parse_duration(said && said->is(kind::string) ? said->text : standard).value_or(duration{-1});
    };
    const auto heartbeat = time("heartbeat", "1s"), freeze = time("freeze", "30s"),
               give_away = time("give_away", "45s");
    const auto place = [&](const char* key, const char* other) {
      const auto* said = x->find(key);
      return (said ? said : x->find(other) ? x->find(other) : x)->at;
    };
    if (freeze > give_away && give_away >= duration{})
      out_.fault(place("freeze", "give_away"), "cluster.leases.freeze",
                 "freeze is above give_away: a run could go on at two places",
                 "lower freeze, or raise give_away");
    if (heartbeat == duration{})
      out_.fault(place("heartbeat", "heartbeat"), "cluster.leases.heartbeat", "a heartbeat takes some time",
                 "as 1s");
    else if (heartbeat > duration{} && freeze >= duration{} && heartbeat >= freeze)
      out_.fault(place("heartbeat", "freeze"), "cluster.leases.heartbeat",
                 "heartbeat is not below freeze: tasks would stand still between two words",
                 "lower heartbeat, or raise freeze");
  }

  void quotas(const node* list, const std::string& path) {
    if (!list || !list->is(kind::list))
      return;
    std::set<std::pair<std::string, std::string>> seen;
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const auto& one = list->items[i];
      if (!one.is(kind::map))
        continue; // the schema reports it
      const auto where = path + "[" + std::to_string(i) + "]";
      const auto user = text_of(one.find("user")), workspace = text_of(one.find("workspace"));
      if (user.empty() == workspace.empty())
        out_.fault(one.at, where, "a quota is of a user or of a workspace", "name one of the two");
      else if (workspace == "*")
        out_.fault(one.find("workspace")->at, where + ".workspace", "'*' stands for users only",
                   "name a workspace, or write user: \"*\"");
      else if (!seen.insert({case_folded(user), case_folded(workspace)}).second)
        out_.fault(one.at, where, "a second quota of '" + user + workspace + "'", "leave one of the two");
    }
  }

  void defaults(const node* x, const std::string& path) {
    if (!x)
      return;
    if (const auto* storage = x->find("checkpoint_storage"); storage && storage->is(kind::string)) {
      const auto* known = root_.find("storage");
      if (!known || !known->find(storage->text))
        out_.fault(storage->at, path + ".checkpoint_storage",
                   "there is no storage '" + storage->text + "' in this file",
                   known_names(root_.find("storage")));
    }
    if (const auto* resources = x->find("resources"))
      known_pool(resources->find("resource_pool"), path + ".resources.resource_pool");
  }

  static std::string known_names(const node* map, std::string_view except = {}) {
    std::string names;
    for (const auto& e : entries_of(map))
      if (e.key != except)
        names += (names.empty() ? "known here: " : ", ") + e.key;
    return names;
  }

  /// `except`: a pool that the hint does not name.
  void known_pool(const node* pool, const std::string& path, std::string_view except = {}) {
    if (!pool || !pool->is(kind::string))
      return;
    const auto* pools = root_.find("pools");
    if (pools && pools->find(pool->text))
      return;
    if (entries_of(pools).empty() && pool->text == "default")
      return;
    std::vector<std::string_view> names;
    for (const auto& e : entries_of(pools))
      if (e.key != except)
        names.push_back(e.key);
    auto near = nearest(pool->text, names);
    out_.fault(pool->at, path, "there is no pool '" + pool->text + "' in this file",
               near.empty() ? known_names(pools, except) : "did you mean '" + near + "'?");
  }

  void nodes() {
    std::map<std::string, place> names;
    const auto& list = items_of(root_, "nodes");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& one = list[i];
      const auto path = numbered("nodes", i);
      known_pool(one.find("pool"), path + ".pool");
      const auto name = text_of(one.find("name")), host = text_of(one.find("host"));
      if (name.empty())
        continue;
      if (auto [first, fresh] = names.emplace(name, one.at); !fresh)
        out_.fault(one.find("name")->at, path + ".name",
                   "the node '" + name + "' is named twice, first in line " +
                     std::to_string(first->second.line),
                   "give it a name of its own");
      const bool manual = is_true(one.find("manual"));
      const auto* ssh = one.find("ssh");
      if (manual && ssh)
        out_.fault(ssh->at, path + ".ssh", "a node is reached by ssh or by hand, not both",
                   "leave ssh or manual out");
      if (!manual && !ssh && !is_local(host))
        out_.fault(one.find("host") ? one.find("host")->at : one.at, path + ".host",
                   "how is '" + host + "' reached?",
                   "add ssh: { user: USER }, or manual: true where somebody starts its agent");
      if (ssh && !is_local(host))
        reachable(ssh->at, path);
    }
  }

  void reachable(place at, const std::string& path) {
    const auto* cluster = root_.find("cluster");
    const auto listen = cluster ? text_of(cluster->find("listen")) : std::string();
    if (listen.empty() || is_local(listen.substr(0, listen.rfind(':'))))
      out_.warn(at, path + ".ssh",
                "another host cannot reach the master at " +
                  (listen.empty() ? std::string("127.0.0.1") : listen),
                "set cluster.listen, cluster.agent_listen and cluster.tls.dir");
  }

  void users() {
    std::map<std::string, place> names;
    const auto& list = items_of(root_, "users");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto* name = list[i].find("name");
      if (!name || !name->is(kind::string))
        continue;
      if (name->text.size() < 2)
        out_.fault(name->at, numbered("users", i) + ".name", "a user name has 2 to 64 characters",
                   "choose a longer one");
      if (auto [first, fresh] = names.emplace(case_folded(name->text), name->at); !fresh)
        out_.fault(name->at, numbered("users", i) + ".name",
                   "the user '" + name->text + "' is named twice, first in line " +
                     std::to_string(first->second.line),
                   "leave one out");
      std::set<std::string> tokens;
      const auto& of = items_of(list[i], "tokens");
      for (std::size_t k = 0; k < of.size(); ++k)
        if (const auto* token = of[k].find("name"); token && !tokens.insert(text_of(token)).second)
          out_.fault(token->at, numbered("users", i) + "." + numbered("tokens", k) + ".name",
                     "the token '" + text_of(token) + "' is named twice", "give it a name of its own");
    }
  }

  void without_effect() {
    for (const auto& e : entries_of(root_.find("pools"))) {
      const auto scheduler = text_of(e.what.find("scheduler"));
      if (const auto* preemption = e.what.find("preemption");
          is_true(preemption) && (scheduler == "fifo" || scheduler == "round_robin"))
        out_.warn(preemption->at, "pools." + e.key + ".preemption",
                  "has no effect: only priority and fair pools preempt");
    }
    const auto& list = items_of(root_, "nodes");
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (const auto* runtime = list[i].find("runtime"); runtime && text_of(runtime) != "process")
        out_.warn(runtime->at, numbered("nodes", i) + ".runtime",
                  "has no effect: tasks run as processes of the host, without containers");
    }
    for (const auto& e : entries_of(root_.find("storage")))
      if (const auto* credentials = e.what.find("credentials"))
        out_.warn(
          credentials->at, "storage." + e.key + ".credentials",
          "has no effect: nothing reads the file; tasks take the bucket's credentials from "
          "checkpoint_storage of their configuration, their workspace or a policy, or, for s3 and gcs, from "
          "cluster.task_container_defaults.environment_variables");
  }

  const node& root_;
  cluster_reader& out_;
  std::set<std::string> idle_; ///< keys of task_container_defaults that were named already
};

} // namespace

void check_cluster(const node& root, cluster_reader& out) { cluster_checker(root, out).all(); }

void expand_nodes(node& root, cluster_reader& out) {
  auto list =
    std::find_if(root.entries.begin(), root.entries.end(), [](const entry& e) { return e.key == "nodes"; });
  if (list == root.entries.end() || !list->what.is(kind::list))
    return;
  std::vector<node> made;
  for (std::size_t i = 0; i < list->what.items.size(); ++i) {
    auto& one = list->what.items[i];
    if (!one.is(kind::map)) {
      made.push_back(std::move(one));
      continue;
    }
    const auto path = numbered("nodes", i);
    auto names_in = [&](const node* x, const char* key) {
      std::vector<std::string> names;
      std::vector<const node*> parts;
      if (x && x->is(kind::list))
        for (const auto& item : x->items)
          parts.push_back(&item);
      else if (x)
        parts.push_back(x);
      for (const auto* part : parts) {
        if (!part->is(kind::string))
          continue;
        auto more = expand_range(part->text);
        if (more)
          names.insert(names.end(), more->begin(), more->end());
        else
          out.fault(part->at, path + "." + key, more.error().what, "write it as gpu[01-04] or gpu[01,03]");
      }
      return names;
    };
    const auto *host = one.find("host"), *hosts = one.find("hosts"), *name = one.find("name");
    if (host && hosts)
      out.fault(one.entry_of("hosts")->at, path + ".hosts", "there is a host too", "leave one of them out");
    const auto& where = hosts ? *hosts : host ? *host : name ? *name : one;
    auto of_hosts = names_in(hosts ? hosts : host, hosts ? "hosts" : "host");
    auto names = names_in(name, "name");
    const auto name_at = name ? name->at : where.at;
    if (host == nullptr && hosts == nullptr) {
      const bool elsewhere = one.find("ssh") || is_true(one.find("manual"));
      of_hosts =
        elsewhere ? names : std::vector<std::string>(std::max<std::size_t>(names.size(), 1), "localhost");
    }
    if (names.empty())
      names = of_hosts;
    if (of_hosts.size() == 1 && names.size() > 1)
      of_hosts.assign(names.size(), of_hosts.front()); // several agents of one host
    if (names.size() != of_hosts.size()) {
      out.fault(name_at, path + ".name",
                std::to_string(names.size()) + " names for " + std::to_string(of_hosts.size()) + " hosts",
                "");
      continue;
    }
    for (std::size_t k = 0; k < names.size(); ++k) {
      auto copy = one;
      std::erase_if(copy.entries,
                    [](const entry& e) { return e.key == "host" || e.key == "hosts" || e.key == "name"; });
      node text;
      text.type = kind::string;
      text.text = of_hosts[k];
      text.at = where.at;
      copy.entries.insert(copy.entries.begin(), {"host", where.at, text});
      text.text = names[k];
      text.at = name_at;
      copy.entries.insert(copy.entries.begin(), {"name", name_at, text});
      made.push_back(std::move(copy));
    }
  }
  list->what.items = std::move(made);
}

} // namespace troupe::config

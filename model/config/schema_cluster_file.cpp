// The file of a whole cluster: `troupe up FILE`. docs/cluster-file.md and `troupe explain` are made of it.

#include "model/config/cluster_file.hpp"
#include "model/config/shapes.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

shape& map_with(schema_table& t, std::string doc, std::vector<key> keys, std::string name = {}) {
  auto& s = t.make(std::move(name));
  s.kinds = map_bit;
  s.doc = std::move(doc);
  s.keys = std::move(keys);
  s.merge = merging::by_key;
  return s;
}

shape& text_that(schema_table& t, bool (*fits)(std::string_view), std::string says) {
  auto& s = t.make();
  s.kinds = text_bit;
  s.fits = fits;
  s.pattern = ".*";
  s.pattern_says = std::move(says);
  return s;
}

key like(key k, std::string example) {
  k.example = std::move(example);
  return k;
}

bool is_listen(std::string_view x) {
  auto colon = x.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || x.size() - colon > 6 || colon + 1 == x.size())
    return false;
  auto port = x.substr(colon + 1);
  return std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoi(std::string(port)) <= 65535;
}

bool is_name(std::string_view x) {
  return !x.empty() && x.size() <= 64 &&
         std::all_of(x.begin(), x.end(),
                     [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c)) ||
                              std::string_view("._-@+").find(c) != std::string_view::npos;
                     }) &&
         x.front() != '.' && x.front() != '-';
}

bool is_duration(std::string_view x) { return duration_seconds(x) > 0; }

bool is_version(const node& x) {
  const auto* version = x.find("troupe");
  return !version || (version->is_integer() && version->as_double() == 1);
}

/// A partial experiment whose storage may be one of the file, by its name.
shape& defaults(schema_table& t) {
  auto& s = t.make();
  s = *t.at("experiment");
  s.name.clear();
  s.doc = "Merged under every experiment, which wins.";
  for (auto& k : s.keys)
    if (k.name == "checkpoint_storage")
      k.what = either(t, {text(t), k.what});
  return s;
}

shape& storage(schema_table& t, shape_ref path) {
  return map_with(
    t, "A place for checkpoints.",
    {like(required("type", one_of(t, {"directory", "shared_fs", "s3", "gcs", "azure"}), "The kind."),
          "shared_fs"),
     like(unset("path", path, "The folder, of directory and shared_fs; all hosts see it."),
          "/mnt/checkpoints"),
     like(unset("bucket", text(t), "Of s3 and gcs; the container of azure."), "models"),
     like(unset("prefix", text(t), "Put before the name of every object."), "lab"),
     like(unset("endpoint", text(t), "The service's address, of s3."), "https://s3.example.org"),
     like(unset("credentials",
                &map_with(t, "Who reads and writes the bucket.",
                          {like(unset("file", path, "Holds them; read where they are used, never stored."),
                                "secrets/s3")}),
                "Who reads and writes the bucket."),
          "{ file: secrets/s3 }")});
}

shape& pool(schema_table& t, shape_ref partial) {
  return map_with(
    t, "A pool of slots: a queue of its own.",
    {like(given("default", boolean(t), false,
                "Experiments and agents that name no pool are here; of one pool at most. "
                "Without any, the first pool of the file."),
          "true"),
     like(given("scheduler", one_of(t, {"fifo", "priority", "fair"}, "fifo is first come, first served"),
                "fifo", "Who runs next."),
          "fifo"),
     like(given("preemption", boolean(t), false, "Whether what comes first may stop what runs."), "true"),
     like(unset("max_slots", integer(t, {.least = 1}), "At most so many are used at once.", "slots"), "16"),
     like(quiet(unset("defaults", partial,
                      "Merged under every experiment of this pool, over the file's defaults.")),
          "{ max_restarts: 1 }")});
}

shape& nodes(schema_table& t, shape_ref path, shape_ref name) {
  auto* hosts = either(t, {text(t), list_of(t, text(t))});
  auto& cpu = map_with(
    t, "Slots by kind.",
    {like(unset("cpu", integer(t, {.least = 0}), "Artificial slots without a device.", "slots"), "4")});
  auto& auto_word = t.make();
  auto_word.kinds = text_bit;
  auto_word.allowed = {"auto"};
  auto& ssh = map_with(
    t, "How `up` reaches the host; it needs sh, flock and tar there.",
    {like(quiet(unset("user", name, "The account; else that of ~/.ssh/config.")), "troupe"),
     like(quiet(unset("key", path, "The private key.")), "~/.ssh/id_ed25519"),
     like(given("port", integer(t, {.least = 1, .most = 65535}), 22, "Of its ssh server."), "2222"),
     like(quiet(unset("known_hosts", path, "The host's key must stand here; else in ~/.ssh/known_hosts.")),
          "lab_known_hosts"),
     like(
       quiet(unset(
         "binary", text(t),
         "The program on that host. Else the path that it has here, or, where that is not there, a copy.")),
       "/opt/troupe/bin/troupe"),
     like(
       quiet(unset("data_dir", text(t), "The agent's folder there; else ~/.local/share/troupe-agent/NAME.")),
       "/var/lib/troupe-agent"),
     like(quiet(unset("master", &text_that(t, is_listen, "HOST:PORT"),
                      "How that host dials the master; else the listen address.")),
          "head.lab:8080")});
  auto& one = map_with(
    t, "A host, or several, with slots.",
    {like(quiet(unset("name", text(t), "Of the agent; may hold a range. Else the host.")), "local[1-2]"),
     like(
       quiet(unset("host", text(t),
                   "localhost starts the agent as a process beside the master; others need ssh or manual.")),
       "gpu01"),
     like(quiet(unset("hosts", hosts, "Several hosts, by ranges.")), "gpu[01-04,08]"),
     like(quiet(unset("pool", text(t), "That it joins; else the default one.")), "gpu"),
     like(given("slots", either(t, {integer(t, {.least = 0}), &auto_word, &cpu}), "auto",
                "How many it offers; auto is what the host has.", "slots"),
          "{ cpu: 4 }"),
     like(given("manual", boolean(t), false, "Somebody starts its agent by hand; `up` prints the command."),
          "true"),
     like(quiet(unset("ssh", &ssh, ssh.doc)), "{ user: troupe, key: ~/.ssh/id_ed25519 }"),
     like(given("runtime", one_of(t, {"process", "podman", "docker", "apptainer"}), "process",
                "What holds its tasks."),
          "process"),
     like(quiet(unset("labels", map_of(t, text(t)), "Words about the host.")), "{ rack: a3 }")});
  return *const_cast<shape*>(list_of(t, &one));
}

shape& users(schema_table& t, shape_ref path, shape_ref name) {
  auto& token =
    map_with(t, "A token by name, for programs.",
             {like(required("name", name,
                            "Of the token; its text is in the file tokens/USER.NAME of the master's folder."),
                   "nightly"),
              like(given("expires", &text_that(t, is_duration, "a duration as 12h, 90d"), "90d",
                         "How long it is good for, from when it is made."),
                   "90d")});
  auto& one = map_with(
    t, "Somebody who may come in.",
    {like(required("name", name, "How they log in."), "ada"),
     like(given("role", one_of(t, {"user", "admin"}), "user", "An admin may change the cluster."), "admin"),
     like(
       quiet(unset("password_file", path, "Its first line is the password, read when the file is applied.")),
       "secrets/ada"),
     like(quiet(unset("password", text(t), "The password itself; better in a file, or ${VARIABLE}.")),
          "${ADA_PASSWORD}"),
     like(given("tokens", list_of(t, &token), value::array(), "Tokens for programs."),
          "[ { name: nightly, expires: 90d } ]")});
  return *const_cast<shape*>(list_of(t, &one));
}

} // namespace

void add_cluster_file(schema_table& t) {
  auto& path = t.make("file-path");
  path.kinds = text_bit;
  auto& name = text_that(t, is_name, "a name of letters, digits and . _ - @ +");
  auto& listen = text_that(t, is_listen, "HOST:PORT, the port from 0 to 65535");
  auto& partial = defaults(t);
  auto& tls = map_with(
    t, "Certificates; without them plain, on loopback only.",
    {like(
       quiet(unset("dir", &path, "As `troupe tls init` makes it: for the HTTP port and the agents' link.")),
       "tls"),
     like(quiet(unset("cert", &path, "Of the HTTP port, instead of the one in dir.")), "tls/server.pem"),
     like(quiet(unset("key", &path, "Belongs to cert.")), "tls/server.key")});
  auto& cluster = map_with(
    t, "The master.",
    {like(given("name", &name, "troupe", "What people see."), "lab"),
     like(quiet(unset("listen", &listen, "The address of the HTTP API; else 127.0.0.1:8080. --listen wins.")),
          "127.0.0.1:8080"),
     like(quiet(unset("agent_listen", &listen, "The address that agents of other hosts are sent to.")),
          "0.0.0.0:8081"),
     like(
       quiet(unset("data_dir", &path, "Where everything is kept. --data-dir wins; else as for `troupe up`.")),
       "/var/lib/troupe"),
     like(quiet(unset("tls", &tls, tls.doc)), "{ dir: tls }"),
     like(given("plain_http", boolean(t), false,
                "Whether the HTTP API may be plain on an address that other hosts reach: only behind a proxy "
                "that speaks TLS."),
          "true")});
  auto& experiment =
    map_with(t, "Submitted once, by its name.",
             {like(required("file", &path, "The experiment's configuration."), "experiments/mnist.yaml"),
              like(quiet(unset("context", &path, "Its files; else none.")), "examples/mnist"),
              like(quiet(unset("name", text(t),
                               "Else that of its configuration, else the file's. A name is submitted once.")),
                   "mnist-nightly")});
  auto& actors = map_with(
    t, "For tests: how actors run.",
    {like(quiet(unset("log_level", one_of(t, {"error", "warning", "info", "debug"}), "How much is said.")),
          "info"),
     like(quiet(unset("scheduler_threads", integer(t, {.least = 1, .most = 256}), "Threads for actors.")),
          "4")});
  auto pools = map_of(t, &pool(t, &partial));
  auto storages = map_of(t, &storage(t, &path));
  auto& f =
    map_with(t, "A whole cluster in one file.",
             {like(required("troupe", integer(t, {}), "The version of the format: 1."), "1"),
              like(quiet(unset("include", list_of(t, &path),
                               "Files below this one: a later one wins, key by key; lists are replaced.")),
                   "[ common.yaml ]"),
              like(given("cluster", &cluster, value::object(), cluster.doc), ""),
              like(given("storage", storages, value::object(),
                         "Places for checkpoints, by name; `default` is for experiments that name none."),
                   ""),
              like(given("pools", pools, value::object(), "Pools by name; none: one pool `default`."), ""),
              like(given("nodes", &nodes(t, &path, &name), value::array(),
                         "Hosts with slots; none: this host, in the master's process."),
                   ""),
              like(given("users", &users(t, &path, &name), value::array(),
                         "Who may come in, beside admin and determined."),
                   ""),
              like(quiet(unset("defaults", &partial, partial.doc)),
                   "{ max_restarts: 3, checkpoint_storage: default }"),
              like(given("experiments", list_of(t, &experiment), value::array(),
                         "Submitted once, by name; what is there already stays as it is."),
                   ""),
              like(quiet(unset("actors", &actors, actors.doc)), "{ log_level: info }")},
             "cluster-file");
  f.rules.push_back(
    {"this program reads format 1", is_version, "troupe", need::always, nullptr, "write troupe: 1"});
}

} // namespace troupe::config

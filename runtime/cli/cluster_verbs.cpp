// Verbs about the cluster as a whole, and verbs of the node, whose flags are read here for the hook that does
// them.

#include "model/config/from_determined.hpp"
#include "runtime/cli/experiments.hpp"
#include "runtime/cli/follow.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/client/cluster_configuration.hpp"
#include "runtime/client/submission.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace troupe::cli::verbs {
namespace {

std::string flag_or_env(session& s, const char* flag, const char* name) {
  auto text = s.given.text(flag);
  return text.empty() ? s.io.env(name) : text;
}

std::filesystem::path data_dir(session& s) {
  auto text = s.given.text("--data-dir");
  return text.empty() ? client::default_data_dir(s.io.env) : std::filesystem::path(text);
}

/// Whether the data directory is left to the cluster file, which may name it: then the hook gets none.
bool is_left_to_file(session& s) {
  return !s.given.has("--data-dir") && s.io.env("TROUPE_DATA_DIR").empty() &&
         (s.given.has("FILE") || s.given.has("--file") || s.given.has("--determined"));
}

std::optional<int> slots(session& s) {
  if (!s.given.has("--slots"))
    return std::nullopt;
  return static_cast<int>(std::min<std::int64_t>(s.given.number("--slots", 0), 1 << 20));
}

result<void> check_web_hosts(const std::vector<std::string>& names) {
  for (const auto& name : names)
    if (name.empty() || !std::all_of(name.begin(), name.end(), [](unsigned char c) {
          return std::isalnum(c) ||
                 std::string_view("._-@+").find(static_cast<char>(c)) != std::string_view::npos;
        }))
      return error{errc::invalid,
                   "--web-host: '" + name +
                     "' is not the name of a host: it has letters, digits and . _ - @ + alone, and "
                     "neither a scheme nor a port"};
  return {};
}

result<void> check_web_dir(const std::filesystem::path& dir) {
  if (dir.empty() || std::filesystem::exists(dir / "index.html"))
    return {};
  return error{errc::invalid, "--web-dir '" + dir.string() +
                                "' has no index.html\nhint: name the folder `dist` of a page that was built"};
}

/// Refuses a malformed address before the node does anything. The port may not be left out.
result<void> check_listen(const std::string& flag, const std::string& text) {
  if (text.empty())
    return {};
  auto colon = text.rfind(':');
  auto port = colon == std::string::npos ? "" : text.substr(colon + 1);
  char* end = nullptr;
  long number = port.empty() ? -1 : std::strtol(port.c_str(), &end, 10);
  if (colon == std::string::npos || colon == 0 || number < 0 || number > 65535 || *end)
    return error{errc::invalid, flag + " '" + text +
                                  "': expected HOST:PORT, the port from 0 to 65535\nhint: " + flag +
                                  " 127.0.0.1:8080"};
  return {};
}

template <class Options>
int call(session& s, const char* verb, const std::function<int(const Options&)>& hook,
         const Options& options) {
  if (!hook)
    return s.fail({errc::unsupported, std::string("this program was built without '") + verb + "'"});
  s.io.out.flush();
  return hook(options);
}

int submit_and_follow(session& s, const run_options& options) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  experiment_id id{options.resume_id};
  if (options.resume) {
    if (!id) {
      auto last = named_experiment(**cluster, "last");
      if (!last)
        return s.fail(last.error());
      id = *last;
    }
    if (auto ok = (*cluster)->post("/api/v1/experiments/" + to_string(id) + "/activate"); !ok)
      return s.fail(ok.error());
  } else {
    auto context = options.context;
    if (context.empty()) // the files beside the configuration, as on a cluster of its own
      context = std::filesystem::absolute(options.config).parent_path();
    client::submission wanted{options.config, context, options.set, true, "", ""};
    if (auto live = client::live(**cluster))
      wanted.cluster = std::move(live->configuration);
    auto what = client::prepare(wanted, s.io.in);
    if (!what)
      return s.fail(what.error());
    s.io.err << what->warnings;
    std::vector<std::string> warnings;
    auto made = (*cluster)->create(what->what, &warnings);
    if (!made)
      return s.fail(made.error());
    for (const auto& one : warnings)
      say_warning(s, one);
    id = *made;
    s.io.out << "experiment " << to_string(id) << std::endl;
  }
  s.io.out << "web page: " << (*cluster)->where().url << "/ui/experiments/" << to_string(id) << std::endl;
  return follow_to_exit(s, **cluster, id);
}

} // namespace

int up(session& s, const arguments& given) {
  up_options o;
  if (!is_left_to_file(s))
    o.data_dir = data_dir(s);
  o.listen = flag_or_env(s, "--listen", "TROUPE_LISTEN");
  o.agent_listen = given.text("--agent-listen");
  o.slots = slots(s);
  o.name = given.text("--name");
  o.config = given.text("FILE", given.text("--file"));
  if (given.has("FILE") && given.has("--file"))
    return s.fail({errc::invalid, "the cluster file is given twice: '" + given.text("FILE") +
                                    "' and --file '" + given.text("--file") + "'"});
  o.tls_dir = given.text("--tls-dir");
  o.trace_actors = given.text("--trace-actors");
  o.daemon = given.has("--daemon");
  o.allow_faults = given.has("--allow-faults");
  o.plain_http = given.has("--plain-http");
  o.web_dir = given.text("--web-dir");
  o.web_hosts = given.all("--web-host");
  for (auto ok : {check_listen("--listen", o.listen), check_listen("--agent-listen", o.agent_listen),
                  check_web_dir(o.web_dir), check_web_hosts(o.web_hosts)})
    if (!ok)
      return s.fail(ok.error());
  return call(s, "up", s.node.up, o);
}

int master(session& s, const arguments& given) {
  master_options o;
  if (!is_left_to_file(s))
    o.data_dir = data_dir(s);
  o.listen = flag_or_env(s, "--listen", "TROUPE_LISTEN");
  o.agent_listen = given.text("--agent-listen");
  o.determined = given.has("--determined");
  if (o.determined && given.has("--file"))
    return s.fail({errc::invalid, "--file and --determined exclude each other"});
  o.config = given.text("--file", given.text("--determined"));
  o.tls_dir = given.text("--tls-dir");
  o.trace_actors = given.text("--trace-actors");
  o.daemon = given.has("--daemon");
  o.allow_faults = given.has("--allow-faults");
  o.plain_http = given.has("--plain-http");
  o.web_dir = given.text("--web-dir");
  o.web_hosts = given.all("--web-host");
  for (auto ok : {check_listen("--listen", o.listen), check_listen("--agent-listen", o.agent_listen),
                  check_web_dir(o.web_dir), check_web_hosts(o.web_hosts)})
    if (!ok)
      return s.fail(ok.error());
  return call(s, "master", s.node.master, o);
}

int agent(session& s, const arguments& given) {
  agent_options o;
  config::moved_agent moved;
  if (given.has("--determined")) {
    const auto file = given.text("--determined");
    const auto text = client::host_files(s.io.env).read(file);
    if (!text)
      return s.fail({errc::invalid, "cannot read '" + file + "': " + text.error().what});
    moved = config::move_agent(*text, file);
    s.io.err << config::rendered(moved.faults, moved.notes, *text);
    if (!moved.faults.empty())
      return exit_usage;
  }
  auto master = flag_or_env(s, "--master", "TROUPE_MASTER");
  if (master.empty())
    master = moved.master;
  if (master.empty())
    return s.fail(
      {errc::invalid, "an agent needs its master's address\nhint: troupe agent --master HOST:PORT"});
  auto url = client::master_url(master);
  if (!url)
    return s.fail({errc::invalid, "--master '" + master + "': " + url.error().what});
  o.master = url->substr(url->find("://") + 3);
  o.data_dir = data_dir(s);
  o.name = given.text("--name", moved.name);
  o.slots = given.has("--slots") ? slots(s) : moved.slots;
  o.tls_dir = given.text("--tls-dir");
  o.token_file = given.text("--token-file");
  o.trace_actors = given.text("--trace-actors");
  o.daemon = given.has("--daemon");
  o.allow_faults = given.has("--allow-faults");
  o.pool = given.text("--pool", moved.pool);
  for (const auto& label : given.all("--label")) {
    const auto equals = label.find('=');
    if (equals == label.npos || equals == 0 || equals + 1 == label.size())
      return s.fail({errc::invalid, "--label '" + label + "': expected KEY=VALUE\nhint: --label rack=a3"});
    if (!o.labels.emplace(label.substr(0, equals), label.substr(equals + 1)).second)
      return s.fail({errc::invalid, "--label '" + label.substr(0, equals) + "' is given twice"});
  }
  return call(s, "agent", s.node.agent, o);
}

int run(session& s, const arguments& given) {
  run_options o;
  o.config = given.text("CONFIG");
  o.context = given.text("DIR");
  o.set = given.all("--config");
  o.resume = given.has("--resume");
  o.fresh = given.has("--new");
  o.data_dir = data_dir(s);
  o.listen = flag_or_env(s, "--listen", "TROUPE_LISTEN");
  o.slots = slots(s);
  o.trace_actors = given.text("--trace-actors");
  o.color = given.text("--color", "auto");
  if (auto text = given.text("--resume"); !text.empty()) {
    o.resume_id = parse_id<experiment_id>(text).value;
    if (o.resume_id == 0)
      return s.fail({errc::invalid,
                     "--resume takes an experiment's id, not '" + text + "'\nhint: troupe experiment list"});
  }
  if (o.config.empty() && !o.resume)
    return s.fail({errc::invalid, "'run' needs CONFIG, or --resume\nhint: troupe run --help"});
  if (!o.config.empty() && o.resume)
    return s.fail({errc::invalid,
                   "--resume uses the configuration that the experiment was created with; leave CONFIG out"});
  if (auto ok = check_listen("--listen", o.listen); !ok)
    return s.fail(ok.error());
  std::error_code wrong;
  if (!o.config.empty() && !std::filesystem::exists(o.config, wrong))
    return s.fail({errc::invalid, o.config.string() + ": " + std::strerror(ENOENT)});
  bool elsewhere = given.has("--master") || !s.io.env("TROUPE_MASTER").empty();
  if (elsewhere)
    return submit_and_follow(s, o);
  if (auto lock = client::read_lock(o.data_dir); lock && !lock->url.empty() && client::alive(*lock)) {
    s.io.out << "a cluster is up on " << o.data_dir.string() << " (" << lock->url
             << "): submitting there, and leaving it running" << std::endl;
    auto options = client::options_from(s.io.env);
    s.cluster =
      std::make_unique<client::server>(client::server_address{lock->url, "", o.data_dir, lock->pid}, options);
    return submit_and_follow(s, o);
  }
  return call(s, "run", s.node.run, o);
}

int status(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto got = (*cluster)->get("/troupe/v1/status");
  if (!got)
    return s.fail(got.error());
  auto options = s.output();
  auto thing = got->body;
  if (options.format == output_format::table || options.format == output_format::csv) {
    thing["url"] = (*cluster)->where().url;
    if (!(*cluster)->where().data_dir.empty())
      thing["dataDir"] = (*cluster)->where().data_dir.string();
  }
  return s.print(show_one(thing,
                          {{"url", "url"},
                           {"slots", "slots.total"},
                           {"slots used", "slots.used"},
                           {"agents", "agents", show_as::number},
                           {"active experiments", "experimentsActive", show_as::number},
                           {"data directory", "dataDir"}},
                          options));
}

int web(session& s, const arguments& given) {
  auto path = given.text("PATH");
  // A whole address, as the page's "Copy link" gives it.
  for (const std::string_view scheme : {"http://", "https://"})
    if (path.starts_with(scheme))
      path.erase(0, path.find('/', scheme.size()));
  path.erase(0, path.find_first_not_of('/') == path.npos ? path.size() : path.find_first_not_of('/'));
  if (path == "ui" || path.starts_with("ui/") || path.starts_with("ui?"))
    path.erase(0, path.starts_with("ui/") ? 3 : 2);
  if (path.find_first_of("#\r\n") != path.npos)
    return s.fail({errc::invalid, "'" + path + "' is not a page\nhint: troupe web experiments/7"});
  // An address in one value of the query. What an address cannot hold as it is, is encoded for both.
  std::string next;
  for (const char c : path)
    next += std::string_view(" \\\"'<>").find(c) != std::string_view::npos ||
                static_cast<unsigned char>(c) < ' ' || c == '\x7f'
              ? client::percent_encode(client::percent_encode(std::string_view(&c, 1)))
            : c == '%' || c == '&' || c == '+' ? client::percent_encode(std::string_view(&c, 1))
                                               : std::string(1, c);
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  // A page's text is an answer too, though it is not JSON.
  if (auto page = (*cluster)->get("/ui/"); !page && page.error().code == errc::not_found)
    return s.fail(
      {errc::not_found, "no web page at " + (*cluster)->where().url +
                          "/ui/\nhint: a node that is embedded with node_options.web = false has none"});
  auto made = (*cluster)->post("/troupe/v1/session/codes");
  if (!made)
    return s.fail(made.error());
  const auto link =
    (*cluster)->where().url + "/ui/login?next=/ui/" + next + "#code=" + made->value("code", std::string());
  s.io.out << link << std::endl;
  if (!given.has("--open"))
    return exit_done;
  const auto pid = ::fork();
  if (pid == 0) {
    ::execlp("xdg-open", "xdg-open", link.c_str(), nullptr);
    std::_Exit(127);
  }
  int how = 0;
  if (pid < 0 || ::waitpid(pid, &how, 0) != pid || how != 0)
    return s.fail({errc::io, "xdg-open could not open the link\nhint: open the address above in a browser"});
  return exit_done;
}

int down(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  const auto where = (*cluster)->where();
  // A process that ends holds its data directory longer than its port, so the process is waited for wherever
  // it is known.
  const auto local = where.pid > 0 ? std::optional(where) : client::node_of_this_host(where.url, s.io.env);
  const auto lock = local ? client::read_lock(local->data_dir)
                          : result<client::lock_content>(error{errc::not_found, "not on this host"});
  // A node of this host that we may signal needs no login; it stops as after Ctrl-C. One that was named by
  // its address is asked like any other.
  const bool signalled = where.pid > 0 && ::kill(where.pid, SIGTERM) == 0;
  if (!signalled)
    if (auto ok = (*cluster)->shut_down(); !ok)
      return s.fail(ok.error());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(given.number("--timeout", 60));
  while (lock ? client::alive(*lock) : bool((*cluster)->get("/health"))) {
    if (std::chrono::steady_clock::now() > until)
      return s.fail({errc::timeout, lock ? "process " + std::to_string(lock->pid) +
                                             " was told to stop and is still there\nhint: kill " +
                                             std::to_string(lock->pid)
                                         : "the cluster at " + where.url +
                                             " was told to stop and still answers\nhint: look at its log"});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  s.io.out << "stopped the cluster at " << where.url << "\n";
  return exit_done;
}

int agent_list(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto got = (*cluster)->get("/api/v1/agents");
  if (!got)
    return s.fail(got.error());
  auto rows = s.chosen(part(got->body, "agents"), agent_grid());
  if (!rows)
    return s.fail(rows.error());
  return s.print(show_rows(*rows,
                           {{"ID", "id"},
                            {"SLOTS", "slots", show_as::count},
                            {"RUNNING", "containers", show_as::count},
                            {"ENABLED", "enabled"},
                            {"DRAINING", "draining"},
                            {"STATE", "state"},
                            {"POOLS", "resourcePools"},
                            {"ADDRESSES", "addresses"},
                            {"REGISTERED", "registeredTime", show_as::age},
                            {"VERSION", "version"}},
                           s.output()));
}

int agent_remove(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  const auto name = given.text("AGENT");
  if (auto ok = (*cluster)->post("/troupe/v1/agents/" + client::percent_encode(name) + "/remove"); !ok)
    return s.fail(ok.error());
  s.io.out << "removed agent " << name << "\n";
  return exit_done;
}

int slot_list(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto got = (*cluster)->get("/api/v1/agents");
  if (!got)
    return s.fail(got.error());
  auto rows = value::array();
  for (const auto& agent : part(got->body, "agents"))
    for (auto slot : part(agent, "slots")) {
      slot["agentId"] = part(agent, "id");
      rows.push_back(std::move(slot));
    }
  return s.print(show_rows(rows,
                           {{"SLOT", "id"},
                            {"AGENT", "agentId"},
                            {"TYPE", "device.type", show_as::state},
                            {"DEVICE", "device.brand"},
                            {"UUID", "device.uuid"},
                            {"UTIL %", "usage.utilization_percent", show_as::number},
                            {"MEMORY", "usage.memory_bytes", show_as::bytes},
                            {"USED", "usage.memory_used_bytes", show_as::bytes},
                            {"TEMP C", "usage.temperature_celsius", show_as::number},
                            {"ENABLED", "enabled"},
                            {"STATE", "container.state", show_as::state},
                            {"RUNS", "container.id"}},
                           s.output()));
}

int tls_init(session& s, const arguments& given) {
  tls_init_options o;
  o.dir = given.has("--dir") ? std::filesystem::path(given.text("--dir"))
                             : client::default_data_dir(s.io.env) / "tls";
  o.hosts = given.all("--host");
  o.days = static_cast<int>(std::min<std::int64_t>(given.number("--days", o.days), 36500));
  o.replace = given.has("--replace");
  if (o.days == 0)
    return s.fail({errc::invalid, "--days takes at least 1"});
  return call(s, "tls init", s.node.tls_init, o);
}

int shell(session& s, const arguments& given) {
  return call(s, "shell", s.node.shell,
              shell_options{given.text("--attach"), given.all("--execute"), given.text("--file"),
                            given.text("--output", "table"), given.has("--keep-going"),
                            given.text("--color", "auto")});
}

int version(session& s, const arguments&) {
  s.io.out << "troupe " << s.node.version << "\n";
  return exit_done;
}

int completion(session& s, const arguments& given) {
  if (given.text("SHELL") != "bash")
    return s.fail({errc::invalid, "there are completions for bash only, not for '" + given.text("SHELL") +
                                    "'\nhint: source <(troupe completion bash)"});
  s.io.out << bash_completion();
  return exit_done;
}

} // namespace troupe::cli::verbs

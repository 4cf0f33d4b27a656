// Verbs about the cluster's file and the configuration in force: check, explain, apply, config show.

#include "runtime/cli/configuration_verbs.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config/from_determined.hpp"
#include "runtime/cli/session.hpp"
#include "runtime/client/cluster_configuration.hpp"
#include "workers/owned_fd.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <istream>
#include <ostream>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::cli::verbs {
namespace {

constexpr int plan_format = 1;

/// Prints faults on standard error; false where there are any.
bool tell(session& s, const config::cluster_file& file) {
  s.io.err << file.rendered();
  return file.ok();
}

value row_of(const config::diagnostic& x) {
  value row{{"file", x.file},       {"line", x.line}, {"column", x.column},
            {"message", x.message}, {"path", x.path}, {"severity", x.is_warning ? "warning" : "error"}};
  if (!x.hint.empty())
    row["hint"] = x.hint;
  return row;
}

/// The text holds secrets, so only its owner may read it.
result<void> write_private(const std::string& path, const std::string& text) {
  workers::owned_fd out{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (!out || ::fchmod(out.get(), 0600) != 0 ||
      ::write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return error{errc::io, "cannot write '" + path + "': " + std::strerror(errno)};
  return {};
}

/// The plan in a file that --plan wrote; nothing where the file is something else.
std::optional<value> plan_in(const std::string& path, const config::file_world& world) {
  auto text = world.read(path);
  if (!text || !text->starts_with('{'))
    return std::nullopt;
  auto got = parse_json(*text);
  if (!got || !got->is_object() || !got->contains("troupePlan"))
    return std::nullopt;
  return *got;
}

/// Only an admin may change a cluster, so a caller who named no user asks as admin.
client::server as_admin(session& s, const client::server& cluster) {
  auto options = client::options_from(s.io.env);
  if (s.io.env("TROUPE_USER").empty() && options.who.token.empty())
    options.who.user = "admin";
  if (s.given.has("--verbose"))
    options.trace = [&s](const std::string& line) { s.io.err << line << "\n"; };
  return client::server(cluster.where(), std::move(options));
}

bool answered_yes(session& s, int changes) {
  s.io.out << "Apply " << changes << (changes == 1 ? " change? [y/N] " : " changes? [y/N] ") << std::flush;
  std::string line;
  std::getline(s.io.in, line);
  return line == "y" || line == "Y" || line == "yes";
}

/// A host has no place in the file: line and column are 0.
value row_of(const host_finding& x, const std::string& file) {
  value row{{"file", file},      {"line", 0},      {"column", 0},
            {"message", x.what}, {"path", x.path}, {"severity", x.good ? "ok" : "error"}};
  if (!x.mend.empty())
    row["hint"] = x.mend;
  return row;
}

int tell_of_hosts(session& s, const value& config) {
  bool met = true;
  for (const auto& one : s.node.check_hosts(config)) {
    met = met && one.good;
    s.io.out << (one.good ? "  ok     " : "  error  ") << one.path << ": " << one.what << "\n";
    if (!one.good)
      s.io.out << "         hint: " << one.mend << "\n";
  }
  return met ? exit_done : exit_failed;
}

value live_value(const client::live_configuration& x) {
  return {{"configuration", x.configuration}, {"byHand", x.by_hand}, {"revision", x.revision}};
}

} // namespace

namespace {

/// Shows what a file of Determined becomes, and which of its keys have no effect.
int check_determined(session& s, const arguments& given) {
  const auto file = given.text("FILE");
  const auto world = client::host_files(s.io.env);
  const auto text = world.read(file);
  if (!text)
    return s.fail({errc::invalid, "cannot read '" + file + "': " + text.error().what});
  const bool of_agent = config::is_of_agent(*text, file);
  auto agent = of_agent ? config::move_agent(*text, file) : config::moved_agent{};
  auto master = of_agent ? config::moved_master{} : config::move_master(*text, file);
  auto faults = of_agent ? std::move(agent.faults) : std::move(master.faults);
  auto notes = of_agent ? std::move(agent.notes) : std::move(master.notes);
  if (faults.empty() && !of_agent)
    faults = config::load_cluster_file(file, config::as_determined(world, file, {})).faults;
  if (s.output().format == output_format::json) {
    value rows = value::array();
    for (const auto* list : {&faults, &notes})
      for (const auto& one : *list)
        rows.push_back(row_of(one));
    s.io.out << to_json(rows, 2) << "\n";
    return faults.empty() ? exit_done : exit_usage;
  }
  s.io.err << config::rendered(faults, notes, *text);
  if (!faults.empty())
    return exit_usage;
  if (given.has("--write") && of_agent)
    return s.fail({errc::invalid, "--write is for a master's file: '" + file + "' is an agent's"});
  if (given.has("--write"))
    s.io.out << to_yaml(master.cluster_file);
  else
    s.io.out << file << " ok (" << notes.size() << (notes.size() == 1 ? " note)\n" : " notes)\n");
  return exit_done;
}

} // namespace

int check(session& s, const arguments& given) {
  if (given.has("--determined"))
    return check_determined(s, given);
  if (given.has("--write"))
    return s.fail(
      {errc::invalid, "--write needs --determined\nhint: troupe check --determined master.yaml --write"});
  if (given.has("--connect") && !s.node.check_hosts)
    return s.fail({errc::unsupported, "this program cannot look at hosts"});
  auto file = config::load_cluster_file(given.text("FILE"), client::host_files(s.io.env));
  if (s.output().format == output_format::json) {
    value rows = value::array();
    for (const auto* list : {&file.faults, &file.warnings})
      for (const auto& one : *list)
        rows.push_back(row_of(one));
    bool met = true;
    if (given.has("--connect") && file.ok())
      for (const auto& one : s.node.check_hosts(file.config)) {
        met = met && one.good;
        rows.push_back(row_of(one, given.text("FILE")));
      }
    s.io.out << to_json(rows, 2) << "\n";
    return !file.ok() ? exit_usage : met ? exit_done : exit_failed;
  }
  if (!tell(s, file))
    return exit_usage;
  if (given.has("--resolved"))
    s.io.out << file.resolved;
  else
    s.io.out << given.text("FILE") << " ok (" << file.settings << " settings, " << file.from_environment
             << " from environment)\n";
  return given.has("--connect") ? tell_of_hosts(s, file.config) : exit_done;
}

int explain(session& s, const arguments& given) {
  auto text = config::explain_cluster_key(given.text("KEY"));
  if (!text)
    return s.fail(text.error());
  s.io.out << *text;
  return exit_done;
}

int config_show(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto live = client::live(**cluster);
  if (!live)
    return s.fail(live.error());
  auto& shown = live->configuration;
  if (shown.is_null()) // no file yet: shows what a cluster without one is
    shown = {{"troupe", 1},
             {"pools", {{"default", {{"default", true}}}}},
             {"nodes", value::array()},
             {"users", value::array()}};
  s.io.out << (s.output().format == output_format::json ? to_json(shown, 2) + "\n" : to_yaml(shown));
  return exit_done;
}

int apply(session& s, const arguments& given) {
  const auto path = given.text("FILE");
  const auto world = client::host_files(s.io.env);
  auto plan = plan_in(path, world);
  client::wanted_configuration wanted;
  if (plan) {
    if (plan->value("troupePlan", 0) != plan_format)
      return s.fail(
        {errc::invalid,
         path + " is a plan of another version of this program\nhint: troupe apply FILE --plan " + path});
    if (given.has("--plan"))
      return s.fail({errc::invalid, path + " is a plan already"});
    wanted.configuration = plan->value("configuration", value());
    wanted.secrets = plan->value("secrets", value::object());
    wanted.prune = plan->value("prune", std::vector<std::string>{});
  } else {
    auto file = config::load_cluster_file(path, world);
    if (!tell(s, file))
      return exit_usage;
    s.io.err << path << " ok (" << file.settings << " settings, " << file.from_environment
             << " from environment)\n";
    wanted.configuration = std::move(file.config);
    wanted.secrets = std::move(file.secrets);
  }
  auto found = s.server();
  if (!found)
    return s.fail(found.error());
  auto cluster = as_admin(s, **found);
  auto live = client::live(cluster);
  if (!live)
    return s.fail(live.error());
  if (plan && plan->value("live", value()) != live_value(*live))
    return s.fail(
      {errc::conflict,
       "the cluster has changed since this plan was made\nhint: make it anew: troupe apply FILE --plan " +
         path});
  if (!plan && given.has("--prune"))
    wanted.prune = client::prunable(live->by_hand, wanted.configuration);
  const auto changes =
    config::plan_cluster(live->configuration, wanted.configuration, live->by_hand, !wanted.prune.empty());
  s.io.out << changes.text() << std::flush;
  if (given.has("--plan")) {
    value out{{"troupePlan", plan_format},
              {"live", live_value(*live)},
              {"configuration", wanted.configuration},
              {"secrets", wanted.secrets},
              {"prune", wanted.prune}};
    if (auto ok = write_private(given.text("--plan"), to_json(out, 2) + "\n"); !ok)
      return s.fail(ok.error());
    s.io.out << "the plan is in " << given.text("--plan") << "; do it with: troupe apply "
             << given.text("--plan") << " --yes\n";
    return exit_done;
  }
  if (changes.counted() == 0 && !given.has("--yes")) {
    if (config::printable_cluster(wanted.configuration) != wanted.configuration)
      s.io.out << "its secrets are not compared: --yes applies them\n";
    return exit_done;
  }
  if (!given.has("--yes")) {
    if (!::isatty(STDIN_FILENO))
      return s.fail({errc::invalid, "nothing was applied: nobody can be asked, since standard input is not a "
                                    "terminal\nhint: --yes applies without asking"});
    if (!answered_yes(s, changes.counted())) {
      s.io.out << "nothing was applied\n";
      return exit_failed;
    }
  }
  auto done = client::put_in_force(cluster, wanted, live->revision,
                                   [&](const std::string& line) { s.io.out << line << "\n"; });
  if (!done)
    return s.fail(done.error());
  if (changes.counted() > 0)
    s.io.out << "applied\n";
  return exit_done;
}

} // namespace troupe::cli::verbs

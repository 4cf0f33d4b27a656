// Commands about the session itself.

#include "runtime/cli/run.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/cli/words.hpp"
#include "runtime/shell/actions.hpp"

#include <algorithm>

namespace troupe::shell::actions {
namespace {

constexpr std::chrono::minutes writable_for{15};

outcome text(std::string x) { return answer{shape::text, std::move(x), {}, {}}; }

outcome formatted(session& s, cli::output_format f) {
  s.set_format(f);
  return {};
}

std::string name_of(const value& me) {
  return cli::shown(cli::part(me, "user.username"), cli::show_as::plain, {});
}
bool is_admin(const value& me) { return cli::part(me, "user.admin") == true; }

/// The messages that the cluster accepts; empty where it cannot be asked.
std::string messages_help(session& s) {
  auto got = s.get("messages");
  if (!got)
    return "";
  std::string out = "\nMessages:\n";
  auto word = [](const value& x, const char* key) {
    return cli::shown(cli::part(x, key), cli::show_as::plain, {});
  };
  for (const auto& row : rows_of(*got, {}).what) {
    std::string left = "  " + word(row, "name");
    for (const auto& field : cli::part(row, "fields")) {
      auto one = word(field, "name") + "=" + word(field, "type");
      left += cli::part(field, "required") == true ? " " + one : " [" + one + "]";
    }
    out += cli::printable(cli::padded(left, 40) + "  " + word(row, "kinds") + ": " + word(row, "doc")) + "\n";
  }
  return out;
}

} // namespace

outcome help(session& s, const typed_words& g) {
  auto out = [](std::string x) {
    while (x.ends_with('\n'))
      x.pop_back();
    return text(std::move(x));
  };
  if (g.words.empty())
    return out(overview_help());
  std::size_t used = 0;
  auto words = g.words;
  if (const auto* c = find_command(words, used))
    return out(command_help(*c) + (c->name == "send" ? messages_help(s) : ""));
  if (const auto* c = find_command({":" + words[0]}, used))
    return out(command_help(*c));
  const auto& filters = filter_names();
  if (std::find(filters.begin(), filters.end(), words[0]) != filters.end())
    return out("A filter on rows: ps | where state=RUNNING 'backlog>10' | order -backlog | columns "
               "actor,backlog | first 3; or | count");
  auto known = first_words();
  auto meant = cli::expand(words[0], known);
  if (meant.empty()) {
    auto near = cli::nearest(words[0], known);
    return error{errc::invalid, "unknown command '" + words[0] +
                                  "'\nhint: " + (near ? "did you mean 'help " + *near + "'?" : "help")};
  }
  words.push_back("--help");
  auto meaning = cli::resolve_words(words);
  if (!meaning)
    return meaning.error();
  return out(meaning->verb && meaning->verb->act
               ? cli::help_text(*meaning->verb)
               : cli::noun_text(meaning->noun.empty() ? words[0] : meaning->noun));
}

outcome quit(session& s, const typed_words&) {
  s.quit();
  return {};
}

outcome cd(session& s, const typed_words& g) {
  if (g.words.empty() || g.words[0] == ".." || g.words[0] == "/") {
    s.set_scope("", "");
    return {};
  }
  const auto& name = g.words[0];
  auto found = s.get("info", {{"actor", name}});
  if (found) {
    s.set_scope(name, "");
    return {};
  }
  if (found.error().code != errc::not_found)
    return found.error();
  auto nodes = s.get("nodes");
  if (!nodes)
    return nodes.error();
  for (const auto& row : rows_of(*nodes, {}).what)
    if (cli::part(row, "node") == name) {
      s.set_scope("", name);
      return {};
    }
  return error{errc::not_found, "there is no actor and no node '" + name + "'\nhint: ps and nodes list them"};
}

outcome source(session& s, const typed_words& g) {
  return s.run_file(g.words[0] == "-" ? "./-" : g.words[0], false);
}

outcome as_table(session& s, const typed_words&) { return formatted(s, cli::output_format::table); }
outcome as_json(session& s, const typed_words&) { return formatted(s, cli::output_format::json); }
outcome as_csv(session& s, const typed_words&) { return formatted(s, cli::output_format::csv); }
outcome as_yaml(session& s, const typed_words&) { return formatted(s, cli::output_format::yaml); }

outcome read_write(session& s, const typed_words&) {
  auto to = s.cluster();
  if (!to)
    return to.error();
  auto me = (*to)->get("/api/v1/me");
  if (!me)
    return me.error();
  auto name = name_of(*me);
  s.set_operator(nullptr);
  if (!is_admin(*me)) {
    // As in `troupe down`: where no user is named, tries `admin` with the same password.
    const auto& env = s.io().env;
    auto options = client::options_from(env);
    options.who.user = "admin";
    auto as_admin = std::make_unique<api>((*to)->where(), options, &s.interrupt_flag());
    bool unnamed = env("TROUPE_USER").empty() && env("TROUPE_TOKEN").empty();
    auto other = unnamed ? as_admin->get("/api/v1/me") : result<value>(value());
    if (!other && other.error().code != errc::unauthorized && other.error().code != errc::denied)
      return other.error();
    if (!other || !is_admin(*other))
      return error{errc::denied, "user '" + name +
                                   "' may only look: changes are for admins\nhint: set TROUPE_USER and "
                                   "TROUPE_PASSWORD of an admin"};
    name = name_of(*other);
    s.set_operator(std::move(as_admin));
  }
  s.set_writable(writable_for);
  s.note("writing allowed until " + clock_text(to_rfc3339(s.io().now() + writable_for)).substr(0, 5) +
         " UTC as " + name + "; every change is in the audit log");
  return {};
}

outcome read_only(session& s, const typed_words&) {
  s.set_writable(std::chrono::minutes(0));
  return {};
}

outcome attach(session& s, const typed_words& g) {
  if (g.words.empty()) {
    if (auto to = s.cluster(); !to)
      return to.error();
    return text(s.url());
  }
  auto before = s.url();
  if (auto ok = s.attach(g.words[0]); !ok)
    return ok.error();
  if (auto got = s.get("nodes"); !got) {
    static_cast<void>(s.attach(before)); // goes back to the former cluster
    return got.error();
  }
  s.set_writable(std::chrono::minutes(0));
  s.set_scope("", "");
  return text("attached to " + s.url() + ", read-only");
}

outcome unreachable_here(session&, const typed_words&) {
  return error{errc::invalid, "this word starts a statement and cannot be quoted\nhint: help"};
}

} // namespace troupe::shell::actions

// Commands that only read: one request, one answer.

#include "runtime/shell/actions.hpp"

#include <algorithm>

namespace troupe::shell::actions {
namespace {

using cli::show_as;

outcome rows(session& s, const std::string& name, const client::query& with,
             std::vector<cli::column> columns) {
  auto got = s.get(name, with);
  if (!got)
    return got.error();
  return rows_of(*got, std::move(columns));
}

/// Answers with one request about one actor.
outcome one(session& s, const typed_words& g, const std::string& name, shape how, client::query more = {}) {
  auto actor = actor_of(s, g, name);
  if (!actor)
    return actor.error();
  more.insert(more.begin(), {"actor", *actor});
  auto got = s.get(name, more);
  if (!got)
    return got.error();
  return answer{how, *std::move(got), {}, {}};
}

outcome rows_about(session& s, const typed_words& g, const std::string& name, client::query more,
                   std::vector<cli::column> columns) {
  auto actor = actor_of(s, g, name);
  if (!actor)
    return actor.error();
  more.insert(more.begin(), {"actor", *actor});
  return rows(s, name, more, std::move(columns));
}

} // namespace

const std::vector<cli::column>& ps_columns() {
  static const std::vector<cli::column> columns = {
    {"ACTOR", "actor"},
    {"KIND", "kind"},
    {"NODE", "node"},
    {"BACKLOG", "backlog", show_as::number},
    {"MSG/S", "msg_per_s", show_as::number},
    {"RUN P50", "run_us_p50", show_as::number},
    {"RUN P99", "run_us_p99", show_as::number},
    {"WAIT P99", "wait_us_p99", show_as::number},
    {"RESTARTS", "restarts", show_as::number},
    {"STATE", "state", show_as::state},
  };
  return columns;
}

result<std::string> actor_of(session& s, const typed_words& g, const std::string& command) {
  if (!g.words.empty())
    return g.words.front();
  if (!s.actor_scope().empty())
    return s.actor_scope();
  return error{errc::invalid,
               "'" + command + "' needs an actor\nhint: " + command + " trial/7; ps lists them"};
}

answer rows_of(const value& body, std::vector<cli::column> columns) {
  answer out{shape::rows, value::array(), std::move(columns), {}};
  if (const auto& rows = cli::part(body, "rows"); rows.is_array())
    out.what = rows;
  else if (body.is_array())
    out.what = body;
  if (const auto& missing = cli::part(body, "missing"); missing.is_array())
    for (const auto& m : missing)
      out.notes.push_back("node " + cli::shown(cli::part(m, "node"), show_as::plain, {}) +
                          " is missing: " + cli::shown(cli::part(m, "why"), show_as::plain, {}));
  return out;
}

std::optional<std::pair<std::string, std::string>> pair_of(const std::string& word) {
  auto at = word.find('=');
  if (at == word.npos || at == 0)
    return std::nullopt;
  return std::pair(word.substr(0, at), word.substr(at + 1));
}

outcome nodes(session& s, const typed_words&) {
  return rows(s, "nodes", {},
              {{"NODE", "node"},
               {"STATE", "state", show_as::state},
               {"SLOTS", "slots", show_as::number},
               {"USED", "used", show_as::number},
               {"ACTORS", "actors", show_as::number},
               {"BACKLOG", "backlog", show_as::number},
               {"VERSION", "version"},
               {"UP", "uptime_s", show_as::number},
               {"ROLE", "role"}});
}

outcome ps(session& s, const typed_words& g) {
  client::query with;
  std::vector<std::pair<std::string, std::string>> ours; // conditions that the server does not know
  std::string text;
  for (const auto& word : g.words) {
    auto pair = pair_of(word);
    if (pair && (pair->first == "kind" || pair->first == "node"))
      with.push_back(*pair);
    else if (pair && (pair->first == "state" || pair->first == "actor"))
      ours.push_back(*pair);
    else if (pair)
      return error{errc::invalid, "'ps' has no filter '" + pair->first +
                                    "'\nhint: kind=K, node=N, state=S, actor=A, or a part of the name"};
    else if (!text.empty())
      return error{errc::invalid, "'ps' takes one part of a name\nhint: ps trial"};
    else
      with.emplace_back("filter", text = word);
  }
  if (!s.node_scope().empty() &&
      std::none_of(with.begin(), with.end(), [](const auto& p) { return p.first == "node"; }))
    with.emplace_back("node", s.node_scope());
  if (g.has("--sort"))
    with.emplace_back("sort", g.text("--sort"));
  if (g.has("--top") && ours.empty())
    with.emplace_back("top", g.text("--top"));
  if (g.has("--window"))
    with.emplace_back("window", span_arg(g.span("--window", {})));
  auto got = s.get("ps", with);
  if (!got)
    return got.error();
  auto out = rows_of(*got, ps_columns());
  if (!ours.empty()) {
    auto kept = value::array();
    for (auto& row : out.what)
      if (std::all_of(ours.begin(), ours.end(), [&](const auto& p) {
            return cli::shown(cli::part(row, p.first), show_as::plain, {}) == p.second;
          }))
        kept.push_back(std::move(row));
    if (auto top = static_cast<std::size_t>(g.number("--top", std::int64_t(kept.size()))); kept.size() > top)
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(top), kept.end());
    out.what = std::move(kept);
  }
  return out;
}

outcome info(session& s, const typed_words& g) { return one(s, g, "info", shape::info); }
outcome stats(session& s, const typed_words& g) { return one(s, g, "stats", shape::stats); }

outcome tree(session& s, const typed_words& g) {
  client::query with;
  if (auto actor = actor_of(s, g, "tree"))
    with.emplace_back("actor", *actor);
  auto got = s.get("tree", with);
  if (!got)
    return got.error();
  return answer{shape::tree, *std::move(got), {}, {}};
}

outcome state(session& s, const typed_words& g) {
  client::query more;
  auto words = g;
  bool only_path = !s.actor_scope().empty() && g.words.size() == 1 &&
                   g.words[0].find('/') == std::string::npos; // `cd` chose an actor
  auto path = only_path ? g.words[0] : g.words.size() > 1 ? g.words[1] : "";
  if (only_path)
    words.words.clear();
  if (!path.empty())
    more.emplace_back("path", path);
  if (g.has("--diff"))
    more.emplace_back("diff", span_arg(g.span("--diff", {})));
  return one(s, words, "state", shape::state, more);
}

outcome msgs(session& s, const typed_words& g) {
  client::query more;
  if (g.has("--max"))
    more.emplace_back("max", g.text("--max"));
  return rows_about(s, g, "msgs", more,
                    {{"AT", "at"},
                     {"FROM", "from"},
                     {"TYPE", "type"},
                     {"WAITED", "wait_us", show_as::number},
                     {"RAN", "run_us", show_as::number},
                     {"CORRELATION", "correlation"},
                     {"TEXT", "text"}});
}

outcome links(session& s, const typed_words& g) {
  return rows_about(s, g, "links", {}, {{"ACTOR", "actor"}, {"PEER", "peer"}, {"HOW", "how"}});
}

outcome who_waits(session& s, const typed_words& g) {
  auto got = s.get("waits");
  if (!got)
    return got.error();
  auto out = rows_of(*got, {{"ACTOR", "actor"},
                            {"WAITS FOR", "waits_for"},
                            {"WHAT", "what"},
                            {"SINCE", "since_s", show_as::number}});
  if (auto actor = actor_of(s, g, "who-waits")) {
    auto kept = value::array();
    for (auto& row : out.what)
      if (cli::part(row, "actor") == *actor || cli::part(row, "waits_for") == *actor)
        kept.push_back(std::move(row));
    out.what = std::move(kept);
  }
  return out;
}

outcome log(session& s, const typed_words& g) {
  if (g.words.empty()) {
    auto got = s.get("log");
    if (!got)
      return got.error();
    return answer{shape::text, *std::move(got), {}, {}};
  }
  if (!s.may_write())
    return error{errc::denied, "the session is read-only\nhint: :rw allows changes for 15 minutes"};
  auto got = s.post("log", {{"level", g.words[0]}});
  if (!got)
    return got.error();
  return answer{
    shape::text, got->is_object() && !got->empty() ? *std::move(got) : value{{"level", g.words[0]}}, {}, {}};
}

} // namespace troupe::shell::actions

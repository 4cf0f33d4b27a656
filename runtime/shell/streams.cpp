// Commands that show rows as they come: events, trace, follow. Each ends at its limits, after Ctrl-C, or with
// its stream.

#include "runtime/shell/actions.hpp"

#include <algorithm>

namespace troupe::shell::actions {
namespace {

using cli::part;
using cli::show_as;

constexpr std::chrono::milliseconds no_end = std::chrono::hours(24 * 366);

struct bounds {
  std::int64_t max = -1; ///< number of rows; -1: any
  std::chrono::milliseconds time = no_end;
  std::function<bool(const value&)> wanted;
};

std::vector<cli::column> message_columns() {
  return {{"AT", "at"},
          {"ACTOR", "actor"},
          {"FROM", "from"},
          {"TYPE", "type"},
          {"CORRELATION", "correlation"},
          {"WAITED", "wait_us", show_as::number},
          {"RAN", "run_us", show_as::number},
          {"TEXT", "text"}};
}

std::string number(const value& x) { return cli::shown(x, show_as::number, {}); }

void say_end(session& s, const value& end, std::int64_t rows) {
  auto text = std::to_string(rows) + (rows == 1 ? " message" : " messages");
  if (const auto& seen = part(end, "seen"); seen.is_number() && seen != rows)
    text += " of " + number(seen);
  if (const auto& dropped = part(end, "dropped"); dropped.is_number() && dropped != 0)
    text += ", " + number(dropped) + " dropped";
  if (const auto& why = part(end, "why"); why.is_string() && why != "")
    text += ", ended: " + why.get<std::string>();
  s.note(text);
}

outcome stream(session& s, const std::string& name, client::query with, const bounds& limit,
               std::vector<cli::column> columns, bool says_end) {
  auto to = s.cluster();
  if (!to)
    return to.error();
  auto rows = (*to)->stream(route(name), std::move(with));
  auto until = session::clock::now() + limit.time;
  std::int64_t count = 0;
  bool begun = false, more = true;
  value end;
  std::optional<error> fault;
  while (more && !s.interrupted() && !rows.ended() && session::clock::now() < until &&
         (says_end || limit.max < 0 || count < limit.max)) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - session::clock::now());
    auto got = rows.read(std::clamp(left, std::chrono::milliseconds(1), std::chrono::milliseconds(100)));
    if (!got) {
      fault = got.error();
      break;
    }
    if (rows.open() && !std::exchange(begun, true))
      s.begin_rows(columns);
    for (const auto& event : *got) {
      if (event.what == stream_event::kind::lost) {
        s.note(number(part(event.data, "count")) + " rows were dropped: too many came at once");
      } else if (event.what == stream_event::kind::end) {
        end = event.data;
      } else if (more && (limit.max < 0 || count < limit.max) &&
                 (!limit.wanted || limit.wanted(event.data))) {
        ++count;
        more = s.take_row(event.data);
      }
    }
    if (says_end && limit.max >= 0 && count >= limit.max) // the end, which says why, follows at once
      until = std::min(until, session::clock::now() + std::chrono::seconds(1));
  }
  outcome out;
  if (begun || (!fault && !s.interrupted()))
    out = begun ? s.end_rows() : (s.begin_rows(columns), s.end_rows());
  if (fault)
    return *fault;
  if (says_end)
    say_end(s, end, count);
  return out;
}

} // namespace

outcome events(session& s, const typed_words& g) {
  std::vector<cli::column> columns = {
    {"AT", "at"}, {"KIND", "kind"}, {"ACTOR", "actor"}, {"WHAT", "what"}, {"USER", "user"}};
  client::query with;
  std::vector<std::pair<std::string, std::string>> ours;
  for (const auto& word : g.words) {
    auto pair = pair_of(word);
    if (!pair || (pair->first != "kind" && pair->first != "actor" && pair->first != "user"))
      return error{errc::invalid, "'events' has no filter '" + word +
                                    "'\nhint: events kind=audit; kinds are state, audit, supervision, node"};
    if (pair->first == "kind")
      with.push_back(*pair);
    else
      ours.push_back(*pair);
  }
  auto wanted = [ours](const value& row) {
    return std::all_of(ours.begin(), ours.end(), [&](const auto& p) {
      return cli::shown(part(row, p.first), show_as::plain, {}) == p.second;
    });
  };
  if (g.has("--follow") || g.has("--for")) {
    with.emplace_back("follow", "true");
    return stream(s, "events", with, {g.number("--max", -1), g.span("--for", no_end), wanted}, columns,
                  false);
  }
  with.emplace_back("max", std::to_string(ours.empty() ? g.number("--max", 50) : 1000));
  auto got = s.get("events", with);
  if (!got)
    return got.error();
  auto out = rows_of(*got, columns);
  if (!ours.empty()) {
    auto kept = value::array();
    for (auto& row : out.what)
      if (wanted(row))
        kept.push_back(std::move(row));
    auto most = static_cast<std::size_t>(g.number("--max", 50));
    if (kept.size() > most)
      kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(most));
    out.what = std::move(kept);
  }
  return out;
}

outcome trace(session& s, const typed_words& g) {
  auto actor = actor_of(s, g, "trace");
  if (!actor)
    return actor.error();
  bounds limit{g.number("--max", 100), g.span("--for", std::chrono::seconds(30)), {}};
  client::query with{{"actor", *actor}, {"max", std::to_string(limit.max)}, {"for", span_arg(limit.time)}};
  if (g.has("--rate"))
    with.emplace_back("rate", g.text("--rate"));
  if (g.has("--msg"))
    with.emplace_back("msg", g.text("--msg"));
  limit.time += std::chrono::seconds(3); // the server ends it and says why; a silent one must not hold us
  return stream(s, "trace", with, limit, message_columns(), true);
}

outcome follow(session& s, const typed_words& g) {
  bounds limit{g.number("--max", 100), g.span("--for", std::chrono::seconds(30)), {}};
  client::query with{
    {"correlation", g.words[0]}, {"max", std::to_string(limit.max)}, {"for", span_arg(limit.time)}};
  limit.time += std::chrono::seconds(3);
  return stream(s, "follow", with, limit, message_columns(), true);
}

} // namespace troupe::shell::actions

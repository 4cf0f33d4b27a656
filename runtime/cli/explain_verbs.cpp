// `troupe explain trial | allocation | experiment | task ID`: why something waits or runs where it does, and
// what would help.

#include "runtime/cli/experiments.hpp"
#include "runtime/cli/pool_verbs.hpp"
#include "runtime/cli/session.hpp"
#include "runtime/cli/task_verbs.hpp"

#include <ostream>

namespace troupe::cli::verbs {
namespace {

std::string text_of(const value& x, const char* key) {
  const auto& one = part(x, key);
  return one.is_string() ? one.get<std::string>() : one.is_null() ? std::string() : to_json(one);
}
std::string number_of(const value& x, const char* key) { return shown(part(x, key), show_as::number, {}); }
double seconds_of(const value& x, const char* key) {
  const auto& one = part(x, key);
  return one.is_number() ? one.get<double>() : 0;
}

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string out;
  for (const auto& one : parts)
    out += (out.empty() ? "" : between) + one;
  return out;
}

std::string ordinal(const value& position) {
  static constexpr const char* words[] = {"next", "second", "third", "fourth", "fifth"};
  const auto n = position.is_number_integer() ? position.get<std::int64_t>() : 0;
  if (n < 1)
    return {};
  const auto last = n / 10 % 10 == 1 ? 0 : n % 10;
  const char* ending = last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
  return ", " + (n <= 5 ? std::string(words[n - 1]) : std::to_string(n) + ending) + " in line";
}

/// "trial 31 of experiment 7 (ada) waits 4 min in pool gpu, second in line: ..."
std::string headline(const value& x) {
  const auto state = text_of(x, "state");
  std::string out = part(x, "task").is_string()
                      ? text_of(x, "kind") + " " + text_of(x, "task")
                      : "trial " + text_of(x, "trial") + " of experiment " + text_of(x, "experiment");
  out += " (" + text_of(x, "user") + ")";
  if (state == "QUEUED")
    out += " waits " + span_text(seconds_of(x, "waitedSeconds")) + " in pool " + text_of(x, "pool") +
           ordinal(part(x, "position"));
  else
    out += " is " + state;
  return out + ": " + text_of(x, "reason.text");
}

std::string agents_line(const value& x) {
  std::vector<std::string> out;
  for (const auto& one : part(x, "agents")) {
    const auto why = text_of(one, "why"); // "has 1 of 2 slots free", or of a label "has rack=a"
    const bool counts_slots = why.starts_with("has ") && why.find('=') == why.npos;
    const bool short_of_slots = part(x, "slots") != 0 && (counts_slots || part(one, "fits") == true);
    out.push_back(text_of(one, "agent") + " " +
                  (short_of_slots ? number_of(one, "free") + " free"
                   : why.empty()  ? std::string("has room")
                                  : why));
  }
  return join(out, "   ");
}

std::string slots_text(const value& slots) { return to_json(slots) + (slots == 1 ? " slot" : " slots"); }

/// "trial 12", "shell 2c31...", or "another's" where the caller may not see the owner.
std::string holder(const std::string& allocation) {
  const auto id = parse_allocation(allocation);
  return id ? std::string(name(id.task.kind())) + " " + to_string(id.task) : "another's";
}

std::string frees_line(const value& x) {
  std::vector<std::string> out;
  for (const auto& one : part(x, "wouldFree")) {
    if (out.size() == 5) {
      out.push_back("and others");
      break;
    }
    std::vector<std::string> agents;
    for (const auto& agent : part(one, "agents"))
      agents.push_back(agent.get<std::string>());
    auto text = holder(text_of(one, "allocation")) + " on " + join(agents, ", ");
    const auto losing = ", losing " + number_of(one, "costSeconds") + " slot-seconds";
    std::vector<std::string> ways;
    const auto heir = text_of(one, "preemptedFor");
    if (part(one, "stopping") == true)
      ways.push_back(" is being preempted" + (heir.empty()                       ? ""
                                              : heir == text_of(x, "allocation") ? " for it"
                                                                                 : " for " + holder(heir)));
    else if (text_of(one, "how") == "preempted")
      ways.push_back(
        " may be preempted" +
        (part(one, "expectedSeconds").is_number()
           ? " in about " + span_text(seconds_of(one, "expectedSeconds")) + ", once it has run for min_run"
           : std::string()) +
        losing);
    else if (part(one, "expectedSeconds").is_number())
      ways.push_back(", ends in about " + span_text(seconds_of(one, "expectedSeconds")));
    if (part(one, "fromPriority").is_number())
      ways.push_back(" could be preempted from priority " + number_of(one, "fromPriority") + " on" + losing);
    text += ways.empty() ? ", until it ends" : join(ways, ",");
    out.push_back(std::move(text));
  }
  return join(out, "; ");
}

std::string starts_line(const value& x, time_point now) {
  std::string out;
  if (const auto& when = part(x, "estimate"); when.is_object())
    out = "in about " + span_text(seconds_of(when, "seconds")) + " (by " + text_of(when, "from") + ")";
  if (const auto& kept = part(x, "reservation"); kept.is_object()) {
    std::vector<std::string> agents;
    for (const auto& one : part(kept, "on"))
      agents.push_back(text_of(one, "agent"));
    const auto since = text_of(kept, "since");
    const auto at = parse_rfc3339(since);
    out += (out.empty() ? "on " : ", on ") + join(agents, ", ") + ", reserved since " +
           (at ? moment_text(*at, now) : since);
  }
  return out;
}

void write_line(std::ostream& out, const char* title, const std::string& text) {
  if (!text.empty())
    out << "  " << title << std::string(11 - std::string_view(title).size(), ' ') << text << "\n";
}

void write(const console& io, const value& x, const value& queue) {
  auto& out = io.out;
  out << headline(x) << "\n";
  std::vector<std::string> before;
  for (const auto& one : queue)
    if (part(x, "position").is_number() && part(one, "pool") == part(x, "pool") &&
        part(one, "position") < part(x, "position") && (part(one, "slots") == 0) == (part(x, "slots") == 0) &&
        before.size() < 3)
      before.push_back(holder(text_of(one, "allocation")) + ": " + slots_text(part(one, "slots")) +
                       ", priority " + number_of(one, "priority"));
  write_line(out, "before it", join(before, "; "));
  if (text_of(x, "state") == "QUEUED")
    write_line(out, "agents", agents_line(x));
  write_line(out, "frees it", frees_line(x));
  write_line(out, "starts", starts_line(x, io.now()));
  write_line(out, "advice", text_of(x, "advice"));
}

int explain(session& s, const std::string& path) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto got = (*cluster)->get(path);
  if (!got)
    return s.fail(got.error());
  const auto options = s.output();
  if (options.format != output_format::table)
    return s.print(show_one(got->body, {{"STATE", "state"}, {"REASON", "reason.text"}}, options));
  auto queue = (*cluster)->get("/troupe/v1/queue");
  if (!queue)
    return s.fail(queue.error());
  write(s.io, got->body, part(queue->body, "waiting"));
  const auto& log = part(got->body, "log");
  if (!log.is_array() || log.empty())
    return exit_done;
  auto lines = last_lines(**cluster, parse_id<trial_id>(text_of(got->body, "trial")), log.size());
  if (!lines)
    return s.fail(lines.error());
  s.io.out << "  its last lines:\n";
  for (const auto& line : *lines)
    s.io.out << "    " << line.substr(0, line.find_last_not_of("\r\n") + 1) << "\n";
  return exit_done;
}

} // namespace

int explain_trial(session& s, const arguments& given) {
  const auto id = parse_id<trial_id>(given.text("TRIAL"));
  if (!id)
    return s.fail({errc::invalid, "'" + given.text("TRIAL") + "' is not a trial\nhint: troupe trial list"});
  return explain(s, "/troupe/v1/trials/" + to_string(id) + "/explain");
}

int explain_allocation(session& s, const arguments& given) {
  const auto id = parse_allocation(given.text("ALLOCATION"));
  if (!id)
    return s.fail({errc::invalid,
                   "'" + given.text("ALLOCATION") + "' is not an allocation\nhint: task and run, as 12.3"});
  return explain(s, "/troupe/v1/allocations/" + to_string(id) + "/explain");
}

int explain_task(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto row = named_task_row(**cluster, given.text("TASK"), "");
  return row ? explain(s, "/troupe/v1/tasks/" + text_of(*row, "id") + "/explain") : s.fail(row.error());
}

int explain_experiment(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto id = named_experiment(**cluster, given.text("EXPERIMENT"));
  if (!id)
    return s.fail(id.error());
  auto got = (*cluster)->get("/troupe/v1/experiments/" + to_string(*id) + "/explain");
  if (!got)
    return s.fail(got.error());
  const auto& x = got->body;
  const auto options = s.output();
  if (options.format != output_format::table)
    return s.print(show_one(x,
                            {{"EXPERIMENT", "experiment"},
                             {"POOL", "pool"},
                             {"STATE", "state"},
                             {"REASON", "reason.text"},
                             {"RUNNING", "trials.running"},
                             {"WAITING", "trials.waiting"},
                             {"PAUSED", "trials.paused"}},
                            options));
  const bool has_trials =
    part(x, "trials.running") != 0 || part(x, "trials.waiting") != 0 || part(x, "trials.paused") != 0;
  s.io.out << "experiment " << to_string(*id) << " is " << text_of(x, "state") << " in pool "
           << text_of(x, "pool") << ": "
           << (has_trials ? "trials running " + number_of(x, "trials.running") + ", waiting " +
                              number_of(x, "trials.waiting") + ", paused " + number_of(x, "trials.paused")
                          : text_of(x, "reason.text"))
           << "\n";
  auto queue = (*cluster)->get("/troupe/v1/queue");
  if (!queue)
    return s.fail(queue.error());
  for (const auto& one : part(x, "waiting"))
    write(s.io, one, part(queue->body, "waiting"));
  return exit_done;
}

} // namespace troupe::cli::verbs

#include "runtime/cli/pool_verbs.hpp"

#include "runtime/cli/exit_codes.hpp"
#include "runtime/cli/session.hpp"

#include <algorithm>
#include <ostream>

namespace troupe::cli::verbs {
namespace {

const std::vector<column> pool_columns = {{"NAME", "name"},
                                          {"DEFAULT", "default"},
                                          {"SCHEDULER", "scheduler"},
                                          {"PREEMPTION", "preemption"},
                                          {"SLOTS", "slots.total", show_as::number},
                                          {"USED", "slots.used", show_as::number},
                                          {"RESERVED", "slots.reserved", show_as::number},
                                          {"AGENTS", "agents", show_as::number},
                                          {"INSTANCES", "provider.instances", show_as::number},
                                          {"STOPPING", "provider.stopping", show_as::number},
                                          {"WAITING", "waiting", show_as::number},
                                          {"EXPERIMENTS", "experiments", show_as::number}};

int change(session& s, const std::string& path, const value& body, const std::string& done) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  if (auto ok = (*cluster)->post(path, body); !ok)
    return s.fail(ok.error());
  s.io.out << done << "\n";
  return exit_done;
}

std::string agent_path(const arguments& given) {
  return "/api/v1/agents/" + client::percent_encode(given.text("AGENT"));
}
std::string slot_path(const arguments& given) {
  return agent_path(given) + "/slots/" + client::percent_encode(given.text("SLOT"));
}
std::string slot_name(const arguments& given) {
  return "slot " + given.text("SLOT") + " of agent " + given.text("AGENT");
}
std::string disabled(const arguments& given) {
  return given.has("--drain") ? ": what runs there ends by itself"
                              : ": what runs there is killed; trials and generic tasks run elsewhere, other "
                                "tasks end";
}

/// Where a condition or the order needs them: why the first hundred wait, and what would free slots for them.
result<void> add_reasons(session& s, client::server& cluster, value& waiting) {
  const auto keys = keys_named(s.given.text("--where"), s.given.text("--sort"));
  if (s.given.has("--at") ||
      std::none_of(keys.begin(), keys.end(), [](const auto& key) { return key == "why" || key == "free"; }))
    return {};
  for (std::size_t i = 0; i < std::min<std::size_t>(waiting.size(), 100); ++i) {
    const auto id = part(waiting[i], "allocation").get<std::string>();
    auto got = cluster.get("/troupe/v1/allocations/" + client::percent_encode(id) + "/explain");
    if (got)
      waiting[i]["explain"] = std::move(got->body);
    else if (got.error().code != errc::not_found) // the run does not wait any more
      return got.error();
  }
  return {};
}

} // namespace

int pool_list(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto got = (*cluster)->get("/troupe/v1/pools");
  return got ? s.print(show_rows(part(got->body, "pools"), pool_columns, s.output())) : s.fail(got.error());
}

int pool_describe(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto got = (*cluster)->get("/troupe/v1/pools/" + client::percent_encode(given.text("POOL")));
  if (!got)
    return s.fail(got.error());
  const auto options = s.output();
  if (const int code = s.print(show_one(got->body, pool_columns, options)); code != exit_done)
    return code;
  if (options.format != output_format::table || options.quiet || !options.columns.empty())
    return exit_done;
  if (const auto& provider = part(got->body, "provider"); provider.is_object()) {
    const auto count = provider.value("instances", 0), starting = provider.value("starting", 0),
               stopping = provider.value("stopping", 0);
    s.io.out << "\nprovider "
             << (part(provider, "type").is_string() ? provider.value("type", "") : "that was taken out")
             << ": " << count << (count == 1 ? " instance, of which " : " instances, of which ") << starting
             << (starting == 1 ? " starts" : " start");
    if (stopping > 0)
      s.io.out << " and " << stopping << (stopping == 1 ? " is being ended" : " are being ended");
    s.io.out << "\n";
    const auto seconds = [&](const char* key) { // until that moment; below 0: it is over
      const auto& text = part(provider, key);
      const auto at = text.is_string() ? parse_rfc3339(text.get<std::string>()) : std::nullopt;
      return at ? std::optional(std::chrono::duration<double>(*at - s.io.now()).count()) : std::nullopt;
    };
    if (const auto& failure = part(provider, "error"); failure.is_string())
      s.io.out << "  failed: " << failure.get<std::string>() << "\n";
    if (const auto since = seconds("launchFailedAt")) {
      const auto failed = provider.value("failedLaunches", 0);
      s.io.out << "  " << failed
               << (failed == 1 ? " launch failed, " : " launches in a row failed, the last one ")
               << span_text(-*since) << " ago"
               << (part(provider, "error") == part(provider, "launchFailure")
                     ? std::string()
                     : ": " + provider.value("launchFailure", ""))
               << "\n";
    }
    if (const auto until = seconds("retryAt"); until && *until > 0)
      s.io.out << "  tried again in " << span_text(*until) << "\n";
    for (const auto& fault : part(provider, "faults"))
      s.io.out << "  wrong: " << fault.get<std::string>() << "\n";
  }
  if (const auto& quotas = part(got->body, "quotas"); !quotas.empty()) {
    s.io.out << "\n";
    if (const int code = s.print(show_rows(quotas,
                                           {{"USER", "user"},
                                            {"WORKSPACE", "workspace"},
                                            {"MAX SLOTS", "maxSlots", show_as::number},
                                            {"USED", "used", show_as::number}},
                                           options));
        code != exit_done)
      return code;
  }
  if (part(got->body, "jobs").empty())
    return exit_done;
  s.io.out << "\n";
  return s.print(show_rows(part(got->body, "jobs"),
                           {{"EXPERIMENT", "experiment"},
                            {"TASK", "task"},
                            {"PRIORITY", "priority", show_as::number},
                            {"WEIGHT", "weight", show_as::number},
                            {"MAX SLOTS", "maxSlots", show_as::number},
                            {"SHARE", "share", show_as::number},
                            {"USED", "used", show_as::number},
                            {"WAITING", "waiting", show_as::number}},
                           options));
}

int pool_replay(session& s, const arguments& given) {
  if (given.text("FILE") != "-")
    return s.fail({errc::invalid, "`troupe pool replay` reads standard input: give it as -"});
  if (!s.node.pool_replay)
    return s.fail({errc::unsupported, "this program was built without 'pool replay'"});
  return s.node.pool_replay(s.io.in, s.io.out);
}

int queue_list(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  if (given.has("--pool")) // an unknown pool must not look like an empty queue
    if (auto known = (*cluster)->get("/troupe/v1/pools/" + client::percent_encode(given.text("--pool")));
        !known)
      return s.fail(known.error());
  client::query with;
  if (given.has("--at"))
    with.emplace_back("at", std::to_string(given.number("--at", 0)));
  auto got = (*cluster)->get("/troupe/v1/queue", with);
  if (!got)
    return s.fail(got.error());
  auto all = value::array();
  for (const auto& one : part(got->body, "waiting")) {
    all.push_back(one);
    if (!given.has("--at"))
      all.back()["order"] = all.size();
  }
  if (auto ok = add_reasons(s, **cluster, all); !ok)
    return s.fail(ok.error());
  auto rows = s.chosen(std::move(all), queue_grid());
  if (!rows)
    return s.fail(rows.error());
  auto kept = value::array();
  for (auto& one : *rows) {
    one.erase("order");
    one.erase("explain");
    if (!given.has("--pool") || part(one, "pool") == given.text("--pool"))
      kept.push_back(std::move(one));
  }
  return s.print(show_rows(kept,
                           {{"POOL", "pool"},
                            {"POSITION", "position", show_as::number},
                            {"ALLOCATION", "allocation"},
                            {"EXPERIMENT", "experiment"},
                            {"SLOTS", "slots", show_as::number},
                            {"PRIORITY", "priority", show_as::number},
                            {"WEIGHT", "weight", show_as::number},
                            {"USER", "user"},
                            {"SINCE", "since", show_as::age},
                            {"REASON", "reason"}},
                           s.output()));
}

int agent_enable(session& s, const arguments& given) {
  return change(s, agent_path(given) + "/enable", value::object(), "enabled agent " + given.text("AGENT"));
}
int agent_disable(session& s, const arguments& given) {
  return change(s, agent_path(given) + "/disable", {{"drain", given.has("--drain")}},
                "disabled agent " + given.text("AGENT") + disabled(given));
}
int slot_enable(session& s, const arguments& given) {
  return change(s, slot_path(given) + "/enable", value::object(), "enabled " + slot_name(given));
}
int slot_disable(session& s, const arguments& given) {
  return change(s, slot_path(given) + "/disable", {{"drain", given.has("--drain")}},
                "disabled " + slot_name(given) + disabled(given));
}

} // namespace troupe::cli::verbs

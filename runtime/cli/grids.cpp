// The columns of the web page's grids, by the names that `--where` and `--sort` use.

#include "runtime/cli/output.hpp"
#include "runtime/cli/selection.hpp"

#include <algorithm>
#include <set>

namespace troupe::cli {
namespace {

grid::cell at(std::string path) {
  return [path = std::move(path)](const value& row) { return part(row, path); };
}

/// A number, which JSON may hold as a text such as "NaN".
grid::cell number_at(std::string path) {
  return [path = std::move(path)](const value& row) {
    const auto x = number_in(part(row, path));
    return x ? value(*x) : value();
  };
}

/// "STATE_ACTIVE" becomes "ACTIVE".
grid::cell state_at(std::string path) {
  return [path = std::move(path)](const value& row) -> value {
    const auto& x = part(row, path);
    return x.is_string() ? shown(x, show_as::state, {}) : "";
  };
}

/// A list of texts, joined as words.
grid::cell words_at(std::string path) {
  return [path = std::move(path)](const value& row) -> value {
    std::string text;
    for (const auto& one : part(row, path))
      text += (text.empty() ? "" : " ") + one.get<std::string>();
    return text;
  };
}

grid::cell seconds_of_life(time_point now) {
  return [now](const value& row) -> value {
    auto time = [&](const char* key) -> std::optional<time_point> {
      const auto& x = part(row, key);
      return x.is_string() ? parse_rfc3339(x.get<std::string>()) : std::nullopt;
    };
    const auto began = time("startTime");
    if (!began)
      return nullptr;
    return std::chrono::duration<double>(time("endTime").value_or(now) - *began).count();
  };
}

bool is_map(const value& x) { return x.is_object() && !x.empty(); }

/// The flat names in a value: {"a": {"b": 1}} has "a.b".
void names_in(const value& x, const std::string& prefix, std::set<std::string>& names) {
  for (const auto& [key, inner] : x.items())
    if (is_map(inner))
      names_in(inner, prefix + key + ".", names);
    else
      names.insert(prefix + key);
}

/// The value with that flat name; its keys may hold dots.
const value* flat_part(const value& x, std::string_view name) {
  if (!x.is_object())
    return nullptr;
  if (auto found = x.find(std::string(name)); found != x.end())
    return &*found;
  for (auto dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
    if (auto found = x.find(std::string(name.substr(0, dot))); found != x.end())
      if (const auto* inner = flat_part(*found, name.substr(dot + 1)))
        return inner;
  return nullptr;
}

/// A value of a report or configuration; lists and maps become JSON.
value cell_of(const value& x) { return x.is_structured() ? value(to_json(x)) : x; }

bool busy(const value& slot) { return !part(slot, "container").is_null(); }

value standing_of_agent(const value& agent) {
  const auto state = shown(part(agent, "state"), show_as::state, {});
  if (part(agent, "draining") == value(true) || state == "draining")
    return "DRAINING";
  if (part(agent, "enabled") != value(true))
    return "DISABLED";
  std::string upper = state;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

/// What would free slots for a run that waits: allocations, and when, where that is known.
value would_free(const value& row) {
  std::string text;
  for (const auto& one : part(row, "explain.wouldFree")) {
    const auto slots = number_in(part(one, "slots")).value_or(0);
    const auto& of = part(one, "allocation"); // null: one that the caller may not see
    const auto& heir = part(one, "preemptedFor");
    text += (text.empty() ? "" : "; ") + (of.is_string() ? of.get<std::string>() : "another run") + " (" +
            number_text(slots) + (slots == 1 ? " slot on " : " slots on ") +
            shown(part(one, "agents"), show_as::plain, {}) + ") ";
    const auto ends = number_in(part(one, "expectedSeconds"));
    if (part(one, "stopping") == true)
      text += "is being preempted" + (heir.is_string() ? " for " + heir.get<std::string>() : "");
    else
      text += (part(one, "how") == "preempted" ? "could be preempted" : "ends") +
              (ends ? " in about " + span_text(*ends) : std::string());
  }
  return text;
}

} // namespace

grid experiment_grid(time_point now) {
  return {{{"id", at("id")},
           {"name", at("name")},
           {"best", number_at("bestTrialSearcherMetric")},
           {"state", state_at("state")},
           {"progress", at("progress")},
           {"trials", at("numTrials")},
           {"spark", number_at("bestTrialSearcherMetric")},
           {"owner", at("username")},
           {"started", at("startTime")},
           {"duration", seconds_of_life(now)},
           {"metric",
            [](const value& row) -> value {
              const auto& one = part(row, "searcherMetric");
              if (one.is_string() && !one.get_ref<const std::string&>().empty())
                return one;
              std::string several;
              for (const auto& name : part(row, "config.searcher.metrics"))
                several += (several.empty() ? "" : " ") + shown(name, show_as::plain, {});
              return several;
            }},
           {"searcher", at("searcherType")}},
          {"id", "name"}};
}

grid trial_grid(const value& rows, const std::vector<std::string>& metrics, time_point now) {
  grid all{{{"id", at("id")},
            {"best", number_at("best.metric")},
            {"state", state_at("state")},
            {"latest", number_at("latest.metric")},
            {"steps", at("totalBatches")},
            {"restarts", at("restarts")},
            {"agent", words_at("agents")},
            {"started", at("startTime")},
            {"duration", seconds_of_life(now)},
            {"why",
             [](const value& row) {
               const auto& stop = part(row, "stop.why");
               return stop.is_null() ? part(row, "why") : stop;
             }}},
           {"id"}};
  std::set<std::string> hparams;
  for (const auto& row : rows)
    names_in(part(row, "hparams"), "", hparams);
  for (const auto& name : hparams)
    all.columns.emplace("hp." + name, [name](const value& row) {
      const auto* x = flat_part(part(row, "hparams"), name);
      if (x && x->is_null()) // null is one of its values
        return value("null");
      return x ? cell_of(*x) : value();
    });
  for (const auto& name : metrics)
    for (const char* how : {"last", "min", "max"})
      all.columns.emplace("m." + name + (how == std::string("last") ? "" : std::string(".") + how),
                          [name, how](const value& row) -> value {
                            const auto& known = part(row, "metrics");
                            if (!known.is_object() || !known.contains(name))
                              return nullptr;
                            const auto x = number_in(part(known.at(name), how));
                            return x ? value(*x) : value();
                          });
  return all;
}

std::vector<std::string> metrics_named(const std::vector<std::string>& keys,
                                       const std::vector<std::string>& known) {
  std::set<std::string> all;
  for (const auto& key : keys) {
    if (!key.starts_with("m."))
      continue;
    const auto whole = key.substr(2);
    auto bare = whole;
    for (const char* how : {".last", ".min", ".max"})
      if (whole.ends_with(how))
        bare = whole.substr(0, whole.rfind('.'));
    for (const auto& one : {whole, bare})
      if (std::find(known.begin(), known.end(), one) != known.end())
        all.insert(one);
  }
  return {all.begin(), all.end()};
}

grid checkpoint_grid() {
  return {{{"uuid", at("uuid")},
           {"metric", number_at("training.searcherMetric")},
           {"trial", at("trialId")},
           {"step", at("metadata.steps_completed")},
           {"size",
            [](const value& row) -> value {
              double bytes = 0;
              for (const auto& one : part(row, "resources"))
                bytes += one.is_string() ? std::strtod(one.get<std::string>().c_str(), nullptr)
                                         : number_in(one).value_or(0);
              return bytes;
            }},
           {"state", state_at("state")},
           {"at", at("reportTime")},
           {"download", [](const value& row) -> value { return part(row, "resources").size(); }}},
          {"uuid"}};
}

grid report_grid(const value& rows) {
  grid all{{{"row", at("row")},
            {"group", at("group")},
            {"steps", at("totalBatches")},
            {"run", at("trialRunId")},
            {"at", at("endTime")},
            {"archived", [](const value& row) { return value(part(row, "archived") == true ? "yes" : ""); }}},
           {"group"}};
  const auto fixed = all.columns;
  std::map<std::string, bool> numeric; // whether all its values are numbers
  for (const auto& row : rows)
    for (const auto& [name, x] : part(row, "metrics").items()) {
      auto& all_numbers = numeric.emplace(name, true).first->second;
      all_numbers = all_numbers && number_in(x).has_value();
    }
  for (const auto& [name, all_numbers] : numeric)
    all.columns.emplace(fixed.contains(name) ? "m." + name : name,
                        [name, all_numbers](const value& row) -> value {
                          const auto& metrics = part(row, "metrics");
                          const auto found = metrics.find(name);
                          if (found == metrics.end())
                            return nullptr;
                          const auto x = number_in(*found);
                          return !all_numbers ? value(to_json(*found)) : x ? value(*x) : value();
                        });
  return all;
}

grid agent_grid() {
  return {{{"id", at("id")},
           {"state", standing_of_agent},
           {"slots", [](const value& row) -> value { return part(row, "slots").size(); }},
           {"used",
            [](const value& row) -> value {
              const auto& slots = part(row, "slots");
              return std::count_if(slots.begin(), slots.end(), busy);
            }},
           {"pool", words_at("resourcePools")},
           {"host", words_at("addresses")},
           {"version", at("version")},
           {"registered", at("registeredTime")}},
          {"id", "host"}};
}

grid queue_grid() {
  return {{{"order", at("order")},
           {"id",
            [](const value& row) {
              const auto& trial = part(row, "trial");
              return number_in(trial).value_or(0) > 0 ? trial : part(row, "allocation");
            }},
           {"slots", at("slots")},
           {"pool", at("pool")},
           {"priority", at("priority")},
           {"user", at("user")},
           {"since", at("since")},
           {"why", at("explain.reason.text")},
           {"free", would_free}},
          {"id", "pool"}};
}

grid fact_grid() {
  return {{{"sequence", at("sequence")},
           {"at", at("at")},
           {"type", at("type")},
           {"entity", at("entity")},
           {"by",
            [](const value& row) {
              const auto& by = part(row, "fields.by");
              return by.is_string() ? by : value("");
            }},
           {"experiment", at("experiment")},
           {"fields", [](const value& row) { return value(to_json(part(row, "fields"))); }}},
          {"type", "entity"}};
}

grid desk_grid() {
  return {{{"at", at("at")},
           {"kind", at("kind")},
           {"user", at("user")},
           {"actor", at("actor")},
           {"what", at("what")}},
          {"actor", "what", "user"}};
}

} // namespace troupe::cli

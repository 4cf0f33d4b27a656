// What is done about logs, about trials that do not improve, and about old data.

#include "model/config/shapes.hpp"

#include <set>

namespace troupe::config {
namespace {

bool has(const node& x, std::string_view name) { return x.find(name) != nullptr; }

bool names_itself(const node& x) { return has(x, "name") || (has(x, "pattern") && has(x, "action")); }

bool names_differ(const node& x) {
  std::set<std::string_view> names;
  for (const auto& policy : x.items)
    if (const auto* name = policy.find("name"); name && name->is(kind::string))
      if (!names.insert(name->text).second)
        return false;
  return true;
}

/// Reads {type: cancel_retries}, the old form of cancel_retries.
void plain_action(value& x) {
  if (x.is_object() && x.contains("type") && x["type"].is_string()) {
    value type = x["type"];
    x = std::move(type);
  }
}

void add_log_policies(schema_table& t) {
  std::vector<value> actions{"cancel_retries", "exclude_node"};
  std::vector<shape_ref> legacy;
  for (auto [schema, type] :
       {std::pair{"cancel-retries", "cancel_retries"}, {"exclude-node", "exclude_node"}}) {
    auto& s = t.make(std::string("log-legacy-action-") + schema);
    s.kinds = map_bit;
    s.doc = "The old form of " + std::string(type) + ".";
    s.keys = {required("type", one_of(t, {type}), "The action.")};
    legacy.push_back(&s);
  }
  auto& map = t.make();
  map.kinds = map_bit;
  map.discriminator = "type";
  map.members = {{"cancel_retries", legacy[0]}, {"exclude_node", legacy[1]}};
  map.keys = {required("type", one_of(t, actions), "The action.")};
  auto& action = t.make("log-action");
  action.kinds = map_bit | text_bit;
  action.alternatives = {&map, one_of(t, actions)};
  action.shim = plain_action;
  action.doc = "cancel_retries: no restart after the next failure; exclude_node: never again on this node.";

  auto& policy = t.make("log-policy");
  policy.kinds = map_bit;
  policy.doc = "Action when a line of a task's log matches.";
  policy.keys = {
    quiet(unset("name", text(t),
                "Name that is shown with a match; a policy of the same name replaces this one.")),
    quiet(unset("pattern", text(t), "A regular expression (RE2); null disables the policy of this name.")),
    quiet(unset("action", &action, action.doc))};
  policy.rules.push_back({"a policy needs its name, and a pattern unless it disables another",
                          names_itself,
                          "",
                          need::always,
                          {{"anyOf", {{{"required", {"name"}}}, {{"required", {"pattern", "action"}}}}}},
                          "add name"});
  auto& policies = t.make("log-policies");
  policies.kinds = list_bit;
  policies.items = &policy;
  policies.doc = "Actions when lines of a task's log match.";
  policies.merge = merging::by_name;
  policies.standard = {{{"name", "CUDA OOM"}, {"pattern", ".*CUDA out of memory.*"}},
                       {{"name", "ECC Error"}, {"pattern", ".*uncorrectable ECC error encountered.*"}}};
  policies.rules.push_back({"two log policies have the same name", names_differ, "", need::always, nullptr,
                            "give each policy a name of its own"});
}

bool has_end(const node& x) {
  for (const auto& e : x.entries)
    if ((e.key == "lower" || e.key == "upper") && !e.what.is(kind::null))
      return true;
  return false;
}

void add_early_stopping(schema_table& t) {
  auto length = number(t, {.least = 0});
  auto count = integer(t, {.least = 1});
  auto warmup = native(
    unset("warmup", length, "Length during which no trial is stopped (default: 0).", "of time_metric"));
  auto& patience = t.make();
  patience.kinds = map_bit;
  patience.doc = "Stops a trial whose metric does not improve.";
  patience.keys = {
    native(unset("reports", count,
                 "Number of validations without an improvement after which a trial is stopped (default: 5).",
                 "validations")),
    native(unset("min_delta", length,
                 "Smallest change of the metric that counts as an improvement (default: 0)."))};
  auto& threshold = t.make();
  threshold.kinds = map_bit;
  threshold.doc = "Stops a trial whose metric leaves a range or is not a number.";
  threshold.keys = {native(unset("lower", number(t), "Smallest allowed value; a trial below it is stopped.")),
                    native(unset("upper", number(t), "Largest allowed value; a trial above it is stopped.")),
                    warmup};
  threshold.rules.push_back({"a threshold needs lower, upper or both",
                             has_end,
                             "",
                             need::always,
                             {{"minProperties", 1}},
                             "add lower or upper"});
  auto& median = t.make();
  median.kinds = map_bit;
  median.doc = "Stops a trial that is worse than the median of the others at the same point.";
  median.keys = {
    warmup,
    native(unset("min_trials", count,
                 "Number of trials that must have reached the same point before one is stopped (default: 5).",
                 "trials")),
    native(unset("interval", number(t, {.least = 1e-9}),
                 "Length between two comparisons of trials (default: 1).", "of time_metric"))};
  auto& all = t.make("early-stopping");
  all.kinds = map_bit;
  all.merge = merging::by_key;
  all.doc = "Policies that stop a trial, with any searcher; each decision is kept with its reason.";
  all.keys = {native(unset("patience", &patience, patience.doc)),
              native(unset("threshold", &threshold, threshold.doc)),
              native(unset("median", &median, median.doc)),
              native(unset("time_metric", text(t),
                           "The metric that tells how far a trial is, where the searcher has no such key.")),
              native(unset("max_time", length, "Stops a trial at this length.", "of time_metric"))};
}

} // namespace

void add_policies(schema_table& t) {
  add_log_policies(t);
  add_early_stopping(t);
  auto& retention = t.make("retention-policy");
  retention.kinds = map_bit;
  retention.doc = "Time for which data is kept.";
  retention.merge = merging::by_key;
  retention.keys = {to_run(unset("log_retention_days", integer(t, {.least = -1, .most = 32767}),
                                 "Days for which logs are kept; -1: for ever.", "days"))};
}

} // namespace troupe::config

#include "actors/catalogue/house_rules.hpp"

#include "actors/journal/log_patterns.hpp"

#include "actors/catalogue/webhook_targets.hpp"
#include "actors/catalogue/wishes.hpp"
#include "model/chosen_name.hpp"
#include "model/config/check.hpp"
#include "model/config/experiment_config.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <tuple>

namespace troupe {
namespace {

constexpr std::size_t most_text = 4096;

const value* member(const value& of, const char* key) {
  if (!of.is_object())
    return nullptr;
  auto at = of.find(key);
  return at == of.end() || at->is_null() ? nullptr : &*at;
}

result<void> only_keys(const value& of, std::initializer_list<const char*> known, const std::string& where) {
  if (!of.is_object())
    return error{errc::invalid, where + ": has to be an object"};
  for (const auto& [key, x] : of.items())
    if (std::none_of(known.begin(), known.end(), [&, &name = key](const char* k) { return name == k; }))
      return error{errc::invalid, where + ": unknown field \"" + key + "\""};
  return {};
}

result<void> check_document(const std::string& kind, const value& policies) {
  const std::string where =
    std::string("invalid ") + (kind == "NTSC" ? "ntsc" : "experiment") + " config policy";
  if (auto fine = only_keys(policies, {"invariant_config", "constraints"}, where); !fine)
    return fine;
  if (const auto* invariant = member(policies, "invariant_config")) {
    if (kind == "NTSC")
      return error{errc::invalid, where + ": invariant_config of NTSC: not supported"};
    if (!invariant->is_object())
      return error{errc::invalid, where + ": invariant_config: has to be an object"};
    const auto text = to_json(*invariant);
    const auto checked = config::check_as("experiment", text, "invariant_config", config::level::sane);
    if (!checked.ok()) // otherwise every submission would be refused
      return error{errc::invalid, where + ": " + config::render(checked.faults.front(), text)};
    // Only faults that no submission can mend are refused; a missing key may come with the submission.
    if (const auto* searcher = member(*invariant, "searcher"))
      if (member(*searcher, "source_trial_id") && member(*searcher, "source_checkpoint_uuid"))
        return error{errc::invalid, where + ": invariant_config.searcher: source_trial_id and "
                                            "source_checkpoint_uuid exclude each other"};
    if (const auto* entrypoint = member(*invariant, "entrypoint");
        entrypoint && config::names_no_program(*entrypoint))
      return error{errc::invalid, where + ": invariant_config.entrypoint: " + config::no_program};
    if (const auto* policies_for_logs = member(*invariant, "log_policies"))
      if (auto fine = check_log_policies(*policies_for_logs); !fine)
        return error{errc::invalid, where + ": invariant_config." + fine.error().what};
    const auto* resources = member(*invariant, "resources");
    for (const auto& [key, there, why] :
         {std::tuple{"workspace", member(*invariant, "workspace"),
                     "an experiment is where it was submitted to"},
          {"project", member(*invariant, "project"), "an experiment is where it was submitted to"},
          {"resources.slots", resources ? member(*resources, "slots") : nullptr,
           "it is for tasks that are not experiments; use resources.slots_per_trial"}})
      if (there)
        return error{errc::invalid, where + ": invariant_config." + key + ": cannot be fixed: " + why};
  }
  const auto* constraints = member(policies, "constraints");
  if (!constraints)
    return {};
  if (auto fine = only_keys(*constraints, {"resources", "priority_limit"}, where + ": constraints"); !fine)
    return fine;
  if (const auto* limit = member(*constraints, "priority_limit"))
    if (!limit->is_number_integer() || limit->get<std::int64_t>() < 1 || limit->get<std::int64_t>() > 99)
      return error{errc::invalid, where + ": constraints.priority_limit: has to be 1 to 99"};
  const auto* resources = member(*constraints, "resources");
  if (!resources)
    return {};
  if (auto fine = only_keys(*resources, {"max_slots"}, where + ": constraints.resources"); !fine)
    return fine;
  if (const auto* most = member(*resources, "max_slots"))
    if (!most->is_number_integer() || most->get<std::int64_t>() < 0)
      return error{errc::invalid, where + ": constraints.resources.max_slots: has to be 0 or more"};
  return {};
}

/// The sentences for `priority` and `max_slots` are those of Determined.
std::string fixed_by_policy(const std::string& key) {
  if (key == "priority")
    return "priority set by invariant config: priority cannot be modified";
  if (key == "max_slots")
    return "max slots is already set in an invariant config policy";
  return key + " is set by a config policy: it cannot be changed";
}

value merged(const value& below, const value& above);

/// Merges both configurations as layers: the values of the cluster win, and lists that append (labels,
/// mounts, variables) have the entries of both.
value both_invariants(const value& cluster, const value& workspace) {
  auto both = config::merge_layers("experiment", to_json(cluster), "config policies of the cluster",
                                   to_json(workspace), "config policies of the workspace");
  return both.ok() ? std::move(both.config) : merged(workspace, cluster);
}

value merged(const value& below, const value& above) {
  if (!below.is_object() || !above.is_object())
    return above;
  auto out = below;
  for (const auto& [key, x] : above.items())
    out[key] = out.contains(key) ? merged(out[key], x) : x;
  return out;
}

/// Whether the host of an address is an IPv6 address in brackets: `[::1]`, or `[::1]:8080`.
bool is_address_in_brackets(const std::string& host) {
  const auto end = host.find(']');
  in6_addr ignored;
  return host.starts_with('[') && end != host.npos && (end + 1 == host.size() || host[end + 1] == ':') &&
         ::inet_pton(AF_INET6, host.substr(1, end - 1).c_str(), &ignored) == 1;
}

result<void> check_url(const std::string& url) {
  const auto scheme = case_folded(url.substr(0, url.find(':')));
  const bool web = (scheme == "http" || scheme == "https") && url.substr(scheme.size()).starts_with("://");
  const auto from = url.find("//") + 2;
  // An `@` is allowed in the path, but not in the host, where a user name would stand before it.
  const auto host = web ? url.substr(from, url.find_first_of("/?#", from) - from) : std::string();
  if (host.find('@') != host.npos)
    return error{errc::invalid, "valid url required: a name or a password before the host cannot be used\n"
                                "hint: remove what stands before the '@'"};
  const bool bad =
    std::any_of(url.begin(), url.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
  // Behind the first colon that does not belong to an IPv6 address stands the port.
  const auto colon = host.find(':', host.starts_with('[') ? std::min(host.find(']'), host.size()) : 0);
  if (colon != host.npos) {
    const auto port = host.substr(colon + 1);
    const bool digits =
      !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
    if (const int number = digits ? std::stoi(port) : 0; number == 0 || number > 65'535)
      return error{errc::invalid, "valid url required: '" + port + "' is not a port"};
  }
  const bool brackets = host.find_first_of("[]") != host.npos;
  if (host.empty() || colon == 0 || host.find('\\') != host.npos ||
      (brackets && !is_address_in_brackets(host)) || url.size() > 2048 || bad)
    return error{errc::invalid, "valid url required: http or https, with a host"};
  const auto name = brackets ? host.substr(1, host.find(']') - 1) : host.substr(0, colon);
  if (auto why = never_a_target(name); !why.empty())
    return error{errc::invalid, "valid url required: " + why};
  return {};
}

result<void> check_trigger(const value& one, bool specific) {
  const auto* type = member(one, "type");
  const auto* condition = member(one, "condition");
  if (!type || !type->is_string())
    return error{errc::invalid, "a trigger needs a type: EXPERIMENT_STATE_CHANGE, TASK_LOG or CUSTOM"};
  if (*type == "CUSTOM") {
    if (!specific)
      return error{errc::invalid, "custom triggers need the mode WEBHOOK_MODE_SPECIFIC"};
    return condition ? only_keys(*condition, {}, "the condition of a custom trigger") : result<void>{};
  }
  if (*type == "EXPERIMENT_STATE_CHANGE") {
    if (condition)
      if (auto fine = only_keys(*condition, {"state"}, "the condition of a trigger on states"); !fine)
        return fine;
    const auto* state = condition ? member(*condition, "state") : nullptr;
    for (const char* known : {"COMPLETED", "ERROR", "CANCELED"})
      if (state && *state == known)
        return {};
    return error{errc::invalid, "a trigger on states has one of COMPLETED, ERROR, CANCELED"};
  }
  if (*type == "TASK_LOG") {
    const auto* regex = condition ? member(*condition, "regex") : nullptr;
    if (!regex || !regex->is_string() || regex->get_ref<const std::string&>().empty() ||
        condition->size() != 1)
      return error{errc::invalid, "a trigger on log lines has the condition {regex: TEXT}, and nothing else"};
    return check_pattern(regex->get<std::string>());
  }
  return error{errc::invalid, "a trigger has one of the types EXPERIMENT_STATE_CHANGE, TASK_LOG, CUSTOM"};
}

} // namespace

result<void> check_constraints(const value& config, const value& constraints) {
  const auto* resources = member(config, "resources");
  const auto* limits = member(constraints, "resources");
  const auto* most = limits ? member(*limits, "max_slots") : nullptr;
  const auto whole = [&](const char* key) -> std::optional<std::int64_t> {
    const auto* x = resources ? member(*resources, key) : nullptr;
    if (x && x->is_object()) // slots_per_trial {min, max}: a gang may get `max` slots
      x = member(*x, "max");
    return x && x->is_number_integer() ? std::optional{x->get<std::int64_t>()} : std::nullopt;
  };
  if (most && most->is_number_integer())
    for (auto [key, name] : {std::pair{"slots_per_trial", "resources.slots"},
                             {"slots", "resources.slots"},
                             {"max_slots", "resources.max_slots"}})
      if (auto asked = whole(key); asked && *asked > most->get<std::int64_t>())
        return error{errc::invalid, std::string("requested ") + name + " [" + std::to_string(*asked) +
                                      "] exceeds limit set by admin [" + most->dump() +
                                      "]: submitted workload failed a resource constraint"};
  const auto* limit = member(constraints, "priority_limit");
  if (auto asked = whole("priority");
      asked && limit && limit->is_number_integer() && *asked < limit->get<std::int64_t>())
    return error{errc::invalid, "requested priority [" + std::to_string(*asked) +
                                  "] exceeds limit set by admin [" + limit->dump() +
                                  "]: submitted workload failed priority constraint"};
  return {};
}

rule_fact house_rules::note(rule_fact fact) {
  replay(fact);
  return fact;
}

const value* house_rules::policies_of(workspace_id in, const std::string& kind) const {
  auto at = policies_.find({in, kind});
  return at == policies_.end() ? nullptr : &at->second.policies;
}

house_rules::decided house_rules::set(const commands::policy_set& asked, const std::string& by,
                                      time_point now) {
  auto wanted = asked;
  const auto* known = policies_of(wanted.workspace, wanted.kind);
  if (!wanted.policies.is_null()) {
    if (wanted.policies.dump().size() > 64 << 10)
      return error{errc::invalid, "config policies have at most 64 KiB"};
    if (auto fine = check_document(wanted.kind, wanted.policies); !fine)
      return fine.error();
    const auto* invariant = member(wanted.policies, "invariant_config");
    for (const auto* limits : {&asked.policies, policies_of({}, wanted.kind)})
      if (const auto* constraints = limits && invariant ? member(*limits, "constraints") : nullptr)
        if (auto fine = check_constraints(*invariant, *constraints); !fine)
          return fine.error();
  }
  // Secrets are restored after the checks, whose faults show parts of the text.
  if (wanted.policies.contains("invariant_config")) {
    auto& invariant = wanted.policies["invariant_config"];
    config::restore_secrets(invariant, known ? known->value("invariant_config", value()) : value());
    if (auto fine = config::check_no_mask(invariant, "invariant_config"); !fine)
      return fine.error();
  }
  if (known ? *known == wanted.policies : wanted.policies.is_null())
    return std::vector<rule_fact>{};
  return std::vector{note(policy_changed{now, by, wanted.workspace, wanted.kind, wanted.policies})};
}

value house_rules::invariant_of(workspace_id in, const char* kind) const {
  value out;
  for (const auto scope : {in, workspace_id{}})
    if (const auto* policies = policies_of(scope, kind))
      if (const auto* invariant = member(*policies, "invariant_config"))
        out = out.is_null() ? *invariant : both_invariants(*invariant, out);
  return out;
}

value house_rules::constraints_of(workspace_id in, const char* kind) const {
  value out;
  for (const auto scope : {in, workspace_id{}})
    if (const auto* policies = policies_of(scope, kind))
      if (const auto* constraints = member(*policies, "constraints"))
        out = out.is_null() ? *constraints : merged(out, *constraints);
  return out;
}

result<void> house_rules::check_change(workspace_id in, const commands::experiment_set& wanted) const {
  value resources = value::object();
  if (wanted.priority)
    resources["priority"] = *wanted.priority;
  if (wanted.max_slots && *wanted.max_slots >= 0)
    resources["max_slots"] = *wanted.max_slots;
  auto wishes = resources;
  if (wanted.max_slots == -1)
    wishes["max_slots"] = nullptr; // no limit
  if (wanted.weight)
    wishes["weight"] = *wanted.weight;
  if (wanted.pool)
    wishes["resource_pool"] = *wanted.pool;
  const auto invariant = invariant_of(in);
  if (const auto* fixed = member(invariant, "resources"))
    for (const auto& [key, wish] : wishes.items())
      if (const auto* by_policy = member(*fixed, key.c_str()); by_policy && wish != *by_policy)
        return error{errc::invalid, fixed_by_policy(key) + "\nhint: it is " + by_policy->dump()};
  const auto constraints = constraints_of(in);
  if (const auto* limits = member(constraints, "resources");
      limits && member(*limits, "max_slots") && wanted.max_slots == -1)
    return error{errc::invalid, "max_slots: any number exceeds limit set by admin [" +
                                  member(*limits, "max_slots")->dump() + "]"};
  return check_constraints({{"resources", std::move(resources)}}, constraints);
}

house_rules::decided house_rules::bind(const commands::pool_bind& wanted, const std::string& by,
                                       time_point now) {
  const auto now_bound = bound_to(wanted.pool);
  auto workspaces = wanted.workspaces;
  if (wanted.how != "all") {
    workspaces = now_bound;
    for (const auto id : wanted.workspaces) {
      std::erase(workspaces, id);
      if (wanted.how == "add")
        workspaces.push_back(id);
    }
  }
  std::sort(workspaces.begin(), workspaces.end());
  workspaces.erase(std::unique(workspaces.begin(), workspaces.end()), workspaces.end());
  if (workspaces.size() > 10'000)
    return error{errc::invalid, "a pool is bound to at most 10000 workspaces"};
  if (workspaces == now_bound)
    return std::vector<rule_fact>{};
  return std::vector{note(pool_bound{now, by, wanted.pool, std::move(workspaces)})};
}

std::vector<workspace_id> house_rules::bound_to(const std::string& pool) const {
  auto at = bindings_.find(pool);
  return at == bindings_.end() ? std::vector<workspace_id>{} : at->second.workspaces;
}

house_rules::decided house_rules::make(const commands::webhook_create& wanted, const std::string& by,
                                       time_point now) {
  if (auto fine = check_url(wanted.url); !fine)
    return fine.error();
  if (!wanted.triggers.is_array() || wanted.triggers.empty())
    return error{errc::invalid, "at least one trigger required"};
  if (wanted.triggers.size() > 100 || wanted.triggers.dump().size() > 64 << 10)
    return error{errc::invalid, "a webhook has at most 100 triggers"};
  if (!wanted.name.empty())
    if (auto fine = check_chosen_name("the name of a webhook", wanted.name); !fine)
      return fine.error();
  const auto folded = case_folded(wanted.name);
  for (const auto& one : wanted.triggers)
    if (auto fine = check_trigger(one, wanted.specific); !fine)
      return fine.error();
  for (const auto& [id, other] : webhooks_)
    if (!wanted.name.empty() && case_folded(other.name) == folded && other.workspace == wanted.workspace)
      return error{errc::conflict, "a webhook named '" + wanted.name + "' exists already"};
  webhook_changed x;
  x.at = now;
  x.by = by;
  x.id = {newest_webhook_.value + 1};
  x.name = wanted.name;
  x.url = wanted.url;
  x.slack = wanted.slack;
  x.workspace = wanted.workspace;
  x.specific = wanted.specific;
  x.triggers = wanted.triggers;
  return std::vector{note(std::move(x))};
}

house_rules::decided house_rules::change(const commands::webhook_change& wanted, const std::string& by,
                                         time_point now) {
  auto at = webhooks_.find(wanted.id);
  if (at == webhooks_.end())
    return error{errc::not_found, "webhook '" + to_string(wanted.id) + "' not found"};
  if (auto fine = check_url(wanted.url); !fine)
    return fine.error();
  auto x = at->second;
  x.url = wanted.url;
  return differs(x, at->second, by, now) ? std::vector{note(std::move(x))} : std::vector<rule_fact>{};
}

house_rules::decided house_rules::remove(const commands::webhook_remove& wanted, const std::string& by,
                                         time_point now) {
  auto at = webhooks_.find(wanted.id);
  if (at == webhooks_.end())
    return error{errc::not_found, "webhook '" + to_string(wanted.id) + "' not found"};
  auto x = at->second;
  x.at = now;
  x.by = by;
  x.deleted = true;
  return std::vector{note(std::move(x))};
}

house_rules::decided house_rules::say(const commands::cluster_message_set& wanted, const std::string& by,
                                      time_point now) {
  cluster_message_changed x;
  x.at = now;
  x.by = by;
  x.message = wanted.message;
  if (wanted.message.empty())
    return message_.message.empty() ? std::vector<rule_fact>{} : std::vector{note(std::move(x))};
  const auto text = code_points(wanted.message);
  if (!text || text->size() > 250)
    return error{errc::invalid, "message must be at most 250 characters"};
  if (is_blank(wanted.message))
    return error{errc::invalid, "message must not be blank"};
  if (std::any_of(text->begin(), text->end(),
                  [](char32_t c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; }))
    return error{errc::invalid, "message must have no control characters but line ends and tabs"};
  const auto time = [](const std::string& text, time_point otherwise) -> result<time_point> {
    if (text.empty())
      return otherwise;
    auto at = from_rfc3339(text);
    return at ? result<time_point>(*at)
              : error{errc::invalid, "'" + text.substr(0, 50) + "' is not a time as RFC 3339 writes it"};
  };
  auto begins = time(wanted.from, now), ends = time(wanted.until, {});
  if (!begins)
    return begins.error();
  if (!ends)
    return ends.error();
  if (!wanted.until.empty() && *ends <= *begins)
    return error{errc::invalid, "end time must be after start time"};
  if (!wanted.until.empty() && *ends <= now)
    return error{errc::invalid, "end time must be after current time"};
  x.from = wanted.from.empty() ? to_rfc3339(now) : wanted.from;
  x.until = wanted.until;
  x.begins = *begins;
  x.ends = *ends;
  return std::vector{note(std::move(x))};
}

house_rules::decided house_rules::retain(const commands::log_retain& wanted, const std::string& by,
                                         time_point now) {
  if (wanted.days < -1 || wanted.days > 32767)
    return error{errc::invalid, "the number of days has to be -1 (for ever) to 32767"};
  return std::vector{
    note(log_retention_changed{now, by, wanted.experiment, wanted.trial, static_cast<int>(wanted.days)})};
}

house_rules::decided house_rules::declare(const commands::trial_source_declare& wanted, const std::string& by,
                                          time_point now) {
  trial_source_declared x{
    now, by, wanted.trial, wanted.checkpoint, wanted.kind, wanted.description, wanted.model, wanted.version};
  if (auto at = sources_.find({x.checkpoint, x.trial}); at != sources_.end() && same(x, at->second))
    return std::vector<rule_fact>{};
  return std::vector{note(std::move(x))};
}

void house_rules::replay(const rule_fact& fact) {
  std::visit(overloaded{
               [this](const policy_changed& f) {
                 if (f.policies.is_null())
                   policies_.erase({f.workspace, f.kind});
                 else
                   policies_[{f.workspace, f.kind}] = f;
               },
               [this](const pool_bound& f) { bindings_[f.pool] = f; },
               [this](const webhook_changed& f) {
                 newest_webhook_ = std::max(newest_webhook_, f.id);
                 if (f.deleted)
                   webhooks_.erase(f.id);
                 else
                   webhooks_[f.id] = f;
               },
               [](const webhook_event&) {},
               [this](const cluster_message_changed& f) { message_ = f; },
               [this](const log_retention_changed& f) {
                 retentions_[{f.experiment, f.trial}] = f;
               },
               [this](const trial_source_declared& f) {
                 sources_[{f.checkpoint, f.trial}] = f;
               },
             },
             fact);
}

void house_rules::replay(const cluster_fact& fact) {
  std::visit(
    [this](const auto& f) {
      if constexpr (std::is_constructible_v<rule_fact, decltype(f)>)
        replay(rule_fact{f});
    },
    fact);
}

std::string house_rules::snapshot() const {
  std::vector<std::string> parts{pack(std::tuple{bindings_, webhooks_, newest_webhook_, message_})};
  for (const auto& [key, x] : policies_)
    parts.push_back(pack(x));
  for (const auto& [key, x] : retentions_)
    parts.push_back(pack(x));
  for (const auto& [key, x] : sources_)
    parts.push_back(pack(x));
  return pack(parts);
}

value house_rules::describe() const {
  return {{"policies", policies_.size()}, {"webhooks", webhooks_.size()}, {"message", message_.message}};
}

} // namespace troupe

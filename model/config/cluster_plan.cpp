// The steps from the configuration in force to another one, as people read them.

#include "model/config/cluster_config.hpp"
#include "model/config/cluster_file.hpp"

#include <algorithm>
#include <set>

namespace troupe::config {
namespace {

const value& part(const value& x, const std::string& key) {
  static const value none;
  if (!x.is_object())
    return none;
  auto it = x.find(key);
  return it == x.end() ? none : *it;
}

std::string whole(const value& x) {
  return x.is_string() ? x.get<std::string>() : x.is_null() ? std::string("none") : x.dump();
}

std::string cut(std::string text) {
  if (text.size() > 60) {
    text.resize(57);
    text += "...";
  }
  return text;
}

std::string shown(const value& x) { return cut(whole(x)); }

/// Both values, from a little before the first place where they differ.
std::string shown_change(const value& live, const value& wanted) {
  const auto before = whole(live), after = whole(wanted);
  auto from = static_cast<std::size_t>(
    std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first - before.begin());
  from = from > 40 ? from - 20 : 0;
  while (from > 0 && (static_cast<unsigned char>(before[from]) & 0xC0) == 0x80)
    --from; // not in the middle of a character
  const auto part = [&](const std::string& text) { return cut(from > 0 ? "..." + text.substr(from) : text); };
  return part(before) + " -> " + part(after);
}

bool has_maps(const value& list) {
  return list.is_array() &&
         std::all_of(list.begin(), list.end(), [](const value& x) { return x.is_object(); });
}

/// The keys of a map of such a list that are given.
std::string given(value map) {
  for (auto it = map.begin(); it != map.end();)
    it = it->is_null() ? map.erase(it) : std::next(it);
  return map.dump();
}

/// A map by name of a list of things with names.
value by_name(const value& list) {
  value out = value::object();
  if (list.is_array())
    for (const auto& one : list)
      if (auto name = part(one, "name"); name.is_string())
        out[name.get<std::string>()] = one;
  return out;
}

class planner {
public:
  explicit planner(cluster_plan& out) : out_(out) {}

  void things(const std::string& what, const value& live, const value& wanted,
              const std::string& changes_are) {
    for (const auto& [name, one] : wanted.items()) {
      if (!live.is_object() || !live.contains(name))
        say('+', what + "." + name, meaning(what, one));
      else
        fields(what + "." + name, live[name], one,
               what == "nodes" && part(one, "manual") == true ? "counts when its agent registers"
                                                              : changes_are);
    }
    if (live.is_object())
      for (const auto& [name, one] : live.items())
        if (!wanted.contains(name))
          say('-', what + "." + name,
              what == "nodes"   ? "its agent is stopped"
              : what == "users" ? "may not come in any more"
                                : "");
  }

  void fields(const std::string& at, const value& live, const value& wanted, const std::string& changes_are) {
    if (live == wanted)
      return;
    const bool moves = at.starts_with("nodes.") && at.ends_with(".pool");
    const auto note = moves ? std::string("its agent moves once nothing is held on it") : changes_are;
    if (has_maps(live) && has_maps(wanted) && items(at, live, wanted))
      return;
    if (!live.is_object() || !wanted.is_object())
      return say(note.starts_with("needs") ? '!' : '~', at,
                 shown_change(live, wanted) + (note.empty() ? "" : "   " + note));
    std::set<std::string> keys;
    for (const auto* x : {&live, &wanted})
      for (const auto& [key, one] : x->items())
        if (key != "name")
          keys.insert(key);
    for (const auto& key : keys)
      fields(at + "." + key, part(live, key), part(wanted, key), changes_are);
  }

  /// Tells of each map that only one of these lists has. False where there is none, as only their order
  /// differs.
  bool items(const std::string& at, const value& live, const value& wanted) {
    const auto has = [](const value& list, const value& one) {
      return std::find(list.begin(), list.end(), one) != list.end();
    };
    bool any = false;
    for (const auto& one : live)
      if (!has(wanted, one) && (any = true))
        say('-', at, given(one));
    for (const auto& one : wanted)
      if (!has(live, one) && (any = true))
        say('+', at, given(one));
    return any;
  }

  void say(char sign, std::string what, std::string text = {}) {
    out_.changes.push_back({sign, std::move(what), std::move(text)});
  }

private:
  static std::string meaning(const std::string& what, const value& one) {
    if (what != "nodes")
      return "";
    const auto slots = part(one, "slots");
    auto text = slots.is_number() ? shown(slots) + " slots   " : std::string();
    if (part(one, "manual") == true)
      return text + "somebody starts its agent";
    return text + (part(one, "ssh").is_object() ? "starts an agent over ssh" : "starts an agent here");
  }

  cluster_plan& out_;
};

} // namespace

cluster_plan plan_cluster(const value& in_force, const value& to_be, const value& by_hand, bool prune) {
  cluster_plan out;
  auto live = printable_cluster(in_force);
  const auto wanted = printable_cluster(to_be); // secrets are neither shown nor compared
  if (live.is_null())                           // a cluster without a file is compared as an empty one
    live = {{"cluster", {{"name", "troupe"}}}, {"pools", {{"default", pool_without_file()}}}};
  planner plan(out);
  auto of_live = part(live, "cluster"), of_wanted = part(wanted, "cluster");
  for (const char* key :
       {"task_container_defaults", "log_retention", "feature_switches"}) { // these are read at each use
    plan.fields(std::string("cluster.") + key, part(of_live, key), part(of_wanted, key), "");
    for (auto* one : {&of_live, &of_wanted})
      if (one->is_object())
        one->erase(key);
  }
  plan.fields("cluster", of_live, of_wanted, "needs a restart of the master");
  plan.things("pools", part(live, "pools"), part(wanted, "pools"), "");
  plan.things("users", by_name(part(live, "users")), by_name(part(wanted, "users")), "");
  const auto named = by_name(part(wanted, "users")), before = by_name(part(live, "users"));
  if (const auto& users = part(by_hand, "users"); users.is_array())
    for (const auto& user : users)
      if (user.is_string() && !named.contains(user.get<std::string>()) &&
          !before.contains(user.get<std::string>()))
        plan.say(prune ? '-' : '=', "users." + user.get<std::string>(),
                 prune ? "may not come in any more" : "kept (not made by this file; --prune removes)");
  plan.things("storage", part(live, "storage"), part(wanted, "storage"), "");
  plan.fields("defaults", part(live, "defaults").is_null() ? value::object() : part(live, "defaults"),
              part(wanted, "defaults").is_null() ? value::object() : part(wanted, "defaults"), "");
  plan.things("nodes", by_name(part(live, "nodes")), by_name(part(wanted, "nodes")), "restarts its agent");
  const auto there = by_name(part(live, "experiments")), submitted = by_name(part(wanted, "experiments"));
  for (const auto& [name, one] : submitted.items())
    if (!there.contains(name))
      plan.say('+', "experiments." + name, "submitted");
  plan.fields("actors", part(live, "actors"), part(wanted, "actors"), "needs a restart of the master");
  return out;
}

int cluster_plan::counted() const {
  return static_cast<int>(
    std::count_if(changes.begin(), changes.end(), [](const auto& c) { return c.sign != '='; }));
}

std::string cluster_plan::text() const {
  std::size_t widest = 0;
  for (const auto& c : changes)
    widest = std::max(widest, c.what.size());
  std::string out;
  for (const auto& c : changes) {
    out += std::string("  ") + c.sign + " " + c.what;
    if (!c.text.empty())
      out += std::string(widest - c.what.size() + 2, ' ') + c.text;
    out += "\n";
  }
  return counted() == 0 ? out + "no changes\n" : out;
}

} // namespace troupe::config

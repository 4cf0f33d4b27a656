#include "actors/catalogue/people.hpp"

#include "model/chosen_name.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

constexpr std::size_t most_members = 10'000, most_settings = 1'000, most_text = 64 << 10;

error no_group(group_id id) { return {errc::not_found, "group '" + to_string(id) + "' not found"}; }

result<void> all_known(const std::vector<user_id>& users, const people::world& known) {
  for (const auto id : users)
    if (!known.user(id))
      return error{errc::not_found, "user '" + to_string(id) + "' not found"};
  return {};
}

void add(std::vector<user_id>& members, const std::vector<user_id>& more) {
  members.insert(members.end(), more.begin(), more.end());
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
}

} // namespace

bool of_workspaces(int role) { return role != 1 && role != 3 && role != 10; }

people_fact people::note(people_fact fact) {
  replay(fact);
  return fact;
}

result<void> people::check_name(const std::string& name, group_id of) const {
  if (auto fine = check_chosen_name("the name of a group", name); !fine)
    return fine;
  const auto folded = case_folded(name);
  if (folded.find("determinedpersonalgroup") != folded.npos)
    return error{errc::invalid, "group names with 'DeterminedPersonalGroup' are reserved"};
  for (const auto& [id, other] : groups_)
    if (id != of && case_folded(other.name) == folded)
      return error{errc::conflict, "a group named '" + name + "' exists already"};
  return {};
}

std::vector<roles_changed> people::given(int role) const {
  std::vector<roles_changed> out;
  for (auto at = roles_.lower_bound({role, {}, {}, {}}); at != roles_.end() && at->second.role == role; ++at)
    if (!at->second.workspace)
      out.push_back(at->second);
  return out;
}

bool people::may(user_id user, authority::permission what, workspace_id in) const {
  std::vector<roles_changed> roles;
  for (const auto& [key, one] : roles_)
    roles.push_back(one);
  std::vector<group_changed> groups;
  for (const auto& [id, one] : groups_)
    groups.push_back(one);
  return authority::grants::of(user, roles, groups).holds(what, in);
}

people::decided people::make(const commands::group_create& wanted, const world& known, const std::string& by,
                             time_point now) {
  group_changed x;
  x.name = wanted.name.value_or("");
  if (auto fine = check_name(x.name, {}); !fine)
    return fine.error();
  if (auto fine = all_known(wanted.add, known); !fine)
    return fine.error();
  if (wanted.add.size() > most_members)
    return error{errc::invalid, "a group has at most " + std::to_string(most_members) + " members"};
  x.at = now;
  x.by = by;
  x.id = {newest_group_.value + 1};
  add(x.members, wanted.add);
  return std::vector{note(std::move(x))};
}

people::decided people::change(const commands::group_change& wanted, const world& known,
                               const std::string& by, time_point now) {
  auto at = groups_.find(wanted.id);
  if (at == groups_.end())
    return no_group(wanted.id);
  auto x = at->second;
  if (wanted.name && !wanted.name->empty()) {
    if (auto fine = check_name(*wanted.name, wanted.id); !fine)
      return fine.error();
    x.name = *wanted.name;
  }
  if (auto fine = all_known(wanted.add, known); !fine)
    return fine.error();
  add(x.members, wanted.add);
  for (const auto id : wanted.remove)
    if (std::erase(x.members, id) == 0)
      return error{errc::not_found, "user '" + to_string(id) + "' is not in group '" + x.name + "'"};
  if (x.members.size() > most_members)
    return error{errc::invalid, "a group has at most " + std::to_string(most_members) + " members"};
  if (x.name == at->second.name && x.members == at->second.members)
    return std::vector<people_fact>{};
  x.at = now;
  x.by = by;
  return std::vector{note(std::move(x))};
}

people::decided people::remove(const commands::group_remove& wanted, const std::string& by, time_point now) {
  auto at = groups_.find(wanted.id);
  if (at == groups_.end())
    return no_group(wanted.id);
  std::vector<people_fact> facts;
  for (const auto& [key, role] : std::map(roles_)) // a copy, as taking a role changes the map
    if (role.group == wanted.id) {
      auto x = role;
      x.at = now;
      x.by = by;
      x.deleted = true;
      facts.push_back(note(std::move(x)));
    }
  auto x = at->second;
  x.at = now;
  x.by = by;
  x.deleted = true;
  facts.push_back(note(std::move(x)));
  return facts;
}

people::decided people::assign(const commands::role_assign& wanted, const world& known, const std::string& by,
                               time_point now) {
  if (wanted.roles.empty())
    return error{errc::invalid, "must provide at least one group or user role assignment"};
  std::vector<roles_changed> all;
  std::set<role_key> seen;
  for (const auto& one : wanted.roles) {
    const auto role = static_cast<int>(one.role);
    if (bool(one.user) == bool(one.group))
      return error{errc::invalid, "a role is given to a user or to a group"};
    if (one.user && !known.user(one.user))
      return error{errc::not_found, "user '" + to_string(one.user) + "' not found"};
    if (one.group && !groups_.contains(one.group))
      return no_group(one.group);
    if (one.workspace && !of_workspaces(role))
      return error{errc::invalid, "role " + std::to_string(role) + " cannot be given for one workspace"};
    if (one.workspace && !known.workspace(one.workspace))
      return error{errc::not_found, "workspace '" + to_string(one.workspace) + "' not found"};
    roles_changed x{now, by, role, one.user, one.group, one.workspace, wanted.taken};
    const bool there = roles_.contains(key_of(x));
    if (wanted.taken && !there)
      return error{errc::not_found, "role " + std::to_string(role) + " is not assigned so"};
    if (!wanted.taken && (there || !seen.insert(key_of(x)).second))
      return error{errc::conflict, "role " + std::to_string(role) + " is assigned so already"};
    all.push_back(std::move(x));
  }
  std::vector<people_fact> facts;
  for (auto& x : all)
    facts.push_back(note(std::move(x)));
  return facts;
}

people::decided people::set(const commands::user_set& wanted, const world& known, const std::string& by,
                            time_point now) {
  if (!known.user(wanted.user))
    return error{errc::not_found, "user '" + to_string(wanted.user) + "' not found"};
  std::vector<user_setting_changed> all;
  if (wanted.all)
    for (const auto& [key, setting] : settings_)
      if (setting.user == wanted.user)
        all.push_back({now, by, wanted.user, setting.key, setting.path, {}});
  const auto room = settings_.size() + wanted.settings.size();
  for (const auto& one : wanted.settings) {
    if (one.key.empty() || one.key.size() > 256 || one.path.size() > 256 || one.text.size() > most_text)
      return error{errc::invalid, "settings: a key has 1 to 256 characters, a value at most 64 KiB"};
    all.push_back({now, by, wanted.user, one.key, one.path, one.text});
  }
  if (wanted.settings.size() > most_settings || room > 1'000'000)
    return error{errc::invalid, "settings: more than " + std::to_string(most_settings) +
                                  " at once, or more than a million of all users"};
  std::vector<people_fact> facts;
  for (auto& x : all) {
    const auto at = settings_.find({x.user, x.path, x.key});
    if (at == settings_.end() ? x.text.empty() : at->second.text == x.text)
      continue;
    facts.push_back(note(std::move(x)));
  }
  return facts;
}

people::decided people::visit(const commands::project_visit& wanted, time_point now) {
  const auto at = visits_.find({wanted.user, wanted.project});
  if (at != visits_.end() && now < at->second + std::chrono::hours(1)) {
    const bool newest = std::all_of(visits_.begin(), visits_.end(), [&](const auto& one) {
      return one.first.first != wanted.user || one.second <= at->second;
    });
    if (newest)
      return std::vector<people_fact>{};
  }
  return std::vector{note(project_visited{now, wanted.user, wanted.project})};
}

void people::replay(const people_fact& fact) {
  std::visit(overloaded{
               [this](const group_changed& f) {
                 newest_group_ = std::max(newest_group_, f.id);
                 if (f.deleted)
                   groups_.erase(f.id);
                 else
                   groups_[f.id] = f;
               },
               [this](const roles_changed& f) {
                 if (f.deleted)
                   roles_.erase(key_of(f));
                 else
                   roles_[key_of(f)] = f;
               },
               [this](const user_setting_changed& f) {
                 if (f.text.empty())
                   settings_.erase({f.user, f.path, f.key});
                 else
                   settings_[{f.user, f.path, f.key}] = f;
               },
               [this](const project_visited& f) {
                 visits_[{f.user, f.project}] = f.at;
               },
             },
             fact);
}

void people::replay(const cluster_fact& fact) {
  std::visit(
    [this](const auto& f) {
      if constexpr (std::is_constructible_v<people_fact, decltype(f)>)
        replay(people_fact{f});
    },
    fact);
}

std::string people::snapshot() const {
  std::vector<std::string> parts{pack(std::tuple{groups_, newest_group_})};
  for (const auto& [key, role] : roles_)
    parts.push_back(pack(role));
  for (const auto& [key, setting] : settings_)
    parts.push_back(pack(setting));
  for (const auto& [key, at] : visits_)
    parts.push_back(pack(std::tuple{key.first, key.second, at}));
  return pack(parts);
}

value people::describe() const {
  return {{"groups", groups_.size()}, {"roles_given", roles_.size()}, {"user_settings", settings_.size()}};
}

} // namespace troupe

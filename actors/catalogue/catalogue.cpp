#include "actors/catalogue/catalogue.hpp"

#include "actors/catalogue/wishes.hpp"
#include "model/authority/authority.hpp"
#include "model/chosen_name.hpp"

#include <cctype>

namespace troupe {
namespace {

unix_account account_of(const commands::host_account& x) { return {x.uid, x.gid, x.user, x.group}; }

} // namespace

/// A name has 2 to 64 letters, digits and `._-@+`, as names stand in URLs and in the environment of tasks.
result<void> catalogue::check_name(const std::string& name, user_id of) const {
  bool fine = name.size() >= 2 && name.size() <= 64;
  for (char c : name)
    fine = fine && static_cast<unsigned char>(c) < 0x80 &&
           (std::isalnum(static_cast<unsigned char>(c)) ||
            std::string_view("._-@+").find(c) != std::string_view::npos);
  if (!fine)
    return error{errc::invalid, "a user name has 2 to 64 letters of ASCII, digits, or one of ._-@+"};
  if (auto usable = check_name_in_address("user names", name); !usable)
    return usable;
  const auto folded = case_folded(name);
  const auto known = users_.find(of);
  const auto had = former_.find(folded);
  if (had != former_.end() && had->second != of)
    return error{errc::invalid, "user already exists: user " + to_string(had->second) +
                                  " had this name, and what that user made still bears it"};
  for (const char* always : {"admin", "determined"}) // always taken, even when these users have other names
    if (folded == always && had == former_.end() &&
        (known == users_.end() || case_folded(known->second.name) != always))
      return error{errc::invalid, "user already exists"};
  for (const auto& [id, user] : users_)
    if (id != of && (case_folded(user.name) == folded || case_folded(user.display_name) == folded))
      return error{errc::invalid, "user already exists"};
  return {};
}

/// The name that people see must not equal a name of another user, ignoring case. Empty: the user has none.
result<void> catalogue::check_display_name(const std::string& name, user_id of) const {
  if (name.empty())
    return {};
  if (auto fine = check_chosen_name("a display name", name); !fine)
    return fine;
  const auto folded = case_folded(name);
  for (const auto& [id, user] : users_)
    if (id != of && (case_folded(user.name) == folded || case_folded(user.display_name) == folded))
      return error{errc::invalid, "a user is named '" + name + "' already"};
  return {};
}

result<void> catalogue::check_rest(const user_wish& wanted, user_id of) const {
  if (wanted.display_name)
    if (auto fine = check_display_name(*wanted.display_name, of); !fine)
      return fine;
  return wanted.runs_as ? check_account(*wanted.runs_as) : result<void>{};
}

std::vector<catalogue_fact> catalogue::note(catalogue_fact fact) {
  replay(fact);
  return {std::move(fact)};
}

catalogue::decided catalogue::make_user(const user_wish& wanted, const std::string& by, time_point now) {
  const auto name = wanted.name.value_or("");
  if (auto fine = check_name(name, {}); !fine)
    return fine.error();
  if (auto fine = check_rest(wanted, {}); !fine)
    return fine.error();
  user_changed made;
  made.at = now;
  made.by = by;
  made.id = {users_.empty() ? 1 : users_.rbegin()->first.value + 1};
  made.name = name;
  made.display_name = wanted.display_name.value_or("");
  made.admin = wanted.admin.value_or(false);
  made.active = wanted.active.value_or(true);
  made.password = wanted.password.value_or("");
  made.remote = wanted.remote.value_or(false);
  if (wanted.runs_as)
    made.runs_as = {account_of(*wanted.runs_as)};
  return note(std::move(made));
}

catalogue::decided catalogue::change_user(user_id id, const user_wish& wanted, const std::string& by,
                                          time_point now) {
  auto known = users_.find(id);
  if (known == users_.end())
    return error{errc::not_found, "user " + to_string(id) + " not found"};
  if (wanted.name)
    if (auto fine = check_name(*wanted.name, id); !fine)
      return fine.error();
  if (auto fine = check_rest(wanted, id); !fine)
    return fine.error();
  auto changed = known->second;
  if (wanted.name && *wanted.name != changed.name) {
    const auto folded = case_folded(*wanted.name);
    auto names = known->second.former;
    for (const auto& [had, whose] : former_)
      if (whose == id)
        names.push_back(had); // facts of older builds do not hold former names
    names.push_back(case_folded(changed.name));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::erase(names, folded);
    changed.former = std::move(names);
    changed.name = *wanted.name;
  }
  changed.display_name = wanted.display_name.value_or(changed.display_name);
  changed.admin = wanted.admin.value_or(changed.admin);
  changed.active = wanted.active.value_or(changed.active);
  if (wanted.runs_as)
    changed.runs_as = {account_of(*wanted.runs_as)};
  if (wanted.password)
    changed.password = *wanted.password;
  if (wanted.remote)
    changed.remote = *wanted.remote;
  if (changed.remote && wanted.password)
    return error{errc::invalid, "user '" + changed.name + "' is remote: it has no password here"};
  if (wanted.password || changed.remote != known->second.remote || (wanted.active && !changed.active))
    ++changed.generation;
  else if (pack(changed) == pack(known->second))
    return std::vector<catalogue_fact>{};
  changed.at = now;
  changed.by = by;
  const bool leaves = !changed.active && known->second.active;
  auto facts = note(std::move(changed));
  if (leaves) // a user who is activated again makes new tokens
    for (const auto& [key, token] : std::map(tokens_))
      if (token.user == id && token.number && !token.revoked) {
        auto old = token;
        old.at = now;
        old.by = by;
        old.revoked = true;
        facts.push_back(note(std::move(old)).front());
      }
  return facts;
}

catalogue::decided catalogue::make_access_token(const commands::token_create& wanted, const std::string& by,
                                                time_point now) {
  constexpr std::size_t most_of_one = 1000;
  auto user = users_.find(wanted.user);
  if (user == users_.end())
    return error{errc::not_found, "user " + to_string(wanted.user) + " not found"};
  if (!user->second.active)
    return error{errc::invalid, "user '" + user->second.name + "' is inactive"};
  token_changed x;
  x.at = x.created = now;
  x.by = by;
  x.user = wanted.user;
  x.id = wanted.id;
  x.until = time_point{duration{wanted.until}};
  x.number = newest_access_token_ + 1;
  x.description = wanted.description;
  if (x.id.empty() || x.until <= now || x.description.size() > 4096)
    return error{errc::invalid,
                 "an access token ends later than now, and is described by at most 4096 bytes"};
  std::size_t valid = 0;
  for (const auto& [key, token] : tokens_)
    valid += token.user == wanted.user && token.number && !token.revoked && token.until > now;
  if (valid >= most_of_one)
    return error{errc::invalid, "user '" + user->second.name + "' has " + std::to_string(valid) +
                                  " access tokens already\nhint: revoke some"};
  return note(std::move(x));
}

catalogue::decided catalogue::change_access_token(const commands::token_change& wanted, const std::string& by,
                                                  time_point now) {
  for (const auto& [id, token] : tokens_) {
    if (!wanted.number || token.number != wanted.number)
      continue;
    if (token.revoked || token.until <= now)
      return error{errc::invalid, "token " + std::to_string(wanted.number) + " is revoked or has expired"};
    auto x = token;
    x.description = wanted.description.value_or(x.description);
    x.revoked = wanted.revoked;
    if (x.description.size() > 4096)
      return error{errc::invalid, "an access token is described by at most 4096 bytes"};
    if (x.description == token.description && !x.revoked)
      return std::vector<catalogue_fact>{};
    x.at = now;
    x.by = by;
    return note(std::move(x));
  }
  return error{errc::not_found, "Token with id: " + std::to_string(wanted.number) + " not found"};
}

catalogue::decided catalogue::name_token(token_changed wanted) {
  if (!users_.contains(wanted.user))
    return error{errc::not_found, "user " + to_string(wanted.user) + " not found"};
  if (wanted.id.empty() || wanted.name.empty())
    return error{errc::invalid, "a token that is kept has an id and a name"};
  std::vector<catalogue_fact> facts;
  for (const auto& [id, token] : std::map(tokens_)) // a copy, as revoking changes the map
    if (token.user == wanted.user && token.name == wanted.name && id != wanted.id && !token.revoked) {
      auto old = token;
      old.at = wanted.at;
      old.by = wanted.by;
      old.revoked = true;
      auto more = note(std::move(old));
      facts.insert(facts.end(), more.begin(), more.end());
    }
  wanted.revoked = false;
  auto named = note(std::move(wanted));
  facts.insert(facts.end(), named.begin(), named.end());
  return facts;
}

catalogue::decided catalogue::revoke_token(token_changed wanted) {
  if (!users_.contains(wanted.user))
    return error{errc::not_found, "user " + to_string(wanted.user) + " not found"};
  auto known = tokens_.find(wanted.id);
  if (wanted.id.empty() || wanted.until <= wanted.at || (known != tokens_.end() && known->second.revoked))
    return std::vector<catalogue_fact>{};
  if (known != tokens_.end())
    wanted.name = known->second.name;
  wanted.revoked = true;
  return note(std::move(wanted));
}

catalogue::decided catalogue::configure(value wanted, std::uint64_t revision, const std::string& by,
                                        time_point now) {
  if (revision != configuration_.revision)
    return error{errc::conflict, "the configuration has changed meanwhile; look at the plan again"};
  if (wanted == configuration_.configuration)
    return std::vector<catalogue_fact>{};
  return note(configuration_changed{now, by, configuration_.revision + 1, std::move(wanted)});
}

catalogue::decided catalogue::set(const std::string& key, const value& to, const std::string& by,
                                  time_point now) {
  if (auto known = settings_.find(key); known != settings_.end() && known->second.to == to)
    return std::vector<catalogue_fact>{};
  return note(setting_changed{now, by, key, to});
}

std::string catalogue::now_named(const std::string& owner) const {
  for (const auto& [id, user] : users_)
    if (authority::bears(owner, user.name, user.former))
      return user.name;
  return owner;
}

void catalogue::replay(const catalogue_fact& fact) {
  std::visit(overloaded{
               [this](const user_changed& f) {
                 auto& user = users_[f.id];
                 const auto before = case_folded(user.name), now = case_folded(f.name);
                 if (!before.empty() && before != now)
                   former_[before] = f.id;
                 former_.erase(now);
                 user = f;
               },
               [this](const token_changed& f) {
                 std::erase_if(tokens_, [&](const auto& one) { return one.second.until <= f.at; });
                 tokens_[f.id] = f;
                 newest_access_token_ = std::max(newest_access_token_, f.number);
               },
               [this](const configuration_changed& f) { configuration_ = f; },
               [this](const setting_changed& f) { settings_[f.key] = f; },
             },
             fact);
}

void catalogue::replay(const cluster_fact& fact) {
  std::visit(
    [this](const auto& f) {
      if constexpr (std::is_constructible_v<catalogue_fact, decltype(f)>)
        replay(catalogue_fact{f});
    },
    fact);
}

std::string catalogue::snapshot() const {
  return pack(std::tuple{users_, tokens_, settings_, configuration_, newest_access_token_, former_});
}

value catalogue::describe() const {
  value users = value::object(), settings = value::object();
  for (const auto& [id, user] : users_)
    users[user.name] = {{"id", id.value}, {"admin", user.admin}, {"active", user.active}};
  for (const auto& [key, setting] : settings_)
    settings[key] = setting.to;
  return {{"users", users},
          {"tokens", tokens_.size()},
          {"settings", settings},
          {"configuration_revision", configuration_.revision}};
}

} // namespace troupe

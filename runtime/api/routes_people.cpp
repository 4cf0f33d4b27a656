// Routes for several users at once, for their settings and access tokens, for groups, and for the roles of
// users and groups.

#include "runtime/api/determined_roles.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/shapes.hpp"
#include "storage/keys.hpp"

#include <algorithm>
#include <set>

namespace troupe::api {
namespace {

using storage::records_of;

template <class Id>
std::vector<Id> ids_in(fields& f, const char* name) {
  auto out = f.ids<Id>(name);
  if (out.size() > 10'000)
    f.fault(name, "has at most 10000 ids");
  return out;
}

/// The offset and limit of a body, in the form of a query.
query_list paging_in(fields& f) {
  query_list out;
  for (const char* key : {"offset", "limit"})
    if (f.has(key))
      out.all.emplace_back(key, std::to_string(f.number(key)));
  return out;
}

// ---- users

/// Activates or deactivates several users; the answer has a result for each.
void patch_users(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("activate");
  const bool active = f.flag("activate");
  auto ids = ids_in<user_id>(f, "userIds");
  if (f.has("filters")) {
    fields by{f.object("filters"), "filters"};
    const auto name = by.text("name");
    const auto admin = by.has("admin") ? std::optional{by.flag("admin")} : std::nullopt;
    if (by.bad())
      return back(failure(*by.bad()));
    ids.clear();
    for (const auto& one : c->parts->users->users())
      if ((contains_folded(one.name, name) || contains_folded(one.display_name, name)) &&
          (!admin || one.admin == *admin))
        ids.push_back({one.id});
  }
  if (f.bad())
    return back(failure(*f.bad()));
  struct work {
    std::mutex mutex;
    std::size_t left = 0;
    std::map<user_id, std::string> errors;
  };
  auto all = std::make_shared<work>();
  all->left = ids.size() + 1;
  const auto done = [all, back, c](user_id id, const std::string& why) {
    std::lock_guard lock(all->mutex);
    if (id)
      all->errors[id] = why;
    if (--all->left)
      return;
    value results = value::array();
    for (const auto& [one, text] : all->errors)
      results.push_back({{"id", one.value}, {"error", text}});
    back(json({{"results", std::move(results)}}, c->query.has("pretty")));
  };
  for (const auto id : ids) {
    commands::user_change with;
    with.id = id;
    with.active = active;
    c->parts->cluster.order(c->by.who, std::move(with), [done, id](result<value> got) {
      done(id, got ? std::string() : got.error().what);
    });
  }
  done({}, "");
}

result<value> settings(const call& c) {
  auto all = records_of<user_setting_changed>(*c.parts->storage, storage::keys::one(c.by.user_id));
  if (!all)
    return all.error();
  value list = value::array();
  for (const auto& one : *all)
    if (!one.text.empty())
      list.push_back({{"key", one.key}, {"value", one.text}, {"storagePath", one.path}});
  return value{{"settings", std::move(list)}};
}

void set_settings(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::user_set with;
  with.user = {c->by.user_id};
  for (const auto& one : f.list("settings")) {
    if (!one.is_object())
      return back(failure({errc::invalid, "settings: each is an object with key and value"}));
    fields inside{one, "settings"};
    with.settings.push_back({inside.text("key"), inside.text("storagePath"), inside.text("value")});
    if (inside.bad())
      return back(failure(*inside.bad()));
  }
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with));
}

void reset_settings(const call_ptr& c, const reply& back) {
  commands::user_set with;
  with.user = {c->by.user_id};
  with.all = true;
  command(c, back, std::move(with));
}

void visit(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.text("activityType"); // there is only one type
  const auto type = f.text("entityType", "ENTITY_TYPE_PROJECT");
  const auto id = f.id<project_id>("entityId");
  if (f.bad())
    return back(failure(*f.bad()));
  if (type != "ENTITY_TYPE_PROJECT")
    return back(failure({errc::invalid, "entityType: only visits of projects are kept"}));
  auto book = place_book::read(*c->parts->storage);
  if (!book)
    return back(failure(book.error()));
  if (!book->find(id))
    return back(failure({errc::not_found, "project '" + to_string(id) + "' not found"}));
  command(c, back, commands::project_visit{{c->by.user_id}, id});
}

result<value> visited(const call& c) {
  auto limit = c.query.number("limit", 0);
  if (!limit || *limit < 0)
    return limit ? error{errc::invalid, "limit has to be 0 or more"} : limit.error();
  auto all = records_of<project_visited>(*c.parts->storage, storage::keys::one(c.by.user_id));
  if (!all)
    return all.error();
  std::stable_sort(all->begin(), all->end(), [](const auto& a, const auto& b) { return a.at > b.at; });
  auto book = place_book::counted(*c.parts->storage);
  if (!book)
    return book.error();
  value list = value::array();
  for (const auto& one : *all)
    if (const auto* project = book->find(one.project);
        project && (*limit <= 0 || list.size() < static_cast<std::size_t>(*limit)))
      list.push_back(book->shape(*project, *c.parts->users));
  return value{{"projects", std::move(list)}};
}

// ---- access tokens

/// The life of an access token. An empty text stands for the usual life, -1 for the longest.
result<duration> life_in(const std::string& text, const token_lives& allowed) {
  if (text.empty() || text == "-1")
    return text.empty() ? allowed.usual : allowed.longest;
  auto life = go_duration(text);
  if (!life)
    return error{errc::invalid, "lifespan: " + life.error().what + ", or -1"};
  return *life <= allowed.longest
           ? life
           : error{errc::invalid, "token Lifespan must be less than max token lifespan"};
}

value token_shape(const token_changed& x) {
  return {{"id", x.number},
          {"userId", x.user.value},
          {"expiry", to_rfc3339(x.until)},
          {"createdAt", to_rfc3339(x.created)},
          {"tokenType", "TOKEN_TYPE_ACCESS_TOKEN"},
          {"revoked", x.revoked},
          {"description", x.description}};
}

result<void> may_of(const call& c, action what, user_id of) {
  return allowed(c, what, {thing::token, to_string(of), {}});
}

void create_token(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::token_create with;
  with.user = f.has("userId") && f.number("userId") != 0 ? f.id<user_id>("userId") : user_id{c->by.user_id};
  with.description = f.text("description");
  auto life = life_in(f.text("lifespan"), c->parts->tokens);
  if (f.bad())
    return back(failure(*f.bad()));
  if (!life)
    return back(failure(life.error()));
  if (auto fine = may_of(*c, action::create, with.user); !fine)
    return back(failure(fine.error()));
  with.id = accounts::new_token_id();
  const auto until = c->now + *life;
  with.until = until.time_since_epoch().count();
  const auto text = c->parts->users->access_token(with.user.value, with.id, until);
  command(c, back, std::move(with), [text](value got) -> result<value> {
    return value{{"token", text}, {"tokenId", got.at("number")}};
  });
}

result<std::vector<token_changed>> access_tokens(const call& c) {
  auto all = c.parts->storage->tokens();
  if (all)
    std::erase_if(*all, [&](const auto& one) { return !one.number || !may_of(c, action::view, one.user); });
  if (all)
    std::sort(all->begin(), all->end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return all;
}

result<value> list_tokens(const call& c) {
  auto all = access_tokens(c);
  if (!all)
    return all.error();
  const auto ids = c.query.every("tokenIds");
  const auto name = c.query.first("username");
  const bool every = c.query.flag("showInactive");
  std::erase_if(*all, [&](const auto& one) {
    if (!ids.empty() && std::find(ids.begin(), ids.end(), std::to_string(one.number)) == ids.end())
      return true;
    auto user = c.parts->users->find(one.user.value);
    if (!name.empty() && (!user || user->name != name))
      return true;
    return !every && (one.revoked || one.until <= c.now);
  });
  const auto by = c.query.first("sortBy");
  std::stable_sort(all->begin(), all->end(), [&](const auto& a, const auto& b) {
    return by == "SORT_BY_USER_ID"       ? a.user < b.user
           : by == "SORT_BY_EXPIRY"      ? a.until < b.until
           : by == "SORT_BY_CREATED_AT"  ? a.created < b.created
           : by == "SORT_BY_REVOKED"     ? a.revoked < b.revoked
           : by == "SORT_BY_DESCRIPTION" ? a.description < b.description
                                         : a.number < b.number;
  });
  if (is_descending(c.query))
    std::reverse(all->begin(), all->end());
  auto part = page_of(c.query, all->size());
  if (!part)
    return part.error();
  value list = value::array();
  for (auto i = part->first; i < part->last; ++i)
    list.push_back(token_shape((*all)[i]));
  return value{{"tokenInfo", std::move(list)}, {"pagination", part->pagination}};
}

void patch_token(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::token_change with;
  with.number = parse_id<user_id>(c->named("tokenId")).value;
  if (f.has("description"))
    with.description = f.text("description");
  with.revoked = f.flag("setRevoked");
  f.number("tokenId"); // the path names the token; only the type is checked
  if (f.bad())
    return back(failure(*f.bad()));
  auto all = access_tokens(*c);
  if (!all)
    return back(failure(all.error()));
  const auto known =
    std::find_if(all->begin(), all->end(), [&](const auto& one) { return one.number == with.number; });
  if (known == all->end()) // also where the token is another user's that the caller may not see
    return back(failure(
      {errc::not_found, "Token with id: " + std::string(c->named("tokenId").substr(0, 30)) + " not found"}));
  if (auto fine = may_of(*c, action::remove, known->user); !fine)
    return back(failure(fine.error()));
  command(c, back, std::move(with), [c, number = known->number](value) -> result<value> {
    auto now = access_tokens(*c);
    if (!now)
      return now.error();
    for (const auto& one : *now)
      if (one.number == number)
        return value{{"tokenInfo", token_shape(one)}};
    return error{errc::not_found, "Token with id: " + std::to_string(number) + " not found"};
  });
}

// ---- groups

value group_shape(const call& c, const group_changed& x) {
  value users = value::array();
  for (const auto id : x.members)
    if (auto known = c.parts->users->find(id.value))
      users.push_back(user_shape(*known));
  return {{"groupId", x.id.value}, {"name", x.name}, {"users", std::move(users)}};
}

/// Whether the caller may see the group: admins see all groups, users the groups that they are in.
bool sees(const call& c, const group_changed& x) {
  return c.by.who.admin ||
         std::find(x.members.begin(), x.members.end(), user_id{c.by.user_id}) != x.members.end();
}

result<group_changed> group_of(const call& c, group_id id) {
  auto all = records_of<group_changed>(*c.parts->storage, storage::keys::one(id.value));
  if (!all)
    return all.error();
  for (const auto& one : *all)
    if (one.id == id && sees(c, one))
      return one;
  return error{errc::not_found, "group '" + to_string(id) + "' not found"};
}

group_id named_group(const call& c) { return parse_id<group_id>(c.named("groupId")); }

answer_shape group_after(const call_ptr& c, group_id id) {
  return [c, id](value got) -> result<value> {
    auto one = group_of(*c, id ? id : group_id{got.value("id", std::uint64_t{0})});
    return one ? result<value>(value{{"group", group_shape(*c, *one)}}) : one.error();
  };
}

void create_group(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("name");
  commands::group_create with;
  with.name = f.text("name");
  with.add = ids_in<user_id>(f, "addUsers");
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with), group_after(c, {}));
}

void change_group(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::group_change with;
  with.id = named_group(*c);
  if (f.has("name"))
    with.name = f.text("name");
  with.add = ids_in<user_id>(f, "addUsers");
  with.remove = ids_in<user_id>(f, "removeUsers");
  f.number("groupId"); // the path names the group; only the type is checked
  if (f.bad())
    return back(failure(*f.bad()));
  const auto id = with.id;
  command(c, back, std::move(with), group_after(c, id));
}

void delete_group(const call_ptr& c, const reply& back) {
  command(c, back, commands::group_remove{named_group(*c)});
}

result<value> one_group(const call& c) {
  auto one = group_of(c, named_group(c));
  return one ? result<value>(value{{"group", group_shape(c, *one)}}) : one.error();
}

result<value> search_groups(const call& c) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  const auto limit = f.number("limit");
  const auto name = f.text("name");
  const auto member = f.id<user_id>("userId");
  const auto paging = paging_in(f);
  if (f.bad())
    return *f.bad();
  if (limit < 1 || limit > 500)
    return error{errc::invalid, "limit has to be 1 to 500"};
  auto all = records_of<group_changed>(*c.parts->storage);
  if (!all)
    return all.error();
  std::erase_if(*all, [&](const auto& one) {
    return !sees(c, one) || (!name.empty() && one.name != name) ||
           (member && std::find(one.members.begin(), one.members.end(), member) == one.members.end());
  });
  auto part = page_of(paging, all->size());
  if (!part)
    return part.error();
  value list = value::array();
  for (auto i = part->first; i < part->last; ++i)
    list.push_back({{"group", {{"groupId", (*all)[i].id.value}, {"name", (*all)[i].name}}},
                    {"numMembers", (*all)[i].members.size()}});
  return value{{"groups", std::move(list)}, {"pagination", part->pagination}};
}

using group_orders = std::shared_ptr<std::vector<commands::group_change>>;

/// Gives the orders one after another, so that the first refusal becomes the answer.
void order_next(const call_ptr& c, const reply& back, const group_orders& orders, std::size_t at) {
  if (at == orders->size())
    return back(json(value::object(), c->query.has("pretty")));
  c->parts->cluster.order(c->by.who, (*orders)[at], [c, back, orders, at](result<value> got) {
    if (!got)
      return back(failure(got.error()));
    order_next(c, back, orders, at + 1);
  });
}

/// Puts users into groups and takes them out of groups, with one order for each group.
void assign_groups(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  const auto users = ids_in<user_id>(f, "userIds");
  const auto add = ids_in<group_id>(f, "addGroups"), remove = ids_in<group_id>(f, "removeGroups");
  if (f.bad())
    return back(failure(*f.bad()));
  group_orders orders = std::make_shared<std::vector<commands::group_change>>();
  for (const auto id : add) {
    if (auto group = group_of(*c, id); !group) // checked before any group is changed
      return back(failure(group.error()));
    orders->push_back({{{}, users, {}}, id});
  }
  for (const auto id : remove) {
    auto group = group_of(*c, id);
    if (!group)
      return back(failure(group.error()));
    commands::group_change out;
    out.id = id;
    for (const auto user : users)
      if (std::find(group->members.begin(), group->members.end(), user) != group->members.end())
        out.remove.push_back(user);
    orders->push_back(std::move(out));
  }
  order_next(c, back, orders, 0);
}

// ---- roles

/// The roles of users and groups, without roles in workspaces that were deleted.
result<given_roles> roles_given(const call& c) {
  auto given = given_roles::read(*c.parts->storage);
  if (given && c.parts->roles)
    std::erase_if(given->roles,
                  [&](const auto& one) { return one.workspace && !c.parts->roles->knows(one.workspace); });
  return given;
}

value assignment_shape(const roles_changed& x) {
  value out = {{"role", role_shape(x.role)}, {"scopeCluster", !x.workspace}};
  out["scopeWorkspaceId"] = x.workspace ? value(x.workspace.value) : value();
  return out;
}

/// {role, userRoleAssignments, groupRoleAssignments} of each role in `kept`.
value with_assignments(const std::vector<roles_changed>& kept) {
  value list = value::array();
  for (int role = 1; role <= most_role; ++role) {
    value users = value::array(), groups = value::array();
    for (const auto& one : kept)
      if (one.role == role) {
        if (one.user)
          users.push_back({{"userId", one.user.value}, {"roleAssignment", assignment_shape(one)}});
        else
          groups.push_back({{"groupId", one.group.value}, {"roleAssignment", assignment_shape(one)}});
      }
    if (!users.empty() || !groups.empty())
      list.push_back({{"role", role_shape(role)},
                      {"userRoleAssignments", std::move(users)},
                      {"groupRoleAssignments", std::move(groups)}});
  }
  return list;
}

/// {roleId, scopeWorkspaceIds, scopeCluster} of each role in `kept`.
value summaries(const std::vector<roles_changed>& kept) {
  value list = value::array();
  for (int role = 1; role <= most_role; ++role) {
    std::set<std::uint64_t> workspaces;
    bool cluster = false, any = false;
    for (const auto& one : kept)
      if (one.role == role) {
        any = true;
        cluster = cluster || !one.workspace;
        if (one.workspace)
          workspaces.insert(one.workspace.value);
      }
    if (any)
      list.push_back({{"roleId", role}, {"scopeWorkspaceIds", workspaces}, {"scopeCluster", cluster}});
  }
  return list;
}

value roles_in(const std::vector<roles_changed>& kept) {
  std::set<int> numbers;
  for (const auto& one : kept)
    numbers.insert(one.role);
  value list = value::array();
  for (const int role : numbers)
    list.push_back(role_shape(role));
  return list;
}

result<value> listed_roles(const call& c, bool of_workspace_only) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  const auto limit = f.number("limit");
  const auto paging = paging_in(f);
  const bool workspace = of_workspace_only && f.id<workspace_id>("workspaceId");
  if (f.bad())
    return *f.bad();
  if (limit < 1 || limit > 500)
    return error{errc::invalid, "limit has to be 1 to 500"};
  std::vector<int> roles;
  for (int role = 1; role <= most_role; ++role)
    if (!workspace || role_shape(role)["scopeTypeMask"]["workspace"].get<bool>())
      roles.push_back(role);
  auto part = page_of(paging, roles.size());
  if (!part)
    return part.error();
  value list = value::array();
  for (auto i = part->first; i < part->last; ++i)
    list.push_back(role_shape(roles[i]));
  return value{{"roles", std::move(list)}, {"pagination", part->pagination}};
}

result<value> roles_by_ids(const call& c) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  const auto ids = ids_in<user_id>(f, "roleIds");
  if (f.bad())
    return *f.bad();
  auto given = roles_given(c);
  if (!given)
    return given.error();
  value list = value::array();
  for (const auto id : ids) {
    if (id.value > most_role)
      return error{errc::not_found, "role '" + to_string(id) + "' not found"};
    const auto role = static_cast<int>(id.value);
    value users = value::array(), groups = value::array();
    for (const auto& one : given->roles)
      if (one.role == role && one.user)
        users.push_back({{"userId", one.user.value}, {"roleAssignment", assignment_shape(one)}});
      else if (one.role == role)
        groups.push_back({{"groupId", one.group.value}, {"roleAssignment", assignment_shape(one)}});
    list.push_back({{"role", role_shape(role)},
                    {"userRoleAssignments", std::move(users)},
                    {"groupRoleAssignments", std::move(groups)}});
  }
  return value{{"roles", std::move(list)}};
}

std::vector<roles_changed> of_user(const given_roles& given, user_id user) {
  std::vector<roles_changed> out;
  for (const auto& one : given.roles)
    if (one.user == user || (one.group && given.in(one.group, user)))
      out.push_back(one);
  return out;
}

result<value> roles_by_user(const call& c) {
  const auto id = parse_id<user_id>(c.named("userId"));
  if (auto known = c.parts->users->find(id.value); !known)
    return known.error();
  auto given = roles_given(c);
  return given ? result<value>(value{{"roles", with_assignments(of_user(*given, id))}}) : given.error();
}

result<value> roles_by_group(const call& c) {
  const auto id = named_group(c);
  if (auto group = group_of(c, id); !group)
    return group.error();
  auto given = roles_given(c);
  if (!given)
    return given.error();
  std::vector<roles_changed> kept;
  for (const auto& one : given->roles)
    if (one.group == id)
      kept.push_back(one);
  return value{{"roles", roles_in(kept)}, {"assignments", summaries(kept)}};
}

result<value> roles_by_workspace(const call& c) {
  const auto id = parse_id<workspace_id>(c.named("workspaceId"));
  auto book = place_book::read(*c.parts->storage);
  auto given = roles_given(c);
  if (!book || !given)
    return book ? given.error() : book.error();
  if (!book->find(id))
    return error{errc::not_found, "workspace '" + to_string(id) + "' not found"};
  std::vector<roles_changed> kept;
  value groups = value::array(), users = value::array();
  std::set<group_id> seen_groups;
  std::set<user_id> seen_users;
  for (const auto& one : given->roles) {
    if (one.workspace != id)
      continue;
    kept.push_back(one);
    if (one.user && seen_users.insert(one.user).second) {
      if (auto user = c.parts->users->find(one.user.value))
        users.push_back(user_shape(*user));
    } else if (one.group && seen_groups.insert(one.group).second)
      for (const auto& group : given->groups)
        if (group.id == one.group)
          groups.push_back(group_shape(c, group));
  }
  return value{{"groups", std::move(groups)},
               {"usersAssignedDirectly", std::move(users)},
               {"assignments", with_assignments(kept)}};
}

result<value> permissions_summary(const call& c) {
  auto given = roles_given(c);
  if (!given)
    return given.error();
  const auto mine = of_user(*given, {c.by.user_id});
  return value{{"roles", roles_in(mine)}, {"assignments", summaries(mine)}};
}

handler assign_roles(bool taken) {
  return [taken](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    commands::role_assign with;
    with.taken = taken;
    for (const char* key : {"userRoleAssignments", "groupRoleAssignments"})
      for (const auto& one : f.list(key)) {
        fields whom{one, key};
        fields what{whom.object("roleAssignment"), std::string(key) + ".roleAssignment"};
        fields role{what.object("role"), std::string(key) + ".roleAssignment.role"};
        commands::role_assign::one out;
        out.role = role.number("roleId");
        out.user = whom.id<user_id>("userId");
        out.group = whom.id<group_id>("groupId");
        out.workspace = what.id<workspace_id>("scopeWorkspaceId");
        for (const auto* part : {&whom, &what, &role})
          if (part->bad())
            return back(failure(*part->bad()));
        if (out.role < 1 || out.role > most_role)
          return back(failure({errc::not_found, "role '" + std::to_string(out.role) + "' not found"}));
        with.roles.push_back(out);
      }
    if (f.bad())
      return back(failure(*f.bad()));
    command(c, back, std::move(with));
  };
}

} // namespace

std::vector<route> people_routes() {
  const authority::need self{action::view, thing::self}, change_self{action::change, thing::self},
    view_groups{action::view, thing::group}, change_groups{action::change, thing::group},
    view_roles{action::view, thing::role}, change_roles{action::change, thing::role};
  return {
    {"PATCH",
     "/api/v1/users",
     {action::change, thing::user},
     patch_users,
     "v1PatchUsersRequest",
     "v1PatchUsersResponse",
     "Turns several users on or off."},
    {"GET", "/api/v1/users/setting", self, answer_with(settings), "", "v1GetUserSettingResponse",
     "What the page keeps for the caller."},
    // The handler checks the right again: the settings are the caller's, as the body names no other user.
    asks_again({"POST", "/api/v1/users/setting", change_self, set_settings, "v1PostUserSettingRequest",
                "v1PostUserSettingResponse", "Changes what the page keeps for the caller."}),
    asks_again({"POST", "/api/v1/users/setting/reset", change_self, reset_settings, "", "Empty",
                "Forgets what the page keeps for the caller."}),
    {"POST",
     "/api/v1/users/activity",
     {action::view, thing::project},
     visit,
     "v1PostUserActivityRequest",
     "Empty",
     "Notes that the caller has looked at a project."},
    {"GET",
     "/api/v1/user/projects/activity",
     {action::view, thing::project},
     answer_with(visited),
     "",
     "v1GetProjectsByUserActivityResponse",
     "Projects that the caller has looked at, the last one first."},
    holds_secret(asks_again({"POST",
                             "/api/v1/tokens",
                             {action::create, thing::token},
                             create_token,
                             "v1PostAccessTokenRequest",
                             "v1PostAccessTokenResponse",
                             "Makes an access token; its text is never shown again."})),
    asks_again({"GET",
                "/api/v1/tokens",
                {action::view, thing::token},
                answer_with(list_tokens),
                "",
                "v1GetAccessTokensResponse",
                "Access tokens of the caller; of all for an admin."}),
    asks_again({"PATCH",
                "/api/v1/tokens/{tokenId}",
                {action::remove, thing::token},
                patch_token,
                "v1PatchAccessTokenRequest",
                "v1PatchAccessTokenResponse",
                "Describes an access token anew, or revokes it."}),
    {"POST", "/api/v1/groups", change_groups, create_group, "v1CreateGroupRequest", "v1CreateGroupResponse",
     "Makes a group of users."},
    {"POST", "/api/v1/groups/search", view_groups, answer_with(search_groups), "v1GetGroupsRequest",
     "v1GetGroupsResponse", "Groups that the caller is in; all for an admin."},
    {"GET", "/api/v1/groups/{groupId}", view_groups, answer_with(one_group), "", "v1GetGroupResponse",
     "One group with its users."},
    {"PUT", "/api/v1/groups/{groupId}", change_groups, change_group, "v1UpdateGroupRequest",
     "v1UpdateGroupResponse", "Changes a group."},
    {"DELETE", "/api/v1/groups/{groupId}", change_groups, delete_group, "", "Empty",
     "Deletes a group, and the roles that it gave."},
    {"PATCH", "/api/v1/users/assignments", change_groups, assign_groups, "v1AssignMultipleGroupsRequest",
     "Empty", "Puts users into groups and takes them out of groups."},
    {"POST", "/api/v1/roles/search", view_roles,
     answer_with([](const call& c) { return listed_roles(c, false); }), "v1ListRolesRequest",
     "v1ListRolesResponse", "All roles."},
    {"POST", "/api/v1/roles/search/by-assignability", view_roles,
     answer_with([](const call& c) { return listed_roles(c, true); }),
     "v1SearchRolesAssignableToScopeRequest", "v1SearchRolesAssignableToScopeResponse",
     "Roles that can be given in a workspace, or everywhere."},
    {"POST", "/api/v1/roles/search/by-ids", view_roles, answer_with(roles_by_ids), "v1GetRolesByIDRequest",
     "v1GetRolesByIDResponse", "Roles, and to whom they are given."},
    {"GET", "/api/v1/roles/search/by-user/{userId}", view_roles, answer_with(roles_by_user), "",
     "v1GetRolesAssignedToUserResponse", "Roles of a user, also through groups."},
    {"GET", "/api/v1/roles/search/by-group/{groupId}", view_roles, answer_with(roles_by_group), "",
     "v1GetRolesAssignedToGroupResponse", "Roles of a group."},
    {"GET", "/api/v1/roles/workspace/{workspaceId}", view_roles, answer_with(roles_by_workspace), "",
     "v1GetGroupsAndUsersAssignedToWorkspaceResponse", "Who has roles in a workspace."},
    {"GET", "/api/v1/permissions/summary", view_roles, answer_with(permissions_summary), "",
     "v1GetPermissionsSummaryResponse", "Roles of the caller."},
    {"POST", "/api/v1/roles/add-assignments", change_roles, assign_roles(false), "v1AssignRolesRequest",
     "Empty", "Gives roles to users and groups."},
    {"POST", "/api/v1/roles/remove-assignments", change_roles, assign_roles(true),
     "v1RemoveAssignmentsRequest", "Empty", "Takes roles from users and groups."},
  };
}

} // namespace troupe::api

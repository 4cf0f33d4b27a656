// Routes for login and logout, and for users.

#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/unix_account_in.hpp"

#include <algorithm>
#include <charconv>
#include <set>

namespace troupe::api {
namespace {

result<response> log_in(const call& c) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  const auto name = f.text("username"), password = f.text("password");
  const bool hashed = f.flag("isHashed");
  if (f.bad())
    return *f.bad();
  auto session = c.parts->users->log_in(name, password, hashed, c.now, {}, c.headers.from);
  if (!session)
    return session.error();
  auto out = json({{"token", session->token}, {"user", user_shape(session->who)}});
  out.headers.emplace_back("Set-Cookie",
                           "auth=" + session->token + "; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict");
  return out;
}

void log_out(const call_ptr& c, const reply& back) {
  auto session =
    c->parts->users->session_of(shown_token(c->headers, c->parts->about.cluster_id).token, c->now);
  if (!session)
    return back(json(value::object()));
  command(c, back,
          commands::token_revoke{{session->user_id}, session->id, session->until.time_since_epoch().count()});
}

result<value> me(const call& c) {
  auto u = c.by.is_task() ? c.parts->users->owner(c.by.who.user) : c.parts->users->find(c.by.user_id);
  if (u)
    return value{{"user", user_shape(*u)}};
  user owner; // stands for the owner of a task who is not a user of this cluster any more
  owner.name = c.by.who.user;
  return value{{"user", user_shape(owner)}};
}

/// Sorts users, by id where the query names no order.
result<void> sort_users(const query_list& query, std::vector<user>& all) {
  const bool down = is_descending(query);
  const auto by = query.first("sortBy");
  const auto seen = [](const user& u) { return u.display_name.empty() ? u.name : u.display_name; };
  sort_unset_last(all, down, [](const user& u) { return std::optional(u.id); });
  if (by == "SORT_BY_DISPLAY_NAME")
    sort_unset_last(all, down, [](const user& u) {
      return u.display_name.empty() ? std::nullopt : std::optional(folded(u.display_name));
    });
  else if (by == "SORT_BY_USER_NAME")
    sort_unset_last(all, down, [](const user& u) { return std::optional(folded(u.name)); });
  else if (by == "SORT_BY_NAME")
    sort_unset_last(all, down, [&](const user& u) { return std::optional(folded(seen(u))); });
  else if (by == "SORT_BY_ADMIN")
    sort_unset_last(all, down, [](const user& u) { return std::optional(u.admin); });
  else if (by == "SORT_BY_ACTIVE")
    sort_unset_last(all, down, [](const user& u) { return std::optional(u.active); });
  else if (by == "SORT_BY_REMOTE")
    sort_unset_last(all, down, [](const user& u) { return std::optional(u.remote); });
  else if (by == "SORT_BY_MODIFIED_TIME")
    sort_unset_last(all, down, [](const user& u) { return std::optional(u.modified); });
  else if (by == "SORT_BY_LAST_AUTH_TIME")
    sort_unset_last(all, down, [](const user& u) {
      return u.last_login == time_point{} ? std::nullopt : std::optional(u.last_login);
    });
  return {};
}

result<value> list(const call& c) {
  auto all = c.parts->users->users();
  if (c.query.has("active"))
    std::erase_if(all, [&](const user& u) { return u.active != c.query.flag("active"); });
  if (c.query.has("admin"))
    std::erase_if(all, [&](const user& u) { return u.admin != c.query.flag("admin"); });
  if (auto part = c.query.first("name"); !part.empty())
    std::erase_if(all, [&](const user& u) {
      return !contains_folded(u.name, part) && !contains_folded(u.display_name, part);
    });
  std::set<std::uint64_t> roles; // a shown user has one of these roles directly, not through a group
  for (const auto text : c.query.every("roleIdAssignedDirectlyToUser")) {
    std::uint64_t id = 0;
    if (const auto read = std::from_chars(text.data(), text.data() + text.size(), id);
        read.ec != std::errc() || read.ptr != text.data() + text.size())
      return error{errc::invalid, "roleIdAssignedDirectlyToUser has to be a number, and is '" +
                                    std::string(text.substr(0, 100)) + "'"};
    roles.insert(id);
  }
  if (!roles.empty()) {
    auto given = given_roles::read(*c.parts->storage);
    if (!given)
      return given.error();
    std::erase_if(all, [&](const user& u) {
      return std::none_of(given->roles.begin(), given->roles.end(), [&](const auto& one) {
        return one.user == user_id{u.id} && roles.contains(static_cast<std::uint64_t>(one.role));
      });
    });
  }
  if (auto sorted = sort_users(c.query, all); !sorted)
    return sorted.error();
  auto part = page_of(c.query, all.size());
  if (!part)
    return part.error();
  value shaped = value::array();
  for (auto i = part->first; i < part->last; ++i)
    shaped.push_back(user_shape(all[i]));
  return value{{"users", std::move(shaped)}, {"pagination", part->pagination}};
}

result<value> one(const call& c) {
  auto u = c.parts->users->find(parse_id<user_id>(c.named("userId")).value);
  return u ? result<value>(value{{"user", user_shape(*u)}})
           : error{errc::not_found, "user '" + std::string(c.named("userId")) + "' not found"};
}

result<value> by_name(const call& c) {
  auto u = c.parts->users->find(std::string(c.named("username")));
  return u ? result<value>(value{{"user", user_shape(*u)}}) : u.error();
}

/// Puts the name of the password's hash into `wish`, and gives the order to the cluster. Answers with the
/// user after the change; where `id` is 0, with the new user.
void ask_for(const call_ptr& c, const reply& back, commands::user_wish wish, user_id id,
             const std::optional<std::string>& password, bool hashed) {
  if (id)
    if (auto known = c->parts->users->find(id.value); !known)
      return back(failure(known.error()));
  if (password) {
    auto kept = c->parts->users->keep_password(*password, hashed);
    if (!kept)
      return back(failure(kept.error()));
    wish.password = *kept;
  }
  const auto shape = [c, id](value got) -> result<value> {
    auto now = c->parts->users->find(id ? id.value : got.value("id", std::uint64_t{0}));
    return now ? result<value>(value{{"user", user_shape(*now)}}) : now.error();
  };
  if (id)
    return command(c, back, commands::user_change{std::move(wish), id}, shape);
  command(c, back, commands::user_create{std::move(wish)}, shape);
}

void create(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("user");
  fields wanted{f.object("user"), "user"};
  commands::user_wish wish;
  wish.name = wanted.text("username");
  wish.display_name = wanted.text("displayName");
  wish.admin = wanted.flag("admin");
  wish.active = wanted.flag("active", true);
  if (wanted.has("remote"))
    wish.remote = wanted.flag("remote");
  wish.runs_as = unix_account_in(wanted);
  auto password = std::optional(f.text("password"));
  if (wish.remote.value_or(false)) {
    if (!password->empty())
      f.fault("password", "a remote user has none");
    password.reset();
  }
  const bool hashed = f.flag("isHashed");
  for (const auto* part : {&f, &wanted})
    if (part->bad())
      return back(failure(*part->bad()));
  ask_for(c, back, std::move(wish), {}, password, hashed);
}

/// Changes a user. Admins may change everything; other users only their own password and display name.
void change(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::user_wish wish;
  std::optional<std::string> password;
  if (f.has("displayName"))
    wish.display_name = f.text("displayName");
  if (f.has("password"))
    password = f.text("password");
  const bool hashed = f.flag("isHashed");
  if (f.has("username"))
    wish.name = f.text("username");
  if (f.has("active"))
    wish.active = f.flag("active");
  if (f.has("admin"))
    wish.admin = f.flag("admin");
  if (f.has("remote"))
    wish.remote = f.flag("remote");
  wish.runs_as = unix_account_in(f);
  // The request changes more than users may change of themselves.
  const bool more = wish.name || wish.active || wish.admin || wish.remote || wish.runs_as;
  if (f.bad())
    return back(failure(*f.bad()));
  const auto id = parse_id<user_id>(c->named("userId"));
  const bool own = id.value == c->by.user_id && !more;
  if (!allowed(*c, action::change, named_thing(*c, own ? thing::self : thing::user)))
    return back(failure({errc::denied, "only an admin may change this"}));
  ask_for(c, back, std::move(wish), id, password, hashed);
}

/// Sets a password. The body is a bare JSON string.
void set_password(const call_ptr& c, const reply& back) {
  auto body = parse_json(c->body);
  if (!body || !body->is_string())
    return back(failure({errc::invalid, "the body has to be the password as a JSON string"}));
  if (!allowed(*c, action::change, named_thing(*c, thing::self)))
    return back(failure({errc::denied, "only an admin may change another user's password"}));
  ask_for(c, back, {}, parse_id<user_id>(c->named("userId")), body->get<std::string>(), false);
}

route slow(route row) {
  row.slow = true;
  return row;
}

} // namespace

std::vector<route> user_routes() {
  return {
    holds_secret(slow({"POST",
                       "/api/v1/auth/login",
                       {action::create, thing::session},
                       respond_with(log_in),
                       "v1LoginRequest",
                       "v1LoginResponse",
                       "A session's token for a name and a password."})),
    {"POST",
     "/api/v1/auth/logout",
     {action::remove, thing::session},
     log_out,
     "",
     "Empty",
     "Ends the session of this token."},
    {"GET",
     "/api/v1/me",
     {action::view, thing::self},
     answer_with(me),
     "",
     "v1GetMeResponse",
     "The user of this token."},
    {"GET",
     "/api/v1/auth/user",
     {action::view, thing::self},
     answer_with(me),
     "",
     "v1CurrentUserResponse",
     "The user of this token."},
    {"GET",
     "/api/v1/users",
     {action::view, thing::user},
     answer_with(list),
     "",
     "v1GetUsersResponse",
     "All users."},
    slow({"POST",
          "/api/v1/users",
          {action::create, thing::user},
          create,
          "v1PostUserRequest",
          "v1PostUserResponse",
          "Creates a user."}),
    {"GET",
     "/api/v1/users/{userId}",
     {action::view, thing::user},
     answer_with(one),
     "",
     "v1GetUserResponse",
     "One user."},
    {"GET",
     "/api/v1/users/{username}/by-username",
     {action::view, thing::user},
     answer_with(by_name),
     "",
     "v1GetUserByUsernameResponse",
     "One user by name."},
    // The handler checks the right, because it depends on what is changed of the account.
    slow(asks_again({"PATCH",
                     "/api/v1/users/{userId}",
                     {action::change, thing::self},
                     change,
                     "v1PatchUser",
                     "v1PatchUserResponse",
                     "Changes a user."})),
    // The handler checks the right, because it depends on what is changed of the account.
    slow(asks_again({"POST",
                     "/api/v1/users/{userId}/password",
                     {action::change, thing::self},
                     set_password,
                     "string",
                     "v1SetUserPasswordResponse",
                     "Sets a password."})),
  };
}

} // namespace troupe::api

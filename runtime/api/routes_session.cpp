// Routes by which the web page logs in: the token of its session is in a cookie that scripts cannot read.

#include "model/authority/authority.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/shapes.hpp"

namespace troupe::api {
namespace {

std::string set_cookie(const call& c, const std::string& token, std::int64_t seconds) {
  return cookie_name(c.parts->about.cluster_id) + "=" + token +
         "; Path=/; Max-Age=" + std::to_string(seconds) + "; HttpOnly; SameSite=Strict" +
         (c.parts->browsers.tls ? "; Secure" : "");
}

/// The actions that this user may do on some thing of a kind, as "kill experiment", so that the page offers
/// no others.
value rights_of(const identity& by) {
  const auto may = [&](authority::need what) {
    const auto wanted = by.roles ? authority::needed(what) : std::nullopt;
    return wanted ? by.roles->anywhere(*wanted) : bool(authority::may_any(by.asks(), what));
  };
  value list = value::array();
  for (const auto& rule : authority::rules())
    if (may(rule.on))
      list.push_back(std::string(authority::name(rule.on.what)) + " " + authority::name(rule.on.on));
  return list;
}

/// For each right that roles give only in some workspaces: the numbers of these workspaces.
value rights_in(const call& c, const identity& by) {
  value out = value::object();
  const auto all = (c.parts->all ? *c.parts->all : *c.parts).storage->workspaces();
  if (!by.roles || !all)
    return out;
  for (const auto& rule : authority::rules()) {
    const auto wanted = authority::needed(rule.on);
    if (!wanted || by.roles->holds(*wanted, {}) || !by.roles->anywhere(*wanted))
      continue;
    auto& in = out[std::string(authority::name(rule.on.what)) + " " + authority::name(rule.on.on)];
    in = value::array();
    for (const auto& one : *all)
      if (by.roles->holds(*wanted, one.id))
        in.push_back(one.id.value);
  }
  return out;
}

value session_shape(const call& c, const identity& by, const user& who) {
  return {{"user", user_shape(who)},
          {"rights", rights_of(by)},
          {"rightsIn", rights_in(c, by)},
          {"clusterName", c.parts->about.cluster_name},
          {"clusterId", c.parts->about.cluster_id},
          {"masterId", c.parts->about.master_id},
          {"version", c.parts->about.troupe_version}};
}

/// Whether the login that had the code made still holds.
bool still_good(const accounts& users, const login_code& code, time_point now) {
  const auto user = users.find(code.user_id);
  return user && user->generation == code.generation &&
         (code.token.empty() || users.session_of(code.token, now));
}

result<accounts::session> opened(const call& c, fields& f) {
  if (!f.has("code"))
    return c.parts->users->log_in(f.text("username"), f.text("password"), false, c.now, {}, c.headers.from);
  const auto code = c.parts->browsers.codes->take(f.text("code"), c.now);
  if (!code || !still_good(*c.parts->users, *code, c.now))
    return error{errc::unauthorized, "this link was used before, is older than ten minutes, or its user has "
                                     "signed out since; `troupe web` prints a new one"};
  return c.parts->users->begin_session(code->user_id, c.now);
}

result<response> begin(const call& c) {
  if (auto fine = is_not_from_elsewhere(c.headers, c.parts->browsers.tls); !fine)
    return fine.error();
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  for (const char* key : {"code", "username", "password"})
    (void)f.text(key);
  if (!f.has("code") && !f.has("username"))
    f.fault("username", "is missing: give code, or username and password");
  if (f.bad())
    return *f.bad();
  auto session = opened(c, f);
  if (!session)
    return session.error();
  identity by;
  by.who = {.user = session->who.name, .admin = session->who.admin, .allocation = {}};
  by.user_id = session->who.id;
  by.take_roles(c.parts->roles.get());
  auto out = json(session_shape(c, by, session->who));
  const auto life = std::chrono::duration_cast<std::chrono::seconds>(session->claim.until - c.now);
  out.headers.emplace_back("Set-Cookie", set_cookie(c, session->token, life.count()));
  return out;
}

/// The session of the caller. A caller without a session is not an error, because the page asks before it
/// knows.
result<value> current(const call& c) {
  auto who = c.parts->users->find(c.by.user_id);
  return who ? session_shape(c, c.by, *who) : value{{"user", nullptr}};
}

void end(const call_ptr& c, const reply& back) {
  const auto token = shown_token(c->headers, c->parts->about.cluster_id).token;
  const auto session = c->parts->users->session_of(token, c->now);
  const auto gone = [c] {
    auto out = json(value::object());
    out.headers.emplace_back("Set-Cookie", set_cookie(*c, "", 0));
    return out;
  };
  if (!session)
    return back(gone());
  c->parts->cluster.order(
    c->by.who,
    commands::token_revoke{{session->user_id}, session->id, session->until.time_since_epoch().count()},
    [back, gone](const result<value>& done) { back(done ? gone() : failure(done.error())); });
}

/// Makes a code that lets the caller log in once. Only for callers with a session: a task's token must not
/// become one.
result<value> code(const call& c) {
  const auto token = shown_token(c.headers, c.parts->about.cluster_id).token;
  const auto user = c.parts->users->find(c.by.user_id);
  if (!user || !c.parts->users->session_of(token, c.now))
    return error{errc::denied, "only who has logged in can have a code made"};
  return value{
    {"code", c.parts->browsers.codes->make({user->id, user->generation, std::string(token)}, c.now)},
    {"until", to_rfc3339(c.now + login_codes::life)}};
}

} // namespace

std::vector<route> session_routes() {
  std::vector<route> rows = {
    {"POST",
     "/troupe/v1/session",
     {action::create, thing::session},
     respond_with(begin),
     "SessionRequest",
     "Session",
     "Signs the web page in: the answer sets its cookie."},
    {"GET",
     "/troupe/v1/session",
     {action::view, thing::door},
     answer_with(current),
     "",
     "Session",
     "Who is signed in, and what they may do; `user` is null where nobody is."},
    {"DELETE",
     "/troupe/v1/session",
     {action::remove, thing::session},
     end,
     "",
     "Empty",
     "Signs the web page out."},
    {"POST",
     "/troupe/v1/session/codes",
     {action::change, thing::self},
     answer_with(code),
     "",
     "LoginCode",
     "A code that signs this user in once, within ten minutes."},
  };
  rows[0].slow = true;
  rows[0].holds_secret = rows[3].holds_secret = true;
  rows[3].asks_again = true; // the handler acts for the caller only
  return rows;
}

} // namespace troupe::api

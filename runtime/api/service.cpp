#include "runtime/api/service.hpp"

#include "model/names.hpp"
#include "runtime/api/checkpoint_uuid.hpp"
#include "runtime/api/enum_numbers.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/guard.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/past.hpp"
#include "runtime/api/proxy_door.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/slot_usage.hpp"

namespace troupe::api {
namespace {

/// A thing of this kind that belongs to the caller, for which the table of rights demands the least.
authority::resource own_thing(const call& c, thing kind) {
  authority::resource out{kind, kind == thing::token ? std::to_string(c.by.user_id) : std::string()};
  out.unmanaged = true;
  return out;
}

/// The services of one viewer: what the viewer may not see is not found, and what the viewer may not do is
/// refused.
struct seen_parts {
  guard cluster;
  services parts;
  seen_parts(const std::shared_ptr<const services>& whole, const viewer& by)
      : seen_parts(*whole, by, whole) {}
  seen_parts(const services& all, const viewer& by, const std::shared_ptr<const services>& whole)
      : cluster(all.cluster, all.storage, by, all.strict_queue),
        parts{cluster,      by.book ? veiled(all.storage, by) : all.storage,
              all.users,    all.about,
              all.now,      all.runners,
              all.texts,    all.trials,
              all.browsers, all.columns,
              all.proxy,    all.empty_journal,
              all.past,     all.slots,
              all.roles,    all.strict_queue,
              all.tokens,   whole} {}
};
std::shared_ptr<const services> made_for(const std::shared_ptr<const services>& all, viewer by) {
  auto both = std::make_shared<const seen_parts>(all, by);
  return {both, &both->parts};
}

std::vector<route> joined(std::vector<route> all, std::vector<route> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
  return all;
}

result<void> may(const route& row, const call& c) {
  if (row.asks_again && !(c.by.roles && !c.by.is_task()))
    return authority::may_any(c.by.asks(), row.right);
  if (row.asks_again)
    return authority::needed(row.right) ? allowed(c, row.right.what, own_thing(c, row.right.on))
                                        : authority::may_any(c.by.asks(), row.right);
  auto on = named_thing(c, row.right.on);
  if (row.right == authority::need{action::report, thing::trial} && !c.by.is_task()) {
    const auto id = parse_id<trial_id>(c.named("trialId"));
    const auto known = c.parts->storage->trial(id);
    if (!known)
      return known.error();
    on.unmanaged = of_unmanaged(c, id);
    // The right is checked here, because not every report becomes a command that the guard would check.
    if (on.unmanaged && c.by.roles) {
      const auto in = c.parts->roles->workspace_of(known->experiment);
      if (!c.by.roles->holds(authority::permission::update_experiment, in))
        return error{errc::denied,
                     "access denied: this needs the permission UPDATE_EXPERIMENT in workspace " +
                       to_string(in)};
    }
  }
  return allowed(c, row.right.what, on);
}

/// Adds the parts that are kept in memory beside storage.
services with_memory(services parts) {
  if (!parts.columns)
    parts.columns = std::make_shared<series_columns>();
  parts.slots = std::make_shared<slot_history>();
  parts.past = std::make_shared<past_shelf>(parts.empty_journal);
  return parts;
}
bool is_open(const route& row) {
  const auto* rule = authority::rule_of(row.right);
  return rule && rule->open;
}

result<identity> bearer_of(const services& parts, allocation_id id) {
  const error over{errc::unauthorized, "the allocation of this token has ended"};
  auto row = parts.storage->task(id.task);
  if (!row)
    return row.error().code == errc::not_found ? over : row.error();
  if (row->run != id.run || !row->open)
    return over;
  identity by;
  by.who = {.user = row->owner, .admin = false, .allocation = to_string(id)};
  by.experiment = row->experiment;
  by.allocation = id;
  if (auto u = parts.users->owner(row->owner); u && u->active) { // otherwise the task has only its own rights
    by.user_id = u->id;
    by.who.user = u->name;
    by.former = u->former;
  }
  by.take_roles(parts.roles.get());
  return by;
}

} // namespace

result<identity> bearer_of(const services& parts, std::string_view token, time_point now) {
  if (token.empty())
    return error{errc::unauthorized, "no token: log in first"};
  auto holder = parts.users->holder(token, now);
  if (!holder)
    return holder.error();
  if (holder->what == token_holder::kind::allocation)
    return bearer_of(parts, holder->allocation);
  if (holder->what == token_holder::kind::view)
    return error{errc::unauthorized, "this token opens the services of a task, and nothing else"};
  if (holder->what == token_holder::kind::experiment) {
    auto row = parts.storage->experiment(holder->experiment);
    if (!row || terminal(row->state))
      return error{errc::unauthorized, "the experiment of this token has ended"};
  }
  if (holder->what == token_holder::kind::service)
    return error{errc::unauthorized, "this token opens the service of a task, and nothing of the API"};
  if (holder->what == token_holder::kind::task) {
    auto row = parts.storage->task(holder->task);
    if (!row || row->ended != time_point{} || now - row->created > std::chrono::hours{30 * 24})
      return error{errc::unauthorized, "the task of this token has ended"};
  }
  auto u = parts.users->find(holder->user_id);
  if (!u)
    return error{errc::unauthorized, "the user of this token is gone"};
  identity by;
  by.who = {.user = u->name, .admin = u->admin, .allocation = {}};
  by.user_id = u->id;
  by.former = u->former;
  by.take_roles(parts.roles.get());
  return by;
}

service::service(services parts, std::vector<route> more)
    : parts_(std::make_shared<const services>(with_memory(std::move(parts)))),
      router_(joined(all_routes(), std::move(more))) {}

/// Finds or makes the services as the caller sees them. They look up rights at each use, so they can be kept
/// for the user.
std::shared_ptr<const services> service::seen_by(const identity& by) const {
  const bool nobody = !by.user_id && !by.is_task(); // the caller is unknown, on an open route
  if (nobody || !(by.roles || parts_->strict_queue))
    return parts_;
  viewer asks{by.roles ? parts_->roles : nullptr, {by.user_id}, {}, {}};
  if (by.is_task()) {
    asks.experiment = by.experiment, asks.task = by.allocation.task;
    return made_for(parts_, asks);
  }
  const auto key = std::pair{by.user_id, bool(by.roles)};
  std::lock_guard lock{seen_mutex_};
  if (const auto known = seen_.find(key); known != seen_.end())
    return known->second;
  if (seen_.size() >= most_seen)
    seen_.clear();
  return seen_.emplace(key, made_for(parts_, asks)).first->second;
}

result<identity> service::who_views(std::string_view token, task_id task, time_point now) const {
  auto holder = parts_->users->holder(token, now);
  if (!holder)
    return holder.error();
  if (holder->what != token_holder::kind::view && holder->what != token_holder::kind::service)
    return bearer_of(*parts_, token, now);
  if (holder->task != task)
    return error{errc::unauthorized, "this token opens the services of another task"};
  auto u = parts_->users->find(holder->user_id);
  if (!u)
    return error{errc::unauthorized, "the user of this token is gone"};
  identity by;
  by.who = {.user = u->name, .admin = u->admin, .allocation = {}};
  by.user_id = u->id;
  by.former = u->former;
  by.take_roles(parts_->roles.get());
  return by;
}

namespace {

/// Where a request goes. An address below /ui leads to the page also where it does not decode: the page reads
/// addresses itself.
result<target> way_of(std::string_view text) {
  auto whole = parse_target(text);
  if (whole || !is_of_the_page(text))
    return whole;
  auto path = parse_target(text.substr(0, text.find('?')));
  return path ? std::move(path) : parse_target("/ui");
}

} // namespace

std::variant<admission, response> service::admit(request_head head, const identity* known) const {
  if (auto fine = host_is_ours(head.headers, parts_->browsers); !fine && !known)
    return failure(fine.error());
  if (auto page = is_not_a_page(head.headers, parts_->browsers); !page && !known)
    return failure(page.error());
  auto where = way_of(head.target);
  if (!where)
    return failure(where.error());
  auto found = router_.find(head.method == "HEAD" ? "GET" : head.method, where->segments);
  const auto place =
    head.method + " " + head.target.substr(0, std::min(head.target.find('?'), std::size_t{200}));
  if (!found.found && found.other_method)
    return failure(wrong_method, "this path has no such method: " + place);
  if (!found.found)
    return failure({errc::not_found, "api not found: " + place});
  admission in;
  in.at = found.found;
  in.with = std::make_shared<call>();
  auto& c = *in.with;
  c.parts = parts_;
  c.target = head.target;
  c.path = std::move(found.path);
  c.query = std::move(where->query);
  c.headers = std::move(head.headers);
  c.now = parts_->now();
  const auto shown = shown_token(c.headers, parts_->about.cluster_id);
  if (is_open(*in.at)) { // the caller may be of interest, but decides nothing
    if (auto by = known ? result<identity>{*known} : bearer_of(*parts_, shown.token, c.now); by) {
      c.by = std::move(*by);
      c.parts = seen_by(c.by);
    }
  } else {
    auto by = known ? result<identity>{*known} : bearer_of(*parts_, shown.token, c.now);
    if (!by && by.error().code == errc::unauthorized && in.at->leads_to_login && asks_for_page(c.headers))
      return send_to_login(c.target.substr(0, c.target.find('?')));
    if (!by)
      return failure(by.error());
    if (!known && shown.by_cookie && head.method != "GET" && head.method != "HEAD")
      if (auto fine = comes_from_own_page(c.headers, parts_->browsers.tls); !fine)
        return failure(fine.error());
    c.by = std::move(*by);
    c.parts = seen_by(c.by);
    if (const auto named = c.path.find("checkpointUuid"); named != c.path.end())
      named->second = stored_uuid(*c.parts->storage, std::move(named->second));
    if (auto fine = may(*in.at, c); !fine)
      return failure(fine.error());
  }
  if (!c.headers.websocket_key.empty() && !c.headers.upgrade.empty() &&
      in.at->answers != std::string_view("WebSocket"))
    return failure({errc::invalid, "this path speaks HTTP only, no WebSocket: " + place});
  // The addresses of pages, Determined's among them, have queries of their own.
  if (in.at->right.on != authority::thing::door) {
    if (auto fine = check_values(c.query); !fine)
      return failure(fine.error());
    if (auto fine = name_enums(c.query, in.at->path); !fine)
      return failure(fine.error());
  }
  return in;
}

bool service::still_lets_in(const admission& before) const {
  if (is_open(*before.at))
    return true;
  const auto& then = *before.with;
  auto by = bearer_of(*parts_, shown_token(then.headers, parts_->about.cluster_id).token, parts_->now());
  if (!by)
    return false;
  call now = then;
  now.by = std::move(*by);
  now.parts = seen_by(now.by);
  return bool(may(*before.at, now));
}

void service::run(admission let_in, std::string body, const reply& back) const {
  if (auto fine = name_enums(body, let_in.at->takes); !fine)
    return back(failure(fine.error()));
  let_in.with->body = std::move(body);
  try {
    if (let_in.at->from_facts)
      run_kept(let_in, back);
    else
      let_in.at->run(let_in.with, back);
  } catch (const std::exception& fault) {
    back(failure({errc::internal, std::string(let_in.at->path) + ": " + fault.what()}));
  }
}

void service::run_kept(const admission& let_in, const reply& back) const {
  const auto& with = *let_in.with;
  const auto target = with.by.roles ? with.target + "\n" + std::to_string(with.by.user_id) + "\n" +
                                        to_string(with.by.allocation)
                                    : with.target;
  // The moment is taken before the handler reads, so that the answer may be newer than its moment but never
  // older.
  const answer_cache::moment at{parts_->storage->sequence(), parts_->users->version()};
  if (auto known = kept_->find(target, at)) {
    response out;
    out.body = std::move(*known);
    out.headers.emplace_back("Troupe-Sequence", std::to_string(at.facts));
    return back(std::move(out));
  }
  let_in.at->run(let_in.with,
                 reply{[kept = kept_, target, at, back](response x) { // may run after the server has ended
                   if (x.status == 200 && !x.stream && x.kept)
                     kept->keep(target, at, x.body);
                   back(std::move(x));
                 }});
}

} // namespace troupe::api

// Routes for live events, and for the document of the API itself.

#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/openapi.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/streams.hpp"

namespace troupe::api {
namespace {

result<response> events(const call& c) {
  const auto newest = static_cast<std::int64_t>(c.parts->storage->sequence());
  query_list seen = c.query;
  if (!seen.has("after") && !c.headers.last_event_id.empty())
    seen.all.emplace_back("after", c.headers.last_event_id);
  auto after = seen.number("after", newest), experiment = seen.number("experiment", 0),
       until = seen.number("until", 0);
  for (const auto* number : {&after, &experiment, &until})
    if (!*number)
      return number->error();
  if (*after < 0 || *experiment < 0 || *until < 0)
    return error{errc::invalid, "after, experiment and until have to be 0 or more"};
  event_filter keep{.experiment = {static_cast<std::uint64_t>(*experiment)},
                    .entity = std::string(c.query.first("entity")),
                    .audit = c.query.first("kind") == "audit",
                    .since = {},
                    .until = static_cast<std::uint64_t>(*until),
                    .tells = told_to(c)};
  if (c.query.has("kind") && !keep.audit)
    return error{errc::invalid, "kind: the one kind of facts is audit"};
  if (c.query.has("since")) {
    const auto since = from_rfc3339(c.query.first("since"));
    if (!since)
      return error{errc::invalid, "since: has to be a time as 2026-11-25T08:00:00Z"};
    keep.since = *since;
  }
  if (keep.experiment)
    if (auto row = c.parts->storage->experiment(keep.experiment); !row)
      return row.error().code == errc::not_found
               ? error{errc::not_found, "experiment '" + to_string(keep.experiment) + "' not found"}
               : row.error();
  response out;
  out.content_type = "text/event-stream";
  out.headers.emplace_back("Cache-Control", "no-store");
  out.stream = event_stream(c.parts->storage, static_cast<std::uint64_t>(*after), std::move(keep));
  return out;
}

result<value> link(const call& c) {
  const auto& about = c.parts->about;
  return value{{"protocol", about.link_protocol}, {"port", about.link_port}, {"tls", about.link_tls}};
}

/// The files of an experiment, for agents. The join token, with which an agent registers, also lets it read
/// them.
result<response> blob(const call& c) {
  const auto& token = c.parts->about.join_token;
  if (!token.empty() && c.headers.authorization != "Bearer " + token)
    return error{errc::unauthorized, "the join token is not this cluster's"};
  auto bytes = c.parts->storage->blob(c.named("name"));
  if (!bytes)
    return bytes.error();
  response out;
  out.content_type = "application/octet-stream";
  out.body = std::move(*bytes);
  return out;
}

/// Takes a fence's claim. The route is open, because a sandbox has no user; the token in the body proves who
/// calls.
void fence(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields claim{*body};
  commands::fence with{claim.text("agent"), claim.text("allocation"), claim.text("token"),
                       claim.flag("dead")};
  if (claim.bad())
    return back(failure(*claim.bad()));
  command(c, back, std::move(with), as_it_is);
}

result<value> document(const call&) {
  static const value made = openapi_document(all_routes());
  return made;
}

} // namespace

std::vector<route> troupe_routes() {
  return {
    {"GET",
     "/troupe/v1/events",
     {action::view, thing::cluster},
     respond_with(events),
     "",
     "stream of Event",
     "Facts as server-sent events, as they are committed."},
    {"GET",
     "/troupe/v1/link",
     {action::view, thing::door},
     answer_with(link),
     "",
     "Link",
     "Where and how agents join."},
    {"POST",
     "/troupe/v1/fence",
     {action::report, thing::secret},
     fence,
     "FenceClaim",
     "FenceAnswer",
     "For the sandbox of an agent that died, with the agent's fence token: whether to end its task."},
    {"GET",
     "/troupe/v1/blobs/{name}",
     {action::view, thing::door},
     respond_with(blob),
     "",
     "archive",
     "For agents, with the join token: the tar of an experiment's files."},
    {"GET",
     "/troupe/v1/openapi.json",
     {action::view, thing::door},
     answer_with(document),
     "",
     "OpenAPI",
     "This document."},
  };
}

} // namespace troupe::api

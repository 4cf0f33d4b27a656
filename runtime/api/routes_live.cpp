// The route that tells a browser's open pages what changes: rows in the form of the lists, and new points.

#include "runtime/api/errors.hpp"
#include "runtime/api/live_stream.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {
namespace {

result<response> live(const call& c) {
  auto topics = live_topics::read(c.query.first("topics"));
  if (!topics)
    return topics.error();
  query_list seen = c.query;
  // A browser that connects again repeats its first address, so this header has precedence.
  if (!c.headers.last_event_id.empty())
    seen.all.insert(seen.all.begin(), {"after", c.headers.last_event_id});
  auto after = seen.number("after", static_cast<std::int64_t>(c.parts->storage->sequence()));
  if (!after)
    return after.error();
  if (*after < 0)
    return error{errc::invalid, "after has to be 0 or more"};
  response out;
  out.content_type = "text/event-stream";
  out.headers.emplace_back("Cache-Control", "no-store");
  out.stream =
    live_stream(c.parts, c.by.who, c.by.user_id, std::move(*topics), static_cast<std::uint64_t>(*after));
  return out;
}

} // namespace

std::vector<route> live_routes() {
  return {
    {"GET",
     "/troupe/v1/live",
     {action::view, thing::cluster},
     respond_with(live),
     "",
     "stream of LiveEvent",
     "What of some topics changes, as server-sent events: rows as the lists give them, and new points."}};
}

} // namespace troupe::api

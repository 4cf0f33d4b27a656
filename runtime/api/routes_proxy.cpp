// Routes of the proxy other than /proxy itself: the services of a task, the redirection of a browser to a
// task's page, and the route by which agents bring connections.

#include "model/names.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/proxy_door.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {
namespace {

error no_task(const call& c) {
  return {errc::not_found, "task '" + std::string(c.named("taskId")).substr(0, 100) + "' not found"};
}

result<task_row> named_row(const call& c) {
  auto row = c.parts->storage->task(named_task(c.named("taskId")));
  return row || row.error().code != errc::not_found ? row : result<task_row>(no_task(c));
}

result<value> services_of_task(const call& c) {
  auto row = named_row(c);
  if (!row)
    return row.error();
  auto all = c.parts->proxy->services_of(*c.parts->storage, *row);
  if (!all)
    return all.error();
  const auto runs = c.parts->storage->runs(row->id);
  const bool placed =
    runs && !runs->empty() && runs->back().placed != time_point{} && runs->back().ended == time_point{};
  const auto other = c.parts->storage->other_task(row->id);
  value out = value::array();
  for (const auto& one : *all) {
    const auto use = c.parts->proxy->junctions->use_of(one.id);
    const bool used = use.last.time_since_epoch().count() != 0;
    // A service with a socket reports when it is ready.
    out.push_back(
      {{"service", one.id},
       {"port", one.port == 0 ? value() : value(one.port)},
       {"protocol", one.tcp ? "tcp" : "http"},
       {"ready", placed && (!one.socket || (other && other->ready))},
       {"connections", use.connections},
       {"lastUsed", used ? value(to_rfc3339(std::chrono::time_point_cast<duration>(use.last))) : value()}});
  }
  return out;
}

/// Redirects a person's browser to the task's page. The browser shows the cookie of the web page, or a token.
result<response> interactive(const call& c) {
  if (!named_task(c.named("taskId")))
    return no_task(c);
  auto row = named_row(c);
  if (!row)
    return row.error();
  auto all = c.parts->proxy->services_of(*c.parts->storage, *row);
  if (!all)
    return all.error();
  const auto name = task_name(row->experiment, row->id);
  for (const auto& one : *all)
    if (one.id == name && !one.tcp)
      return send_to_page(*c.parts, one.id, c.headers.host,
                          std::string(shown_token(c.headers, c.parts->about.cluster_id).token), c.now,
                          "/proxy/" + one.id + "/");
  return error{errc::not_found, "task '" + name + "' has no page: none of its services is its default one"};
}

/// Takes a connection that an agent brings. The route is open, because an agent has no user; it proves itself
/// by the secret that it was given for this connection.
void bring(const call_ptr& c, const reply& back) {
  const auto connection = std::string(c->named("connectionId"));
  const auto& shown = c->headers.authorization;
  const auto secret = shown.starts_with("Bearer ") ? shown.substr(7) : std::string();
  const auto table = c->parts->proxy->junctions;
  const error stranger{errc::unauthorized, "no connection is awaited under this name and key"};
  if (!table->is_expected(connection, secret))
    return back(failure(stranger));
  if (c->query.has("fault")) {
    const auto code = c->query.flag("absent") ? errc::not_found : errc::busy;
    const auto what = "the service does not answer: " + std::string(c->query.first("fault")).substr(0, 300);
    table->bring(connection, secret, error{code, what});
    return back(json(value::object()));
  }
  if (c->headers.upgrade != "troupe-connection")
    return back(failure({errc::invalid, "a connection is brought as an upgrade to troupe-connection"}));
  response out;
  out.headers.emplace_back("Upgrade", "troupe-connection");
  // Where `bring` gives false, two connections came for one request, or it was given up meanwhile. Then this
  // one is closed.
  out.taker = [table, connection, secret](std::shared_ptr<http::byte_link> link) {
    table->bring(connection, secret, std::move(link));
  };
  out.socket_taker = [table, connection, secret](workers::owned_fd socket) {
    table->bring(connection, secret, proxy::service_end(std::move(socket)));
  };
  back(std::move(out));
}

} // namespace

std::vector<route> proxy_routes() {
  std::vector<route> rows = {
    {"GET",
     "/troupe/v1/tasks/{taskId}/services",
     {action::view, thing::task},
     answer_with(services_of_task),
     "",
     "list of TaskService",
     "What listens inside a task and is reached under /proxy/SERVICE/."},
    leads_to_login({"GET",
                    "/det/interactive/{taskId}",
                    {action::view, thing::task},
                    respond_with(interactive),
                    "",
                    "Redirection",
                    "A browser's way to the page of a task."}),
    leads_to_login({"GET",
                    "/det/interactive/{taskId}/{rest*}",
                    {action::view, thing::task},
                    respond_with(interactive),
                    "",
                    "Redirection",
                    "The same, as the stock client names it."}),
    {"GET",
     "/troupe/v1/connections/{connectionId}",
     {action::report, thing::secret},
     bring,
     "",
     "Connection",
     "For agents, with the key of the order: a connection to a service, as an upgrade to "
     "troupe-connection."},
  };
  return rows;
}

} // namespace troupe::api

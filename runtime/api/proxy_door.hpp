#pragma once
// Decides on the head of a request to a service of a task: the request is refused, redirected, or passed on.

#include "runtime/api/service.hpp"
#include "runtime/proxy/headers.hpp"

namespace troupe::api {

/// What a connection knows about the client.
struct proxy_caller {
  std::string address; ///< IP address, without the port
  bool tls = false;
  bool at_pages = false; ///< the client called the port that shows only tasks' pages
  std::string upgrade;   ///< protocols that the client offers instead of HTTP, in lower case, or empty
};

/// A request that was let in.
struct proxied {
  enum class way {
    http,      ///< one request and its answer
    websocket, ///< a WebSocket of the service, passed through unchanged
    frames,    ///< bytes in binary frames of a WebSocket that this server speaks itself
    bytes,     ///< plain bytes in both directions, for `troupe tunnel`
  };
  way how = way::http;
  proxy_desk::found_service at;
  std::string target;                 ///< target that the service gets
  proxy::header_list head;            ///< headers that the service gets, without those that frame the body
  std::string accept;                 ///< value of Sec-WebSocket-Accept, for `frames`
  std::size_t most = 0;               ///< limit of connections to this service; 0: the usual limit
  std::chrono::seconds first_byte{0}; ///< time for the viewer to send its first byte; 0: no limit
  bool sandboxed = false; ///< the answer is shown on the API's own origin, so it has to be sandboxed
  bool page = false;      ///< a person's browser asks: faults are shown as a page
  std::string pass;       ///< the viewer's credential; empty: the service is open to strangers
};

/// Says whether a long connection may go on: its login may have ended meanwhile, or the right to the task.
/// The caller asks every few seconds. Rights are looked up only after a fact about people, places or roles,
/// and every ten minutes.
class lasting_right {
public:
  explicit lasting_right(const proxied& of) : pass_(of.pass), task_(of.at.task) {}
  bool holds(const service& api, time_point now);

private:
  std::string pass_;
  task_row task_;
  std::uint64_t sequence_ = 0, facts_ = 0;
  time_point looked_;
  int looks_ = 0; ///< lookups that are due
};

/// Decides on one request. `head` is what the API reads of it, `all` are all its headers. The response is a
/// refusal, a page or a redirection.
std::variant<proxied, response> open_door(const service& api, const request_head& head,
                                          const proxy::header_list& all, const proxy_caller& by);

/// The answer to `/det/interactive/TASK/...`: it sends the user's browser to the task's own page.
response send_to_page(const services& parts, const std::string& service, const std::string& host,
                      const std::string& token, time_point now, const std::string& path);

/// Sends a browser without a valid login to the login page, and from there to `page`, a path of this server
/// below /det/ or /proxy/ (web/src/app.tsx).
response send_to_login(const std::string& page);

/// The answer where a connection to a service failed. `page`: a page, which reloads itself where that may
/// help.
response service_fault(const error& why, bool page);

} // namespace troupe::api

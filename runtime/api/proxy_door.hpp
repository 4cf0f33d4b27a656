#pragma once
// A request to a service of a task, from its head to the decision: refused, sent elsewhere, or passed on.

#include "runtime/api/service.hpp"
#include "runtime/proxy/headers.hpp"

namespace troupe::api {

/// What a connection knows of who called.
struct proxy_caller {
  std::string address; ///< without its port
  bool tls = false;
  bool at_pages = false; ///< at the port that all pages share
  std::string upgrade;   ///< the protocols offered for this connection, in lower case, or empty
};

/// Let in.
struct proxied {
  enum class way {
    http,      ///< a request with its answer
    websocket, ///< handed through as it is
    frames,    ///< bytes in binary frames of a WebSocket that we answer
    bytes,     ///< bytes as they come, for `troupe tunnel`
  };
  way how = way::http;
  proxy_desk::found_service at;
  std::string target;                 ///< for the service
  proxy::header_list head;            ///< for the service, without framing
  std::string accept;                 ///< Sec-WebSocket-Accept, of `frames`
  std::size_t most = 0;               ///< connections of this service; 0: as of all
  std::chrono::seconds first_byte{0}; ///< time for the viewer to say something; 0: all it likes
  bool sandboxed = false;             ///< the answer goes out on the API's own origin
  bool page = false;                  ///< a person looks: faults are shown as a page
  std::string pass;                   ///< the credential; empty: it is open to strangers
};

/// Whether a connection that lasts may go on: its login may have ended meanwhile, or the right to the task.
/// To be asked every few seconds; it looks after a fact about people, places or roles, and every ten minutes.
class lasting_right {
public:
  explicit lasting_right(const proxied& of) : pass_(of.pass), task_(of.at.task) {}
  bool holds(const service& api, time_point now);

private:
  std::string pass_;
  task_row task_;
  std::uint64_t sequence_ = 0, facts_ = 0;
  time_point looked_;
  int looks_ = 0; ///< that are due
};

/// `head`: with what api::request_head has of it. The answer is a refusal, a page or a redirection.
std::variant<proxied, response> open_door(const service& api, const request_head& head,
                                          const proxy::header_list& all, const proxy_caller& by);

/// `/det/interactive/TASK/...`: the user's browser goes on to the task's own page.
response send_to_page(const services& parts, const std::string& service, const std::string& host,
                      const std::string& token, time_point now, const std::string& path);

/// A browser that nobody is known of logs in first, and then goes on to `page`, a path of this server below
/// /det/ or /proxy/ (web/src/app.tsx).
response send_to_login(const std::string& page);

/// What a fault of a connection to a service looks like. `page`: reloads itself where that may help.
response service_fault(const error& why, bool page);

} // namespace troupe::api

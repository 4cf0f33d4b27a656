#pragma once
// Which credential opens a service's door, and what a request without one is told. Pure.
//
// A page that a task serves is foreign to the cluster. So the page has an origin of its own, and the API's
// origin never shows a browser anything that comes from a task.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::proxy {

/// The origin at which a request arrived, by its Host or its port.
enum class place {
  api,       ///< the origin of the API and the web page
  own_page,  ///< the origin of the service
  other_page ///< the origin of another service's page
};

/// What a request shows. A credential counts here only if it is valid.
struct knock {
  place at = place::api;
  bool anyone = false;  ///< whether the service is open to everybody
  bool browser = false; ///< whether there is a Sec-Fetch-Mode, which browsers send
  /// Whether a browser opens this address as a page: Sec-Fetch-Mode navigate, Sec-Fetch-Dest document.
  bool navigates = false;
  bool safe = true; ///< whether the method is GET or HEAD, without an upgrade
  /// Whether the browser says that a page of another origin sent the request.
  bool from_elsewhere = false;
  bool header = false;      ///< a login, an access token or a task's token in a header
  bool query = false;       ///< the same as the parameter ?token=
  bool page_cookie = false; ///< the cookie of this service's page
  bool api_cookie = false;  ///< the cookie of the web page
  bool code = false;        ///< a code that works once, for this service
};

enum class opening {
  by_nobody, ///< let in: the service itself checks who comes
  by_header, ///< let in
  by_query,  ///< let in; the parameter is removed
  by_cookie, ///< let in
  /// Let in by the code: the answer sets the page's cookie and names the address without the code.
  exchange,
  exchange_query, ///< let in by ?token=: the answer is the same
  send_on,        ///< a browser goes to the service's own origin with a code
  /// A browser without a cookie is sent to the API's origin, which knows the user.
  send_back,
  /// A browser whose user is not known is sent to the login.
  log_in,
  /// Refused: the request comes from a page that is not the service's own.
  foreign,
  unauthorized,
};

opening opening_of(const knock& x);

/// Which origins services' pages have; they differ from the API's origin.
struct page_names {
  bool loopback = false; ///< whether the origin is LABEL.localhost
  std::string domain;    ///< the origin is LABEL.DOMAIN; empty: it is not
  /// Port of the API's host that serves the pages, all of one origin; 0: none.
  std::uint16_t port = 0;
};
/// `host`: as the request names it, without the port and in lower case.
place place_of(std::string_view host, std::string_view label, const page_names& names);
/// Whether the host is that of a page, whatever the service: the API does not answer there.
bool is_page_host(std::string_view host, const page_names& names);
/// The origin of a service's page, for example "http://LABEL.localhost:8080"; none if no name and no port is
/// set. `host`: the API's host and port as the browser names them.
std::optional<std::string> page_origin(std::string_view label, std::string_view host, bool tls,
                                       const page_names& names);

} // namespace troupe::proxy

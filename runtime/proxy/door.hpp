#pragma once
// Which credential opens a service's door, and what becomes of a request without one. Pure.
//
// A page that a task serves is a stranger to the cluster. So it has an origin of its own, and on the API's
// origin nothing of a task is ever shown to a browser.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::proxy {

/// Whose origin a request came to, by its Host or its port.
enum class place {
  api,       ///< the API's and the web page's own
  own_page,  ///< the service's own
  other_page ///< the page of another service
};

/// What a request shows. A credential counts here only where it is valid.
struct knock {
  place at = place::api;
  bool anyone = false;         ///< the service is open to strangers
  bool browser = false;        ///< Sec-Fetch-Mode is there, as browsers send it
  bool navigates = false;      ///< a browser's own page goes there: Sec-Fetch-Mode navigate, Dest document
  bool safe = true;            ///< GET or HEAD, and no upgrade
  bool from_elsewhere = false; ///< a browser says that a page of another origin sent it
  bool header = false;         ///< a login, an access token or a task's token in a header
  bool query = false;          ///< the same as ?token=
  bool page_cookie = false;    ///< of this service's page
  bool api_cookie = false;     ///< of the web page
  bool code = false;           ///< one that works once, for this service
};

enum class opening {
  by_nobody,      ///< let in: the service asks itself who comes
  by_header,      ///< let in
  by_query,       ///< let in, without the parameter
  by_cookie,      ///< let in
  exchange,       ///< of the code: the answer sets the page's cookie and names the clean address
  exchange_query, ///< of ?token=: the same
  send_on,        ///< a browser goes to the service's own origin with a code
  send_back,      ///< a browser without a cookie goes to the API's origin, which knows who looks
  log_in,         ///< a browser that nobody is known of
  foreign,        ///< refused: a page that is not the service's own asks
  unauthorized,
};

opening opening_of(const knock& x);

/// Where services' pages have origins that are not the API's.
struct page_names {
  bool loopback = false;  ///< LABEL.localhost is
  std::string domain;     ///< LABEL.DOMAIN is; empty: none
  std::uint16_t port = 0; ///< the same host has pages there, all with one origin; 0: none
};
/// `host`: as the request names it, without its port and in lower case.
place place_of(std::string_view host, std::string_view label, const page_names& names);
/// Whether the host is a page's at all, whosever: the API does not answer there.
bool is_page_host(std::string_view host, const page_names& names);
/// "http://LABEL.localhost:8080"; none where no name and no port is set. `host`: the API's own, with its
/// port, as the browser names it.
std::optional<std::string> page_origin(std::string_view label, std::string_view host, bool tls,
                                       const page_names& names);

} // namespace troupe::proxy

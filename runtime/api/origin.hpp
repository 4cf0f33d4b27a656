#pragma once
// What a request says of where it comes from, and what follows for the web page: which token it shows,
// whether our own page sent it, and whether it was meant for this server.

#include "runtime/api/route.hpp"

namespace troupe::api {

/// What every answer below /ui says, refusals too.
inline constexpr std::pair<const char*, const char*> page_headers[] = {
  {"Content-Security-Policy",
   "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
   "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
   "require-trusted-types-for 'script'; trusted-types troupe"},
  {"Referrer-Policy", "no-referrer"},
  {"Cross-Origin-Opener-Policy", "same-origin"}};
/// Whether a target is "/ui" or below it.
inline bool is_of_the_page(std::string_view target) {
  return target.starts_with("/ui") && (target.size() == 3 || target[3] == '/' || target[3] == '?');
}

/// "troupe-" and 8 digits of the cluster's id: cookies know no port, and two clusters may share a host.
std::string cookie_name(const std::string& cluster_id);

struct shown {
  std::string_view token; ///< empty: none
  bool by_cookie = false; ///< a browser sent it by itself
};
/// The user's own token goes before the allocation's.
shown shown_token(const request_headers& headers, const std::string& cluster_id);

/// errc::denied unless a browser says that our own page sent the request: Sec-Fetch-Site, or an Origin that
/// equals the Host.
result<void> comes_from_own_page(const request_headers& headers, bool tls);

/// errc::denied where a browser says that a page of another site sent it. A client that is no browser says
/// nothing.
result<void> is_not_from_elsewhere(const request_headers& headers, bool tls);

/// Whether a person's browser goes to a page: who asks for HTML and shows no credential in a header. Browsers
/// send no Sec-Fetch-* over plain HTTP, unless to loopback.
bool asks_for_page(const request_headers& headers);

/// errc::denied where the server is reachable on loopback alone and the Host is none of its names: then a
/// foreign name was made to point here (DNS rebinding).
result<void> host_is_ours(const request_headers& headers, const browser_rules& rules);

/// errc::denied where the Host is that of a page of some task: the API does not answer there.
result<void> is_not_a_page(const request_headers& headers, const browser_rules& rules);

} // namespace troupe::api

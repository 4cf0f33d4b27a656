#pragma once
// What a request says about its origin, and what the server concludes for the web page: which token the
// request shows, whether our own page sent it, and whether it was meant for this server.

#include "runtime/api/route.hpp"

namespace troupe::api {

/// Headers of every answer below /ui, refusals included.
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

/// Calls `set` with name and text of each header that every answer to this target has.
template <class F>
void for_common_headers(std::string_view target, F&& set) {
  set("X-Content-Type-Options", "nosniff");
  if (is_of_the_page(target))
    for (const auto& [key, text] : page_headers)
      set(key, text);
}

/// "troupe-" and 8 digits of the cluster's id. Cookies do not depend on the port, and two clusters may share
/// a host.
std::string cookie_name(const std::string& cluster_id);

struct shown {
  std::string_view token; ///< empty: the request shows no token
  bool by_cookie = false; ///< a browser sent the token on its own
};
/// The token of a request. A user's token has precedence over an allocation's.
shown shown_token(const request_headers& headers, const std::string& cluster_id);

/// Fails with errc::denied unless a browser says that our own page sent the request: by Sec-Fetch-Site, or by
/// an Origin that equals the Host.
result<void> comes_from_own_page(const request_headers& headers, bool tls);

/// Fails with errc::denied where a browser says that a page of another site sent the request. Other clients
/// do not say where a request comes from, and pass.
result<void> is_not_from_elsewhere(const request_headers& headers, bool tls);

/// Whether a person opens a page with a browser: the request asks for HTML and shows no credential in a
/// header. Sec-Fetch-* cannot tell, because browsers do not send it over plain HTTP unless to loopback.
bool asks_for_page(const request_headers& headers);

/// Fails with errc::denied where the server is reachable on loopback only and the Host is none of its names:
/// then somebody made a foreign name point here (DNS rebinding).
result<void> host_is_ours(const request_headers& headers, const browser_rules& rules);

/// Fails with errc::denied where the Host belongs to the page of a task: the API does not answer there.
result<void> is_not_a_page(const request_headers& headers, const browser_rules& rules);

} // namespace troupe::api

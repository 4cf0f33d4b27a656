#pragma once
// What of a request's header reaches a task, and what of its answer's a viewer. Pure.
//
// A viewer's login never reaches a task; a task's page never touches what is the cluster's.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::proxy {

/// In the order of the message; names as they came.
using header_list = std::vector<std::pair<std::string, std::string>>;

std::string_view first_of(const header_list& list, std::string_view name); ///< empty where there is none

struct viewer {
  std::string address;               ///< the client's, without its port
  bool tls = false;                  ///< whether it came over TLS
  bool authorization_passes = false; ///< `Authorization` is the service's own, not ours
};

/// Without what belongs to the connection, without framing (the sender of the body sets it), without
/// credentials of ours; with X-Forwarded-For, -Proto, -Host and X-Real-IP as we know them. `Host` passes.
header_list to_service(const header_list& came, const viewer& who);

/// Without what belongs to the connection, without framing; without cookies that have our names, and
/// `Domain` of others; without what reaches beyond the page: Service-Worker-Allowed, Clear-Site-Data,
/// Strict-Transport-Security.
header_list to_viewer(const header_list& came);

/// Whether a name in a cookie is one of ours.
bool is_our_cookie(std::string_view name);
/// The value of a cookie in a `Cookie` header; empty where it has none.
std::string_view cookie_in(std::string_view header, std::string_view name);

} // namespace troupe::proxy

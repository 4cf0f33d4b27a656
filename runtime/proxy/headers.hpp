#pragma once
// Which headers of a request reach a task, and which headers of its answer reach a viewer. Pure.
//
// A viewer's login never reaches a task; a task's page never changes what belongs to the cluster.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::proxy {

/// Headers in the order of the message; names as they arrived.
using header_list = std::vector<std::pair<std::string, std::string>>;

std::string_view first_of(const header_list& list, std::string_view name); ///< empty if there is none

struct viewer {
  std::string address; ///< the client's address, without its port
  bool tls = false;    ///< whether the request came over TLS
  /// Whether `Authorization` is for the service and not for the API.
  bool authorization_passes = false;
};

/// The headers for the service: without those of the connection, without framing (the sender of the body sets
/// it), without credentials of the cluster; with X-Forwarded-For, -Proto, -Host and X-Real-IP as this server
/// knows them. `Host` is passed on.
header_list to_service(const header_list& came, const viewer& who);

/// The headers for the viewer: without those of the connection, without framing, without cookies that have
/// the cluster's names, without the `Domain` of other cookies, and without what reaches beyond the page:
/// Service-Worker-Allowed, Clear-Site-Data, Strict-Transport-Security.
header_list to_viewer(const header_list& came);

/// Whether a cookie's name is one that the cluster uses.
bool is_our_cookie(std::string_view name);
/// The value of a cookie in a `Cookie` header; empty if the header does not have it.
std::string_view cookie_in(std::string_view header, std::string_view name);

} // namespace troupe::proxy

#include "runtime/api/origin.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

std::string_view bearer(std::string_view header) {
  for (std::string_view scheme : {"Bearer ", "bearer "})
    if (header.starts_with(scheme))
      return header.substr(scheme.size());
  return {};
}

std::string_view cookie_named(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    auto end = header.find(';');
    auto pair = header.substr(0, end);
    header = end == header.npos ? std::string_view{} : header.substr(end + 1);
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=')
      return pair.substr(name.size() + 1);
  }
  return {};
}

/// The host without its port, in lower case: "[::1]:8080" -> "[::1]", "Head:80" -> "head".
std::string host_alone(std::string_view text) {
  const auto bracket = text.find(']');
  const auto colon = text.find(':', bracket == text.npos ? 0 : bracket);
  std::string out(text.substr(0, colon));
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool same_origin(const request_headers& h, bool tls) {
  return !h.host.empty() && h.origin == (tls ? "https://" : "http://") + h.host;
}

} // namespace

std::string cookie_name(const std::string& cluster_id) {
  std::string digits;
  for (char c : cluster_id)
    if (digits.size() < 8 && c != '-')
      digits += c;
  return "troupe-" + digits;
}

shown shown_token(const request_headers& h, const std::string& cluster_id) {
  for (auto token : {bearer(h.user_token), bearer(h.authorization)})
    if (!token.empty())
      return {token, false};
  if (!h.cookie.empty())
    for (auto token : {cookie_named(h.cookie, cookie_name(cluster_id)), cookie_named(h.cookie, "auth")})
      if (!token.empty())
        return {token, true};
  return {bearer(h.allocation_token), false};
}

result<void> comes_from_own_page(const request_headers& h, bool tls) {
  if (h.fetch_site == "same-origin" || (h.fetch_site.empty() && same_origin(h, tls)))
    return {};
  return error{errc::denied, "a request that changes something and shows a cookie has to come from this "
                             "server's own page"};
}

result<void> is_not_from_elsewhere(const request_headers& h, bool tls) {
  const bool said_nothing = h.fetch_site.empty() && h.origin.empty();
  return said_nothing || h.fetch_site == "none" ? result<void>{} : comes_from_own_page(h, tls);
}

bool asks_for_page(const request_headers& headers) {
  return headers.accept.find("text/html") != headers.accept.npos && headers.authorization.empty() &&
         headers.user_token.empty() && headers.allocation_token.empty();
}

result<void> host_is_ours(const request_headers& h, const browser_rules& rules) {
  if (!rules.loopback || h.host.empty())
    return {};
  const auto host = host_alone(h.host);
  for (const char* own : {"localhost", "127.0.0.1", "[::1]"})
    if (host == own)
      return {};
  for (const auto& own : rules.hosts)
    if (host == host_alone(own))
      return {};
  return error{errc::denied, "this server listens on loopback alone and is not called '" +
                               host.substr(0, 100) +
                               "'; start it with --web-host NAME to have it answer to that name"};
}

result<void> is_not_a_page(const request_headers& h, const browser_rules& rules) {
  if (!proxy::is_page_host(host_alone(h.host), {false, rules.proxy_domain, 0}))
    return {};
  return error{errc::denied, "this address shows a task's service, and nothing of the cluster"};
}

} // namespace troupe::api

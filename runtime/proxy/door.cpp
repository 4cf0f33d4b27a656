#include "runtime/proxy/door.hpp"

#include <algorithm>

namespace troupe::proxy {
namespace {

opening at_api(const knock& x) {
  if (x.anyone && !x.browser)
    return opening::by_nobody;
  if (x.browser && !x.navigates)
    return opening::foreign;
  if (x.browser)
    return x.header || x.query || x.api_cookie ? opening::send_on : opening::log_in;
  if (x.header)
    return opening::by_header;
  return x.query ? opening::by_query : opening::unauthorized; // a cookie never opens the API's origin
}

opening at_own_page(const knock& x) {
  if (x.header)
    return opening::by_header;
  // Pages of other services may belong to the same site: they may navigate here, and do nothing else.
  if (x.from_elsewhere && !(x.navigates && x.safe))
    return opening::foreign;
  if (x.code && x.safe)
    return opening::exchange;
  if (x.query && x.navigates && x.safe)
    return opening::exchange_query;
  if (x.page_cookie)
    return opening::by_cookie;
  if (x.query)
    return opening::by_query;
  if (x.anyone && !x.browser)
    return opening::by_nobody;
  return x.navigates && x.safe ? opening::send_back : opening::unauthorized;
}

/// Splits "head:8080" into "head" and ":8080"; the brackets of an IPv6 address stay.
std::pair<std::string_view, std::string_view> split_host(std::string_view host) {
  const auto bracket = host.find(']');
  const auto colon = std::min(host.find(':', bracket == host.npos ? 0 : bracket), host.size());
  return {host.substr(0, colon), host.substr(colon)};
}

bool is_of_loopback(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

bool is_below(std::string_view host, std::string_view domain) {
  return !domain.empty() && host.size() > domain.size() + 1 && host.ends_with(domain) &&
         host[host.size() - domain.size() - 1] == '.';
}

} // namespace

opening opening_of(const knock& x) {
  switch (x.at) {
  case place::api:
    return at_api(x);
  case place::own_page:
    return at_own_page(x);
  case place::other_page:
    break;
  }
  return opening::foreign;
}

bool is_page_host(std::string_view host, const page_names& names) {
  return (names.loopback && is_below(host, "localhost")) || is_below(host, names.domain);
}

place place_of(std::string_view host, std::string_view label, const page_names& names) {
  if (!is_page_host(host, names))
    return place::api;
  const auto dot = host.find('.');
  const auto parent = host.substr(dot + 1);
  const bool own =
    host.substr(0, dot) == label && ((names.loopback && parent == "localhost") || parent == names.domain);
  return own ? place::own_page : place::other_page;
}

std::optional<std::string> page_origin(std::string_view label, std::string_view host, bool tls,
                                       const page_names& names) {
  if (label.size() > 63)
    return std::nullopt;
  const auto [name, port] = split_host(host);
  // If another server in front of this one terminates TLS, its port is the port of https.
  if (!names.domain.empty())
    return "https://" + std::string(label) + "." + names.domain + std::string(tls ? port : "");
  const std::string scheme = tls ? "https://" : "http://";
  // A server on loopback may be reached by another name; such a name says nothing about names below
  // localhost.
  if (names.loopback && (names.port == 0 || is_of_loopback(name)))
    return scheme + std::string(label) + ".localhost" + std::string(port);
  if (names.port != 0 && !name.empty())
    return scheme + std::string(name) + ":" + std::to_string(names.port);
  return std::nullopt;
}

} // namespace troupe::proxy

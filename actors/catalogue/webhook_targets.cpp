#include "actors/catalogue/webhook_targets.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <optional>

namespace troupe {
namespace {

/// An address as 16 bytes; an IPv4 address is ::ffff:a.b.c.d.
using plain_address = std::array<unsigned char, 16>;

std::optional<plain_address> parse_address(const std::string& text) {
  plain_address out{};
  if (inet_pton(AF_INET6, text.c_str(), out.data()) == 1)
    return out;
  out[10] = out[11] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), out.data() + 12) == 1)
    return out;
  return std::nullopt;
}

bool within(const plain_address& x, const plain_address& net, int bits) {
  for (int i = 0; i < bits; ++i)
    if (((x[static_cast<std::size_t>(i / 8)] ^ net[static_cast<std::size_t>(i / 8)]) >> (7 - i % 8)) & 1)
      return false;
  return true;
}

/// Whether `x` lies in a range such as "10.1.0.0/16", or is the one address.
bool within(const plain_address& x, const std::string& range) {
  const auto slash = range.find('/');
  const auto net = parse_address(range.substr(0, slash));
  if (!net)
    return false;
  const bool of_four = range.find(':') == range.npos;
  int bits = of_four ? 32 : 128;
  if (slash != range.npos) {
    const auto* end = range.data() + range.size();
    const auto [at, fault] = std::from_chars(range.data() + slash + 1, end, bits);
    if (fault != std::errc{} || at != end || bits < 0 || bits > (of_four ? 32 : 128))
      return false;
  }
  return within(x, *net, bits + (of_four ? 96 : 0));
}

/// The IPv4 address that an IPv6 address of NAT64 or 6to4 leads to.
plain_address unwrapped(const plain_address& x) {
  plain_address out{};
  out[10] = out[11] = 0xff;
  const auto take = [&](std::size_t from) {
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(from), 4, out.begin() + 12);
  };
  if (within(x, "64:ff9b::/96"))
    take(12);
  else if (within(x, "2002::/16"))
    take(2);
  else if (within(x, "::/96") && !within(x, "::/127"))
    take(12);
  else
    return x;
  return out;
}

bool within_any(const plain_address& x, std::initializer_list<const char*> ranges) {
  for (const auto* range : ranges)
    if (within(x, range))
      return true;
  return false;
}

/// Why no webhook goes to `x`, whatever is allowed; empty: one may go there.
std::string never(const plain_address& x, const std::string& address) {
  if (within_any(x, {"169.254.0.0/16", "fe80::/10", "fec0::/10", "192.0.0.0/24", "64:ff9b:1::/48"}))
    return address +
           " is an address of the link or the site, where hosts of clouds keep their secrets: no webhook "
           "goes there";
  if (within_any(x, {"0.0.0.0/8", "::", "224.0.0.0/3", "ff00::/8"}))
    return address + " is not an address of one host";
  return {};
}

/// Whether the registries of special addresses (IANA) name `x` as one that no host of the Internet has. What
/// `never` and the networks of one's own hold is looked at before.
bool is_of_no_host(const plain_address& x) {
  if (within(x, "::ffff:0:0/96"))
    return within_any(x, {"192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"});
  if (within(x, "2001::/23")) // its blocks that can be reached
    return !within_any(x, {"2001:1::1", "2001:1::2", "2001:1::3", "2001:3::/32", "2001:4:112::/48",
                           "2001:20::/28", "2001:30::/28"});
  return !within(x, "2000::/3") || within_any(x, {"2001:db8::/32", "3fff::/20"});
}

} // namespace

std::string webhook_targets::refuses(const std::string& host, const std::string& address) const {
  auto parsed = parse_address(address);
  if (!parsed)
    return "'" + address + "' is not an address of the Internet protocol";
  const auto x = unwrapped(*parsed);
  if (auto why = never(x, address); !why.empty())
    return why;
  for (const auto& one : allow)
    if (one == host || within(x, one))
      return {};
  const bool own = within_any(
    x, {"127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"});
  if (own)
    return local
             ? std::string()
             : address + " is an address of this network, and the master listens on others, too\nhint: list "
                         "the receiver in cluster.webhooks.allow";
  return is_of_no_host(x) ? address + " is an address that no host of the Internet has" : std::string();
}

std::string never_a_target(const std::string& host) {
  auto parsed = parse_address(host);
  if (in_addr four; !parsed && ::inet_aton(host.c_str(), &four) != 0) { // 0xa9fea9fe, 0251.0376.0xa9fe
    parsed.emplace();
    (*parsed)[10] = (*parsed)[11] = 0xff;
    std::memcpy(parsed->data() + 12, &four, sizeof four);
  }
  return parsed ? never(unwrapped(*parsed), host) : std::string();
}

} // namespace troupe

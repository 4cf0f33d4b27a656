#include "runtime/proxy/headers.hpp"

#include <algorithm>
#include <cctype>

namespace troupe::proxy {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

template <class Use>
void each_of(std::string_view list, char by, Use use) {
  for (;;) {
    const auto end = list.find(by);
    if (const auto word = trimmed(list.substr(0, end)); !word.empty())
      use(word);
    if (end == list.npos)
      return;
    list.remove_prefix(end + 1);
  }
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The name as a service may read it: some services (CGI, WSGI) take `_` for `-`.
std::string plain_name(std::string_view name) {
  auto out = lower(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

/// Whether a header concerns only one connection: a fixed set, and the headers that `Connection` names.
bool is_of_the_hop(const std::string& name, const std::vector<std::string>& named) {
  return is_one_of(name, {"connection", "keep-alive", "proxy-connection", "proxy-authenticate",
                          "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade", "expect",
                          "content-length"}) ||
         std::find(named.begin(), named.end(), name) != named.end();
}

std::vector<std::string> named_in_connection(const header_list& came) {
  std::vector<std::string> names;
  for (const auto& [name, text] : came)
    if (lower(name) == "connection")
      each_of(text, ',', [&](std::string_view word) {
        if (lower(word) != "host") // `Host` never concerns only one connection, whatever `Connection` names
          names.push_back(lower(word));
      });
  return names;
}

std::string without_ours(std::string_view cookies) {
  std::string out;
  each_of(cookies, ';', [&](std::string_view pair) {
    if (!is_our_cookie(trimmed(pair.substr(0, pair.find('=')))))
      out += (out.empty() ? "" : "; ") + std::string(pair);
  });
  return out;
}

/// The text of a cookie to set; empty: the cookie is not set at all. A cookie without a name is not set,
/// because browsers send back only its text, which may be "auth=...".
std::string own_cookie_only(std::string_view text) {
  std::string out;
  bool first = true, ours = false;
  each_of(text, ';', [&](std::string_view part) {
    const auto equals = part.find('=');
    const auto name = trimmed(part.substr(0, equals));
    if (std::exchange(first, false))
      ours = is_our_cookie(name) || name.empty() || equals == part.npos;
    else if (lower(name) == "domain")
      return;
    out += (out.empty() ? "" : "; ") + std::string(part);
  });
  return ours ? std::string() : out;
}

} // namespace

std::string_view first_of(const header_list& list, std::string_view name) {
  const auto wanted = lower(name);
  for (const auto& [key, text] : list)
    if (lower(key) == wanted)
      return text;
  return {};
}

bool is_our_cookie(std::string_view name) {
  const auto plain = lower(name);
  return plain == "auth" || plain.starts_with("troupe-");
}

std::string_view cookie_in(std::string_view header, std::string_view name) {
  std::string_view found;
  each_of(header, ';', [&](std::string_view pair) {
    const auto equals = pair.find('=');
    if (found.empty() && equals != pair.npos && trimmed(pair.substr(0, equals)) == name)
      found = trimmed(pair.substr(equals + 1));
  });
  return found;
}

header_list to_service(const header_list& came, const viewer& who) {
  header_list out;
  const auto named = named_in_connection(came);
  for (const auto& [key, text] : came) {
    const auto name = plain_name(key);
    if (is_of_the_hop(name, named) || is_of_the_hop(lower(key), named) ||
        name.starts_with("grpc-metadata-") || name.starts_with("x-forwarded-") ||
        is_one_of(name, {"x-real-ip", "forwarded"}))
      continue;
    if (name == "authorization" && !who.authorization_passes)
      continue;
    if (name == "cookie") {
      if (auto theirs = without_ours(text); !theirs.empty())
        out.emplace_back(key, std::move(theirs));
      continue;
    }
    out.emplace_back(key, text);
  }
  out.emplace_back("X-Real-IP", who.address);
  out.emplace_back("X-Forwarded-For", who.address);
  out.emplace_back("X-Forwarded-Proto", who.tls ? "https" : "http");
  if (const auto host = first_of(came, "host"); !host.empty())
    out.emplace_back("X-Forwarded-Host", std::string(host));
  return out;
}

header_list to_viewer(const header_list& came) {
  header_list out;
  const auto named = named_in_connection(came);
  for (const auto& [key, text] : came) {
    const auto name = lower(key);
    if (is_of_the_hop(name, named) ||
        is_one_of(name, {"service-worker-allowed", "clear-site-data", "strict-transport-security"}))
      continue;
    if (name == "set-cookie") {
      if (auto theirs = own_cookie_only(text); !theirs.empty())
        out.emplace_back(key, std::move(theirs));
      continue;
    }
    out.emplace_back(key, text);
  }
  return out;
}

} // namespace troupe::proxy

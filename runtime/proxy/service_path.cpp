#include "runtime/proxy/service_path.hpp"

#include <charconv>
#include <optional>

namespace troupe::proxy {
namespace {

constexpr std::string_view prefix = "/proxy/";
constexpr std::size_t most_target = 16'384, most_service = 128;

int digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0)
      return std::nullopt;
    out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return out;
}

bool climbs(std::string_view decoded_segment) {
  for (;;) {
    const auto end = decoded_segment.find('/');
    const auto part = decoded_segment.substr(0, end);
    if (part == "." || part == "..")
      return true;
    if (end == decoded_segment.npos)
      return false;
    decoded_segment.remove_prefix(end + 1);
  }
}

error bad(const std::string& why) { return {errc::invalid, "this address is refused: " + why}; }

result<void> check_segment(std::string_view segment, bool last) {
  const auto text = decoded(segment);
  if (!text)
    return bad("a broken escape");
  if (segment.empty() && !last)
    return bad("'//'");
  for (unsigned char c : *text)
    if (c < 0x20 || c == 0x7f || c == '\\')
      return bad("a control byte or a backslash");
  if (climbs(*text))
    return bad("'.' or '..' as a part of the path");
  return {};
}

result<void> read_service(std::string_view text, service_path& out) {
  const auto sound = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == ':';
  };
  for (unsigned char c : text)
    if (!sound(c))
      return bad("the service's name");
  if (text.empty() || text.size() > most_service || climbs(text))
    return bad("the service's name");
  const auto colon = text.find(':');
  out.service = text;
  out.task = text.substr(0, colon);
  if (colon == text.npos)
    return {};
  const auto digits = text.substr(colon + 1);
  auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (fault != std::errc{} || end != digits.data() + digits.size() || out.port < 1 || out.port > 65535 ||
      digits.front() == '0')
    return bad("the service's port");
  return {};
}

} // namespace

bool is_below_proxy(std::string_view target) {
  return target.starts_with(prefix) || target == "/proxy" || target.starts_with("/proxy?");
}

result<service_path> parse_service_path(std::string_view target) {
  if (!target.starts_with(prefix) || target.size() > most_target)
    return bad("it is not /proxy/SERVICE/...");
  service_path out;
  for (unsigned char c : target)
    if (c <= 0x20 || c >= 0x7f || c == '#')
      return bad("a byte that has to be escaped");
  const auto mark = target.find('?');
  out.path = target.substr(0, mark);
  if (mark != target.npos)
    out.query = target.substr(mark + 1);
  auto rest = std::string_view(out.path).substr(prefix.size());
  auto end = rest.find('/');
  const auto name = rest.substr(0, end);
  // Browsers escape the colon in front of the port.
  auto service = decoded(name);
  if (!service)
    return bad("a broken escape");
  if (auto ok = read_service(*service, out); !ok)
    return ok.error();
  while (end != rest.npos) {
    rest.remove_prefix(end + 1);
    end = rest.find('/');
    if (auto ok = check_segment(rest.substr(0, end), end == rest.npos); !ok)
      return ok.error();
  }
  return out;
}

std::string host_label(std::string_view service) {
  std::string out(service);
  for (char& c : out)
    if (c == '.' || c == ':')
      c = '-';
  return out;
}

taken_parameter take_parameter(std::string_view query, std::string_view name) {
  taken_parameter out;
  while (!query.empty()) {
    const auto end = query.find('&');
    const auto pair = query.substr(0, end);
    query = end == query.npos ? std::string_view() : query.substr(end + 1);
    const auto equals = pair.find('=');
    if (decoded(pair.substr(0, equals)).value_or("") != name) {
      out.rest += (out.rest.empty() ? "" : "&") + std::string(pair);
      continue;
    }
    if (!std::exchange(out.found, true) && equals != pair.npos)
      out.value = decoded(pair.substr(equals + 1)).value_or("");
  }
  return out;
}

} // namespace troupe::proxy

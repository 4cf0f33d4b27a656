#include "runtime/api/http.hpp"

#include "runtime/api/errors.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <limits>

namespace troupe::api {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

} // namespace

namespace {

constexpr std::string_view true_words[] = {"true", "True", "TRUE", "t", "T", "1"},
                           false_words[] = {"false", "False", "FALSE", "f", "F", "0"};

bool is_one_of(std::string_view text, const std::string_view (&words)[6]) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

} // namespace

std::string_view query_list::first(std::string_view name) const {
  for (const auto& [key, text] : all)
    if (key == name)
      return text;
  return {};
}

std::vector<std::string_view> query_list::every(std::string_view name) const {
  std::vector<std::string_view> found;
  for (const auto& [key, text] : all)
    if (key == name)
      found.push_back(text);
  return found;
}

bool query_list::has(std::string_view name) const { return !every(name).empty(); }

bool query_list::flag(std::string_view name, bool otherwise) const {
  auto text = first(name);
  if (text.empty())
    return otherwise;
  return is_one_of(text, true_words);
}

result<void> check_values(const query_list& query) {
  const auto wrong = [](std::string_view name, const char* is, std::string_view text) {
    return error{errc::invalid,
                 std::string(name) + is + ", and is '" + std::string(text.substr(0, 100)) + "'"};
  };
  for (const std::string_view name : {"active", "admin", "archived", "enableRegex", "excludeContainers",
                                      "excludeSlots", "follow", "includeBatchMetrics", "pinned", "regex",
                                      "removeDeletedCheckpoints", "showInactive", "showTrialData", "unbound"})
    for (const auto text : query.every(name))
      if (!text.empty() && !is_one_of(text, true_words) && !is_one_of(text, false_words))
        return wrong(name, " has to be true or false", text);
  for (const std::string_view name :
       {"experimentIdFilter.gt", "experimentIdFilter.gte", "experimentIdFilter.incl", "experimentIdFilter.lt",
        "experimentIdFilter.lte", "experimentIdFilter.notIn", "id", "ids", "projectId", "tokenIds",
        "trialIds", "userIds", "workspaceId", "workspaceIds"})
    for (const auto text : query.every(name)) {
      std::uint64_t number = 0;
      const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (!text.empty() && (fault != std::errc{} || end != text.data() + text.size() ||
                            number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())))
        return wrong(name, " has to be a number below 2^63", text);
    }
  return {};
}

result<std::int64_t> query_list::number(std::string_view name, std::int64_t otherwise) const {
  auto text = first(name);
  if (text.empty())
    return otherwise;
  std::int64_t x = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (fault != std::errc{} || end != text.data() + text.size())
    return error{errc::invalid, "query parameter " + std::string(name) + ": '" +
                                  std::string(text.substr(0, 40)) + "' is not a whole number"};
  if ((name == "limit" || name == "offset") &&
      (x < std::numeric_limits<std::int32_t>::min() || x > std::numeric_limits<std::int32_t>::max()))
    return error{errc::invalid, std::string(name) + ": '" + std::string(text.substr(0, 40)) +
                                  "' does not fit into 32 bits"}; // a body's fields come this way too
  return x;
}

result<std::string> percent_decoded(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus_is_blank)
      c = ' ';
    else if (c == '%') {
      int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1,
          low = high >= 0 ? hex_digit(text[i + 2]) : -1;
      if (low < 0)
        return error{errc::invalid, "the address holds a broken escape: '%' needs two hexadecimal digits"};
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    out += c;
  }
  return out;
}

std::vector<std::string> list_elements(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = text.find(',');
    const auto one = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    auto decoded = percent_decoded(one, false);
    out.push_back(decoded ? std::move(*decoded) : std::string(one));
  }
  return out;
}

std::string to_camel(std::string_view name) {
  std::string out;
  bool raise = false;
  for (char c : name) {
    if (c == '_') {
      raise = !out.empty();
      continue;
    }
    out += raise && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    raise = false;
  }
  return out;
}

std::string to_snake(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') {
      out += '_';
      c = static_cast<char>(c - 'A' + 'a');
    }
    out += c;
  }
  return out;
}

namespace {

/// The text without its escapes. Fails on a zero byte too, unless `any_byte` is set.
result<std::string> part_of_address(std::string_view text, bool plus_is_blank, bool any_byte = false) {
  auto decoded = percent_decoded(text, plus_is_blank);
  if (decoded && !any_byte && decoded->find('\0') != std::string::npos)
    return error{errc::invalid, "the address holds a zero byte"};
  return decoded;
}

/// Whether a parameter names metrics, whose names are those of the user's code and may have any byte.
bool names_metrics(std::string_view key) {
  constexpr std::array<std::string_view, 6> all = {"metric",      "metrics", "metricName",
                                                   "metricNames", "topics",  "x"};
  return std::find(all.begin(), all.end(), key) != all.end();
}

} // namespace

result<target> parse_target(std::string_view text) {
  if (text.empty() || text.front() != '/')
    return error{errc::invalid, "the request's address has to begin with '/'"};
  target t;
  auto mark = text.find('?');
  auto path = text.substr(0, mark);
  while (!path.empty()) {
    path.remove_prefix(1);
    auto end = path.find('/');
    auto segment = path.substr(0, end);
    path = end == path.npos ? std::string_view{} : path.substr(end);
    if (segment.empty())
      continue;
    auto decoded = part_of_address(segment, false);
    if (!decoded)
      return decoded.error();
    t.segments.push_back(std::move(*decoded));
  }
  auto query = mark == text.npos ? std::string_view{} : text.substr(mark + 1);
  query = query.substr(0, query.find('#'));
  while (!query.empty()) {
    auto end = query.find('&');
    auto pair = query.substr(0, end);
    query = end == query.npos ? std::string_view{} : query.substr(end + 1);
    if (pair.empty())
      continue;
    auto equals = pair.find('=');
    auto key = part_of_address(pair.substr(0, equals), true);
    if (!key)
      return key.error();
    auto name = to_camel(*key);
    auto text_of = equals == pair.npos ? result<std::string>(std::string{})
                                       : part_of_address(pair.substr(equals + 1), true, names_metrics(name));
    if (!text_of)
      return text_of.error();
    t.query.all.emplace_back(std::move(name), std::move(*text_of));
  }
  return t;
}

struct reply::state {
  std::function<void(response)> send;
  std::atomic<bool> answered = false;
  ~state() {
    if (!answered)
      send(failure(
        {errc::internal, "the request was dropped without an answer; what it asked for may have happened"}));
  }
};

reply::reply(std::function<void(response)> send) : state_(std::make_shared<state>()) {
  state_->send = std::move(send);
}

void reply::operator()(response x) const {
  if (!state_->answered.exchange(true))
    state_->send(std::move(x));
}

} // namespace troupe::api

#include "runtime/api/listing.hpp"

#include "model/config/duration_text.hpp"

#include <cctype>

namespace troupe::api {

std::string folded(std::string_view text) {
  std::string out;
  for (unsigned char c : text)
    out += static_cast<char>(std::tolower(c));
  return out;
}

bool contains_folded(std::string_view text, std::string_view part) {
  return folded(text).find(folded(part)) != std::string::npos;
}

result<duration> go_duration(const std::string& text) {
  if (auto read = config::go_duration(text))
    return *read;
  return error{errc::invalid, "'" + text.substr(0, 40) + "' has to be a duration, as 720h or 1h30m"};
}

result<void> check_sort(const query_list& query, std::initializer_list<const char*> known) {
  const auto by = query.first("sortBy"), order = query.first("orderBy");
  if (!by.empty() && std::find(known.begin(), known.end(), by) == known.end())
    return error{errc::invalid, "sortBy: there is no key '" + std::string(by.substr(0, 50)) + "'"};
  for (const char* fine : {"", "ORDER_BY_UNSPECIFIED", "ORDER_BY_ASC", "ORDER_BY_DESC", "0", "1", "2"})
    if (order == fine)
      return {};
  return error{errc::invalid, "orderBy: there is no order '" + std::string(order.substr(0, 50)) + "'"};
}

bool is_descending(const query_list& query) {
  return query.first("orderBy") == "ORDER_BY_DESC" || query.first("orderBy") == "2";
}

} // namespace troupe::api

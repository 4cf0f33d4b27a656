#include "runtime/api/listing.hpp"

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

bool is_descending(const query_list& query) {
  return query.first("orderBy") == "ORDER_BY_DESC" || query.first("orderBy") == "2";
}

} // namespace troupe::api

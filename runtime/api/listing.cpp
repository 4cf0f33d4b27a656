#include "runtime/api/listing.hpp"

#include "model/chosen_name.hpp"
#include "model/config/duration_text.hpp"

#include <algorithm>
#include <cctype>

namespace troupe::api {

std::string folded(std::string_view text) {
  std::string out;
  for (unsigned char c : text)
    out += static_cast<char>(std::tolower(c));
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; });
  return plain ? out : case_folded(out);
}

bool contains_folded(std::string_view text, std::string_view part) {
  return folded(text).find(folded(part)) != std::string::npos;
}

result<duration> go_duration(const std::string& text) {
  if (auto read = config::go_duration(text))
    return *read;
  return error{errc::invalid, "'" + text.substr(0, 40) + "' has to be a duration, as 720h or 1h30m"};
}

bool is_descending(const query_list& query) { return query.first("orderBy") == "ORDER_BY_DESC"; }

} // namespace troupe::api

#pragma once
// The UUID of a checkpoint as a caller writes it.

#include "storage/journal.hpp"

#include <algorithm>
#include <string>

namespace troupe::api {

/// The UUID as it is stored: clients may write its letters in upper case. A text that is not a UUID stays as
/// it is.
inline std::string stored_uuid(const storage::reader& all, std::string given) {
  const bool is_uuid = given.size() == 36 && given.find_first_not_of("0123456789abcdefABCDEF-") == given.npos;
  if (is_uuid && !all.checkpoint(given))
    std::transform(given.begin(), given.end(), given.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  return given;
}

} // namespace troupe::api

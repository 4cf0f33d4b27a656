#pragma once
#include <string_view>

namespace troupe {

/// Whether a line of /etc/passwd or /etc/group can hold the name.
inline bool is_account_name(std::string_view name) {
  return !name.empty() && name.find_first_of(":\n\r,/ ") == name.npos && name[0] != '-' && name[0] != '+';
}

} // namespace troupe

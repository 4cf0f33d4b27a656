#pragma once
// What Tab offers. Pure: the caller passes the current names.

#include <string>
#include <string_view>
#include <vector>

namespace troupe::shell {

struct message_fields {
  std::string name;
  std::vector<std::string> kinds, fields; ///< kinds of actors that take the message, and the message's fields
};

struct live_names {
  std::vector<std::string> actors, nodes;
  std::vector<message_fields> messages;
};

struct candidate {
  std::string text;
  std::string help; ///< shown beside it; may be empty
};

struct completions {
  std::size_t from = 0; ///< byte of the line at which the replaced word begins
  std::vector<candidate> all;
};

/// Completes the text before the cursor. `variables` are names without "$".
completions complete(std::string_view before, const live_names& names,
                     const std::vector<std::string>& variables);

/// The longest text with which all of `all` begin.
std::string common_start(const std::vector<candidate>& all);

} // namespace troupe::shell

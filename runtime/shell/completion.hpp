#pragma once
// What Tab offers. Pure: the names that live are passed in.

#include <string>
#include <string_view>
#include <vector>

namespace troupe::shell {

struct message_fields {
  std::string name;
  std::vector<std::string> kinds, fields; ///< kinds of actors that take the message; its fields
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
  std::size_t from = 0; ///< the byte of the line at which the word to replace begins
  std::vector<candidate> all;
};

/// For the text before the cursor. `variables` are names without "$".
completions complete(std::string_view before, const live_names& names,
                     const std::vector<std::string>& variables);

/// What all of `all` begin with.
std::string common_start(const std::vector<candidate>& all);

} // namespace troupe::shell

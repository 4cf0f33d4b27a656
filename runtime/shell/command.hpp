#pragma once
// The shell's own commands: their names, what they take, and how typed words are read. Pure except for `act`.

#include "model/result.hpp"

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::shell {

struct option {
  std::string_view names; ///< "-n,--max"; the last one is the key
  std::string_view value; ///< "N", "T" (a span), "TEXT"; empty: a switch
  std::string_view text;
};

/// The kind of an argument, for completion.
enum class what { none, actor, message_of_actor, node, command, level, kind, file, correlation };

/// The words typed after a command's name, read by its options.
struct typed_words {
  std::vector<std::string> words;             ///< words after the command's name
  std::map<std::string, std::string> options; ///< "--max" -> "3"; a switch -> ""
  bool has(const std::string& key) const { return options.count(key) != 0; }
  std::string text(const std::string& key, const std::string& otherwise = "") const;
  std::int64_t number(const std::string& key, std::int64_t otherwise) const; ///< the text was checked before
  std::chrono::milliseconds span(const std::string& key, std::chrono::milliseconds otherwise) const;
};

class session;
struct outcome;

struct command {
  std::string_view name;  ///< "config set" has two words
  std::string_view group; ///< "Look", "Trace", "Act", "Session"
  std::string_view takes; ///< "ACTOR [PATH]"
  std::size_t least = 0, most = 0;
  std::span<const option> options;
  std::string_view summary, examples; ///< examples: one a line
  what completes = what::none;        ///< kind of the first word, for completion
  bool acts = false;                  ///< whether it needs :rw
  outcome (*act)(session&, const typed_words&) = nullptr;
};

std::span<const command> all_commands();
const command* find_command(const std::vector<std::string>& words, std::size_t& used);

/// Reads the words after the command's name; `quoted[i]` says that word i is not an option. Fails with
/// errc::invalid and names the word and the nearest option.
result<typed_words> read_typed_words(const command& c, const std::vector<std::string>& words,
                                     const std::vector<bool>& quoted = {});

/// Reads "90s", "500ms", "2m", "1h", "1h30m", "1.5s", "2" (seconds). Fails with errc::invalid.
result<std::chrono::milliseconds> parse_span(std::string_view text);
std::string span_arg(std::chrono::milliseconds x); ///< seconds, as the server reads them: "2", "0.5"

std::string command_help(const command& c);
std::string overview_help();

} // namespace troupe::shell

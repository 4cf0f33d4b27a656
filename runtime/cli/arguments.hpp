#pragma once
// How one verb's arguments and options are declared, and what a user gave. Only arguments.cpp uses CLI11,
// which reads them.

#include "model/result.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

struct argument_spec {
  std::string_view name; ///< "EXPERIMENT"
  std::string_view text;
  bool required = true, many = false;
};

enum class option_kind { toggle, text, number, maybe_text /* its value may be left out */, list };

struct option_spec {
  std::string_view names; ///< "-o,--output"; the last one is the key
  std::string_view value; ///< how help names its value: "FORMAT"
  std::string_view text;
  option_kind kind = option_kind::toggle;
  std::string_view choices = {}; ///< "table json csv yaml"
};

struct session;
class arguments;

struct verb_spec {
  std::string_view path; ///< "experiment create"
  std::string_view summary;
  std::span<const argument_spec> takes;
  std::span<const option_spec> options;
  bool reads = false;        ///< whether it takes the output options
  bool talks = false;        ///< whether it takes the options of a client
  std::string_view examples; ///< one a line
  std::string_view see;      ///< "troupe experiment list, troupe trial describe"
  int (*act)(session&, const arguments&) = nullptr;
};

/// What a user gave, by keys such as "--output" and "EXPERIMENT".
class arguments {
public:
  bool has(std::string_view key) const { return given_.find(key) != given_.end(); }
  std::string text(std::string_view key, std::string_view otherwise = "") const;
  /// An option of kind number; its text was checked before.
  std::int64_t number(std::string_view key, std::int64_t otherwise) const;
  std::vector<std::string> all(std::string_view key) const;
  void set(std::string key, std::vector<std::string> texts) { given_[std::move(key)] = std::move(texts); }

private:
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
};

/// Returns the options of every verb, of a client, and of a read verb.
std::span<const option_spec> common_options();
std::span<const option_spec> client_options();
std::span<const option_spec> read_options();
/// All options of a verb, its own first.
std::vector<option_spec> options_of(const verb_spec& verb);
/// The key of "-o,--output" is "--output".
std::string key_of(const option_spec& option);

/// Reads the words after the verb. Fails with errc::invalid and names the word; where an option is near it, a
/// newline and "hint: " with that option follow.
result<arguments> parse_arguments(const verb_spec& verb, const std::vector<std::string>& given);

/// The help of one verb: summary, usage, arguments, options, examples; with `with_shared` also the options of
/// many verbs.
std::string help_text(const verb_spec& verb, bool with_shared = true);

} // namespace troupe::cli

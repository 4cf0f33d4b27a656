#pragma once
// Names that people choose for workspaces, projects, templates, models, groups, webhooks, experiments and
// labels.

#include "model/result.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

constexpr std::size_t longest_name = 80; ///< in characters

/// The code points of UTF-8 text; nothing where the text is not UTF-8.
std::optional<std::u32string> code_points(std::string_view utf8);
/// Whether it has nothing but white space, of any script.
bool is_blank(std::string_view utf8);
/// Checks that a name has 1 to `most` characters, not all blank, and none that controls a terminal or the
/// direction of text. Fails with errc::invalid; the text calls the name `what` ("the name of a group").
result<void> check_chosen_name(const std::string& what, std::string_view name,
                               std::size_t most = longest_name);
/// Checks the key by which a submitter finds again what it has created: empty, or a name of at most 255
/// characters. Fails with errc::invalid.
result<void> check_submitters_key(std::string_view key);
/// A name or label that a configuration gives, which may be of any length: each character that controls a
/// terminal or the direction of text becomes a blank, and there are none at the ends. What is not UTF-8 stays
/// as it is.
std::string in_one_line(std::string_view name);
/// Checks that a client can ask for a thing by this name: no slashes, `.` or `..`. Fails with errc::invalid;
/// the text speaks of `what` ("model names").
result<void> check_name_in_address(const std::string& what, std::string_view name);
/// Equal for names that differ only in case, in all scripts that have cases. To be compared, never shown.
std::string case_folded(std::string_view utf8);

} // namespace troupe

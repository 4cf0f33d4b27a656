#pragma once
// Names that people choose for what they make: workspaces, projects, templates, models, groups, webhooks,
// experiments, labels.

#include "model/result.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

constexpr std::size_t longest_name = 80; ///< characters

/// Code points of UTF-8; nothing where it is none.
std::optional<std::u32string> code_points(std::string_view utf8);
/// Nothing but white space, of any script.
bool is_blank(std::string_view utf8);
/// errc::invalid, said of `what` ("the name of a group"), unless it has 1 to `most` characters, not all
/// blank, none that controls a terminal or the direction of text.
result<void> check_chosen_name(const std::string& what, std::string_view name,
                               std::size_t most = longest_name);
/// A name that a configuration gives, which may be of any length: each character that controls a terminal or
/// the direction of text becomes a blank, and there are none at the ends. What is not UTF-8 stays as it is.
std::string in_one_line(std::string_view name);
/// errc::invalid, said of `what` ("model names"), where no client could ask for it by name: with slashes, `.`
/// and `..`.
result<void> check_name_in_address(const std::string& what, std::string_view name);
/// The same for names that differ in case only, in all scripts that have cases. For comparing, never shown.
std::string case_folded(std::string_view utf8);

} // namespace troupe

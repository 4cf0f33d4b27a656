#pragma once
// Small files that are either the old or the new text after any crash.

#include "model/result.hpp"

#include <filesystem>

namespace troupe::api {

/// nullopt where there is no such file.
result<std::optional<std::string>> read_whole(const std::filesystem::path& file);

/// Writes beside it (mode 0600), syncs, renames, syncs the directory. errc::no_space or errc::io.
result<void> replace_file(const std::filesystem::path& file, const std::string& bytes);

} // namespace troupe::api

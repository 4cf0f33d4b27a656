#pragma once
// Small files that hold either the old or the new text after any crash.

#include "model/result.hpp"

#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

namespace troupe {

/// Returns nullopt where there is no such file.
result<std::optional<std::string>> read_whole(const std::filesystem::path& file);

enum class durability {
  synced,  ///< durable when the call returns
  written, ///< a power failure may leave the old text, or no file
};

/// Writes the text beside the file under another name (NAME.DIGITS.tmp), then renames it: readers see the old
/// or the new text. Fails with errc::no_space or errc::io, and then has changed nothing. `mode` is exact,
/// whatever the umask.
result<void> replace_file(const std::filesystem::path& file, std::string_view bytes, mode_t mode = 0600,
                          durability how = durability::synced);

struct new_file {
  std::string name, bytes;
  mode_t mode = 0600;
};
/// Replaces files of one folder in the same way; replaces none before all are written and synced.
result<void> replace_files(const std::filesystem::path& folder, const std::vector<new_file>& files);

} // namespace troupe

#pragma once
// Small files that are either the old or the new text after any crash.

#include "model/result.hpp"

#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

namespace troupe {

/// nullopt where there is no such file.
result<std::optional<std::string>> read_whole(const std::filesystem::path& file);

enum class durability {
  synced,  ///< on the disk when the call returns
  written, ///< a power failure may leave the old text, or none
};

/// Written beside it under a name of its own (NAME.DIGITS.tmp), renamed: others see the old or the new text.
/// errc::no_space or errc::io; then nothing has changed. `mode` is exact, whatever the umask.
result<void> replace_file(const std::filesystem::path& file, std::string_view bytes, mode_t mode = 0600,
                          durability how = durability::synced);

struct new_file {
  std::string name, bytes;
  mode_t mode = 0600;
};
/// The same for files of one folder; none is replaced before all are written and synced.
result<void> replace_files(const std::filesystem::path& folder, const std::vector<new_file>& files);

} // namespace troupe

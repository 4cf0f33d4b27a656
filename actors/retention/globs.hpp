#pragma once
// Patterns of paths inside a checkpoint, as the stock client writes them: `*` and `?` within one part of a
// path,
// `**` over any number of parts, `[abc]`. Pure.

#include "model/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// errc::invalid where it is empty, absolute, or leads out of the checkpoint.
result<void> check_glob(const std::string& pattern);

/// `path` without a leading slash. Takes time in the product of both lengths at most.
bool matches_glob(std::string_view pattern, std::string_view path);

/// Whether a removal takes the file: one that a pattern matches, or any where there is none. Folders stay.
bool is_removed(const std::vector<std::string>& globs, std::string_view path);

/// What a removal leaves of a checkpoint's files (bytes by path). Folders alone are no checkpoint.
std::map<std::string, std::int64_t> left_by(const std::vector<std::string>& globs,
                                            std::map<std::string, std::int64_t> files);

} // namespace troupe

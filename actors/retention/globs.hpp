#pragma once
// Patterns of paths inside a checkpoint, as the stock client writes them: `*` and `?` within one part of a
// path,
// `**` over any number of parts, `[abc]`. Pure.

#include "model/result.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// errc::invalid where it is empty, absolute, or leads out of the checkpoint.
result<void> check_glob(const std::string& pattern);

/// `path` without a leading slash. Takes time in the product of both lengths at most.
bool matches_glob(std::string_view pattern, std::string_view path);

} // namespace troupe

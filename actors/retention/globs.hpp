#pragma once
// Patterns of paths inside a checkpoint, as the stock client writes them: `*` and `?` within one part of a
// path, `**` over any number of parts, `[abc]`. The task that removes files from a bucket goes by the same
// rules (workers/python/troupe/services/checkpoint_gc.py), and by the same cases
// (test/data/glob_cases.json). Pure.

#include "model/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// errc::invalid if the pattern is empty or absolute, or leads out of the checkpoint.
result<void> check_glob(const std::string& pattern);

/// errc::invalid if no file or folder of a checkpoint can have the path: it is empty or absolute, leads out
/// of the checkpoint, or holds a control character.
result<void> check_path_of_file(const std::string& path);

/// Whether the pattern matches `path`, or a folder above it. The path has no leading slash, and that of a
/// folder ends with a slash. A pattern that ends with a slash or with `**` matches folders only, and so all
/// that is in them. The time grows at most with the product of both lengths.
bool matches_glob(std::string_view pattern, std::string_view path);

/// Whether a removal takes the file or the folder: a pattern matches it, or `globs` is empty.
bool is_removed(const std::vector<std::string>& globs, std::string_view path);

/// The files of a checkpoint (bytes by path) that remain after a removal; none if only folders remain,
/// because folders alone are not a checkpoint.
std::map<std::string, std::int64_t> left_by(const std::vector<std::string>& globs,
                                            std::map<std::string, std::int64_t> files);

} // namespace troupe

#pragma once
// Packs the files of an experiment as one tar, and unpacks it. The submitter packs; the agent and downloads
// unpack. Both refuse what would leave the folder.

#include "model/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::workers {

struct context_limits {
  std::uint64_t tar_bytes = 95 << 20; ///< limit of the whole tar, headers included
  std::size_t name_bytes = 10 << 10;  ///< limit of a path relative to the context
};

struct packed_context {
  std::string tar;    ///< sorted, without times and owners: the same files give the same bytes
  std::string digest; ///< SHA-256 of `tar`, in hexadecimal
  std::size_t files = 0;
};

/// Packs the folder `root`, or, where `root` is a file, only that file. Leaves out `.git`, `__pycache__`,
/// `*.pyc`, editors' lock links (`.#name`), and what `.detignore` names (by the patterns of .gitignore).
/// Follows links within the context. Fails with errc::invalid and all faults, one a line and each with its
/// path: a link that leaves the context, forms a circle or points to nothing; a pipe, socket or device; a
/// file that cannot be read; a name or a tar over `limits`. Nothing over the limit is kept in memory.
result<packed_context> pack_context(const std::filesystem::path& root, const context_limits& limits = {});

/// Unpacks a tar or tar.gz into `target`, which is created where it is missing. Fails with errc::invalid for
/// a path or link that leads out of `target`, for a pipe or device, and for bytes that are not a tar; nothing
/// is then written outside `target`. Fails with errc::io where the disk refuses. What was written before the
/// fault stays. `most_bytes` limits what the files hold together; 0: no limit.
result<void> unpack_archive(std::string_view bytes, const std::filesystem::path& target,
                            std::uint64_t most_bytes = 0);
result<void> unpack_archive_file(const std::filesystem::path& archive, const std::filesystem::path& target,
                                 std::uint64_t most_bytes = 0);

/// Whether the bytes are a tar or tar.gz that holds nothing, or nothing but the folder that it was made of.
bool archive_is_empty(std::string_view bytes);

/// SHA-256 in hexadecimal.
std::string sha256(std::string_view bytes);

} // namespace troupe::workers

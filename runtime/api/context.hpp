#pragma once
// The files of an experiment as a tar.gz, made from the client's list, or checked as the client sent it.

#include "model/value.hpp"

#include <cstdint>

namespace troupe::api {

inline constexpr std::int64_t max_context_bytes = 95ll << 20; ///< limit of all files together, unpacked

/// Takes a tar or tar.gz and gives a tar.gz. Fails with errc::invalid, and names the entry, where a path is
/// absolute or holds `..`, a link leaves the context or turns in a circle, an entry is a pipe or device, a
/// name is over 10 KB, the files are over `max_context_bytes`, or the bytes are not a tar.
result<std::string> checked_context(std::string bytes);

/// Makes a tar.gz of the client's `modelDefinition`, [{path, type, content (base64), mtime, mode, uid, gid}],
/// under the same limits. `field` is the name of the list in the request.
result<std::string> packed_context(const value& files, const std::string& field = "modelDefinition");

result<std::string> from_base64(std::string_view text);
std::string to_base64(std::string_view bytes);

} // namespace troupe::api

#pragma once
// The files of an experiment as a tar.gz: made from the client's list, or checked as it came.

#include "model/value.hpp"

#include <cstdint>

namespace troupe::api {

inline constexpr std::int64_t max_context_bytes = 95ll << 20; ///< limit of all files, unpacked

/// Takes a tar or tar.gz; gives a tar.gz. errc::invalid, with the entry's name, where: a path is absolute or
/// holds `..`, a link leaves the context or turns in a circle, an entry is a pipe or device, a name is over
/// 10 KB, the files are over `max_context_bytes`, or the bytes are not a tar.
result<std::string> checked_context(std::string bytes);

/// From the client's `modelDefinition`: [{path, type, content (base64), mtime, mode, uid, gid}]. The same
/// limits. `field`: what the request calls it.
result<std::string> packed_context(const value& files, const std::string& field = "modelDefinition");

result<std::string> from_base64(std::string_view text);
std::string to_base64(std::string_view bytes);

} // namespace troupe::api

#pragma once
// What is in the tar.gz of an experiment's files.

#include "model/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::api {

struct context_file {
  std::string path; ///< without a slash at its end
  bool folder = false;
  std::int64_t bytes = 0, modified = 0; ///< seconds since 1970
};

/// In the order of the archive; none of empty bytes.
result<std::vector<context_file>> context_files(const std::string& archive);
/// errc::not_found where there is no such file.
result<std::string> context_file_bytes(const std::string& archive, const std::string& path);

} // namespace troupe::api

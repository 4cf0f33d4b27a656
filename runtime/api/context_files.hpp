#pragma once
// Lists and reads the files in the tar.gz of an experiment.

#include "model/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::api {

struct context_file {
  std::string path; ///< path without a slash at its end
  bool folder = false;
  std::int64_t bytes = 0, modified = 0; ///< modified: seconds since 1970
};

/// The files in the order of the archive; an empty archive has none.
result<std::vector<context_file>> context_files(const std::string& archive);
/// The bytes of a file. Fails with errc::not_found where the archive lacks the file.
result<std::string> context_file_bytes(const std::string& archive, const std::string& path);

} // namespace troupe::api

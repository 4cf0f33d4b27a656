#pragma once
// Every operation that the 0.38.1 client knows, so that what is not built says so instead of 404.

#include <string>
#include <vector>

namespace troupe::api {

struct contract_path {
  const char* method;
  const char* path;
};
const std::vector<contract_path>& contract_paths();

/// The path with every {name} as {}: two patterns with one shape match the same requests.
std::string path_shape(const std::string& path);

} // namespace troupe::api

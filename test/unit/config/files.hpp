#pragma once
// Reads test data: files below test/data/config.

#include "model/config/document.hpp"

#include <fstream>
#include <iterator>
#include <string>

namespace troupe::config {

inline std::string data_file(const std::string& name) {
  return std::string(TROUPE_SOURCE_DIR) + "/test/data/config/" + name;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline value read_data(const std::string& name) {
  auto text = read_file(data_file(name));
  auto read = read_document(text, name);
  std::string faults;
  for (const auto& f : read.faults)
    faults += render(f, text);
  if (!faults.empty())
    throw std::runtime_error(faults);
  return to_value(read.root);
}

} // namespace troupe::config

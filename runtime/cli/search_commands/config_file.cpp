#include "runtime/cli/search_commands/config_file.hpp"

#include <fstream>
#include <istream>
#include <iterator>
#include <ostream>

namespace troupe::cli {

std::optional<search_config> read_search_config(const std::string& path, std::istream& in, std::ostream& err) {
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(in), {});
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      err << path << ": cannot be read; give the path of an experiment configuration\n";
      return std::nullopt;
    }
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  auto config = parse_json(text);
  if (!config) {
    err << path << ": " << config.error().what << '\n';
    return std::nullopt;
  }
  if (!config->is_object() || !config->contains("searcher")) {
    err << path << ": has no `searcher` section\n";
    return std::nullopt;
  }
  return search_config{(*config)["searcher"], config->value("hyperparameters", value::object())};
}

} // namespace troupe::cli

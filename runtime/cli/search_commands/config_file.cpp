#include "runtime/cli/search_commands/config_file.hpp"

#include "model/config/experiment_config.hpp"

#include <fstream>
#include <istream>
#include <iterator>
#include <ostream>

namespace troupe::cli {

std::optional<search_config> read_search_config(const std::string& path, std::istream& in,
                                                std::ostream& err) {
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
  auto read = config::load_experiment(text, path == "-" ? "standard input" : path, config::level::sane);
  for (const auto& fault : read.faults)
    err << config::render(fault, text) << '\n';
  if (!read.ok())
    return std::nullopt;
  if (!read.config.contains("searcher") || !read.config["searcher"].is_object()) {
    err << path << ": has no `searcher` section\n";
    return std::nullopt;
  }
  return search_config{read.config["searcher"], read.config.value("hyperparameters", value::object())};
}

} // namespace troupe::cli

#include "actors/host/platform_paths.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 16; ///< limit of the links between the name of an interpreter and its file

bool is_below_tmp(const fs::path& path) { return path.string().starts_with("/tmp/"); }

/// The folder that holds `bin` and `lib` of an interpreter; if that folder is /tmp itself, the `bin` below
/// it.
fs::path prefix_of(const fs::path& interpreter) {
  const auto bin = interpreter.parent_path();
  return bin.parent_path() == "/tmp" ? bin : bin.parent_path();
}

/// The folder of the Python from which a virtual environment was made, as its pyvenv.cfg says; empty if
/// `environment` is not a virtual environment.
fs::path base_of(const fs::path& environment) {
  std::ifstream in(environment / "pyvenv.cfg");
  for (std::string line; std::getline(in, line);)
    if (const auto equals = line.find('='); line.starts_with("home") && equals != std::string::npos)
      return prefix_of(fs::path(line.substr(line.find_first_not_of(" \t", equals + 1))) / "python3");
  return {};
}

/// Adds the environments of an interpreter: it is found by its name, and each link between the name and the
/// file may stand in another environment.
void add_interpreter(std::set<fs::path>& named, fs::path file) {
  std::error_code fault;
  for (int link = 0; link < most_links && fs::exists(file, fault); ++link) {
    named.insert(prefix_of(file));
    if (auto base = base_of(prefix_of(file)); !base.empty())
      named.insert(base);
    const auto target = fs::read_symlink(file, fault);
    if (fault)
      return;
    file = (file.parent_path() / target).lexically_normal(); // an absolute target replaces the folder
  }
}

} // namespace

std::vector<std::string> platform_paths(const task_surroundings& around, const std::string& path_variable) {
  std::error_code fault;
  std::set<fs::path> named = {around.python, around.programs};
  for (std::size_t begin = 0; begin <= path_variable.size();) {
    const auto end = std::min(path_variable.find(':', begin), path_variable.size());
    const auto file = fs::path(path_variable.substr(begin, end - begin)) / "python3";
    begin = end + 1;
    if (!file.is_absolute() || !fs::exists(file, fault))
      continue;
    add_interpreter(named, file);
    break; // the first interpreter on PATH hides the others
  }
  std::set<std::string> places, links;
  for (const auto& path : named) {
    const auto place = path.empty() ? fs::path() : fs::canonical(path, fault);
    if (path.empty() || fault)
      continue;
    if (is_below_tmp(place))
      places.insert(place.string());
    if (is_below_tmp(path) && path.lexically_normal() != place)
      links.insert(path.lexically_normal().string());
  }
  std::vector<std::string> all(places.begin(), places.end());
  all.insert(all.end(), links.begin(), links.end());
  return all;
}

bool is_in_one_of(const std::vector<std::string>& places, const std::string& path) {
  return std::any_of(places.begin(), places.end(), [&](const std::string& place) {
    return path == place || path.starts_with(place + "/");
  });
}

} // namespace troupe

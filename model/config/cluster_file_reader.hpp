#pragma once
// The parts of load_cluster_file: several texts become one tree with places, then a value. Only
// cluster_file*.cpp include it.

#include "model/config/check.hpp"
#include "model/config/cluster_file.hpp"

#include <map>

namespace troupe::config {

/// Texts, includes and variables.
class cluster_reader {
public:
  explicit cluster_reader(const file_world& world) : world_(world) {}

  /// Reads the merged tree, where each place has the number of its file in `files`; false where a text cannot
  /// be read at all.
  bool read(const std::string& path, node& out);
  /// Fills in `${NAME}`. Where the key does not hold text, YAML reads the filling as a plain scalar.
  void interpolate(node& x, const shape* s);
  /// Makes those paths absolute that the schema marks as paths.
  void place_paths(node& x, const shape& s) const;
  std::string absolute(const std::string& path, int file) const;

  void fault(place at, std::string path, std::string message, std::string hint = {});
  void warn(place at, std::string path, std::string message, std::string hint = {});

  std::vector<std::string> files; ///< names as in diagnostics
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<diagnostic> faults, warnings;
  std::map<std::tuple<int, int, int>, std::string> variables; ///< variables in the value at this place
  bool is_from_environment(place at) const { return variables.contains({at.file, at.line, at.column}); }

private:
  bool read(const std::string& path, place from, std::vector<std::string> way, node& out);
  void read_dotenv(const std::string& path);
  std::optional<std::string> variable(const std::string& name) const;
  std::string filled(const node& x);

  const file_world& world_;
  std::map<std::string, std::string> dotenv_;
};

/// Expands each item of `nodes` into one for each name, with `name` and `host`.
void expand_nodes(node& root, cluster_reader& out);
/// Checks what the schema cannot say: names that must exist or be unique; and warns of keys that have no
/// effect yet.
void check_cluster(const node& root, cluster_reader& out);
/// The merged tree as YAML, with the place of each value.
std::string resolved_text(const node& root, const cluster_reader& from);

} // namespace troupe::config

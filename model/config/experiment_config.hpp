#pragma once
// The front door: an experiment configuration as text, in; the completed configuration or every fault, out.

#include "model/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

/// One fault of a configuration. Lines and columns count from 1; 0 where the text has no place for it.
struct diagnostic {
  std::string file;
  int line = 0, column = 0;
  std::string path;    ///< like `searcher.max_trials` or `bind_mounts[2].host_path`
  std::string message; ///< what is wrong and what was expected
  std::string hint;    ///< how to mend it; may be empty
};

/// "FILE:LINE:COL: message", the line of `text`, a caret below the place, and the hint.
std::string render(const diagnostic& fault, std::string_view text);

enum class level { sane, complete };

struct outcome {
  value config; ///< completed where there is no fault
  std::vector<diagnostic> faults;
  bool ok() const { return faults.empty(); }
};

/// Reads YAML or JSON, checks it against the schema of Determined 0.38.1 and our additions, and fills in the
/// defaults. All faults at once, in the order of the text. `file` only names the text in diagnostics.
///
/// What the text leaves to the cluster is made from the text itself, so that the same text gives the same
/// configuration: name, reproducibility.experiment_seed, and checkpoint_storage (a directory named
/// `checkpoints`; a relative one is meant below the data directory). `cluster` says it better.
outcome load_experiment(std::string_view text, std::string_view file, level want = level::complete);

/// What a cluster adds to the experiments it creates.
struct surroundings {
  std::string name;                   ///< for an experiment without one; empty: made up
  std::optional<std::uint32_t> seed;  ///< for an experiment without one
  value checkpoint_storage;           ///< the lowest layer of it; null: as above
};
outcome load_experiment(std::string_view text, std::string_view file, level want, const surroundings& cluster);

} // namespace troupe::config

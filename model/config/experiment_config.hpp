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
  std::string path;        ///< like `searcher.max_trials` or `bind_mounts[2].host_path`
  std::string message;     ///< the fault, and what was expected
  std::string hint;        ///< how to mend it; may be empty
  bool is_warning = false; ///< true: a remark on a configuration that is accepted
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

/// What a cluster and its users put around the text of an experiment; the text wins over all of it but
/// `overrides`.
struct surroundings {
  std::string name;                  ///< name for an experiment without one; empty: made up
  std::optional<std::uint32_t> seed; ///< seed for an experiment without one
  std::vector<std::string>
    overrides; ///< `key.of.a.key=value`, value as YAML; in the place of what the text says
  std::optional<std::string> template_text; ///< the next layer: a partial configuration
  value task_container_defaults; ///< then this, of the pool, as `task-container-defaults` of the table; null:
                                 ///< none
  value workspace_checkpoint_storage; ///< then this; null: none
  value checkpoint_storage;           ///< then the cluster's; null: the directory `checkpoints`
};
outcome load_experiment(std::string_view text, std::string_view file, level want,
                        const surroundings& cluster);

/// Keys of an experiment's text that are accepted and have no effect here, or not the whole; each with its
/// place. Of a text that cannot be read: nothing.
std::vector<diagnostic> warnings_of(std::string_view text, std::string_view file);

/// Whether `config`, which `continued` gives for an experiment that has ended, may be continued so: only a
/// single-trial experiment takes changes, and those neither move it nor make it a search. Returns every
/// reason not.
std::vector<std::string> continue_faults(const value& original, const value& changes);

/// For any schema of the table ("searcher", "bind-mount", "experiment" ...): checks a text, or checks and
/// fills in its defaults, or merges two. `config` of the outcome is null where a fault leaves nothing to
/// show.
outcome check_as(std::string_view schema, std::string_view text, std::string_view file, level want);
outcome complete_as(std::string_view schema, std::string_view text, std::string_view file, level want);
outcome merge_as(std::string_view schema, std::string_view high, std::string_view high_file,
                 std::string_view low, std::string_view low_file);
/// The same of two layers that others lie below: what neither says stays missing.
outcome merge_layers(std::string_view schema, std::string_view high, std::string_view high_file,
                     std::string_view low, std::string_view low_file);
/// The default of a key of the experiment, as `resources.slots_per_trial`; null where it has none.
value default_of(std::string_view key);
bool is_schema(std::string_view name);
std::vector<std::string> schema_names();

/// What people and editors read of the table.
result<std::string> explain(std::string_view key);  ///< `searcher.max_trials`; empty: all sections
result<value> json_schema(std::string_view schema); ///< draft 7
std::string reference_page();                       ///< docs/config-reference.md

} // namespace troupe::config

#pragma once
// The front door: takes an experiment configuration as text, gives the completed configuration or every
// fault.

#include "model/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

/// One fault of a configuration. Lines and columns count from 1; they are 0 where the text has no place for
/// it.
struct diagnostic {
  std::string file;
  int line = 0, column = 0;
  std::string path;        ///< like `searcher.max_trials` or `bind_mounts[2].host_path`
  std::string message;     ///< the fault, and what was expected
  std::string hint;        ///< how to mend it; may be empty
  bool is_warning = false; ///< a remark on a configuration that is accepted
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
/// defaults. Returns all faults in the order of the text. `file` only names the text in diagnostics.
///
/// What the text leaves to the cluster is made from the text itself, so that the same text gives the same
/// configuration: name, reproducibility.experiment_seed, and checkpoint_storage (a directory named
/// `checkpoints`; a relative one is below the data directory). `cluster` gives better values.
outcome load_experiment(std::string_view text, std::string_view file, level want = level::complete);

/// What a cluster and its users put around the text of an experiment. Only `overrides` and `policy` replace
/// what the text says. Faults of other layers than the text have their names as `file`.
struct surroundings {
  std::string name;                   ///< for an experiment without a name; empty: one is made up
  std::optional<std::uint32_t> seed;  ///< for an experiment without a seed
  std::vector<std::string> overrides; ///< `key.of.a.key=value`, value as YAML; replaces what the text says
  std::optional<std::string> template_text; ///< the layer below the text: a partial configuration
  std::string template_name = "template";   ///< names it in faults
  value defaults;                ///< the next layer, from the cluster: a partial configuration; null: none
  value task_container_defaults; ///< the next layer, from the pool, as `task-container-defaults` of the
                                 ///< table; null: none
  value workspace_checkpoint_storage; ///< the next layer; null: none
  value checkpoint_storage;           ///< the last layer, from the cluster; null: the directory `checkpoints`
  value policy; ///< a partial configuration that lies over all others, the text too; null: none
  /// Whether the policy and layers of the storage are not known yet: the text's own keys are checked, not
  /// whether the storage is complete, and the configuration has the directory `checkpoints`.
  bool storage_to_come = false;
  bool unmanaged = false; ///< no task of the experiment is started by the cluster
};
outcome load_experiment(std::string_view text, std::string_view file, level want,
                        const surroundings& cluster);

/// Keys of an experiment's text that are accepted but have no effect here, or less than they say, each with
/// its place. Returns nothing for a text that cannot be read.
std::vector<diagnostic> warnings_of(std::string_view text, std::string_view file);

/// Whether an ended experiment may be continued with `changes`. Only a single-trial experiment takes changes,
/// and these must neither move it nor make it a search. Returns every reason against it.
std::vector<std::string> continue_faults(const value& original, const value& changes);

/// For any schema of the table ("searcher", "bind-mount", "experiment" ...): checks a text, or checks it and
/// fills in its defaults, or merges two. `config` of the outcome is null where a fault leaves nothing to
/// show.
outcome check_as(std::string_view schema, std::string_view text, std::string_view file, level want);
outcome complete_as(std::string_view schema, std::string_view text, std::string_view file, level want);
outcome merge_as(std::string_view schema, std::string_view high, std::string_view high_file,
                 std::string_view low, std::string_view low_file);
/// Merges two layers that have others below them: what neither says stays missing.
outcome merge_layers(std::string_view schema, std::string_view high, std::string_view high_file,
                     std::string_view low, std::string_view low_file);
/// The default of a key of the experiment, such as `resources.slots_per_trial`; null where it has none.
value default_of(std::string_view key);
bool is_schema(std::string_view name);
std::vector<std::string> schema_names();

/// The table for people and editors.
result<std::string> explain(std::string_view key);  ///< `searcher.max_trials`; empty: all sections
result<value> json_schema(std::string_view schema); ///< draft 7
std::string reference_page();                       ///< docs/config-reference.md

} // namespace troupe::config

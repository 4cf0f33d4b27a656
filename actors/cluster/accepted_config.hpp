#pragma once
// Checks a submitted configuration and completes it, before an experiment of it exists.

#include "model/config/cluster_config.hpp"
#include "model/result.hpp"
#include "model/value.hpp"

#include <optional>
#include <string>

namespace troupe {

/// The layers that are merged with a submitted text.
struct config_layers {
  /// Values that count where the text says nothing, and that win over the cluster's defaults; null: nothing.
  value template_config, workspace_checkpoint_storage;
  std::string template_name; ///< names the template in faults
  value invariant;           ///< values of a policy, which win over the text; null: nothing
  /// Pools of the workspace for experiments that name no pool, with slots (`compute_pool`) and without slots
  /// (`aux_pool`); empty: the default pool of the cluster.
  std::string compute_pool, aux_pool;
  std::optional<config::pool_choice> pools; ///< pools that the workspace may use; none: all
  bool unmanaged = false; ///< no task of the experiment is started here, so it needs no entrypoint
  /// Whether only the place of the experiment is looked for. The layers of that place are not known yet, so
  /// neither the pool nor the storage is checked, nor what accept_config builds to check it.
  bool only_place = false;
};

struct accepted_config {
  value settings;     ///< complete configuration; its checkpoint folder is absolute
  std::string source; ///< text as it was submitted
};

/// `text` is the configuration as text, or the object that stands for it. Diagnostics name `file`.
/// `checkpoint_dir` is the cluster's checkpoint folder, absolute; a relative folder of the configuration lies
/// beside it. `cluster` is the configuration in force, which has the defaults and the pools; may be null.
/// Fails with errc::invalid and the rendered diagnostics, or with the searcher's objection to its settings.
result<accepted_config> accept_config(const value& text, const std::string& file,
                                      const std::string& checkpoint_dir, const value& cluster,
                                      const config_layers& layers = {});

/// Fails with errc::invalid where the complete configuration `settings`, which comes from `text`, has a mask
/// in the place of a secret. If the mask stands in `text`, the error names its line; `file` is the name of
/// `text`.
result<void> check_no_mask(const value& settings, const value& text, const std::string& file);

/// Lays `text` over the complete configuration `before` of an experiment that is to be continued. Fails as
/// accept_config does, and where the text names a workspace, a project or another searcher.
result<value> continued_config(const value& before, const value& text, const std::string& checkpoint_dir,
                               const value& invariant);

/// Hyperparameters of the only trial where the complete configuration has the searcher `single`; null for
/// other searchers.
value hparams_of_one(const value& config, std::uint64_t seed);

} // namespace troupe

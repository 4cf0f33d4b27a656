#pragma once
// What a cluster makes of a submitted configuration before an experiment of it exists.

#include "model/result.hpp"
#include "model/value.hpp"

#include <string>

namespace troupe {

/// What stands below a text, above what the cluster says; null: nothing.
struct config_layers {
  value template_config, workspace_checkpoint_storage;
  value invariant; ///< above the text: what a policy says; null: nothing
  std::string compute_pool,
    aux_pool; ///< where experiments with and without slots go that name no pool; empty: the cluster's
  bool unmanaged = false; ///< nothing of it is started here: it needs no entrypoint
};

struct accepted_config {
  value settings;     ///< complete; its checkpoint folder is absolute
  std::string source; ///< as it was submitted
};

/// `text`: the configuration as text, or the object that stands for it; `file` is named by diagnostics.
/// `checkpoint_dir`: the
/// cluster's own, absolute; a relative folder of the configuration lies beside it. Fails with errc::invalid
/// and the rendered diagnostics, or with what the searcher says of its settings. `cluster`: the configuration
/// in force, whose defaults lie below the experiment's and whose pools there are; may be null.
result<accepted_config> accept_config(const value& text, const std::string& file,
                                      const std::string& checkpoint_dir, const value& cluster,
                                      const config_layers& layers = {});

/// `text` over the complete configuration of an experiment that is to be continued. Fails as accept_config
/// does, and where it names a workspace, a project or another searcher.
result<value> continued_config(const value& before, const value& text, const std::string& checkpoint_dir,
                               const value& invariant);

/// Hyperparameters of the only trial of a search `single` by a complete configuration; null of other
/// searches.
value hparams_of_one(const value& config, std::uint64_t seed);

} // namespace troupe

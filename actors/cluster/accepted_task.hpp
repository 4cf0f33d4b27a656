#pragma once
// Reads the configuration of a task that is not a trial, lays it over template and defaults, completes and
// checks it. Pure.

#include "model/config/cluster_config.hpp"
#include "model/facts.hpp"

#include <optional>

namespace troupe {

struct task_surface {
  value cluster;                            ///< configuration in force
  value template_config;                    ///< null: none
  value invariant, constraints;             ///< policies that hold in the workspace; null: none
  std::string compute_pool, aux_pool;       ///< pools of the workspace; empty: the cluster's
  std::optional<config::pool_choice> pools; ///< pools that the workspace may use; none: all
};

struct accepted_task {
  value config; ///< complete configuration
  std::string source, pool, name;
};

/// `text` is the submitted text, or the object that stands for it; null for an empty one. The name of the
/// task is made of `id` where the text gives none. Fails with errc::invalid, every fault and its place.
result<accepted_task> accept_task(task_id id, const value& text, const std::string& file,
                                  const task_surface& below);

/// The configuration of a fork of the task `from`: the top-level keys of `changes` (text, object or null)
/// replace those of the task's configuration. Fails with errc::invalid where `changes` cannot be read.
result<value> forked_config(const task_created& from, const value& changes);

/// Three words that are chosen by bits of the id, so that people can tell tasks apart: "mildly-brave-otter".
std::string pet_name(task_id id);

} // namespace troupe

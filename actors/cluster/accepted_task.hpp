#pragma once
// What a task that is no trial is created with: its configuration read, laid over template and defaults,
// completed and checked. Pure.

#include "model/facts.hpp"

#include <functional>

namespace troupe {

struct task_surface {
  value cluster;                                        ///< configuration in force
  value template_config;                                ///< null: none
  value invariant, constraints;                         ///< policies that hold in the workspace; null: none
  std::string compute_pool, aux_pool;                   ///< of the workspace; empty: the cluster's
  std::function<bool(const std::string& pool)> may_use; ///< of the workspace
  std::function<int(const std::string& pool)> largest_agent; ///< slots of it; -1: nobody knows
};

struct accepted_task {
  value config; ///< complete
  std::string source, pool, name;
};

/// errc::invalid with every fault and its place. `name` is made of `id` where the text gives none. `text`:
/// the submitted text, or the object that stands for it; null for an empty one.
result<accepted_task> accept_task(task_id id, const value& text, const std::string& file,
                                  const task_surface& below);

/// The text that a fork is made of: the top-level keys of `changes` (text, object or null) in place of those
/// of the other task's configuration. errc::invalid where `changes` cannot be read.
result<value> forked_config(const task_created& from, const value& changes);

/// Three words of the bits of an id, for people to tell tasks apart: "mildly-brave-otter".
std::string pet_name(task_id id);

} // namespace troupe

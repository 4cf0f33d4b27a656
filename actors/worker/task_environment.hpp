#pragma once
// From an allocation's launch order to the processes of its task: command, environment, working directory. Pure but
// for the agent's own environment, which tasks inherit.

#include "model/ids.hpp"
#include "model/value.hpp"
#include "workers/task_spec.hpp"

namespace troupe {

struct task_surroundings {
  std::string agent, agent_id;
  std::string harness_endpoint, harness_file;
  std::string python;     ///< folder that holds the package `troupe`
  std::string python_bin; ///< put in front of PATH; may be empty
};

inline constexpr const char* task_workdir = "/run/determined/workdir";

workers::task_spec task_spec_of(allocation_id id, const value& launch, const task_surroundings& around);

} // namespace troupe

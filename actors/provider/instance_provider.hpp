#pragma once
// Where the instances of an elastic pool come from: one interface for the host of the master and for clouds.

#include "actors/provider/provisioner_events.hpp"
#include "model/result.hpp"

namespace troupe {

/// Calls may take a minute and block. Not thread-safe: one thread calls it.
class instance_provider {
public:
  virtual ~instance_provider() = default;
  /// All instances of the pool that are not gone.
  virtual result<std::vector<cloud_instance>> list() = 0;
  /// The ids of the new ones; fewer than `count` where not all could be had.
  virtual result<std::vector<std::string>> launch(int count) = 0;
  /// Whatever their agents run. One that is gone is no error.
  virtual result<void> terminate(const std::vector<std::string>& ids) = 0;
  /// The node ends in an orderly way: what lives on its host ends with it.
  virtual void close() {}
};

} // namespace troupe

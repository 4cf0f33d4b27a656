#pragma once
// The source of the instances of an elastic pool: one interface for the host of the master and for clouds.

#include "actors/provider/provisioner_events.hpp"
#include "model/result.hpp"

namespace troupe {

/// Calls may take a minute and block. Not thread-safe: one thread calls it.
class instance_provider {
public:
  virtual ~instance_provider() = default;
  /// All instances of the pool that are not gone.
  virtual result<std::vector<cloud_instance>> list() = 0;
  /// Returns the ids of the new instances; fewer than `count` where not all could be launched.
  virtual result<std::vector<std::string>> launch(int count) = 0;
  /// Ends the instances, whatever their agents run. An instance that is gone already is not an error.
  virtual result<void> terminate(const std::vector<std::string>& ids) = 0;
  /// Called at an orderly shutdown of the node: instances that live on its host end with it.
  virtual void close() {}
};

} // namespace troupe

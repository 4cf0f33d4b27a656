#pragma once
// Where deleted things were, for a caller that judges facts about them by their former place.

#include "model/ids.hpp"
#include "model/result.hpp"

namespace troupe::storage {

/// A second interface of those readers that keep the rows of deleted things. Thread-safe. Each answer is 0
/// for a thing that is not deleted, and for one whose place is not known.
class former_places {
public:
  virtual ~former_places() = default;
  /// The workspace of the project in which the experiment was last. The project may be deleted too.
  virtual result<workspace_id> former_workspace(experiment_id id) const = 0;
  virtual result<workspace_id> former_workspace(model_id id) const = 0;
};

} // namespace troupe::storage

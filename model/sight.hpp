#pragma once
// Who sees an experiment, and which experiment somebody means by a key.

#include "model/ids.hpp"

#include <functional>
#include <span>

namespace troupe {

/// How somebody sees an experiment: not at all, as another's, or as an own one.
enum class sight { none, seen, own };
using seen_by = std::function<sight(experiment_id)>;

/// Which experiment a submitter means by a key that `having_key` have, the oldest first: the first of the
/// submitter's own, else the first that the submitter sees; 0: none.
inline experiment_id meant_by_key(std::span<const experiment_id> having_key, const seen_by& sees) {
  experiment_id first;
  for (const auto id : having_key) {
    const auto how = sees(id);
    if (how == sight::own)
      return id;
    if (how == sight::seen && !first)
      first = id;
  }
  return first;
}

} // namespace troupe

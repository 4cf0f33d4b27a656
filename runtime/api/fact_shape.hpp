#pragma once
// Facts as JSON objects with named fields, for live streams.

#include "model/facts.hpp"
#include "storage/journal.hpp"

namespace troupe::api {

/// {"sequence", "entity", "number", "type", "at", fields...}. Fails with errc::corrupt or errc::unsupported
/// where the bytes do not decode. `entity` is the fact's stream; for facts of the stream "cluster" about one
/// workspace, model or user it is "workspace/3", "model/5" or "user/2" (docs/decisions/119).
result<value> fact_shape(const storage::committed_fact& one);

/// The experiment that a fact belongs to: that of its stream, or for experiment_created the new one; 0 where
/// it belongs to none. Tasks are looked up in `storage`; `known` keeps what was found.
experiment_id experiment_of(const storage::committed_fact& one, const value& shape,
                            const storage::reader& storage, std::map<task_id, experiment_id>& known);

} // namespace troupe::api

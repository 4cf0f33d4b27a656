#pragma once
// Facts as JSON objects with named fields, for live streams.

#include "model/facts.hpp"
#include "storage/journal.hpp"

namespace troupe::api {

/// {"sequence", "entity", "number", "type", "at", fields...}; errc::corrupt or unsupported where the bytes do
/// not decode. `entity` is the fact's stream; of those of the stream "cluster" that are about one workspace,
/// model or user it is "workspace/3", "model/5" or "user/2" (docs/decisions/119).
result<value> fact_shape(const storage::committed_fact& one);

/// The experiment that a fact belongs to: by its stream, or for experiment_created by what it created; 0 for
/// none. Tasks are looked up in `storage`; what is found is kept in `known`.
experiment_id experiment_of(const storage::committed_fact& one, const value& shape,
                            const storage::reader& storage, std::map<task_id, experiment_id>& known);

} // namespace troupe::api

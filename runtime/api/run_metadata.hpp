#pragma once
// Checks the metadata of a run. Pure.

#include "model/result.hpp"
#include "model/value.hpp"

namespace troupe::api {

/// Fails with errc::invalid, and names the path, unless `metadata` is an object within Determined's limits:
/// 1,000 keys at all levels together, 10 levels of maps and lists, keys of 50 characters, texts of 5,000
/// characters, lists of 100. The limit of 64 KiB as JSON is our own.
result<void> check_run_metadata(const value& metadata);

} // namespace troupe::api

#pragma once
// What the metadata of a run may be. Pure.

#include "model/result.hpp"
#include "model/value.hpp"

namespace troupe::api {

/// errc::invalid with the path, unless `metadata` is an object of at most 1,000 keys at all levels together,
/// 10 levels of maps and lists, keys of 50 characters, texts of 5,000, lists of 100 and 64 KiB as JSON. They
/// are Determined's bounds, but for the last.
result<void> check_run_metadata(const value& metadata);

} // namespace troupe::api

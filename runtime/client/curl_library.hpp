#pragma once
// libcurl, which is loaded with its first use. A file that calls it names its functions with
// TROUPE_LAZY_CALL.

#include "model/result.hpp"
#include "workers/lazy_library.hpp"

namespace troupe::client {

using curl_library = lazy_library<"libcurl.so.4">; ///< loaded, it costs a process 3 MB

/// Loads and initialises it, once for the process; further calls answer the same. errc::io where it is
/// missing. Thread-safe.
result<void> start_curl();

} // namespace troupe::client

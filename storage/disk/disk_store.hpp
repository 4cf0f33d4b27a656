#pragma once
// The store on RocksDB.

#include "storage/own_threads.hpp"
#include "storage/store.hpp"

namespace troupe::storage {

/// Opens or creates the store; fails as `open_journal` does.
result<std::shared_ptr<store>> open_disk_store(const journal_options& options,
                                               background threads = background::own);

} // namespace troupe::storage

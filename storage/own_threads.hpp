#pragma once
// Whose threads a database's background work runs on.

#include "storage/journal.hpp"

namespace troupe::storage {

enum class background {
  own,   ///< its own threads, which end with it
  shared ///< those of RocksDB's Env::Default(), which a host that uses RocksDB itself has anyway; they live
         ///< on
};

/// As open_journal(options), whose threads are its own.
result<std::unique_ptr<journal>> open_journal(const journal_options& options, background threads);

} // namespace troupe::storage

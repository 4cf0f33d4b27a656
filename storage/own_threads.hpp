#pragma once
// Whose threads a database's background work runs on.

#include "storage/journal.hpp"

namespace troupe::storage {

enum class background {
  own,   ///< threads of the database's own, which end with the database
  shared ///< threads of RocksDB's Env::Default(), which a host that uses RocksDB itself has anyway; they live
         ///< on
};

/// Does open_journal(options), with threads of the database's own.
result<std::unique_ptr<journal>> open_journal(const journal_options& options, background threads);

} // namespace troupe::storage

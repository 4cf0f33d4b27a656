#pragma once
// Which threads do a database's background work.

#include "storage/journal.hpp"

namespace troupe::storage {

enum class background {
  own,   ///< threads that belong to the database and end with it
  shared ///< threads of RocksDB's Env::Default(), which outlive the database; a host that uses RocksDB has
         ///< them anyway
};

/// Opens the journal as open_journal(options) does, with threads as `background` says.
result<std::unique_ptr<journal>> open_journal(const journal_options& options, background threads);

} // namespace troupe::storage

#pragma once
// The journal over any store. It decides about order, repeats, fences, lanes and projections, once for all
// stores.

#include "storage/journal.hpp"
#include "storage/store.hpp"

namespace troupe::storage {

/// Reads what `over` holds. Fails with `errc::unsupported` where a newer build wrote it, with `errc::corrupt`
/// where it cannot be read. `options.directory` only names the place in errors.
result<std::unique_ptr<journal>> make_journal(std::shared_ptr<store> over, const journal_options& options);

} // namespace troupe::storage

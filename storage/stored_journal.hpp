#pragma once
// The journal over any store: order, repeats, fences, lanes and projections are decided here, once for all
// members.

#include "storage/journal.hpp"
#include "storage/store.hpp"

namespace troupe::storage {

/// Takes what `over` holds. `errc::unsupported` where a newer build wrote it, `errc::corrupt` where it does
/// not read. `options.directory` only names the place in errors.
result<std::unique_ptr<journal>> make_journal(std::shared_ptr<store> over, const journal_options& options);

} // namespace troupe::storage

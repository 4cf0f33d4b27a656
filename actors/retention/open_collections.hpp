#pragma once
// Which collections of checkpoints have begun and have not ended. Pure but for reading storage.

#include "storage/journal.hpp"

#include <vector>

namespace troupe {

/// The orders of the open collections. An order that cannot be read is left out.
std::vector<checkpoint_files_removed> open_collections(const storage::reader& reads);

} // namespace troupe

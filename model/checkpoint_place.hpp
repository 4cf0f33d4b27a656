#pragma once
// Where a checkpoint lies, as facts name it: a store, written KIND:PLACE, and a key within it.

#include "model/facts.hpp"

namespace troupe {

struct store_name {
  std::string kind, place; ///< "shared_fs", "/mnt/ck"
};
/// errc::invalid where `store` is not KIND:PLACE.
result<store_name> parse_store(const std::string& store);

/// The folder of a store, absolute; empty where it is not a folder of the hosts ("directory", "shared_fs").
std::string folder_of_store(const std::string& store);

/// The folder of a checkpoint, absolute; empty where its store is not a folder of the hosts, or its key
/// cannot be the name of a folder there: 1 to 64 letters, digits and `-`.
std::string folder_of(const checkpoint_place& place);

/// The place of a checkpoint; of one that an older build recorded, by its path. Empty where neither is known.
checkpoint_place place_of(const checkpoint& saved);

/// The folder of a checkpoint, of whichever build recorded it; empty as above.
std::string folder_of(const checkpoint& saved);

/// No key leads out of its store's folder.
bool is_checkpoint_key(const std::string& key);

} // namespace troupe

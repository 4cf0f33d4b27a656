#pragma once
// Where a checkpoint lies, as facts name it: a store, written KIND:PLACE, and a key within the store.

#include "model/facts.hpp"

namespace troupe {

struct store_name {
  std::string kind, place; ///< such as "shared_fs" and "/mnt/ck"
};
/// Fails with errc::invalid where `store` is not KIND:PLACE.
result<store_name> parse_store(const std::string& store);

/// The absolute folder of a store; empty where it is not a folder of the hosts ("directory", "shared_fs").
std::string folder_of_store(const std::string& store);

/// The absolute folder of a checkpoint. Empty where its store is not a folder of the hosts, or where its key
/// cannot be the name of a folder there: 1 to 64 letters, digits and `-`.
std::string folder_of(const checkpoint_place& place);

/// The place of a checkpoint; one that an older build recorded has only a path. Empty where neither is known.
checkpoint_place place_of(const checkpoint& saved);

/// The folder of a checkpoint, whichever build recorded it; empty in the same cases as above.
std::string folder_of(const checkpoint& saved);

/// The address of an object below a storage's prefix, such as `s3://BUCKET/PREFIX/KEY`; of a `gcs` storage it
/// begins with `gs://`, of an `azure` one with `azure://CONTAINER/`. `storage` is a section
/// `checkpoint_storage`. Empty where that is not a bucket.
std::string address_in_bucket(const value& storage, const std::string& key);

/// Whether the key has a form that cannot lead out of its store's folder.
bool is_checkpoint_key(const std::string& key);

} // namespace troupe

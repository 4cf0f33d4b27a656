#pragma once
// The files of a checkpoint, fetched.

#include "runtime/client/server.hpp"

namespace troupe::client {

/// Puts the files of checkpoint `uuid` below `target`, which is created where missing; what else is there
/// stays. The archive is written beside `target` first and removed again. Fails with errc::not_found,
/// errc::io with the place, or as every call does.
result<void> download_checkpoint(server& from, const std::string& uuid, const std::filesystem::path& target);

} // namespace troupe::client

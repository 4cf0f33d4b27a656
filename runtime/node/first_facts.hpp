#pragma once
// What older builds kept in files beside the journal becomes facts, once: the users, the configuration in
// force, and operators' settings. A new cluster's first users come the same way.

#include "runtime/api/accounts.hpp"
#include "storage/journal.hpp"

namespace troupe::node {

/// Opens the accounts of the master's folder over what `journal` knows; what they and older files add is in
/// the journal when this returns, and the older files have gone. Before anybody else has the journal.
/// `folder` is empty where nothing is on the disk. errc::corrupt where an older file does not decode.
result<std::unique_ptr<api::accounts>> open_accounts(storage::journal& journal,
                                                     const std::filesystem::path& folder,
                                                     api::accounts::options how, time_point now);

} // namespace troupe::node

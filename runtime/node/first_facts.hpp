#pragma once
// Turns what older builds kept in files beside the journal into facts, once: the users, the configuration in
// force, and operators' settings. The first users of a new cluster become facts in the same way, and the role
// ClusterAdmin of its user `admin`.

#include "runtime/api/accounts.hpp"
#include "storage/journal.hpp"

namespace troupe::node {

/// Opens the accounts in the master's folder, on top of what `journal` knows. When this returns, the journal
/// holds what the folder and older files added, and the older files are removed. To be called before anybody
/// else has the journal. `folder` is empty if nothing is on the disk. errc::corrupt if an older file cannot
/// be decoded.
result<std::unique_ptr<api::accounts>> open_accounts(storage::journal& journal,
                                                     const std::filesystem::path& folder,
                                                     api::accounts::options how, time_point now);

} // namespace troupe::node

#pragma once
// The one table of exit codes, for all verbs.

namespace troupe::cli {

/// The documented exit codes (`troupe help exit-codes`).
enum exit_code : int {
  exit_done = 0,
  exit_failed = 1,   ///< the thing asked for failed
  exit_usage = 2,    ///< usage or configuration; nothing was changed
  exit_canceled = 3, ///< the experiment was cancelled or killed
  exit_denied = 4,   ///< not logged in, or not allowed
  exit_not_found = 5,
  exit_unreachable = 6, ///< no cluster
  exit_timeout = 7,
  exit_conflict = 8, ///< the state does not allow it, or the thing changed meanwhile
  exit_bug = 70,
  exit_interrupted = 130,
};

} // namespace troupe::cli

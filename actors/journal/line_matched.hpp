#pragma once
// What the journal found in a log and tells the cluster.

#include "model/ids.hpp"
#include "model/pack.hpp"

#include <string>

namespace troupe {

/// A line of a log that a log policy or a webhook looks for; sent before the line is stored.
struct line_matched {
  allocation_id allocation;
  std::string agent, pattern, line; ///< `line` is cut to 1,000 bytes
  webhook_id webhook;               ///< webhook whose trigger looks for the line; 0: a log policy does
  std::string policy;               ///< name of the policy; may be empty
  bool exclude_agent = false, cancel_retries = false;
  TROUPE_PACKED(allocation, agent, pattern, line, webhook, policy, exclude_agent, cancel_retries)
};

} // namespace troupe

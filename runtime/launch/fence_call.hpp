#pragma once
// `troupe --fence`: asks the master over TLS in the place of a sandbox whose agent is dead, and whose own
// program speaks no TLS. It reads the URL of the master, the claim (each a line) and the certificates of the
// CA from standard input, and prints "kill" or "go".

namespace troupe::launch {

/// The exit code: 0 with an answer printed, 1 without one, the reason on standard error.
int fence_call();

} // namespace troupe::launch

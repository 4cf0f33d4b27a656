#pragma once
// `troupe --fence` asks the master over TLS for a sandbox whose agent is dead, because troupe-task does not
// speak TLS. It reads the URL of the master and the claim, a line each, and the certificates of the CA from
// standard input, and prints "kill" or "go".

namespace troupe::launch {

/// Returns the exit code: 0 where an answer was printed, otherwise 1, with the reason on standard error.
int fence_call();

} // namespace troupe::launch

#pragma once

namespace troupe {

/// From now on this thread gives way: `niceness` is 0 to 19, as of setpriority(2). Who wakes up beside it
/// gets the processor after 0.1 ms, not after the kernel's slice of about 3 ms (Linux 6.12 and later; where
/// the kernel refuses slices, or the niceness, nothing of it changes).
void run_in_background(int niceness);

} // namespace troupe

#pragma once

namespace troupe {

/// Who wakes up beside this thread gets the processor after 0.1 ms, not after the kernel's slice of about 3
/// ms (Linux 6.12 and later; before that nothing changes). The thread gets as much of the processor as
/// before.
void take_short_slices();

/// The same, and from now on this thread gives way: `niceness` is 0 to 19, as of setpriority(2).
void run_in_background(int niceness);

} // namespace troupe

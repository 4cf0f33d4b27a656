#pragma once

namespace troupe {

/// Lets a thread that wakes up beside this one have the processor after 0.1 ms, and not after the kernel's
/// slice of about 3 ms; this one in turn, when it wakes up, has it at once from a thread with the usual slice
/// (Linux 6.12 and later; earlier kernels ignore it). The thread gets as much of the processor as before.
void take_short_slices();

/// Does the same and lowers the thread's priority: `niceness` is 0 to 19, as in setpriority(2).
void run_in_background(int niceness);

} // namespace troupe

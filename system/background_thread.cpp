#include "system/background_thread.hpp"

#include <cstdint>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe {
namespace {

/// The structure of sched_setattr(2). The kernel's header cannot be included together with <sched.h>.
struct sched_attributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

} // namespace

void take_short_slices() {
  sched_attributes now{};
  if (::syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0)
    return;
  now.runtime = 100'000; // ns; for a policy without deadlines this is the slice
  ::syscall(SYS_sched_setattr, 0, &now, 0);
}

void run_in_background(int niceness) {
  ::setpriority(PRIO_PROCESS, 0, niceness); // acts on this thread only
  take_short_slices();
}

} // namespace troupe

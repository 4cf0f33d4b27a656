#include "runtime/cli/interrupt.hpp"

namespace troupe::cli {
namespace {

std::atomic<bool> interrupted{false}; // a signal handler sets it
static_assert(std::atomic<bool>::is_always_lock_free);

} // namespace

interrupt_watch::interrupt_watch() {
  interrupted = false;
  struct sigaction act {};
  act.sa_handler = [](int) { interrupted = true; };
  act.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &act, &before_);
}

interrupt_watch::~interrupt_watch() { ::sigaction(SIGINT, &before_, nullptr); }

const std::atomic<bool>& interrupt_watch::flag() const { return interrupted; }

} // namespace troupe::cli

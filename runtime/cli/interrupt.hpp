#pragma once
// Ctrl-C while something is watched: the first one is noted here, the second one ends the process as usual.

#include <atomic>
#include <csignal>

namespace troupe::cli {

/// A process may have only one at a time.
class interrupt_watch {
public:
  interrupt_watch();
  ~interrupt_watch();
  interrupt_watch(const interrupt_watch&) = delete;
  interrupt_watch& operator=(const interrupt_watch&) = delete;

  const std::atomic<bool>& flag() const;
  bool seen() const { return flag().load(); }

private:
  struct sigaction before_ {};
};

} // namespace troupe::cli

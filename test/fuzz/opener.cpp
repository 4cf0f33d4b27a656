// The input is a byte of choices, and then what a master says to an agent that brings it a connection to a
// service over real sockets. The service receives only what follows an upgrade, both ends close, and the
// agent continues. The process ends with a message where one of these does not hold.

#include "test/unit/proxy/opener_stage.hpp"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static troupe::opener_stage on;
  if (size == 0)
    return 0;
  try {
    troupe::play(on, {reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& missed) {
    std::fprintf(stderr, "what does not hold: %s\n", missed.what());
    std::fflush(stderr);
    std::abort();
  }
  return 0;
}

#include "model/assert.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace troupe {
namespace {

thread_local assertion_handler current = nullptr;

} // namespace

assertion_handler set_assertion_handler(assertion_handler handler) { return std::exchange(current, handler); }

void fail_assertion(const char* expression, const char* file, int line) {
  if (current)
    current({expression, file, line});
  std::fprintf(stderr, "troupe: assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

} // namespace troupe

#pragma once
// TROUPE_ASSERT checks what only a bug can make false. It is on in release too, and never used on input.

namespace troupe {

/// Is called when an assertion fails. The default prints to stderr and aborts the process. A test or the
/// recovery quarantine may install its own handler, which must not return (it may throw `assertion_failed`,
/// the only exception of this code base).
struct assertion_failed {
  const char* expression;
  const char* file;
  int line;
};
using assertion_handler = void (*)(const assertion_failed&);

/// Installs a handler for the calling thread and returns the previous one.
assertion_handler set_assertion_handler(assertion_handler handler);

[[noreturn]] void fail_assertion(const char* expression, const char* file, int line);

} // namespace troupe

#define TROUPE_ASSERT(expression)                                                                            \
  ((expression) ? static_cast<void>(0) : ::troupe::fail_assertion(#expression, __FILE__, __LINE__))

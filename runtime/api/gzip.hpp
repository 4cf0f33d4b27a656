#pragma once
// Compresses answers for clients that accept gzip.

#include "runtime/api/http.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::api {

/// Whether the value of Accept-Encoding names gzip, and not with q=0.
bool takes_gzip(std::string_view accept_encoding);

/// Compresses a body of text over 1 KiB and names the encoding; leaves all other bodies as they are.
void gzip_body(response& x);

/// Whether the body may be compressed and is large enough to gain by it, where `bytes` of it are there so
/// far. `more`: the rest is on its way, so these bytes do not decide.
bool worth_gzip(const response& x, std::size_t bytes, bool more = false);

/// Compresses a body that is made piece by piece. The other side can read every piece at once.
class gzip_stream {
public:
  /// Sets the answer's headers. Gives nothing where memory is short.
  static std::optional<gzip_stream> of(response& x);
  /// The compressed bytes of a piece. With `last` they also end the body, and nothing can be added
  /// afterwards.
  std::string add(std::string_view bytes, bool last);

private:
  struct state;
  struct closer {
    void operator()(state* s) const;
  };
  std::unique_ptr<state, closer> state_;
};

} // namespace troupe::api

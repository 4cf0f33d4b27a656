#pragma once
// The one place where our errors become HTTP.

#include "runtime/api/http.hpp"

namespace troupe::api {

struct http_error {
  unsigned status;
  int code;           ///< gRPC's number
  const char* reason; ///< gRPC's name
};

/// A full disk is 503: the stock client and its tasks try 503 again, and space comes back. They would give up
/// on 507.
http_error http_of(errc code);

/// Not allowed by the state, where the contract wants 400 instead of 409.
inline constexpr http_error failed_precondition{400, 9, "FailedPrecondition"};
inline constexpr http_error too_large{413, 8, "ResourceExhausted"};
inline constexpr http_error wrong_method{405, 12, "Unimplemented"};

/// {"error": {"code", "reason", "error"}, "message"}: the client reads `error.error`, for 403 and 404
/// `message`.
response failure(http_error kind, const std::string& text);
response failure(const error& why);
value error_body(http_error kind, const std::string& text);

/// A line that ends a newline-delimited stream.
std::string stream_error_line(const error& why);

response json(const value& body, bool pretty = false);

} // namespace troupe::api

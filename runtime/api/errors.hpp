#pragma once
// Makes our errors into HTTP answers. Nothing else does that.

#include "runtime/api/http.hpp"

namespace troupe::api {

struct http_error {
  unsigned status;
  int code;           ///< gRPC's number of the error
  const char* reason; ///< gRPC's name of the error
};

/// A full disk is 503: the stock client and its tasks repeat a request after 503, and space may come back.
/// After 507 they would give up.
http_error http_of(errc code);

/// The state does not allow the request, and the contract wants 400 instead of 409.
inline constexpr http_error failed_precondition{400, 9, "FailedPrecondition"};
inline constexpr http_error too_large{413, 8, "ResourceExhausted"};
inline constexpr http_error wrong_method{405, 12, "Unimplemented"};

/// {"error": {"code", "reason", "error"}, "message"}: the stock client reads `error.error`, and for 403 and
/// 404 `message`.
response failure(http_error kind, const std::string& text);
response failure(const error& why);
value error_body(http_error kind, const std::string& text);

/// The line that ends a newline-delimited stream after an error.
std::string stream_error_line(const error& why);

response json(const value& body, bool pretty = false);

} // namespace troupe::api

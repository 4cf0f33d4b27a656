#pragma once
// Answers made smaller for those who ask.

#include "runtime/api/http.hpp"

namespace troupe::api {

/// Does an Accept-Encoding name gzip, and not with q=0?
bool takes_gzip(std::string_view accept_encoding);

/// Compresses a body of text over 1 KiB and names the encoding; leaves all others as they are.
void gzip_body(response& x);

} // namespace troupe::api

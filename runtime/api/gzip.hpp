#pragma once
// Answers made smaller for those who ask.

#include "runtime/api/http.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::api {

/// Does an Accept-Encoding name gzip, and not with q=0?
bool takes_gzip(std::string_view accept_encoding);

/// Compresses a body of text over 1 KiB and names the encoding; leaves all others as they are.
void gzip_body(response& x);

/// May the body be compressed, and is it large enough, where its beginning has so many bytes?
bool worth_gzip(const response& x, std::size_t bytes);

/// A body that is made piece by piece. What was added can be read by the other side at once.
class gzip_stream {
public:
  /// Writes the answer's headers. Nothing where memory is short.
  static std::optional<gzip_stream> of(response& x);
  /// What goes to the other side; with `last` the end as well, after which nothing can be added.
  std::string add(std::string_view bytes, bool last);

private:
  struct state;
  struct closer {
    void operator()(state* s) const;
  };
  std::unique_ptr<state, closer> state_;
};

} // namespace troupe::api

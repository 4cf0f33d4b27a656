#pragma once
// What a handler sees of HTTP: one request in, one answer out. Knows no socket and no Boost.

#include "model/result.hpp"
#include "model/time.hpp"
#include "model/value.hpp"
#include "runtime/http/byte_link.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::api {

/// The headers that matter here, as they came.
struct request_headers {
  std::string authorization, cookie, user_token, allocation_token, accept, content_type, last_event_id;
  std::string upgrade; ///< the protocols that the client offers for this connection instead of HTTP, or empty
  std::string host, origin, fetch_site; ///< what a browser says of where the request comes from
  std::string if_none_match, accept_encoding;
  std::string websocket_key;
  std::string from; ///< address of the other end of the connection
};

/// Name and value pairs of a query, decoded, names in camelCase, in their order.
struct query_list {
  std::vector<std::pair<std::string, std::string>> all;

  std::string_view first(std::string_view name) const; ///< empty where there is none
  std::vector<std::string_view> every(std::string_view name) const;
  bool has(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise = false) const; ///< true, True, TRUE, t, T, 1
  /// The number under `name`, `otherwise` where it is absent; errc::invalid on anything else.
  result<std::int64_t> number(std::string_view name, std::int64_t otherwise) const;
};

/// errc::invalid where one of the parameters that are read as flags is neither true nor false.
result<void> check_flags(const query_list& query);

/// Undoes %41 and, in queries, `+`. Fails with errc::invalid on a broken escape and on a zero byte.
result<std::string> percent_decoded(std::string_view text, bool plus_is_blank);

/// The elements of a list with commas: one whose name has a comma or a percent sign has these as %2C and %25,
/// within the value of a query that is decoded already. A broken escape stands for itself.
std::vector<std::string> list_elements(std::string_view text);

/// "timeout_seconds" -> "timeoutSeconds".
std::string to_camel(std::string_view name);
std::string to_snake(std::string_view name);

struct target {                      ///< "/api/v1/experiments/7?limit=2"
  std::vector<std::string> segments; ///< decoded; none for "/"
  query_list query;
};
/// errc::invalid unless it starts with one slash and decodes; repeated slashes are one.
result<target> parse_target(std::string_view text);

/// A body that is made while it is sent. Used by one connection at a time.
class body_stream {
public:
  virtual ~body_stream() = default;

  struct piece {
    std::string bytes;
    bool last = false; ///< the body ends after these bytes
    /// Without bytes: asked again after this long, or sooner, at the next commit or when it is looked at
    /// whether the asker still may.
    std::optional<duration> pause;
  };
  /// The next bytes; never blocks for long. No bytes and not `last` means: nothing now.
  /// An error ends the connection in the middle of the body, so that the reader cannot take it for whole.
  virtual result<piece> next(time_point now) = 0;
};

struct response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::unique_ptr<body_stream> stream; ///< instead of `body`
  bool kept = true; ///< of a route from facts: the same answer may be given again until the next fact
  /// Of a request with `upgrade`, instead of `body`: the answer is 101, and the connection goes to this.
  /// `headers` have to name the protocol, as {"Upgrade", "websocket"}.
  http::taker taker;
  http::socket_taker socket_taker; ///< instead of `taker`, where the connection is plain and this is set
};

/// The way back of one request. Copies share it; the first answer counts. Where the last copy goes without an
/// answer, the request is answered 500.
class reply {
public:
  explicit reply(std::function<void(response)> send);
  void operator()(response x) const;

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe::api

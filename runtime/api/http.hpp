#pragma once
// What a handler sees of HTTP: it takes one request and gives one answer. This header knows neither sockets
// nor Boost.

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

/// The headers that this server reads, as the client sent them.
struct request_headers {
  std::string authorization, cookie, user_token, allocation_token, accept, content_type, last_event_id;
  std::string upgrade; ///< the protocols that the client offers for this connection instead of HTTP, or empty
  /// By these a browser says where the request comes from. A `host` without a name is ":"; empty: none was
  /// sent.
  std::string host, origin, fetch_site;
  std::string if_none_match, accept_encoding;
  std::string websocket_key;
  std::string from; ///< IP address that the connection comes from
};

/// Name and value pairs of a query in their order; both are decoded, and names are in camelCase.
struct query_list {
  std::vector<std::pair<std::string, std::string>> all;

  std::string_view first(std::string_view name) const; ///< empty where the query lacks the name
  std::vector<std::string_view> every(std::string_view name) const;
  bool has(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise = false) const; ///< true for true, True, TRUE, t, T and 1
  /// The number under `name`, or `otherwise` where it is absent. Fails with errc::invalid on anything else.
  /// As with Determined, `limit` and `offset` have 32 bits.
  result<std::int64_t> number(std::string_view name, std::int64_t otherwise) const;
};

/// Fails with errc::invalid where a parameter that is read as a flag is neither true nor false, or one that
/// names ids is not a number: it must never stand for "all" or for "none".
result<void> check_values(const query_list& query);

/// Decodes escapes such as %41 and, with `plus_is_blank`, `+`. Fails with errc::invalid on a broken escape.
result<std::string> percent_decoded(std::string_view text, bool plus_is_blank);

/// The elements of a list that commas separate. A comma or a percent sign within an element is written as %2C
/// or %25, inside of the query's value, which is decoded already. A broken escape stands for itself.
std::vector<std::string> list_elements(std::string_view text);

/// "timeout_seconds" -> "timeoutSeconds".
std::string to_camel(std::string_view name);
std::string to_snake(std::string_view name);

struct target {                      ///< "/api/v1/experiments/7?limit=2"
  std::vector<std::string> segments; ///< decoded parts between slashes; empty for "/"
  query_list query;
};
/// Fails with errc::invalid unless the text starts with one slash and decodes, and on zero bytes, which only
/// the names of metrics in the query may have. Further slashes in a row count as one.
result<target> parse_target(std::string_view text);

/// A body that is made while it is sent. Used by one connection at a time.
class body_stream {
public:
  virtual ~body_stream() = default;

  struct piece {
    std::string bytes;
    bool last = false; ///< the body ends after these bytes
    /// For a piece without bytes: how long to wait before the next piece is asked for. A commit, and a check
    /// of the caller's rights, end the wait early.
    std::optional<duration> pause;
  };
  /// The next bytes; never blocks for long. A piece without bytes that is not the last one means that there
  /// is nothing to send now. An error ends the connection in the middle of the body, so that the reader
  /// cannot take the body for complete.
  virtual result<piece> next(time_point now) = 0;
};

struct response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  /// A body that is made while it is sent; used instead of `body` where it is set.
  std::unique_ptr<body_stream> stream;
  bool ends_by_itself = false; ///< the stream waits for nothing to happen, so its rest comes soon
  /// For a route with `from_facts`: whether the same answer may be given again until the next fact.
  bool kept = true;
  /// For a request with `upgrade`, instead of `body`: the answer is 101, and the connection goes to this
  /// taker. `headers` have to name the protocol, as {"Upgrade", "websocket"}.
  http::taker taker;
  http::socket_taker socket_taker; ///< used instead of `taker` where it is set and the connection has no TLS
};

/// The way back of one request. Copies share it, and only the first answer counts. Where the last copy goes
/// without an answer, the request is answered with 500.
class reply {
public:
  explicit reply(std::function<void(response)> send);
  void operator()(response x) const;

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe::api

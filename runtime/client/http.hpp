#pragma once
// HTTP requests to one server, over libcurl, which no other file includes.

#include "model/result.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::client {

struct request {
  std::string method = "GET";
  std::string url; ///< complete, path and query percent-encoded
  std::string body;
  std::vector<std::string> headers; ///< "Name: value"
  std::chrono::milliseconds timeout{30'000};
};

struct reply {
  int status = 0;
  std::string body;
  std::map<std::string, std::string> headers; ///< names in lower case
};

struct transport_options {
  std::string ca_file; ///< authority for https; empty: the system's
  std::string ca_pem;  ///< the same as text, in place of a file
  std::chrono::milliseconds connect_timeout{5'000};
  std::size_t most_bytes = 256 << 20; ///< limit of an answer kept in memory
};

/// Why no answer came.
enum class transport_fault {
  none,
  no_connection, ///< nothing listens there, or it is silent
  no_http,       ///< something else talks, or hangs up
  no_tls,        ///< no TLS handshake with it
  no_trust,      ///< the server's certificate is not of the CA, or of another name
};

/// Not thread-safe. Connections are kept open between requests.
class http {
public:
  explicit http(transport_options options = {});
  ~http();
  http(const http&) = delete;
  http& operator=(const http&) = delete;

  /// Any status is an answer. Fails with errc::unreachable (no connection, no HTTP, no trust) or
  /// errc::timeout.
  result<reply> send(const request& what);
  /// The same, giving the body of a 200 to `sink` as it comes; other answers keep their body. A `sink` that
  /// returns false ends the transfer with errc::io.
  result<reply> send(const request& what, const std::function<bool(std::string_view)>& sink);
  /// Transport fault of the last `send`.
  transport_fault last_fault() const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// One answer that comes little by little and may never end; `timeout` of the request is not used.
class http_stream {
public:
  http_stream(const request& what, const transport_options& options, std::chrono::milliseconds quiet_limit);
  ~http_stream();
  http_stream(const http_stream&) = delete;
  http_stream& operator=(const http_stream&) = delete;

  /// Waits at most `wait` and appends what came to `into`. False once the answer is complete. Fails with
  /// errc::unreachable where the connection breaks, and with errc::timeout after `quiet_limit` without a
  /// byte.
  result<bool> read(std::string& into, std::chrono::milliseconds wait);
  int status() const; ///< 0 until the answer's head came

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// A connection that is no HTTP any more after its first request: bytes both ways. Not thread-safe.
class http_upgrade {
public:
  /// Asks for `protocol` on a fresh connection. An answer other than 101 is given as `refused`, with
  /// errc::conflict.
  static result<std::unique_ptr<http_upgrade>> open(const request& what, const transport_options& options,
                                                    const std::string& protocol, reply& refused);
  ~http_upgrade();
  http_upgrade(const http_upgrade&) = delete;
  http_upgrade& operator=(const http_upgrade&) = delete;

  int descriptor() const; ///< for `poll`; bytes may be here already although it is silent: read first
  /// What is here: no bytes where nothing is, and `over` where the other side sends no more.
  struct got {
    std::string bytes;
    bool over = false;
  };
  result<got> read();
  /// As many as go now.
  result<std::size_t> write(std::string_view bytes);
  void end_writing();

private:
  struct impl;
  explicit http_upgrade(std::unique_ptr<impl> x);
  std::unique_ptr<impl> impl_;
};

/// Escapes for a URL: everything but letters, digits and `-._~` as %XX.
std::string percent_encode(std::string_view text);

} // namespace troupe::client

#pragma once
// The API of one cluster as calls; docs/api.md is the contract. Nothing here knows a private path.

#include "model/ids.hpp"
#include "model/value.hpp"
#include "runtime/client/find_server.hpp"
#include "runtime/client/http.hpp"

#include <optional>
#include <utility>

namespace troupe::client {

struct credentials {
  std::string user = "determined", password;
  std::string token; ///< used first where given
};

struct server_options {
  std::string ca_file;
  credentials who;
  std::chrono::milliseconds timeout{30'000};
  /// Called with each request as a curl command line; may be empty.
  std::function<void(const std::string&)> trace;
};

/// $TROUPE_USER, $TROUPE_PASSWORD, $TROUPE_TOKEN, $TROUPE_CA_FILE.
server_options options_from(const environment& env);

/// An answer and the newest fact that it can have seen.
struct snapshot {
  value body;
  std::optional<std::uint64_t> sequence;
};

struct new_experiment {
  std::string config, config_name;
  std::string context; ///< a tar; empty: no files
  bool activate = true;
  std::string key, name;
};

using query = std::vector<std::pair<std::string, std::string>>;

/// Not thread-safe. Logs in by itself, once, when the server asks for it; with a token it does not. Errors
/// carry the server's text; codes: invalid 400 and 413, conflict (state does not allow it) 400 and 409,
/// unauthorized 401, denied 403, not_found 404, timeout 408 and 504, busy 429 and 503, unsupported 501,
/// internal 500; unreachable also where the other side does not talk like a Troupe server.
class server {
public:
  explicit server(server_address where, server_options options = {});

  const server_address& where() const { return where_; }
  /// Takes a new address where the data directory names another live node since; true where it did.
  bool find_again();

  result<snapshot> get(const std::string& path, const query& with = {});
  result<value> post(const std::string& path, const value& body = value::object());
  /// By another method: "PUT", "PATCH", "DELETE".
  result<value> change(const std::string& method, const std::string& path,
                       const value& body = value::object());

  /// `warnings`, where given, gets the codes that the answer warns with.
  result<experiment_id> create(const new_experiment& what, std::vector<std::string>* warnings = nullptr);
  /// A task that is no trial: `body` as POST /troupe/v1/tasks takes it, `context` a tar or empty.
  result<value> create_task(const value& body, const std::string& context);
  /// All rows of a Determined list: `{KEY: [...], "pagination"}`, page by page.
  result<value> list(const std::string& path, const std::string& key, query with = {});
  /// Newline-delimited JSON, one value at a time, until the server ends it, `each` returns false, or `stop`
  /// says so. With `follow`, a quiet stream stays open.
  result<void> lines(const std::string& path, const query& with, bool follow,
                     const std::function<bool(value)>& each, const std::function<bool()>& stop = {});
  /// Gives the bytes of an answer to `sink` as they come.
  result<void> download(const std::string& path, const query& with,
                        const std::function<bool(std::string_view)>& sink);
  /// A stream that never ends by itself; its status has to be checked.
  result<std::unique_ptr<http_stream>> open(const std::string& path, const query& with,
                                            std::vector<std::string> headers,
                                            std::chrono::milliseconds quiet_limit);
  /// A connection to a service of a task, as bytes; see docs/tasks.md.
  result<std::unique_ptr<http_upgrade>> tunnel(const std::string& service);
  /// The address of a task's page that opens it once, within a minute, as who asks.
  result<std::string> page_of(const std::string& task);
  /// Stops the node; logs in as `admin` where that is asked for.
  result<void> shut_down();

  /// What an answer of status other than 200 means.
  error fault_of(const reply& answer) const;

private:
  result<value> post_framed(const std::string& path, const value& body, const std::string& tar);
  request make(const std::string& method, const std::string& path, const query& with) const;
  result<reply> send(request what, const std::function<bool(std::string_view)>& sink = nullptr);
  result<void> log_in();
  error placed(error why) const;

  server_address where_;
  server_options options_;
  transport_options transport_;
  http http_;
  std::string token_;
};

} // namespace troupe::client

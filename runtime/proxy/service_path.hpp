#pragma once
// What an address below /proxy/ names: a service of a task, and what is asked of it. Pure.

#include "model/result.hpp"

#include <string>
#include <string_view>

namespace troupe::proxy {

struct service_path {
  std::string service; ///< "TASK" or "TASK:PORT"
  std::string task;    ///< the service's name without its port
  int port = 0;        ///< 0: the name has none
  std::string path;    ///< whole, as it came: "/proxy/TASK/lab"
  std::string query;   ///< as it came, without the question mark
};

/// Whether the target is the proxy's at all.
bool is_below_proxy(std::string_view target);

/// errc::invalid on what could mean another path to a service than to us: a segment that is empty, "." or
/// ".." once its escapes are undone, a backslash, a control byte, a broken escape.
result<service_path> parse_service_path(std::string_view target);

/// The name as one label of a host: "7.0000-...:8080" is "7-0000-...-8080".
std::string host_label(std::string_view service);

/// The value of the first `name` in a query, its escapes undone; and the query without all of that name.
struct taken_parameter {
  std::string value;
  std::string rest;
  bool found = false;
};
taken_parameter take_parameter(std::string_view query, std::string_view name);

} // namespace troupe::proxy

#pragma once
// What an address below /proxy/ names: a service of a task, and the path that is asked of it. Pure.

#include "model/result.hpp"

#include <string>
#include <string_view>

namespace troupe::proxy {

struct service_path {
  std::string service; ///< "TASK" or "TASK:PORT"
  std::string task;    ///< the service's name without its port
  int port = 0;        ///< 0: the name has no port
  /// The whole path as it arrived: "/proxy/TASK/lab".
  std::string path;
  std::string query; ///< as it arrived, without the question mark
};

/// Whether the target belongs to the proxy.
bool is_below_proxy(std::string_view target);

/// errc::invalid if a service could read the path differently than this server: a segment that is empty, "."
/// or ".." once its escapes are decoded, a backslash, a control byte, or a broken escape.
result<service_path> parse_service_path(std::string_view target);

/// The name of a service as one label of a host: "7.0000-...:8080" becomes "7-0000-...-8080".
std::string host_label(std::string_view service);

/// The value of the first parameter `name` in a query, with its escapes decoded; and the query without all
/// parameters of that name.
struct taken_parameter {
  std::string value;
  std::string rest;
  bool found = false;
};
taken_parameter take_parameter(std::string_view query, std::string_view name);

} // namespace troupe::proxy

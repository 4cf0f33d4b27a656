#include "runtime/api/errors.hpp"

namespace troupe::api {

http_error http_of(errc code) {
  switch (code) {
  case errc::invalid:
    return {400, 3, "InvalidArgument"};
  case errc::not_found:
    return {404, 5, "NotFound"};
  case errc::conflict:
  case errc::gap:
    return {409, 10, "Aborted"};
  case errc::denied:
    return {403, 7, "PermissionDenied"};
  case errc::unauthorized:
    return {401, 16, "Unauthenticated"};
  case errc::busy:
    return {429, 8, "ResourceExhausted"};
  case errc::no_space:
  case errc::unreachable:
    return {503, 14, "Unavailable"};
  case errc::timeout:
    return {504, 4, "DeadlineExceeded"};
  case errc::unsupported:
    return {501, 12, "Unimplemented"};
  case errc::corrupt:
    return {500, 15, "DataLoss"};
  case errc::io:
  case errc::internal:
    break;
  }
  return {500, 13, "Internal"};
}

value error_body(http_error kind, const std::string& text) {
  return {{"error", {{"code", kind.code}, {"reason", kind.reason}, {"error", text}}}, {"message", text}};
}

response failure(http_error kind, const std::string& text) {
  response out;
  out.status = kind.status;
  out.body = to_json(error_body(kind, text));
  return out;
}

response failure(const error& why) { return failure(http_of(why.code), why.what); }

std::string stream_error_line(const error& why) {
  auto kind = http_of(why.code);
  value line = {{"error",
                 {{"grpcCode", kind.code},
                  {"httpCode", kind.status},
                  {"message", why.what},
                  {"httpStatus", kind.reason},
                  {"details", value::array()}}}};
  return to_json(line) + "\n";
}

response json(const value& body, bool pretty) {
  response out;
  out.body = to_json(body, pretty ? 2 : -1);
  return out;
}

} // namespace troupe::api

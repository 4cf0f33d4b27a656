#include "model/result.hpp"

namespace troupe {

const char* name(errc code) {
  switch (code) {
  case errc::invalid:
    return "invalid";
  case errc::not_found:
    return "not_found";
  case errc::conflict:
    return "conflict";
  case errc::gap:
    return "gap";
  case errc::denied:
    return "denied";
  case errc::unauthorized:
    return "unauthorized";
  case errc::busy:
    return "busy";
  case errc::no_space:
    return "no_space";
  case errc::io:
    return "io";
  case errc::unreachable:
    return "unreachable";
  case errc::timeout:
    return "timeout";
  case errc::corrupt:
    return "corrupt";
  case errc::unsupported:
    return "unsupported";
  case errc::internal:
    return "internal";
  }
  return "internal";
}

} // namespace troupe

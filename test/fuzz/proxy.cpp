// The input is a byte that chooses the reader of the rest: frames of a tunnel, an address below /proxy, or
// headers. Frames mean the same however they are cut; an accepted address leads to no parent folder; no
// credential of Troupe is passed on.

#include "runtime/proxy/frames.hpp"
#include "runtime/proxy/headers.hpp"
#include "runtime/proxy/service_path.hpp"

#include <cstdlib>

using namespace troupe::proxy;

namespace {

void require(bool true_) {
  if (!true_)
    std::abort();
}

struct heard {
  std::string bytes, pong;
  bool closed = false;
  int code = 0;
  bool operator==(const heard&) const = default;
};

heard read_cut(std::string_view all, std::size_t piece) {
  frame_reader reader;
  heard out;
  for (std::size_t at = 0; at < all.size(); at += piece) {
    auto got = reader.feed(all.substr(at, piece));
    out.bytes += got.bytes;
    if (got.pong)
      out.pong = *got.pong;
    out.closed = out.closed || got.closed;
    if (got.wrong)
      out.code = got.wrong->code;
  }
  return out;
}

void frames(std::string_view input) {
  const auto whole = read_cut(input, input.size() + 1);
  require(whole.bytes.size() <= input.size());
  for (const std::size_t piece : {1u, 2u, 3u, 13u})
    require(read_cut(input, piece) == whole);
  (void)accept_of(input);
}

void paths(std::string_view input) {
  const auto got = parse_service_path(input);
  if (!got)
    return;
  require(got->path.starts_with("/proxy/") && input.starts_with(got->path));
  require(got->path.find("..") == std::string::npos || got->path.find("/../") == std::string::npos);
  require(got->service.find_first_of("/@%\\") == std::string::npos);
  const auto taken = take_parameter(got->query, "token");
  require(!take_parameter(taken.rest, "token").found);
}

void headers(std::string_view input) {
  header_list list;
  while (!input.empty()) {
    const auto end = input.find('\n');
    const auto line = input.substr(0, end);
    input = end == input.npos ? std::string_view() : input.substr(end + 1);
    const auto colon = line.find(':');
    list.emplace_back(std::string(line.substr(0, colon)),
                      colon == line.npos ? std::string() : std::string(line.substr(colon + 1)));
  }
  const auto up = to_service(list, {"127.0.0.1", false, false});
  require(first_of(up, "authorization").empty() && first_of(up, "transfer-encoding").empty() &&
          first_of(up, "content-length").empty() && first_of(up, "upgrade").empty());
  for (const auto& one : up)
    if (const header_list alone{one}; !first_of(alone, "cookie").empty())
      require(cookie_in(one.second, "auth").empty() && cookie_in(one.second, "troupe-12345678").empty());
  const auto down = to_viewer(list);
  require(first_of(down, "clear-site-data").empty() && first_of(down, "service-worker-allowed").empty());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
  case 0:
    frames(input);
    break;
  case 1:
    paths(input);
    break;
  default:
    headers(input);
  }
  return 0;
}

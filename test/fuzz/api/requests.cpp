// The input is a byte that chooses the caller, a line "METHOD TARGET", and the body. No answer may be an
// internal error (500).

#include "test/unit/api/table.hpp"

using namespace troupe;
using namespace troupe::api;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The table is never destroyed: held requests would be answered at that moment, with a wrong fault.
  static table& t = *new table;
  static const request_headers callers[] = {t.user("determined"), t.user("admin"), t.task(), {}};
  if (size < 2)
    return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto line = text.substr(0, text.find('\n'));
  const auto body = line.size() == text.size() ? std::string_view{} : text.substr(line.size() + 1);
  const auto blank = line.find(' ');
  request_head head;
  head.method = line.substr(0, blank);
  head.target = blank == line.npos ? "" : line.substr(blank + 1);
  head.headers = callers[data[0] % 4];
  auto let_in = t.api.admit(std::move(head));
  if (auto* in = std::get_if<admission>(&let_in)) {
    if (in->slow() &&
        (in->at->path.find("/users") != std::string::npos || in->at->path.find("/auth") != std::string::npos))
      return 0; // hashing passwords would take all the time
    if (data[0] >= 128)
      in->with->headers.content_type = "application/x-troupe-experiment";
    t.api.run(std::move(*in), std::string(body), reply{[](response x) {
                if (x.status == 500)
                  __builtin_trap();
                for (int i = 0; x.stream && i < 3; ++i)
                  (void)x.stream->next(t0 + std::chrono::hours{1});
              }});
  }
  t.cluster.calls.clear();
  return 0;
}

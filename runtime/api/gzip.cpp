#include "runtime/api/gzip.hpp"

#include <algorithm>
#include <libdeflate.h>
#include <memory>

namespace troupe::api {
namespace {

constexpr std::size_t least = 1024;
constexpr int quick = 1; ///< libdeflate's level: twice as quick as zlib's lowest, and a little smaller

bool is_text(std::string_view type) {
  return type.starts_with("application/json") || type.starts_with("text/");
}

} // namespace

bool takes_gzip(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find(',');
    auto one = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (!one.starts_with("gzip"))
      continue;
    const auto q = one.find("q=");
    return q == one.npos || one.find_first_of("123456789", q) != one.npos;
  }
  return false;
}

void gzip_body(response& x) {
  const auto has = [&](const char* name) {
    return std::any_of(x.headers.begin(), x.headers.end(), [&](const auto& h) { return h.first == name; });
  };
  if (x.body.size() < least || !is_text(x.content_type) || has("Content-Encoding") || has("Set-Cookie"))
    return;
  struct closer {
    void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
  };
  const std::unique_ptr<libdeflate_compressor, closer> with(libdeflate_alloc_compressor(quick));
  if (!with)
    return;
  std::string out(libdeflate_gzip_compress_bound(with.get(), x.body.size()), '\0');
  out.resize(libdeflate_gzip_compress(with.get(), x.body.data(), x.body.size(), out.data(), out.size()));
  if (out.empty())
    return;
  x.body = std::move(out);
  x.headers.emplace_back("Content-Encoding", "gzip");
  x.headers.emplace_back("Vary", "Accept-Encoding");
}

} // namespace troupe::api

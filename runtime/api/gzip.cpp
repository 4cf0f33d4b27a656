#include "runtime/api/gzip.hpp"

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <libdeflate.h>

#define ZLIB_CONST
#include <zlib.h>

namespace troupe::api {
namespace {

constexpr std::size_t least = 1024;
/// Libdeflate's level; it is twice as fast as zlib's lowest and compresses a little better.
constexpr int quick = 1;

/// Whether the type is text that is worth compressing. Events are not: they are small and come one by one.
bool is_text(std::string_view type) {
  return (type.starts_with("application/json") || type == "application/x-ndjson" ||
          type.starts_with("text/")) &&
         type != "text/event-stream";
}

void say_gzip(response& x) {
  x.headers.emplace_back("Content-Encoding", "gzip");
  x.headers.emplace_back("Vary", "Accept-Encoding");
}

} // namespace

bool takes_gzip(std::string_view text) {
  std::optional<bool> named, any;
  while (!text.empty()) {
    const auto end = text.find(',');
    auto one = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    one.remove_prefix(std::min(one.find_first_not_of(" \t"), one.size()));
    const auto coding = one.substr(0, one.find_first_of("; \t"));
    const auto q = one.find("q=");
    const bool takes = q == one.npos || one.find_first_of("123456789", q) != one.npos;
    if (boost::algorithm::iequals(coding, "gzip") || boost::algorithm::iequals(coding, "x-gzip"))
      named = takes;
    else if (coding == "*")
      any = takes;
  }
  return named.value_or(any.value_or(false));
}

bool worth_gzip(const response& x, std::size_t bytes, bool more) {
  const auto has = [&](const char* name) {
    return std::any_of(x.headers.begin(), x.headers.end(), [&](const auto& h) { return h.first == name; });
  };
  return (more || bytes >= least) && is_text(x.content_type) && !has("Content-Encoding") &&
         !has("Set-Cookie");
}

void gzip_body(response& x) {
  if (!worth_gzip(x, x.body.size()))
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
  say_gzip(x);
}

struct gzip_stream::state {
  z_stream z{};
};

void gzip_stream::closer::operator()(state* s) const {
  ::deflateEnd(&s->z);
  delete s;
}

std::optional<gzip_stream> gzip_stream::of(response& x) {
  constexpr int window_of_gzip = 15 + 16, memory = 8;
  auto fresh = std::make_unique<state>();
  if (::deflateInit2(&fresh->z, Z_BEST_SPEED, Z_DEFLATED, window_of_gzip, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    return std::nullopt;
  gzip_stream out;
  out.state_.reset(fresh.release());
  say_gzip(x);
  return out;
}

std::string gzip_stream::add(std::string_view bytes, bool last) {
  auto& z = state_->z;
  std::string out;
  if (bytes.empty() && !last)
    return out;
  z.next_in = reinterpret_cast<const Bytef*>(bytes.data());
  z.avail_in = static_cast<uInt>(bytes.size());
  do {
    const auto before = out.size();
    out.resize(before + bytes.size() / 2 + 256);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    z.avail_out = static_cast<uInt>(out.size() - before);
    ::deflate(&z, last ? Z_FINISH : Z_SYNC_FLUSH);
    out.resize(out.size() - z.avail_out);
  } while (z.avail_out == 0);
  return out;
}

} // namespace troupe::api

#include "workers/trial/link_frames.hpp"

#include <bit>

namespace troupe::trial {
namespace {

void put_be(std::string& out, std::uint64_t x, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(char(x >> shift & 0xff));
}
void put_array(std::string& out, std::size_t n) { out.push_back(char(0xdd)), put_be(out, n, 4); }
void put_map(std::string& out, std::size_t n) { out.push_back(char(0xdf)), put_be(out, n, 4); }
void put_text(std::string& out, const std::string& x) {
  out.push_back(char(0xdb)), put_be(out, x.size(), 4), out += x;
}
void put_unsigned(std::string& out, std::uint64_t x) { out.push_back(char(0xcf)), put_be(out, x, 8); }
void put_signed(std::string& out, std::int64_t x) {
  out.push_back(char(0xd3)), put_be(out, std::uint64_t(x), 8);
}
void put_double(std::string& out, double x) {
  out.push_back(char(0xcb)), put_be(out, std::bit_cast<std::uint64_t>(x), 8);
}

std::string frame(const char* kind, std::size_t fields) {
  std::string out;
  put_array(out, fields + 1);
  put_text(out, kind);
  return out;
}

} // namespace

std::string hello_frame(const settings& s, std::uint64_t acked) {
  auto out = frame("hello", 6);
  put_unsigned(out, 1);
  put_text(out, s.token);
  put_text(out, s.allocation);
  put_unsigned(out, std::uint64_t(s.rank));
  put_text(out, s.process);
  put_unsigned(out, acked);
  return out;
}

std::string report_entry(const char* group, std::int64_t steps, const metrics& m, std::int64_t at_us) {
  std::string out;
  put_array(out, 4);
  put_text(out, group);
  put_unsigned(out, std::uint64_t(steps));
  put_map(out, m.all().size());
  for (const auto& [name, x] : m.all()) {
    put_text(out, name);
    put_double(out, x);
  }
  put_signed(out, at_us);
  return out;
}

std::string reports_frame(std::uint64_t first, const std::vector<const std::string*>& entries) {
  auto out = frame("reports", 2);
  put_unsigned(out, first);
  put_array(out, entries.size());
  for (const auto* x : entries)
    out += *x;
  return out;
}

std::string checkpoint_frame(std::uint64_t sequence, const std::string& uuid, std::int64_t steps,
                             const file_list& files) {
  auto out = frame("checkpoint", 5);
  put_unsigned(out, sequence);
  put_text(out, uuid);
  put_unsigned(out, std::uint64_t(steps));
  put_map(out, files.size());
  for (const auto& [path, bytes] : files) {
    put_text(out, path);
    put_unsigned(out, bytes);
  }
  put_map(out, 0);
  return out;
}

std::string progress_frame(double done) {
  auto out = frame("progress", 1);
  put_double(out, done);
  return out;
}

std::string worker_frame(std::uint64_t protocol, const std::string& word) {
  auto out = frame("worker", 2);
  put_unsigned(out, protocol);
  out.push_back(char(0xc6)), put_be(out, word.size(), 4), out += word; // binary
  return out;
}

std::string ping_frame() { return frame("ping", 0); }

} // namespace troupe::trial

#include "workers/event_files.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <msgpack.hpp>

namespace troupe::workers {
namespace {

constexpr int most_levels = 64;

std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t n = 0; n < 256; ++n) {
    auto x = n;
    for (int bit = 0; bit < 8; ++bit)
      x = x & 1 ? (x >> 1) ^ 0x82f63b78u : x >> 1;
    table[n] = x;
  }
  return table;
}

template <class T>
void put_fixed(std::string& to, T x) {
  static_assert(std::endian::native == std::endian::little);
  to.append(reinterpret_cast<const char*>(&x), sizeof x);
}

void put_varint(std::string& to, std::uint64_t x) {
  for (; x >= 0x80; x >>= 7)
    to.push_back(static_cast<char>(x | 0x80));
  to.push_back(static_cast<char>(x));
}

enum class wire : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_key(std::string& to, unsigned field, wire type) {
  put_varint(to, field << 3 | static_cast<unsigned>(type));
}

void put_bytes(std::string& to, unsigned field, std::string_view bytes) {
  put_key(to, field, wire::bytes);
  put_varint(to, bytes.size());
  to += bytes;
}

/// The message Event has the fields 1 wall_time, 2 step, 3 file_version, 5 summary, 7 session_log.
std::string event(time_point at, std::int64_t step, unsigned field, std::string_view what) {
  std::string out;
  put_key(out, 1, wire::fixed64);
  put_fixed(out, static_cast<double>(at.time_since_epoch().count()) / 1e6);
  if (step != 0) {
    put_key(out, 2, wire::varint);
    put_varint(out, static_cast<std::uint64_t>(step));
  }
  put_bytes(out, field, what);
  return out;
}

std::string record(std::string_view message) {
  std::string size;
  put_fixed(size, static_cast<std::uint64_t>(message.size()));
  auto out = size;
  put_fixed(out, masked_checksum(size));
  out += message;
  put_fixed(out, masked_checksum(message));
  return out;
}

void add_numbers(std::vector<std::pair<std::string, double>>& out, const msgpack::object& x,
                 const std::string& name, int level) {
  switch (x.type) {
  case msgpack::type::POSITIVE_INTEGER:
    out.emplace_back(name, static_cast<double>(x.via.u64));
    break;
  case msgpack::type::NEGATIVE_INTEGER:
    out.emplace_back(name, static_cast<double>(x.via.i64));
    break;
  case msgpack::type::FLOAT32:
  case msgpack::type::FLOAT64:
    out.emplace_back(name, x.via.f64);
    break;
  case msgpack::type::BOOLEAN:
    out.emplace_back(name, x.via.boolean ? 1 : 0);
    break;
  case msgpack::type::MAP:
    if (level < most_levels)
      for (std::uint32_t n = 0; n < x.via.map.size; ++n)
        if (const auto& pair = x.via.map.ptr[n]; pair.key.type == msgpack::type::STR)
          add_numbers(out, pair.val, name + "/" + std::string(pair.key.via.str.ptr, pair.key.via.str.size),
                      level + 1);
    break;
  default:
    break;
  }
}

} // namespace

std::uint32_t masked_checksum(std::string_view bytes) {
  static const auto table = make_table();
  std::uint32_t x = ~0u;
  for (const char c : bytes)
    x = table[(x ^ static_cast<unsigned char>(c)) & 0xff] ^ (x >> 8);
  x = ~x;
  return ((x >> 15) | (x << 17)) + 0xa282ead8u;
}

std::string event_file_header(time_point at) { return record(event(at, 0, 3, "brain.Event:2")); }

std::string event_restart(time_point at, std::int64_t step) {
  return record(event(at, step, 7, std::string_view("\x08\x01", 2))); // status: START
}

std::string event_scalars(time_point at, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [tag, number] : values) {
    std::string one; // 1 tag, 2 simple_value
    put_bytes(one, 1, tag);
    put_key(one, 2, wire::fixed32);
    put_fixed(one, static_cast<float>(number));
    put_bytes(summary, 1, one);
  }
  return record(event(at, step, 5, summary));
}

std::vector<std::pair<std::string, double>> event_values(std::string_view metrics, bool validation) {
  std::vector<std::pair<std::string, double>> out;
  try {
    msgpack::zone zone;
    std::size_t used = 0;
    const auto whole = msgpack::unpack(zone, metrics.data(), metrics.size(), used,
                                       [](msgpack::type::object_type, std::size_t, void*) { return true; });
    if (whole.type != msgpack::type::MAP)
      return out;
    for (std::uint32_t n = 0; n < whole.via.map.size; ++n) {
      const auto& pair = whole.via.map.ptr[n];
      if (pair.key.type != msgpack::type::STR)
        continue;
      std::string name(pair.key.via.str.ptr, pair.key.via.str.size);
      if (validation && !name.starts_with("val"))
        name.insert(0, "val_");
      add_numbers(out, pair.val, "Determined/" + name, 2);
    }
  } catch (const msgpack::unpack_error&) { // msgpack throws this where the bytes are cut off
    out.clear();
  }
  return out;
}

} // namespace troupe::workers

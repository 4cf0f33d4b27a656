#pragma once
// msgpack for typed values: adaptors for our own types, and pack/unpack that do not throw. A packed struct is
// an array. A reader ignores extra trailing fields and keeps the default of missing ones, so fields are only
// ever added at the end.

#include "model/ids.hpp"
#include "model/result.hpp"
#include "model/shared_value.hpp"
#include "model/time.hpp"

#include <cstdint>
#include <cstring>
#include <msgpack.hpp>

/// Lets a struct be packed as an array of these fields. Both functions are templates, unlike those of
/// MSGPACK_DEFINE_ARRAY: with these, each source that includes the structs instantiates all that they call,
/// which takes 3 s for the messages of the actors.
#define TROUPE_PACKED(...)                                                                                   \
  template <class Packer>                                                                                    \
  void msgpack_pack(Packer& packer_) const { /* a field may be called anything without this underscore */    \
    troupe::packing::write_fields(packer_ __VA_OPT__(, ) __VA_ARGS__);                                       \
  }                                                                                                          \
  template <int = 0>                                                                                         \
  void msgpack_unpack(const msgpack::object& object_) {                                                      \
    troupe::packing::read_fields(object_ __VA_OPT__(, ) __VA_ARGS__);                                        \
  }

namespace troupe {

namespace packing {
struct appending { ///< msgpack writes into a string
  std::string& to;
  void write(const char* bytes, std::size_t count) { to.append(bytes, count); }
};
/// Lets msgpack write only the first bytes. Bytes long after the end are given up by throwing `beyond`.
struct beginning {
  struct beyond {};
  char* to;
  std::size_t room;
  int late = 0;
  void write(const char* bytes, std::size_t count) {
    const auto fits = count < room ? count : room;
    std::memcpy(to, bytes, fits);
    to += fits;
    room -= fits;
    if (fits < count && ++late > 100)
      throw beyond{};
  }
};
template <class Packer, class... Fields>
void write_fields(Packer& to, const Fields&... fields) {
  to.pack_array(sizeof...(fields));
  (to.pack(fields), ...);
}
/// Missing fields keep the value that they have; further ones are ignored.
template <class... Fields>
void read_fields(const msgpack::object& from, Fields&... fields) {
  if (from.type != msgpack::type::ARRAY)
    throw msgpack::type_error();
  [[maybe_unused]] std::uint32_t next = 0;
  [[maybe_unused]] const auto take = [&](auto& field) {
    if (next < from.via.array.size)
      from.via.array.ptr[next++].convert(field);
  };
  (take(fields), ...);
}
/// Strings and binaries of an object point into the bytes that it was read from.
inline bool refer(msgpack::type::object_type, std::size_t, void*) { return true; }
} // namespace packing

template <class T>
std::string pack(const T& x) {
  std::string bytes;
  packing::appending out{bytes};
  msgpack::pack(out, x);
  return bytes;
}

/// Writes the first bytes of what `pack` gives, at most `most`, without making the rest; returns how many.
template <class T>
std::size_t pack_beginning(const T& x, char* to, std::size_t most) {
  packing::beginning out{to, most};
  try {
    msgpack::pack(out, x);
  } catch (const packing::beginning::beyond&) {
  }
  return most - out.room;
}

template <class T>
result<T> unpack(std::string_view bytes) {
  try {
    msgpack::zone zone(1024); // most values are small
    std::size_t used = 0;
    auto object = msgpack::unpack(zone, bytes.data(), bytes.size(), used, packing::refer);
    if (used != bytes.size())
      return error{errc::corrupt, "trailing bytes after a msgpack value"};
    return object.as<T>();
  } catch (const std::exception& fault) {
    return error{errc::corrupt, std::string("msgpack: ") + fault.what()};
  }
}

} // namespace troupe

namespace msgpack {
MSGPACK_API_VERSION_NAMESPACE(MSGPACK_DEFAULT_API_NS) {
  namespace adaptor {

  template <class Tag>
  struct convert<troupe::strong_id<Tag>> {
    const msgpack::object& operator()(const msgpack::object& o, troupe::strong_id<Tag>& x) const {
      x.value = o.as<std::uint64_t>();
      return o;
    }
  };
  template <class Tag>
  struct pack<troupe::strong_id<Tag>> {
    template <class Stream>
    packer<Stream>& operator()(packer<Stream>& p, const troupe::strong_id<Tag>& x) const {
      return p.pack_uint64(x.value);
    }
  };

  template <>
  struct convert<troupe::task_id> { // the number of a trial, or the 16 bytes of another task's UUID
    const msgpack::object& operator()(const msgpack::object& o, troupe::task_id& x) const {
      if (o.type != msgpack::type::BIN) {
        x = o.as<troupe::trial_id>();
        return o;
      }
      const auto bytes = o.as<std::string_view>();
      std::uint64_t halves[2] = {0, 0};
      for (std::size_t i = 0; bytes.size() == sizeof halves && i < bytes.size(); ++i)
        halves[i / 8] = halves[i / 8] << 8 | static_cast<unsigned char>(bytes[i]);
      x = halves[0] == 0 ? troupe::task_id{} : troupe::task_id::of_bits(halves[0], halves[1]);
      if (!x)
        throw msgpack::type_error();
      return o;
    }
  };
  template <>
  struct pack<troupe::task_id> {
    template <class Stream>
    packer<Stream>& operator()(packer<Stream>& p, const troupe::task_id& x) const {
      if (x.high() == 0)
        return p.pack_uint64(x.low());
      char bytes[16];
      for (int i = 0; i < 8; ++i) {
        bytes[i] = static_cast<char>(x.high() >> (56 - 8 * i));
        bytes[8 + i] = static_cast<char>(x.low() >> (56 - 8 * i));
      }
      p.pack_bin(sizeof bytes);
      return p.pack_bin_body(bytes, sizeof bytes);
    }
  };

  template <>
  struct convert<troupe::allocation_id> {
    const msgpack::object& operator()(const msgpack::object& o, troupe::allocation_id& x) const {
      auto pair = o.as<std::pair<troupe::task_id, troupe::run_id>>();
      x = {pair.first, pair.second};
      return o;
    }
  };
  template <>
  struct pack<troupe::allocation_id> {
    template <class Stream>
    packer<Stream>& operator()(packer<Stream>& p, const troupe::allocation_id& x) const {
      p.pack_array(2);
      p.pack(x.task);
      p.pack(x.run);
      return p;
    }
  };

  template <>
  struct convert<troupe::time_point> { // microseconds since 1970
    const msgpack::object& operator()(const msgpack::object& o, troupe::time_point& x) const {
      x = troupe::time_point{troupe::duration{o.as<std::int64_t>()}};
      return o;
    }
  };
  template <>
  struct pack<troupe::time_point> {
    template <class Stream>
    packer<Stream>& operator()(packer<Stream>& p, const troupe::time_point& x) const {
      return p.pack_int64(x.time_since_epoch().count());
    }
  };

  template <>
  struct convert<troupe::value> { // its own msgpack bytes, as bin
    const msgpack::object& operator()(const msgpack::object& o, troupe::value& x) const {
      auto parsed = troupe::parse_msgpack(o.as<std::string_view>());
      if (!parsed)
        throw msgpack::type_error();
      x = std::move(*parsed);
      return o;
    }
  };
  template <>
  struct pack<troupe::value> {
    template <class Stream>
    packer<Stream>& operator()(packer<Stream>& p, const troupe::value& x) const {
      if constexpr (std::is_same_v<Stream, troupe::packing::beginning>)
        return p.pack(x.is_object()  ? std::string_view("{..}")
                      : x.is_array() ? std::string_view("[..]")
                                     : std::string_view("..")); // the text may be long
      auto bytes = troupe::to_msgpack(x);
      p.pack_bin(static_cast<std::uint32_t>(bytes.size()));
      return p.pack_bin_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
    }
  };

  template <>
  struct convert<troupe::shared_value> { // holds the bytes of a value, and does not parse them
    const msgpack::object& operator()(const msgpack::object& o, troupe::shared_value& x) const {
      auto held = troupe::shared_value::of_msgpack(o.as<std::string_view>());
      if (!held)
        throw msgpack::type_error();
      x = std::move(*held);
      return o;
    }
  };
  template <>
  struct pack<troupe::shared_value> {
    template <class Stream>
    packer<Stream>& operator()(packer<Stream>& p, const troupe::shared_value& x) const {
      const auto bytes = x.msgpack();
      p.pack_bin(static_cast<std::uint32_t>(bytes.size()));
      return p.pack_bin_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
    }
  };

  } // namespace adaptor
}
} // namespace msgpack

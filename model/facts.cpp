#include "model/facts.hpp"

namespace troupe {
namespace {

constexpr int fact_version = 1;

template <class T>
bool try_decode(std::string_view tag, const msgpack::object& body, fact& out) {
  if (tag != T::tag)
    return false;
  out = body.as<T>();
  return true;
}

template <class... Ts>
bool decode_one_of(std::variant<Ts...>*, std::string_view tag, const msgpack::object& body, fact& out) {
  return (try_decode<Ts>(tag, body, out) || ...);
}

} // namespace

std::string encode(const fact& x) {
  return std::visit(
    [](const auto& one) {
      std::string bytes;
      packing::appending out{bytes};
      msgpack::packer<packing::appending> packer(out);
      packer.pack_array(3);
      packer.pack(one.tag);
      packer.pack(fact_version);
      packer.pack(one);
      return bytes;
    },
    x);
}

result<fact> decode(std::string_view bytes) {
  try {
    std::size_t used = 0;
    msgpack::zone zone(1024);
    const auto whole = msgpack::unpack(zone, bytes.data(), bytes.size(), used, packing::refer);
    if (used != bytes.size() || whole.type != msgpack::type::ARRAY || whole.via.array.size < 3)
      return error{errc::corrupt, "a fact is the array [tag, version, fields]"};
    auto tag = whole.via.array.ptr[0].as<std::string_view>();
    auto version = whole.via.array.ptr[1].as<int>();
    if (version > fact_version)
      return error{errc::unsupported, "fact " + std::string(tag) + " has version " + std::to_string(version) +
                                        "; this build knows up to " + std::to_string(fact_version)};
    fact out;
    if (!decode_one_of(static_cast<fact*>(nullptr), tag, whole.via.array.ptr[2], out))
      return error{errc::unsupported, "fact '" + std::string(tag) + "' is not known to this build"};
    return out;
  } catch (const std::exception& fault) {
    return error{errc::corrupt, std::string("fact: ") + fault.what()};
  }
}

std::string entity(experiment_id id) { return "experiment/" + to_string(id); }
std::string entity(trial_id id) { return "trial/" + to_string(id); }
std::string entity(task_id id) { return (id.is_trial() ? "trial/" : "task/") + to_string(id); }
std::string entity(allocation_id id) { return "allocation/" + to_string(id); }

} // namespace troupe

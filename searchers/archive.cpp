#include "searchers/archive.hpp"

#include "model/rng.hpp"

namespace troupe::searchers {
namespace {

std::uint64_t check_sum(std::string_view bytes) {
  std::uint64_t sum = mix64(bytes.size());
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    sum = mix64(sum ^ word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return mix64(sum ^ rest);
}

} // namespace

std::string sealed(std::string payload) {
  auto sum = check_sum(payload);
  payload.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return payload;
}

result<std::string_view> unsealed(std::string_view bytes) {
  std::uint64_t sum = 0;
  if (bytes.size() < sizeof sum)
    return error{errc::corrupt, "searcher snapshot: only " + std::to_string(bytes.size()) + " bytes"};
  auto payload = bytes.substr(0, bytes.size() - sizeof sum);
  std::memcpy(&sum, bytes.data() + payload.size(), sizeof sum);
  if (sum != check_sum(payload))
    return error{errc::corrupt,
                 "searcher snapshot: the check sum does not fit; the bytes were cut or changed"};
  return payload;
}

} // namespace troupe::searchers

#include "model/hex.hpp"

namespace troupe {

std::string hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string uuid_of(std::array<std::uint8_t, 16> random) {
  random[6] = static_cast<std::uint8_t>((random[6] & 0x0f) | 0x40);
  random[8] = static_cast<std::uint8_t>((random[8] & 0x3f) | 0x80);
  auto text = hex({reinterpret_cast<const char*>(random.data()), random.size()});
  for (const std::size_t dash : {8, 13, 18, 23})
    text.insert(dash, 1, '-');
  return text;
}

} // namespace troupe

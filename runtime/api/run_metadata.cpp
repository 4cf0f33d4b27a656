#include "runtime/api/run_metadata.hpp"

#include "model/chosen_name.hpp"

namespace troupe::api {
namespace {

constexpr std::size_t most_bytes = 64 << 10, most_keys = 1000, longest_key = 50, longest_text = 5000,
                      longest_list = 100;
constexpr int most_levels = 10;

std::size_t characters(const std::string& text) {
  const auto points = code_points(text);
  return points ? points->size() : text.size();
}

result<void> check(const value& x, const std::string& path, int level, std::size_t& keys) {
  const auto fault = [&](const std::string& what) { return error{errc::invalid, path + ": " + what}; };
  if (x.is_string() && characters(x.get_ref<const std::string&>()) > longest_text)
    return fault("a text has at most 5000 characters");
  if (!x.is_structured())
    return {};
  if (level > most_levels)
    return fault("maps and lists go at most 10 levels deep");
  if (x.is_array()) {
    if (x.size() > longest_list)
      return fault("a list has at most 100 elements, not " + std::to_string(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i)
      if (auto fine = check(x[i], path + "[" + std::to_string(i) + "]", level + 1, keys); !fine)
        return fine;
    return {};
  }
  for (const auto& [key, part] : x.items()) {
    if (++keys > most_keys)
      return error{errc::invalid, "metadata: at most 1000 keys at all levels together"};
    if (key.empty() || characters(key) > longest_key)
      return fault("a key has 1 to 50 characters, and '" + key.substr(0, 60) + "' has " +
                   std::to_string(characters(key)));
    if (auto fine = check(part, path + "." + key, level + 1, keys); !fine)
      return fine;
  }
  return {};
}

} // namespace

result<void> check_run_metadata(const value& metadata) {
  if (!metadata.is_object())
    return error{errc::invalid, "metadata: has to be an object"};
  if (to_json(metadata).size() > most_bytes)
    return error{errc::invalid, "metadata: at most 65536 bytes"};
  std::size_t keys = 0;
  return check(metadata, "metadata", 1, keys);
}

} // namespace troupe::api

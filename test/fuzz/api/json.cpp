// Gives any bytes to the JSON reader and the lenient field reader. What is read has to print and read back
// the same.

#include "model/value.hpp"
#include "runtime/api/context.hpp"
#include "runtime/api/fields.hpp"

using namespace troupe;
using namespace troupe::api;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto x = parse_object(text);
  if (!x)
    return 0;
  fields f{*x};
  for (const auto& [key, one] : x->items()) {
    f.text(key.c_str());
    f.number(key.c_str());
    f.real(key.c_str());
    f.flag(key.c_str());
    f.object(key.c_str());
    f.list(key.c_str());
  }
  (void)packed_context(x->value("modelDefinition", value::array()));
  auto again = parse_json(to_json(*x));
  if (!again || to_json(*again) != to_json(*x))
    __builtin_trap();
  return 0;
}

// Gives any bytes to the reader, which has to end within its limits with a tree or a fault. A tree reads back
// the same when it is written as JSON.

#include "model/config/document.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace troupe;
using namespace troupe::config;

namespace {

bool is_finite(const node& x) {
  if (x.is(kind::number) && !std::isfinite(x.real))
    return false;
  for (const auto& item : x.items)
    if (!is_finite(item))
      return false;
  for (const auto& e : x.entries)
    if (!is_finite(e.what))
      return false;
  return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  limits bound;
  bound.nodes = 20'000;
  auto read = read_document(text, "fuzz", bound);
  for (const auto& fault : read.faults) {
    if (fault.message.empty() || fault.line < 1 || fault.column < 1)
      std::abort();
    render(fault, text);
  }
  if (read.faults.empty() && is_finite(read.root)) {
    auto x = to_value(read.root);
    auto again = read_document(to_json(x), "again", bound);
    if (!again.faults.empty() || to_value(again.root) != x)
      std::abort();
  }
  return 0;
}

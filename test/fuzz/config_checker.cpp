// Checks any text against every schema: what is accepted can be completed, complete(complete(x)) =
// complete(x), and merging with nothing changes nothing.

#include "model/config/check.hpp"
#include "model/config/complete.hpp"
#include "model/config/merge.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace troupe;
using namespace troupe::config;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1)
    return 0;
  auto it = schemas().named().begin();
  std::advance(it, data[0] % schemas().named().size());
  const auto& s = *it->second;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  limits bound;
  bound.nodes = 20'000;
  auto read = read_document(text, "fuzz", bound);
  if (!read.readable)
    return 0;
  report found("fuzz");
  check(read.root, s, found);
  auto faults = found.take();
  for (const auto& fault : faults)
    render(fault, text);
  if (!faults.empty() || !read.faults.empty())
    return 0;
  auto x = to_value(read.root);
  normalize(x, s);
  auto twice = x;
  normalize(twice, s);
  if (twice != x || merged(x, nullptr, s) != x)
    std::abort();
  fill_defaults(x, s);
  twice = x;
  normalize(twice, s);
  fill_defaults(twice, s);
  if (twice != x)
    std::abort();
  report missing("fuzz");
  check_completeness(x, s, read.root, missing);
  if (s.name == "experiment")
    check_runnable(x, read.root, missing);
  return 0;
}

// The input is a byte that chooses, and then a filter or a sort of experiments-search. A filter that can be
// read gives the same answer for a row twice; of two rows, at most one is sorted before the other.

#include "runtime/api/search_filter.hpp"

#include <cstdlib>
#include <limits>

using namespace troupe;
using namespace troupe::api;

namespace {

void require(bool true_) {
  if (!true_)
    std::abort();
}

const std::vector<known_column> columns{{"id", column_kind::number},
                                        {"name", column_kind::text},
                                        {"state", column_kind::text},
                                        {"startTime", column_kind::date},
                                        {"tags"},
                                        {"progress", column_kind::number}};

/// Returns a value of one of the kinds that a column can have, chosen by the name and the row.
value of_row(const std::string& name, unsigned row) {
  unsigned sum = row;
  for (const unsigned char c : name)
    sum = sum * 31 + c;
  const value all[] = {nullptr,
                       1,
                       -0.5,
                       std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity(),
                       true,
                       "",
                       "STATE_ACTIVE",
                       "2024-02-29",
                       "2024-02",
                       "2024-02-29T12:00:00.5Z",
                       "7",
                       {"a", "b"},
                       {{"type", "int"}, {"minval", 1}, {"maxval", 8}},
                       {{"type", "categorical"}, {"vals", {1, "x", nullptr}}},
                       {{"type", "const"}, {"val", 3}},
                       {{"type", 3}},
                       std::uint64_t(-1)};
  return all[sum % std::size(all)];
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    auto filter = search_filter::read(text, columns);
    for (unsigned row = 0; filter && row < 20; ++row) {
      const auto values = [row](const column_name& column) -> result<value> {
        return of_row(column.name, row);
      };
      const auto once = filter->takes(values), again = filter->takes(values);
      require(once && again && *once == *again);
    }
    return 0;
  }
  auto keys = read_sort(text, columns);
  if (!keys || keys->size() > 20)
    return keys ? std::abort(), 1 : 0;
  const auto values = [&](unsigned row) {
    std::vector<value> out;
    for (const auto& key : *keys)
      out.push_back(of_row(key.column.name, row));
    return out;
  };
  for (unsigned row = 0; row < 20; ++row) {
    const auto a = values(row), b = values(row + 7);
    require(!sorts_before(*keys, a, a));
    require(!(sorts_before(*keys, a, b) && sorts_before(*keys, b, a)));
  }
  return 0;
}

#pragma once
// Finds rows of a table by their need without a search: each request looks some up.

#include "model/authority/authority.hpp"

#include <array>
#include <vector>

namespace troupe::authority {

template <class Row>
class need_index {
public:
  /// `rows` must outlive the index. Of several rows with the same need the first one counts.
  explicit need_index(const std::vector<Row>& rows) {
    for (const auto& one : rows)
      if (auto& at = rows_.at(place_of(one.on)); !at)
        at = &one;
  }
  /// Null where no row has this need.
  const Row* find(need what) const {
    const auto at = place_of(what);
    return at < rows_.size() ? rows_[at] : nullptr;
  }

private:
  static constexpr std::size_t actions = 8;
  static std::size_t place_of(need what) {
    return static_cast<std::size_t>(what.on) * actions + static_cast<std::size_t>(what.what);
  }
  std::array<const Row*, 64 * actions> rows_{};
};

} // namespace troupe::authority

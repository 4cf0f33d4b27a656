#pragma once
// What a halving search can say about its rungs: asked by those who explain the search to people, never by
// the search itself.

#include "searchers/searcher.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::searchers {

using ordinal = std::uint32_t; ///< a trial of this search, counted from 0 in the order of creation

class rung_book {
public:
  virtual ~rung_book() = default;
  /// The brackets that trials were put into, as far as they are begun. A bracket that repeats has an entry
  /// for each time. Empty where the search knows no brackets.
  virtual std::vector<bracket> opened() const { return {}; }
  /// The bracket of a trial that was made: an index of opened().
  virtual std::size_t bracket_of(ordinal) const { return 0; }
  /// The metric, as reported, that a trial needs now to go on from this rung, or needed when its rung was
  /// closed; nothing where no trial could go on, or where the search compares no trials at rungs.
  virtual std::optional<double> bound(std::size_t /*bracket*/, std::size_t /*rung*/) const { return {}; }
};

} // namespace troupe::searchers

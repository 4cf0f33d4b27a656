#pragma once
// The sorted results of one rung. Gives the rank of a new result, and the value at a rank, in O(sqrt n),
// without the O(n) move of a sorted vector. Entries are ordered by value, then by arrival.

#include "searchers/archive.hpp"

#include <cstdint>
#include <vector>

namespace troupe::searchers {

class ranking {
public:
  struct entry {
    double value = 0; ///< smaller is better; never NaN
    std::uint32_t trial = 0;
    std::uint32_t mark = 0; ///< free for the owner, such as the order of arrival
  };

  std::size_t size() const { return size_; }
  /// Inserts after equal values, or before them where `ahead_of_equals`; returns its index.
  std::size_t insert(double value, std::uint32_t trial, bool ahead_of_equals = false, std::uint32_t mark = 0);
  /// How many entries lie before (value, mark); only for lists whose marks rise among equal values.
  std::size_t rank(double value, std::uint32_t mark) const;
  /// Removes the entry of `trial` with `value`; false where there is none.
  bool erase(double value, std::uint32_t trial);
  /// Removes the entry of `trial`, whose value the caller does not know, by a scan over all entries.
  bool erase_trial(std::uint32_t trial);
  entry& at(std::size_t index);
  const entry& at(std::size_t index) const { return const_cast<ranking*>(this)->at(index); }
  void persist(archive& ar);

  template <class F>
  void each(F&& f) const {
    for (const auto& b : blocks_)
      for (const auto& e : b)
        f(e);
  }

private:
  static constexpr std::size_t block_limit = 1024;
  std::size_t block_for(double value, bool ahead_of_equals) const;

  std::vector<std::vector<entry>> blocks_;
  std::vector<double> last_;         ///< the greatest value of each block
  std::vector<std::uint32_t> sizes_; ///< of the blocks, side by side so that a rank takes one short scan
  std::size_t size_ = 0;
};

} // namespace troupe::searchers

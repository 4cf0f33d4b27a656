#pragma once
// The rank of each row of a list by one of its texts, kept while the list changes. Sorting by these numbers
// is as fast as sorting by any number, while texts lie far apart in memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::api {

class text_order {
public:
  /// By row: how many rows have a smaller text. Equal texts have the same number.
  using ranks = std::shared_ptr<const std::vector<std::uint32_t>>;

  /// The ranks of rows 0 to `count` - 1 by `text(row)`, a comparable value that stays in its place during the
  /// call. The first call after `forget` sorts all rows; the cost of later calls grows with the rows that
  /// have changed.
  template <class Text>
  ranks of(std::size_t count, const Text& text) {
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return text(a) < text(b); };
    if (stale_ || first_new_ > count || changed_.size() + count - first_new_ > most_changed) {
      stands_.clear();
      for (std::uint32_t row = 0; row < count; ++row)
        stands_.push_back(row);
      std::sort(stands_.begin(), stands_.end(), before);
      as_the_last_.assign(count, false);
      for (std::size_t i = 1; i < count; ++i)
        as_the_last_[i] = text(stands_[i - 1]) == text(stands_[i]);
    } else if (changed_.empty() && first_new_ == count) {
      return ranks_;
    } else {
      std::sort(changed_.begin(), changed_.end());
      changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
      // All changed rows are taken out first, because `put` must not compare with a row whose text has
      // changed.
      for (const auto row : changed_)
        take_out(row);
      for (auto row = static_cast<std::uint32_t>(first_new_); row < count; ++row)
        changed_.push_back(row);
      for (const auto row : changed_)
        put(row, text, before);
    }
    stale_ = false;
    changed_.clear();
    first_new_ = count;
    auto numbers = std::make_shared<std::vector<std::uint32_t>>(count);
    std::uint32_t lesser = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!as_the_last_[i])
        lesser = i;
      (*numbers)[stands_[i]] = lesser;
    }
    return ranks_ = std::move(numbers);
  }

  /// The text of this row has changed. Rows behind the last known one count as new without this call.
  void changed(std::size_t row) {
    if (!stale_ && row < first_new_ && changed_.size() <= most_changed)
      changed_.push_back(static_cast<std::uint32_t>(row));
  }
  /// The numbers of the rows have changed.
  void forget() { stale_ = true; }

private:
  static constexpr std::size_t most_changed = 256; ///< with more changes sorting all rows is quicker

  void take_out(std::uint32_t row) {
    const auto at = std::find(stands_.begin(), stands_.end(), row) - stands_.begin();
    if (static_cast<std::size_t>(at) + 1 < stands_.size())
      as_the_last_[at + 1] = as_the_last_[at + 1] && as_the_last_[at];
    stands_.erase(stands_.begin() + at);
    as_the_last_.erase(as_the_last_.begin() + at);
  }
  template <class Text, class Before>
  void put(std::uint32_t row, const Text& text, const Before& before) {
    const auto at = std::lower_bound(stands_.begin(), stands_.end(), row, before) - stands_.begin();
    const bool same = static_cast<std::size_t>(at) < stands_.size() && text(stands_[at]) == text(row);
    stands_.insert(stands_.begin() + at, row); // before all rows with the same text
    as_the_last_.insert(as_the_last_.begin() + at, false);
    if (same)
      as_the_last_[at + 1] = true;
  }

  std::vector<std::uint32_t> stands_; ///< rows in the order of their texts
  std::vector<bool> as_the_last_;     ///< by place in `stands_`: whether the row before has the same text
  std::vector<std::uint32_t> changed_;
  std::size_t first_new_ = 0; ///< rows from here on are not in `stands_`
  ranks ranks_;
  bool stale_ = true;
};

} // namespace troupe::api

#include "searchers/ranking.hpp"

#include "model/assert.hpp"

#include <algorithm>

namespace troupe::searchers {
namespace {

bool before(const ranking::entry& e, double value) { return e.value < value; }
bool after(double value, const ranking::entry& e) { return value < e.value; }

} // namespace

std::size_t ranking::block_for(double value, bool ahead_of_equals) const {
  auto it = ahead_of_equals ? std::lower_bound(last_.begin(), last_.end(), value)
                            : std::upper_bound(last_.begin(), last_.end(), value);
  auto index = static_cast<std::size_t>(it - last_.begin());
  return index == last_.size() ? index - 1 : index;
}

std::size_t ranking::insert(double value, std::uint32_t trial, bool ahead_of_equals, std::uint32_t mark) {
  TROUPE_ASSERT(value == value);
  if (blocks_.empty()) {
    blocks_.emplace_back();
    last_.push_back(value);
    sizes_.push_back(0);
  }
  auto b = block_for(value, ahead_of_equals);
  auto& block = blocks_[b];
  auto place = ahead_of_equals ? std::lower_bound(block.begin(), block.end(), value, before)
                               : std::upper_bound(block.begin(), block.end(), value, after);
  std::size_t index = static_cast<std::size_t>(place - block.begin());
  for (std::size_t i = 0; i < b; ++i)
    index += sizes_[i];
  block.insert(place, {value, trial, mark});
  ++sizes_[b];
  ++size_;
  last_[b] = block.back().value;
  if (block.size() >= block_limit) {
    auto at = static_cast<std::ptrdiff_t>(b);
    auto half = static_cast<std::ptrdiff_t>(block.size() / 2);
    std::vector<entry> upper(block.begin() + half, block.end());
    block.erase(block.begin() + half, block.end());
    last_[b] = block.back().value;
    sizes_[b] = static_cast<std::uint32_t>(block.size());
    last_.insert(last_.begin() + at + 1, upper.back().value);
    sizes_.insert(sizes_.begin() + at + 1, static_cast<std::uint32_t>(upper.size()));
    blocks_.insert(blocks_.begin() + at + 1, std::move(upper));
  }
  return index;
}

std::size_t ranking::rank(double value, std::uint32_t mark) const {
  auto less = [&](const entry& e) { return e.value < value || (e.value == value && e.mark < mark); };
  auto block =
    std::partition_point(blocks_.begin(), blocks_.end(), [&](const auto& b) { return less(b.back()); });
  auto b = static_cast<std::size_t>(block - blocks_.begin());
  std::size_t index = 0;
  for (std::size_t i = 0; i < b; ++i)
    index += sizes_[i];
  if (b < blocks_.size())
    index +=
      static_cast<std::size_t>(std::partition_point(block->begin(), block->end(), less) - block->begin());
  return index;
}

bool ranking::erase(double value, std::uint32_t trial) {
  for (auto b = static_cast<std::size_t>(std::lower_bound(last_.begin(), last_.end(), value) - last_.begin());
       b < blocks_.size(); ++b) {
    auto& block = blocks_[b];
    for (auto it = std::lower_bound(block.begin(), block.end(), value, before); it != block.end(); ++it) {
      if (it->value != value)
        return false;
      if (it->trial != trial)
        continue;
      block.erase(it);
      --size_;
      auto at = static_cast<std::ptrdiff_t>(b);
      if (block.empty()) {
        blocks_.erase(blocks_.begin() + at);
        last_.erase(last_.begin() + at);
        sizes_.erase(sizes_.begin() + at);
      } else {
        last_[b] = block.back().value;
        sizes_[b] = static_cast<std::uint32_t>(block.size());
      }
      return true;
    }
  }
  return false;
}

bool ranking::erase_trial(std::uint32_t trial) {
  for (const auto& block : blocks_)
    for (const auto& e : block)
      if (e.trial == trial)
        return erase(e.value, trial);
  return false;
}

ranking::entry& ranking::at(std::size_t index) {
  TROUPE_ASSERT(index < size_);
  std::size_t b = 0;
  while (index >= sizes_[b])
    index -= sizes_[b++];
  return blocks_[b][index];
}

void ranking::persist(archive& ar) {
  ar(blocks_);
  if (!ar.reading())
    return;
  last_.clear();
  sizes_.clear();
  size_ = 0;
  std::erase_if(blocks_, [](const auto& block) { return block.empty(); });
  for (const auto& block : blocks_) {
    last_.push_back(block.back().value);
    sizes_.push_back(static_cast<std::uint32_t>(block.size()));
    size_ += block.size();
  }
}

} // namespace troupe::searchers

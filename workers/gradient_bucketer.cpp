#include "workers/gradient_bucketer.hpp"

namespace troupe {

template <class T>
gradient_bucketer<T>::gradient_bucketer(collective& over, std::vector<std::span<T>> gradients, std::size_t bucket_bytes)
    : over_(over), is_ready_(gradients.size(), false) {
  std::size_t bytes = bucket_bytes;
  for (const auto& g : gradients) {
    if (buckets_.empty() || bytes >= bucket_bytes) {
      buckets_.emplace_back();
      bytes = 0;
    }
    buckets_.back().gradients.push_back(g);
    ++buckets_.back().missing;
    bytes += g.size_bytes();
    bucket_of_.push_back(buckets_.size() - 1);
  }
}

template <class T>
result<void> gradient_bucketer<T>::ready(std::size_t index) {
  if (index >= is_ready_.size() || is_ready_[index])
    return error{errc::invalid, "gradient " + std::to_string(index) +
                                    (index < is_ready_.size() ? " is ready already in this step"
                                                              : ": there are " + std::to_string(is_ready_.size()))};
  is_ready_[index] = true;
  --buckets_[bucket_of_[index]].missing;
  start_what_is_ready();
  return {};
}

template <class T>
void gradient_bucketer<T>::start_what_is_ready() {
  for (; started_ < buckets_.size() && buckets_[started_].missing == 0; ++started_)
    under_way_.push_back(over_.all_reduce_grouped_async(buckets_[started_].gradients, reduce::average));
}

template <class T>
result<void> gradient_bucketer<T>::finish() {
  for (auto& b : buckets_)
    b.missing = 0;
  start_what_is_ready();
  result<void> outcome;
  for (auto& p : under_way_)
    if (auto ended = p.wait(); !ended && outcome)
      outcome = ended;
  under_way_.clear();
  started_ = 0;
  is_ready_.assign(is_ready_.size(), false);
  for (const std::size_t b : bucket_of_)
    ++buckets_[b].missing;
  return outcome;
}

template class gradient_bucketer<f16>;
template class gradient_bucketer<bf16>;
template class gradient_bucketer<float>;
template class gradient_bucketer<double>;

} // namespace troupe

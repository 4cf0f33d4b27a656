#include "workers/gradient_bucketer.hpp"

namespace troupe {

template <class T>
gradient_bucketer<T>::gradient_bucketer(collective& over, std::vector<std::span<T>> gradients,
                                        std::size_t bucket_bytes)
    : over_(over), gradients_(std::move(gradients)), is_ready_(gradients_.size(), false) {
  std::size_t bytes = bucket_bytes;
  for (const auto& g : gradients_) {
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
result<gradient_bucketer<T>> gradient_bucketer<T>::make(collective& over,
                                                        const std::vector<std::size_t>& lengths,
                                                        std::size_t bucket_bytes) {
  constexpr std::size_t line = 64 / sizeof(T);
  std::vector<std::size_t> starts;
  std::size_t total = 0;
  for (const std::size_t n : lengths) {
    starts.push_back(total);
    total += (n + line - 1) / line * line;
  }
  auto memory = over.allocate<T>(total);
  if (!memory)
    return memory.error();
  std::vector<std::span<T>> gradients;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    gradients.emplace_back(memory->data() + starts[i], lengths[i]);
  gradient_bucketer made(over, std::move(gradients), bucket_bytes);
  made.memory_ = *memory;
  for (auto& b : made.buckets_) // each is one buffer: what lies between two gradients stays zero
    b.gradients = {
      {b.gradients.front().data(),
       std::size_t(b.gradients.back().data() + b.gradients.back().size() - b.gradients.front().data())}};
  return made;
}

template <class T>
result<void> gradient_bucketer<T>::ready(std::size_t index) {
  if (index >= is_ready_.size() || is_ready_[index])
    return error{errc::invalid,
                 "gradient " + std::to_string(index) +
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

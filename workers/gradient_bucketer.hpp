#pragma once
// Averages gradients over the ranks while the backward pass still computes later ones.

#include "workers/collective.hpp"

#include <optional>

namespace troupe {

/// Gradients are grouped into buckets in the order in which they are given, which should be that in which the
/// backward pass completes them: the last layer first. All ranks give the same lengths in the same order. The
/// gradients are not copied.
///
///     auto bucketer = gradient_bucketer<float>::make(context.collective(), {w2.size(), b2.size(), w1.size(),
///     b1.size()});
///     ... for each step, as the backward pass goes: write bucketer->gradient(0); bucketer->ready(0); ...
///     bucketer->ready(3); if (auto done = bucketer->finish(); !done) return done.error();
template <class T>
class gradient_bucketer {
public:
  /// Makes gradients of these lengths, in elements, in memory of `over.allocate()`, which ranks of one host
  /// reduce without a copy. Every gradient begins at a cache line and is zero at first. A bucket is closed
  /// when it has `bucket_bytes`; a single gradient may be longer. Fails as allocate() does.
  static result<gradient_bucketer> make(collective& over, const std::vector<std::size_t>& lengths,
                                        std::size_t bucket_bytes = 1 << 20);
  /// Takes gradients that lie in the caller's memory.
  gradient_bucketer(collective& over, std::vector<std::span<T>> gradients,
                    std::size_t bucket_bytes = 1 << 20);

  std::span<T> gradient(std::size_t index) const { return gradients_[index]; }

  /// Says that gradient `index` of this step is complete and will not be touched until finish(). Buckets
  /// start in their order, each when its gradients and all earlier buckets are ready, so that all ranks do
  /// the same. Fails with `invalid` for an index that does not exist or was ready already in this step.
  result<void> ready(std::size_t index);

  /// Waits until every gradient is the average over all ranks; then the next step may begin. Gradients that
  /// were never marked ready count as ready now. Returns the first error of a bucket, once all have ended.
  result<void> finish();

  std::size_t buckets() const { return buckets_.size(); }

private:
  struct bucket {
    std::vector<std::span<T>> gradients;
    std::size_t missing = 0;
  };
  void start_what_is_ready();

  collective& over_;
  group_memory<T> memory_; // where make() put the gradients; empty: the caller's memory
  std::vector<std::span<T>> gradients_;
  std::vector<bucket> buckets_;
  std::vector<std::size_t> bucket_of_; // by gradient
  std::vector<bool> is_ready_;         // by gradient
  std::size_t started_ = 0;            // number of buckets
  std::vector<pending> under_way_;
};

} // namespace troupe

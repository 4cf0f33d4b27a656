#pragma once
// A mixture of one product kernel for each point and one broad prior kernel: truncated normals on numbers,
// weighted choices on categoricals. Coordinates are those of `point`.

#include "model/rng.hpp"
#include "searchers/space.hpp"

#include <span>

namespace troupe::searchers {

struct parzen_shape {
  double prior_weight = 1;
  double least_share = 100;   ///< a kernel is never narrower than range / min(this, points + 2)
  double category_weight = 1; ///< weight of the prior in each categorical kernel
};

class parzen {
public:
  /// `points` are in the order of their trials; `weights` has one entry for each.
  parzen(const std::vector<dimension>& dimensions, const std::vector<const double*>& points,
         std::vector<double> weights, const parzen_shape& shape);

  /// Draws once: a kernel by weight, then about `moved` dimensions from it. The others keep the kernel's
  /// point.
  void sample(rng& random, double moved, double* into) const;
  /// The log density of each of `n` points that lie one after another.
  std::vector<double> log_density(std::span<const double> points) const;

private:
  struct axis_kernels {
    std::vector<double> center, inverse_width; ///< of numbers
    std::vector<double>
      log_scale;             ///< numbers: log of the normal's scale; categoricals: log probability of a miss
    std::vector<double> hit; ///< categoricals: log probability of the kernel's own choice
    double cell = 0;         ///< integers: the width of one value
  };
  void fit_number(std::size_t axis, const std::vector<const double*>& points, const parzen_shape& shape);
  void fit_categorical(std::size_t axis, const std::vector<const double*>& points, const parzen_shape& shape);

  const std::vector<dimension>& dimensions_;
  std::vector<double> weights_, log_weights_; ///< the last entry belongs to the prior
  std::vector<axis_kernels> axes_;
};

} // namespace troupe::searchers

#pragma once
// Gaussian process regression: a Matern 5/2 kernel with one length for each dimension; categoricals match or
// not.

#include <Eigen/Dense>

#include <functional>
#include <vector>

namespace troupe::searchers {

/// Logarithms of the inverse squared lengths, of the scale, and of the noise above its lower limit.
struct kernel_parameters {
  std::vector<double> log_weights;
  double log_scale = 0, log_noise = -6;
  void reset(std::size_t d) { *this = {std::vector<double>(d, 0.0), 0, -6}; }
};

class gaussian_process {
public:
  /// `x` has one row for each point, `categorical` one flag for each column; `y` has about mean 0 and
  /// variance 1.
  gaussian_process(Eigen::MatrixXd x, Eigen::VectorXd y, std::vector<char> categorical);

  /// Maximises the posterior of the parameters from `start`; keeps `start` where that fails.
  kernel_parameters fit(const kernel_parameters& start, int most_steps) const;
  /// Prepares predictions; false where the matrix cannot be factored.
  bool use(const kernel_parameters& p);
  /// Appends a point as if it had been observed at its predicted mean.
  void believe(const Eigen::VectorXd& at);

  struct prediction {
    double mean = 0, deviation = 0;
  };
  prediction at(const Eigen::VectorXd& x) const;
  /// Also gives the derivatives by the coordinates of the numeric columns; those of other columns are zero.
  prediction at(const Eigen::VectorXd& x, Eigen::VectorXd& mean_slope,
                Eigen::VectorXd& deviation_slope) const;
  void at(const Eigen::MatrixXd& rows, Eigen::VectorXd& mean, Eigen::VectorXd& deviation) const;
  /// Predicts each point from all others.
  Eigen::VectorXd left_out() const;

private:
  Eigen::VectorXd covariances(const Eigen::VectorXd& x) const;
  Eigen::MatrixXd x_;
  Eigen::VectorXd y_;
  std::vector<char> categorical_;
  Eigen::VectorXd weights_; ///< inverse squared lengths
  double scale_ = 1, noise_ = 1e-6;
  Eigen::MatrixXd lower_; ///< Cholesky factor
  Eigen::VectorXd alpha_;
};

/// Minimises `f`, which returns the value and fills the gradient. Starts at `start` and stays within the box,
/// where there is one.
struct box {
  Eigen::VectorXd low, high;
};
Eigen::VectorXd minimise(const std::function<double(const Eigen::VectorXd&, Eigen::VectorXd&)>& f,
                         Eigen::VectorXd start, int most_steps, double tolerance,
                         const box* bounds = nullptr);

} // namespace troupe::searchers

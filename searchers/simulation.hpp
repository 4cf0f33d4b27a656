#pragma once
// A simulated cluster: W workers train the trials of a search on synthetic learning curves, in virtual time.

#include "searchers/searcher.hpp"

#include <functional>

namespace troupe::searchers {

/// The synthetic curves of the ASHA literature's tuning problems. Learning rate, decay, width and dropout
/// shape the final error and the speed. Curves of `crossing` overtake each other late.
enum class curve_family { benign, crossing };

/// What a trial's curve depends on: four coordinates in [0, 1].
struct curve {
  curve_family family = curve_family::benign;
  double a = 0, b = 0, c = 0, d = 0; ///< log10 rate, log10 decay, log2 width, dropout
  static curve at(curve_family family, const double (&u)[4]);
  double loss(double epochs) const; ///< loss without noise
  double seconds_per_epoch() const; ///< 1: an epoch at the middle width
};

/// A coordinate or noise from a key, so that runs of different searchers meet the same trials.
double keyed_unit(std::uint64_t seed, std::initializer_list<std::uint64_t> keys);

struct simulation_options {
  std::size_t workers = 16;
  double horizon = 0; ///< virtual time at which it ends; 0: when the search is over
  std::uint64_t seed = 0;
  curve_family family = curve_family::benign;
  double full_length = 256;      ///< in epochs; of the search's own time metric
  bool keyed_trials = false;     ///< takes coordinates from the trial's number, not from the hyperparameters
  std::vector<double> regret_at; ///< virtual times
};

struct simulation_result {
  std::uint64_t trials = 0, reports = 0, full_length = 0, stopped = 0, pauses = 0;
  double time = 0, best_loss = 0, regret = 0; ///< values of the checkpoint with the best observed loss
  double busy = 0;                            ///< worker time used, as a part of workers x time
  std::vector<double> regrets;                ///< regret at each time of `regret_at`
  std::vector<std::uint64_t> ended_at;        ///< number of trials by the rung where they ended
  std::vector<double> rungs;                  ///< lengths at which trials report
};

/// Drives `search`, which has not started. `coordinates` maps hyperparameters to the curve's four
/// coordinates.
simulation_result simulate(searcher& search, const simulation_options& options, const std::string& metric,
                           const std::string& time_metric, double sign,
                           const std::function<void(const value&, double (&)[4])>& coordinates);

/// The four coordinates of a sample: its first four numeric hyperparameters along their ranges. Where there
/// are fewer, a hash of the trial's other values gives the rest.
std::function<void(const value&, double (&)[4])> coordinates_of(const value& hyperparameters);

} // namespace troupe::searchers

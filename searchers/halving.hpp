#pragma once
// Rungs and brackets, which all halving searchers share.

#include "searchers/sampler.hpp"
#include "searchers/settings.hpp"

#include <memory>

namespace troupe::searchers {

struct halving_plan {
  std::vector<bracket> brackets; ///< the bracket that stops most comes first
  double divisor = 4;
  std::string time_metric;
  double sign = 1;
  std::uint64_t capacity = 0; ///< slots of all brackets together; brackets lend slots to each other
};

/// How `floor(log)` is taken: Determined's floating-point logarithms lose a rung at exact powers.
enum class rung_count { exact, as_determined };

/// Lengths of the rungs in units of the time metric, rising.
std::vector<std::int64_t> rung_units(int rungs, double max_time, double divisor);

/// Splits a budget so that every bracket gets about the same total of units.
std::vector<std::int64_t> bracket_trials(std::int64_t max_trials, double divisor,
                                         const std::vector<int>& rungs);
std::vector<std::int64_t> bracket_slots(std::int64_t max_concurrent, double divisor,
                                        const std::vector<std::int64_t>& trials);

struct halving_settings {
  double divisor = 4;
  double max_time = 1;
  int num_rungs = 5; ///< 0: not given, and the search does without
  int max_rungs = 5;
  std::string mode = "standard";
  std::vector<std::int64_t> bracket_rungs;
};
halving_settings read_halving(section& in, const settings& common);

std::vector<bracket> adaptive_brackets(const settings& common, const halving_settings& h, rung_count how);
std::vector<bracket> single_bracket(const settings& common, const halving_settings& h);

std::unique_ptr<method> make_asha_stopping(halving_plan plan, std::shared_ptr<const space> domain,
                                           std::unique_ptr<sampler> source);
/// Pauses trials at every rung. A free slot continues the best paused trial of the highest rung that is among
/// the best 1/divisor there, or otherwise starts a new trial.
std::unique_ptr<method> make_asha_promotion(halving_plan plan, std::shared_ptr<const space> domain,
                                            std::unique_ptr<sampler> source);

/// Fills each rung before its best trials go on. `plan.brackets` is one round; rounds repeat until the budget
/// is used, and a slot that would wait starts the next bracket.
std::unique_ptr<method> make_sync_halving(halving_plan plan, std::int64_t max_trials,
                                          std::shared_ptr<const space> domain,
                                          std::unique_ptr<sampler> source);
std::vector<bracket> sync_round(const settings& common, const halving_settings& h);
std::vector<bracket> hyperband_round(const settings& common, const halving_settings& h);
std::vector<bracket> promotion_bracket(const settings& common, const halving_settings& h);

} // namespace troupe::searchers

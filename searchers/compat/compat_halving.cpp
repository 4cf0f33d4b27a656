#include "searchers/compat/compat_method.hpp"
#include "searchers/ranking.hpp"
#include "searchers/rung_sentence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::searchers {
namespace {

constexpr double worst = std::numeric_limits<double>::max();

struct compat_bracket {
  std::vector<ranking> rungs;
  std::int64_t created = 0, invalid = 0, completed = 0;
  void persist(archive& ar) { ar(rungs, created, invalid, completed); }
};

class compat_halving final : public compat_method {
public:
  explicit compat_halving(halving_plan plan) : plan_(std::move(plan)), state_(plan_.brackets.size()) {
    for (std::size_t b = 0; b < state_.size(); ++b)
      state_[b].rungs.resize(plan_.brackets[b].units.size());
  }

  void start(compat_orders& out) override {
    for (std::size_t b = 0; b < state_.size(); ++b)
      for (auto n = std::min(plan_.brackets[b].max_concurrent, plan_.brackets[b].max_trials); n > 0; --n)
        create(b, out);
  }

  void reported(const report& r, compat_orders& out) override {
    auto b = bracket_of_[r.trial];
    auto& state = state_[b];
    const auto& units = plan_.brackets[b].units;
    if (std::isnan(r.step))
      return;
    double steps = std::trunc(std::max(r.step, 0.0));
    double y = std::isfinite(r.worth) ? r.worth : worst;
    std::optional<stop_trial> stop;
    for (std::size_t k = rung_of_[r.trial]; k < units.size() && !stop; ++k) {
      rung_of_[r.trial] = static_cast<std::uint8_t>(k);
      auto length = static_cast<double>(units[k]);
      if (steps < length)
        break;
      auto& rung = state.rungs[k];
      auto rank = rung.insert(y, r.trial, true); // ties favour the newcomer
      auto keep =
        std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(rung.size()) / plan_.divisor));
      if (k + 1 == units.size())
        stop = full_length(static_cast<int>(k), length, plan_.time_metric, r.as_given);
      else if (rank >= keep)
        stop =
          beaten(static_cast<int>(k), length, plan_.time_metric, r, plan_.sign * rung.at(keep - 1).value);
    }
    if (!stop)
      return;
    out.stop(r.trial, std::move(*stop));
    create_where_left(b, out);
  }

  void exited_early(ordinal trial, bool invalid, compat_orders& out) override {
    auto b = bracket_of_[trial];
    auto& state = state_[b];
    if (!invalid) {
      state.rungs[rung_of_[trial]].insert(worst, trial, true);
      return create_where_left(b, out);
    }
    stop_trial reason;
    reason.why = "its hyperparameters are invalid";
    reason.metric = reason.needed = std::numeric_limits<double>::quiet_NaN();
    out.stop(trial, std::move(reason));
    ++state.invalid;
    for (std::size_t k = 0; k <= rung_of_[trial]; ++k)
      state.rungs[k].erase_trial(trial);
    create(b, out);
  }

  void exited(ordinal trial, compat_orders&) override { ++state_[bracket_of_[trial]].completed; }

  double progress(const compat_tally&) const override {
    double sum = 0;
    for (std::size_t b = 0; b < state_.size(); ++b) {
      auto all = static_cast<double>(state_[b].rungs[0].size());
      auto trials = static_cast<double>(plan_.brackets[b].max_trials);
      double p = all / (1.2 * trials);
      if (all == trials)
        p = std::max(p, static_cast<double>(state_[b].completed - state_[b].invalid) / trials);
      sum += p;
    }
    return sum / static_cast<double>(state_.size());
  }

  std::vector<bracket> brackets() const override { return plan_.brackets; }

  void persist(archive& ar) override {
    ar(state_, bracket_of_, rung_of_);
    if (!ar.reading())
      return;
    bool fits = state_.size() == plan_.brackets.size() && bracket_of_.size() == rung_of_.size();
    for (std::size_t b = 0; fits && b < state_.size(); ++b)
      fits = state_[b].rungs.size() == plan_.brackets[b].units.size();
    for (std::size_t t = 0; fits && t < bracket_of_.size(); ++t)
      fits = bracket_of_[t] < state_.size() && rung_of_[t] < state_[bracket_of_[t]].rungs.size();
    if (!fits)
      ar.fail();
  }

private:
  void create(std::size_t b, compat_orders& out) {
    ++state_[b].created;
    bracket_of_.push_back(static_cast<std::uint8_t>(b));
    rung_of_.push_back(0);
    out.create();
  }
  void create_where_left(std::size_t b, compat_orders& out) {
    if (state_[b].created - state_[b].invalid < plan_.brackets[b].max_trials)
      create(b, out);
  }

  halving_plan plan_;
  std::vector<compat_bracket> state_;
  std::vector<std::uint8_t> bracket_of_, rung_of_; ///< bracket and rung of each trial
};

} // namespace

std::unique_ptr<compat_method> make_compat_halving(halving_plan plan) {
  return std::make_unique<compat_halving>(std::move(plan));
}

} // namespace troupe::searchers

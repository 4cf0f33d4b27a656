#include "searchers/halving.hpp"

#include "searchers/ranking.hpp"
#include "searchers/rung_sentence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::searchers {
namespace {

constexpr double worst = std::numeric_limits<double>::infinity();

struct bracket_state {
  std::vector<ranking> rungs;
  std::int64_t created = 0; ///< number of trials that are not invalid
  std::int64_t live = 0;
  void persist(archive& ar) { ar(rungs, created, live); }
};

/// Asynchronous halving, stopping variant: at each rung a trial goes on only while it is among the best
/// 1/divisor of all that got there. Equal results rank by arrival, so that a plateau is stopped too.
class asha_stopping final : public method {
public:
  asha_stopping(halving_plan plan, std::shared_ptr<const space> domain, std::unique_ptr<sampler> source)
      : plan_(std::move(plan)), domain_(std::move(domain)), source_(std::move(source)),
        state_(plan_.brackets.size()) {
    for (std::size_t b = 0; b < state_.size(); ++b) {
      auto& units = plan_.brackets[b].units;
      units.erase(std::unique(units.begin(), units.end()), units.end()); // equal rungs would decide twice
      plan_.brackets[b].rungs = static_cast<int>(units.size());
      state_[b].rungs.resize(units.size());
    }
  }

  proposal next(ordinal fresh, bool may_create) override {
    auto b = may_create ? bracket_for_next() : state_.size();
    if (b == state_.size())
      return {};
    ++state_[b].created;
    ++state_[b].live;
    bracket_of_.push_back(static_cast<std::uint8_t>(b));
    rung_of_.push_back(0);
    return start_new{domain_->assemble(source_->begin(fresh)), {}};
  }

  void reported(const report& r, orders& out) override {
    source_->observe(r);
    auto& state = state_[bracket_of_[r.trial]];
    const auto& units = plan_.brackets[bracket_of_[r.trial]].units;
    for (auto& k = rung_of_[r.trial]; k < units.size();) {
      // A report without its time metric counts as arrived at the next rung, and as the last one there.
      bool timeless = std::isnan(r.step);
      if (!timeless && r.step < static_cast<double>(units[k]))
        return;
      double worth = timeless ? worst : r.worth;
      auto& rung = state.rungs[k];
      auto rank = rung.insert(worth, r.trial);
      int index = k++;
      auto length = static_cast<double>(units[static_cast<std::size_t>(index)]);
      if (static_cast<std::size_t>(index) + 1 == units.size())
        return out.stop(r.trial, full_length(index, length, plan_.time_metric, r.as_given));
      if (rank >= kept(rung))
        return out.stop(
          r.trial, beaten(index, length, plan_.time_metric, r, plan_.sign * rung.at(kept(rung) - 1).value));
      if (timeless)
        return;
    }
  }

  void left(ordinal trial, ending how) override {
    source_->left(trial, how);
    auto& state = state_[bracket_of_[trial]];
    --state.live;
    auto k = rung_of_[trial];
    if (how == ending::invalid) {
      --state.created;
      for (std::size_t i = 0; i < k; ++i)
        state.rungs[i].erase_trial(trial);
    } else if (how != ending::stopped && how != ending::completed && k < state.rungs.size()) {
      state.rungs[k].insert(worst, trial); // a failed trial counts among those that reached the rung
    }
  }

  std::vector<bracket> brackets() const override { return plan_.brackets; }
  std::size_t bracket_of(ordinal trial) const override {
    return trial < bracket_of_.size() ? bracket_of_[trial] : 0;
  }
  std::optional<double> bound(std::size_t bracket, std::size_t rung) const override {
    if (bracket >= state_.size() || rung >= state_[bracket].rungs.size() ||
        state_[bracket].rungs[rung].size() == 0)
      return {};
    const auto& here = state_[bracket].rungs[rung];
    return plan_.sign * here.at(kept(here) - 1).value;
  }

  void persist(archive& ar) override {
    ar(state_, bracket_of_, rung_of_);
    source_->persist(ar);
    if (!ar.reading())
      return;
    bool fits = state_.size() == plan_.brackets.size() && bracket_of_.size() == rung_of_.size();
    for (std::size_t b = 0; fits && b < state_.size(); ++b)
      fits = state_[b].rungs.size() == plan_.brackets[b].units.size();
    for (auto b : bracket_of_)
      fits = fits && b < state_.size();
    if (!fits)
      ar.fail();
  }

private:
  /// How many of the trials at a rung go on.
  std::size_t kept(const ranking& rung) const {
    return std::max<std::size_t>(1,
                                 static_cast<std::size_t>(static_cast<double>(rung.size()) / plan_.divisor));
  }

  /// The first bracket below its share. Where all have their share or are used up, slots are lent to the
  /// bracket that is furthest behind with its budget.
  std::size_t bracket_for_next() const {
    auto chosen = state_.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t b = 0; b < state_.size(); ++b) {
      const auto& plan = plan_.brackets[b];
      if (state_[b].created >= plan.max_trials)
        continue;
      if (state_[b].live < plan.max_concurrent)
        return b;
      double part = static_cast<double>(state_[b].created) / static_cast<double>(plan.max_trials);
      if (part < least) {
        least = part;
        chosen = b;
      }
    }
    return chosen;
  }

  halving_plan plan_;
  std::shared_ptr<const space> domain_;
  std::unique_ptr<sampler> source_;
  std::vector<bracket_state> state_;
  std::vector<std::uint8_t> bracket_of_,
    rung_of_; ///< bracket of each trial, and the next rung that the trial reaches
};

} // namespace

std::unique_ptr<method> make_asha_stopping(halving_plan plan, std::shared_ptr<const space> domain,
                                           std::unique_ptr<sampler> source) {
  return std::make_unique<asha_stopping>(std::move(plan), std::move(domain), std::move(source));
}

} // namespace troupe::searchers

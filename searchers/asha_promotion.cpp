#include "searchers/halving.hpp"

#include "searchers/ranking.hpp"
#include "searchers/rung_sentence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace troupe::searchers {
namespace {

constexpr double worst = std::numeric_limits<double>::infinity();

struct waiting_trial {
  double worth = 0;
  std::uint32_t arrival = 0; ///< order of arrival at the rung; equal results wait in this order
  std::uint32_t trial = 0;
  friend bool operator<(const waiting_trial& a, const waiting_trial& b) {
    return a.worth != b.worth ? a.worth < b.worth : a.arrival < b.arrival;
  }
};

struct promotion_rung {
  ranking results;
  std::uint32_t arrivals = 0;
  std::set<waiting_trial> waiting; ///< trials that are paused here and not promoted

  std::size_t insert(double worth, ordinal trial) { return results.insert(worth, trial, false, arrivals++); }
  void persist(archive& ar) {
    std::vector<waiting_trial> list(waiting.begin(), waiting.end());
    ar(results, arrivals, list);
    if (ar.reading())
      waiting = std::set<waiting_trial>(list.begin(), list.end());
  }
};

class asha_promotion final : public method {
public:
  asha_promotion(halving_plan plan, std::shared_ptr<const space> domain, std::unique_ptr<sampler> source)
      : plan_(std::move(plan)), domain_(std::move(domain)), source_(std::move(source)),
        rungs_(units().size()) {}

  proposal next(ordinal fresh, bool may_create) override {
    for (std::size_t k = rungs_.size(); k-- > 0;) {
      auto& rung = rungs_[k];
      auto keep = kept(rung);
      if (rung.waiting.empty() || keep == 0)
        continue;
      auto best = *rung.waiting.begin();
      if (rung.results.rank(best.worth, best.arrival) >= keep)
        continue;
      rung.waiting.erase(rung.waiting.begin());
      waits_[best.trial] = 0;
      return continue_paused{best.trial, static_cast<double>(units()[k + 1])};
    }
    if (!may_create)
      return {};
    rung_of_.push_back(0);
    waits_.push_back(0);
    return start_new{domain_->assemble(source_->begin(fresh)), {}};
  }

  void reported(const report& r, orders& out) override {
    source_->observe(r);
    auto& next = rung_of_[r.trial];
    bool timeless = std::isnan(r.step);
    auto reached = [&] {
      return next < units().size() && (timeless || r.step >= static_cast<double>(units()[next]));
    };
    if (!reached())
      return;
    double worth = timeless ? worst : r.worth;
    std::size_t rank = 0;
    do {
      rank = rungs_[next++].insert(worth, r.trial);
    } while (!timeless && reached());
    auto k = static_cast<std::size_t>(next) - 1;
    auto length = static_cast<double>(units()[k]);
    if (next == units().size())
      return out.stop(r.trial, full_length(static_cast<int>(k), length, plan_.time_metric, r.as_given));
    auto most = most_promoted();
    auto& rung = rungs_[k];
    if (worth == worst || rank >= most) {
      auto needed = most == 0 || rung.results.size() < most ? worst : rung.results.at(most - 1).value;
      out.stop(r.trial, beaten(static_cast<int>(k), length, plan_.time_metric, r, plan_.sign * needed));
    } else {
      rung.waiting.insert({worth, rung.arrivals - 1, r.trial});
      waits_[r.trial] = 1;
      out.pause(r.trial);
    }
    drop_hopeless(k, out);
  }

  void left(ordinal trial, ending how) override {
    source_->left(trial, how);
    auto k = rung_of_[trial];
    if (std::exchange(waits_[trial], 0)) // the trial was killed while it was paused
      std::erase_if(rungs_[k - 1u].waiting, [&](const waiting_trial& w) { return w.trial == trial; });
    if (how == ending::invalid) {
      for (std::size_t i = 0; i < k; ++i)
        rungs_[i].results.erase_trial(trial);
    } else if (how != ending::stopped && how != ending::completed && k < rungs_.size()) {
      rungs_[k].insert(worst, trial);
    }
  }

  std::vector<bracket> brackets() const override { return plan_.brackets; }
  std::optional<double> bound(std::size_t, std::size_t rung) const override {
    const auto keep = rung < rungs_.size() ? kept(rungs_[rung]) : 0;
    return keep == 0 ? std::nullopt : std::optional(plan_.sign * rungs_[rung].results.at(keep - 1).value);
  }

  void persist(archive& ar) override {
    ar(rungs_, rung_of_, waits_);
    source_->persist(ar);
    if (ar.reading() && rungs_.size() != units().size())
      ar.fail();
  }

private:
  const std::vector<std::int64_t>& units() const { return plan_.brackets[0].units; }

  /// How many of the trials at a rung go on from it as yet.
  std::size_t kept(const promotion_rung& rung) const {
    return static_cast<std::size_t>(static_cast<double>(rung.results.size()) / plan_.divisor);
  }

  /// A result at this rank or behind it can never be promoted, however many trials still come: ranks only
  /// rise.
  std::size_t most_promoted() const {
    return static_cast<std::size_t>(static_cast<double>(plan_.brackets[0].max_trials) / plan_.divisor);
  }

  /// A new result has pushed one paused trial behind that rank, so its checkpoint need not be kept.
  void drop_hopeless(std::size_t k, orders& out) {
    auto& rung = rungs_[k];
    auto most = most_promoted();
    if (rung.waiting.empty() || rung.results.size() <= most)
      return;
    auto last = *rung.waiting.rbegin();
    if (rung.results.rank(last.worth, last.arrival) < most)
      return;
    rung.waiting.erase(std::prev(rung.waiting.end()));
    waits_[last.trial] = 0;
    report r{last.trial, 0, last.worth, plan_.sign * last.worth, nullptr};
    auto needed = most == 0 ? worst : rung.results.at(most - 1).value;
    out.stop(last.trial, beaten(static_cast<int>(k), static_cast<double>(units()[k]), plan_.time_metric, r,
                                plan_.sign * needed));
  }

  halving_plan plan_;
  std::shared_ptr<const space> domain_;
  std::unique_ptr<sampler> source_;
  std::vector<promotion_rung> rungs_;
  std::vector<std::uint8_t> rung_of_; ///< by trial: the next rung that it reaches
  std::vector<std::uint8_t> waits_;   ///< by trial: 1 while it is in a `waiting`
};

} // namespace

std::unique_ptr<method> make_asha_promotion(halving_plan plan, std::shared_ptr<const space> domain,
                                            std::unique_ptr<sampler> source) {
  return std::make_unique<asha_promotion>(std::move(plan), std::move(domain), std::move(source));
}

} // namespace troupe::searchers

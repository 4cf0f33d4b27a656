#include "searchers/halving.hpp"

#include "searchers/rung_sentence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::searchers {
namespace {

constexpr double worst = std::numeric_limits<double>::infinity();

struct rung_result {
  double worth = 0;
  std::uint32_t trial = 0;
  std::uint32_t paused = 0; ///< 1 while the trial may go on
  double step = 0;          ///< step of the report
};

struct running_bracket {
  std::uint32_t plan = 0; ///< index of the bracket in the round
  std::uint32_t rung = 0;
  std::int64_t size = 0; ///< number of trials at its first rung
  std::int64_t created = 0;
  std::int64_t expected = 0;           ///< number of results that the rung still waits for
  std::vector<rung_result> results;    ///< results of the rung, in order of arrival
  std::vector<std::uint32_t> promoted; ///< paused trials, to be continued in this order
  std::uint8_t over = 0;
  std::vector<double> bounds; ///< worst metric that went on from each closed rung; only for those who explain
  void persist(archive& ar) { ar(plan, rung, size, created, expected, results, promoted, over); }
};

class sync_halving final : public method {
public:
  sync_halving(halving_plan plan, std::int64_t max_trials, std::shared_ptr<const space> domain,
               std::unique_ptr<sampler> source)
      : plan_(std::move(plan)), max_trials_(max_trials), domain_(std::move(domain)),
        source_(std::move(source)) {}

  proposal next(ordinal fresh, bool may_create) override {
    for (auto b = first_open_; b < brackets_.size(); ++b) {
      auto& open = brackets_[b];
      if (!open.promoted.empty()) {
        auto trial = open.promoted.front();
        open.promoted.erase(open.promoted.begin());
        return continue_paused{trial, static_cast<double>(units(open)[open.rung])};
      }
      if (may_create && open.rung == 0 && !open.over && open.created < open.size)
        return create(b, fresh);
    }
    if (!may_create || assigned_ >= max_trials_)
      return {};
    auto next_plan = static_cast<std::uint32_t>(brackets_.size() % plan_.brackets.size());
    auto size = std::min(plan_.brackets[next_plan].max_trials, max_trials_ - assigned_);
    assigned_ += size;
    brackets_.push_back({next_plan, 0, size, 0, size, {}, {}, 0, {}});
    return create(brackets_.size() - 1, fresh);
  }

  void reported(const report& r, orders& out) override {
    source_->observe(r);
    auto& open = brackets_[bracket_of_[r.trial]];
    bool timeless = std::isnan(r.step);
    auto length = static_cast<double>(units(open)[open.rung]);
    if (!timeless && r.step < length)
      return;
    double worth = timeless ? worst : r.worth;
    bool last = open.rung + 1 == units(open).size();
    arrive(open, {worth, r.trial, !last && worth != worst, timeless ? length : r.step});
    if (last)
      out.stop(r.trial, full_length(static_cast<int>(open.rung), length, plan_.time_metric, r.as_given));
    else if (worth == worst)
      out.stop(r.trial, beaten(static_cast<int>(open.rung), length, plan_.time_metric, r, worst));
    else
      out.pause(r.trial);
    close_rung(open, out);
  }

  void left(ordinal trial, ending how) override {
    source_->left(trial, how);
    auto& open = brackets_[bracket_of_[trial]];
    if (how == ending::invalid && open.rung > 0)
      --assigned_; // the replacement cannot join this bracket; it comes in one of its own
    auto mine =
      std::find_if(open.results.begin(), open.results.end(), [&](const auto& x) { return x.trial == trial; });
    std::erase(open.promoted, trial);
    if (mine != open.results.end()) {
      if (how == ending::invalid && open.rung == 0) {
        open.results.erase(mine);
        ++open.expected;
        --open.created;
      } else {
        mine->paused = 0;
      }
    } else if (how == ending::invalid && open.rung == 0) {
      --open.created;
    } else if (how != ending::stopped || !open.over) {
      arrive(open, {worst, trial, 0, 0});
      pending_close_ = 1;
    }
  }

  /// `left` may not order anything, so a rung that an end filled up is closed when the core asks next.
  void settle(orders& out) override {
    if (!std::exchange(pending_close_, 0))
      return;
    for (auto b = first_open_; b < brackets_.size(); ++b)
      close_rung(brackets_[b], out);
  }

  std::vector<bracket> brackets() const override { return plan_.brackets; }
  std::vector<bracket> opened() const override {
    std::vector<bracket> out;
    for (const auto& b : brackets_) {
      out.push_back(plan_.brackets[b.plan]);
      out.back().max_trials = b.size;
    }
    return out;
  }
  std::size_t bracket_of(ordinal trial) const override {
    return trial < bracket_of_.size() ? bracket_of_[trial] : brackets_.size();
  }
  /// After a restart from a snapshot, rungs that were closed before it have no bound.
  std::optional<double> bound(std::size_t b, std::size_t rung) const override {
    const bool known = b < brackets_.size() && rung < brackets_[b].bounds.size();
    return known && !std::isnan(brackets_[b].bounds[rung]) ? std::optional(brackets_[b].bounds[rung])
                                                           : std::nullopt;
  }

  void persist(archive& ar) override {
    ar(brackets_, bracket_of_, assigned_, first_open_, pending_close_);
    source_->persist(ar);
    if (!ar.reading())
      return;
    bool fits = first_open_ <= brackets_.size();
    for (const auto& b : brackets_)
      fits = fits && b.plan < plan_.brackets.size() && b.rung < plan_.brackets[b.plan].units.size();
    for (auto b : bracket_of_)
      fits = fits && b < brackets_.size();
    if (!fits)
      ar.fail();
  }

private:
  const std::vector<std::int64_t>& units(const running_bracket& b) const {
    return plan_.brackets[b.plan].units;
  }

  start_new create(std::size_t b, ordinal fresh) {
    ++brackets_[b].created;
    bracket_of_.push_back(static_cast<std::uint32_t>(b));
    return {domain_->assemble(source_->begin(fresh)), {}};
  }

  void arrive(running_bracket& b, rung_result x) {
    b.results.push_back(x);
    --b.expected;
  }

  /// A trial that reports rarely may already have reached its next rung: its result counts there at once.
  void promote(running_bracket& b, const rung_result& x, orders& out) {
    auto length = static_cast<double>(units(b)[b.rung]);
    if (x.step < length)
      return b.promoted.push_back(x.trial);
    arrive(b, x);
    if (b.rung + 1 == units(b).size())
      out.stop(x.trial,
               full_length(static_cast<int>(b.rung), length, plan_.time_metric, plan_.sign * x.worth));
  }

  /// Where all results of a rung have come, continues the best trials and stops the others.
  void close_rung(running_bracket& b, orders& out) {
    if (b.over || b.expected > 0)
      return;
    bool last = b.rung + 1 == units(b).size();
    std::vector<rung_result> ranked;
    if (!last)
      std::copy_if(b.results.begin(), b.results.end(), std::back_inserter(ranked),
                   [](const auto& x) { return x.paused; });
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& c) { return a.worth < c.worth; });
    double share = static_cast<double>(b.size);
    for (std::uint32_t k = 0; k <= b.rung; ++k)
      share /= plan_.divisor;
    auto keep =
      std::min(ranked.size(), std::max<std::size_t>(1, static_cast<std::size_t>(share * (1 + 1e-12))));
    auto length = static_cast<double>(units(b)[b.rung]);
    auto rung = static_cast<int>(b.rung);
    b.results.clear();
    b.over = last || ranked.empty();
    if (!b.over) {
      b.bounds.resize(b.rung, std::numeric_limits<double>::quiet_NaN());
      b.bounds.push_back(plan_.sign * ranked[keep - 1].worth);
      ++b.rung;
      b.expected = static_cast<std::int64_t>(keep);
    }
    for (std::size_t i = 0; i < keep; ++i)
      promote(b, ranked[i], out);
    // The trials that stop are told last: `left` hears of their end, and must not find them in the rung any
    // more.
    auto before = std::exchange(b.over, std::uint8_t{1});
    for (std::size_t i = keep; i < ranked.size(); ++i) {
      report r{ranked[i].trial, 0, ranked[i].worth, plan_.sign * ranked[i].worth, nullptr};
      out.stop(ranked[i].trial,
               beaten(rung, length, plan_.time_metric, r, plan_.sign * ranked[keep - 1].worth));
    }
    b.over = before;
    close_rung(b, out); // all trials may have come that far already
    while (first_open_ < brackets_.size() && brackets_[first_open_].over)
      ++first_open_;
  }

  halving_plan plan_;
  std::int64_t max_trials_;
  std::shared_ptr<const space> domain_;
  std::unique_ptr<sampler> source_;
  std::vector<running_bracket> brackets_;
  std::vector<std::uint32_t> bracket_of_; ///< bracket of each trial
  std::int64_t assigned_ = 0;             ///< the part of the budget that brackets have
  std::size_t first_open_ = 0;
  std::uint8_t pending_close_ = 0;
};

} // namespace

std::unique_ptr<method> make_sync_halving(halving_plan plan, std::int64_t max_trials,
                                          std::shared_ptr<const space> domain,
                                          std::unique_ptr<sampler> source) {
  return std::make_unique<sync_halving>(std::move(plan), max_trials, std::move(domain), std::move(source));
}

} // namespace troupe::searchers

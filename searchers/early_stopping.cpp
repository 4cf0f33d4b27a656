#include "searchers/early_stopping.hpp"

#include "searchers/archive.hpp"
#include "searchers/ranking.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

namespace troupe::searchers {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

stop_trial because(std::string why, const report& r, double needed = nan) {
  stop_trial s;
  s.why = std::move(why);
  s.metric = r.as_given;
  s.needed = needed;
  return s;
}

bool in_warmup(const report& r, double warmup) { return !std::isnan(r.step) && r.step < warmup; }

/// Stops a trial whose last `reports` reports did not improve on the best before them by more than
/// `min_delta`.
class patience final : public early_stopping {
public:
  patience(std::int64_t reports, double min_delta) : reports_(reports), min_delta_(min_delta) {}
  std::optional<stop_trial> judge(const report& r, double sign) override {
    state_.resize(std::max(state_.size(), r.trial + std::size_t{1}));
    auto& s = state_[r.trial];
    if (s.count == 0 || r.worth < s.best - min_delta_) {
      s = {r.worth, 1};
      return std::nullopt;
    }
    if (static_cast<std::int64_t>(s.count++) < reports_)
      return std::nullopt;
    return because(fmt::format("patience: no better than {:.6g} for {} reports", sign * s.best, reports_), r,
                   sign * s.best);
  }
  void left(ordinal, ending) override {}
  void persist(archive& ar) override { ar(state_); }

private:
  struct state {
    double best = 0;
    std::uint64_t count = 0;
  }; ///< reports since the best one, which counts itself
  std::int64_t reports_;
  double min_delta_;
  std::vector<state> state_;
};

class threshold final : public early_stopping {
public:
  threshold(double lower, double upper, double warmup) : lower_(lower), upper_(upper), warmup_(warmup) {}
  std::optional<stop_trial> judge(const report& r, double) override {
    if (in_warmup(r, warmup_))
      return std::nullopt;
    if (std::isnan(r.as_given))
      return because("threshold: no usable metric", r);
    if (r.as_given < lower_)
      return because(fmt::format("threshold: {:.6g} is below {:.6g}", r.as_given, lower_), r, lower_);
    if (r.as_given > upper_)
      return because(fmt::format("threshold: {:.6g} is above {:.6g}", r.as_given, upper_), r, upper_);
    return std::nullopt;
  }
  void left(ordinal, ending) override {}
  void persist(archive&) override {}

private:
  double lower_, upper_, warmup_;
};

class time_limit final : public early_stopping {
public:
  time_limit(double limit, std::string unit) : limit_(limit), unit_(std::move(unit)) {}
  std::optional<stop_trial> judge(const report& r, double) override {
    if (std::isnan(r.step) || r.step < limit_)
      return std::nullopt;
    auto s = because(fmt::format("maximum time: {:.10g} {} reached", limit_, unit_), r);
    s.units = limit_;
    return s;
  }
  void left(ordinal, ending) override {}
  void persist(archive&) override {}

private:
  double limit_;
  std::string unit_;
};

/// Vizier's rule compares the best of a trial so far with the median over the completed trials of their
/// running averages up to the same step. Steps fall into buckets of `interval`.
class median_rule final : public early_stopping {
public:
  median_rule(double warmup, std::int64_t min_trials, double interval)
      : warmup_(warmup), min_trials_(static_cast<std::size_t>(min_trials)), interval_(interval) {}

  std::optional<stop_trial> judge(const report& r, double sign) override {
    if (std::isnan(r.step))
      return std::nullopt;
    auto& s = live_[r.trial];
    s.best = std::min(s.best, r.worth);
    if (std::isfinite(r.worth)) {
      s.sum += r.worth;
      ++s.count;
    }
    auto bucket = static_cast<std::int64_t>(std::floor(r.step / interval_));
    double average =
      s.count > 0 ? s.sum / static_cast<double>(s.count) : std::numeric_limits<double>::infinity();
    s.curve.push_back({bucket, average});
    if (r.step < warmup_)
      return std::nullopt;
    auto it = buckets_.find(bucket);
    if (it == buckets_.end() || it->second.size() < min_trials_)
      return std::nullopt;
    const auto& averages = it->second;
    auto n = averages.size();
    double median =
      n % 2 ? averages.at(n / 2).value : (averages.at(n / 2 - 1).value + averages.at(n / 2).value) / 2;
    if (!(s.best > median))
      return std::nullopt;
    return because(fmt::format("median: best {:.6g}, the median of {} trials at this point is {:.6g}",
                               sign * s.best, n, sign * median),
                   r, sign * median);
  }

  void left(ordinal trial, ending how) override {
    auto it = live_.find(trial);
    if (it == live_.end())
      return;
    if (how == ending::completed) {
      std::int64_t last = std::numeric_limits<std::int64_t>::min();
      for (auto p = it->second.curve.rbegin(); p != it->second.curve.rend();
           ++p) // one entry for each bucket: the latest
        if (std::exchange(last, p->bucket) != p->bucket)
          buckets_[p->bucket].insert(p->average, trial);
    }
    live_.erase(it);
  }

  void persist(archive& ar) override {
    each(ar, live_);
    each(ar, buckets_);
  }

private:
  struct curve_point {
    std::int64_t bucket = 0;
    double average = 0;
  };
  struct curve_state {
    double best = std::numeric_limits<double>::infinity(), sum = 0;
    std::uint64_t count = 0;
    std::vector<curve_point> curve;
    void persist(archive& ar) { ar(best, sum, count, curve); }
  };
  template <class Map>
  static void each(archive& ar, Map& map) {
    std::uint64_t n = map.size();
    ar(n);
    if (!ar.reading()) {
      for (auto& [key, x] : map) {
        auto k = key;
        ar(k, x);
      }
      return;
    }
    map.clear();
    for (std::uint64_t i = 0; i < n && !ar.failed(); ++i) {
      typename Map::key_type key{};
      ar(key);
      ar(map[key]);
    }
  }
  double warmup_;
  std::size_t min_trials_;
  double interval_;
  std::map<ordinal, curve_state> live_;
  std::map<std::int64_t, ranking> buckets_; ///< running averages of the completed trials
};

class all_of final : public early_stopping {
public:
  explicit all_of(std::vector<std::unique_ptr<early_stopping>> rules) : rules_(std::move(rules)) {}
  std::optional<stop_trial> judge(const report& r, double sign) override {
    std::optional<stop_trial> first;
    for (auto& rule : rules_) // every rule hears every report
      if (auto reason = rule->judge(r, sign); reason && !first)
        first = std::move(reason);
    return first;
  }
  void left(ordinal trial, ending how) override {
    for (auto& rule : rules_)
      rule->left(trial, how);
  }
  void persist(archive& ar) override {
    for (auto& rule : rules_)
      rule->persist(ar);
  }

private:
  std::vector<std::unique_ptr<early_stopping>> rules_;
};

} // namespace

std::unique_ptr<early_stopping> make_early_stopping(section& in, const settings& common) {
  std::vector<std::unique_ptr<early_stopping>> rules;
  auto part = [&](const char* name) {
    return section(in.member(name), std::string("searcher.early_stopping.") + name, in.faults());
  };
  auto unit = common.time_metric.empty() ? std::string("reports") : common.time_metric;
  if (in.has("patience")) {
    auto p = part("patience");
    rules.push_back(std::make_unique<patience>(p.integer("reports", 5, 1), p.number("min_delta", 0, 0)));
  }
  if (in.has("threshold")) {
    auto p = part("threshold");
    constexpr double most = std::numeric_limits<double>::max();
    rules.push_back(std::make_unique<threshold>(p.number("lower", -most, -most),
                                                p.number("upper", most, -most), p.number("warmup", 0, 0)));
  }
  if (in.has("median")) {
    auto p = part("median");
    rules.push_back(std::make_unique<median_rule>(p.number("warmup", 0, 0), p.integer("min_trials", 5, 1),
                                                  p.number("interval", 1, 1e-9)));
  }
  if (in.has("max_time")) {
    double limit = in.number("max_time", 1, 0);
    rules.push_back(std::make_unique<time_limit>(limit, unit));
  }
  return rules.empty() ? nullptr : std::make_unique<all_of>(std::move(rules));
}

std::unique_ptr<early_stopping> make_median_stopping(double warmup, std::int64_t min_trials,
                                                     double interval) {
  return std::make_unique<median_rule>(warmup, min_trials, interval);
}

} // namespace troupe::searchers

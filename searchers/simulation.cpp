#include "searchers/simulation.hpp"

#include "model/rng.hpp"
#include "searchers/space.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <unordered_map>

namespace troupe::searchers {
namespace {

double bump(double z) { return 1 - std::exp(-z * z / 2); }

/// The lowest loss at full length over all configurations. Decay and dropout act independently, and are best
/// at -4 and 0.2; rate and width are searched on a grid that closes in.
double best_possible(curve_family family, double full) {
  double rate = -2.5, width = 7.5, best = 1;
  for (double reach = 3.5; reach > 1e-7; reach /= 8) {
    double rate0 = rate, width0 = width;
    for (int i = -16; i <= 16; ++i)
      for (int j = -16; j <= 16; ++j) {
        curve c{family, std::clamp(rate0 + reach * i / 16, -5.0, 0.0), -4,
                std::clamp(width0 + reach * j / 16, 4.0, 11.0), 0.2};
        if (double loss = c.loss(full); loss < best) {
          best = loss;
          rate = c.a;
          width = c.c;
        }
      }
  }
  return best;
}

struct paper_trial {
  std::string key;
  curve shape;
  double epochs = 0;
  std::uint64_t number = 0;
  std::uint64_t clones = 0; ///< keeps the noise from repeating when the clock restarts
};

struct finished_work {
  double time = 0;
  std::size_t worker = 0;
  std::uint64_t plan = 0; ///< an event of an older plan is void
  friend bool operator<(const finished_work& a, const finished_work& b) {
    return a.time != b.time ? a.time > b.time : a.worker > b.worker;
  }
};

class cluster {
public:
  cluster(searcher& search, const simulation_options& o, std::string metric, std::string time_metric,
          double sign, const std::function<void(const value&, double (&)[4])>& coordinates)
      : search_(search), o_(o), metric_(std::move(metric)), time_metric_(std::move(time_metric)), sign_(sign),
        coordinates_(coordinates), running_(o.workers), plans_(o.workers) {
    std::set<double> lengths;
    for (const auto& b : search.brackets())
      lengths.insert(b.units.begin(), b.units.end());
    for (double x = o.full_length; lengths.size() < 5 && x >= 1 && search.brackets().empty(); x /= 4)
      lengths.insert(std::floor(x));
    lengths.insert(o.full_length);
    result_.rungs.assign(lengths.begin(), lengths.end());
    result_.ended_at.assign(lengths.size() + 1, 0);
    for (std::size_t w = 0; w < o.workers; ++w)
      idle_.insert(w);
  }

  simulation_result run() {
    take(search_.apply(search_started{}));
    place();
    while (!work_.empty() && !over_) {
      auto [time, worker, plan] = work_.top();
      if (o_.horizon > 0 && time > o_.horizon)
        break;
      work_.pop();
      note_regrets(time);
      now_ = time;
      auto* trial = running_[worker];
      if (!trial || plan != plans_[worker])
        continue;
      trial->epochs = next_length(trial->epochs);
      report(*trial);
      // `take` has freed the worker of a stopped or paused trial; other trials go on or end.
      if (running_[worker] == trial && !over_) {
        if (trial->epochs >= o_.full_length) {
          ++result_.full_length;
          release(worker);
          end(*trial);
        } else {
          train(worker);
        }
      }
      place();
    }
    if (o_.horizon > 0 && !over_)
      now_ = o_.horizon;
    note_regrets(std::numeric_limits<double>::infinity());
    result_.time = now_;
    result_.regret = regret();
    result_.best_loss = best_true_;
    result_.busy = now_ > 0 ? busy_ / (now_ * static_cast<double>(o_.workers)) : 0;
    return result_;
  }

private:
  double regret() const { return best_true_ - least_; }

  void note_regrets(double until) {
    while (result_.regrets.size() < o_.regret_at.size() && o_.regret_at[result_.regrets.size()] < until)
      result_.regrets.push_back(regret());
  }

  double next_length(double epochs) const {
    auto it = std::upper_bound(result_.rungs.begin(), result_.rungs.end(), epochs);
    return it == result_.rungs.end() ? o_.full_length : *it;
  }

  void report(paper_trial& t) {
    ++result_.reports;
    auto at = static_cast<std::uint64_t>(t.epochs);
    double u = keyed_unit(o_.seed, {t.number, 1000 + at, 1 + 2 * t.clones});
    double v = keyed_unit(o_.seed, {t.number, 1000 + at, 2 + 2 * t.clones});
    double exact = t.shape.loss(t.epochs);
    double seen = exact + 0.003 * std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
    if (seen < best_seen_) {
      best_seen_ = seen;
      best_true_ = exact;
    }
    auto id = t.key + "@" + std::to_string(at);
    take(search_.apply(trial_checkpointed{t.key, t.epochs, std::move(id)}));
    take(search_.apply(trial_validated{t.key, {{metric_, sign_ * seen}, {time_metric_, t.epochs}}}));
  }

  void end(paper_trial& t) {
    auto key = t.key;
    auto rung =
      std::lower_bound(result_.rungs.begin(), result_.rungs.end(), t.epochs) - result_.rungs.begin();
    ++result_.ended_at[static_cast<std::size_t>(rung)];
    where_.erase(key);
    take(search_.apply(trial_exited{key}));
    trials_.erase(key);
  }

  void train(std::size_t worker) {
    const auto& t = *running_[worker];
    double cost = (next_length(t.epochs) - t.epochs) * t.shape.seconds_per_epoch();
    busy_ += cost;
    work_.push({now_ + cost, worker, ++plans_[worker]});
  }

  void release(std::size_t worker) {
    running_[worker] = nullptr;
    idle_.insert(worker);
  }

  /// Takes the idle worker with the lowest index first.
  void place() {
    while (!waiting_.empty() && !idle_.empty()) {
      auto key = waiting_.front();
      waiting_.pop_front();
      auto it = trials_.find(key);
      if (it == trials_.end())
        continue;
      auto worker = *idle_.begin();
      idle_.erase(idle_.begin());
      running_[worker] = it->second.get();
      where_[key] = worker;
      train(worker);
    }
  }

  /// Frees the worker of a trial; the work that it had planned is void.
  void leave_worker(const std::string& key) {
    auto it = where_.find(key);
    if (it == where_.end())
      return;
    release(it->second);
    where_.erase(it);
  }

  void take(const result<std::vector<search_action>>& actions) {
    if (!actions)
      return;
    for (const auto& action : *actions)
      std::visit([this](const auto& x) { on(x); }, action);
  }

  void on(const create_trial& x) {
    auto t = std::make_unique<paper_trial>();
    t->key = x.trial;
    t->number = result_.trials++;
    double u[4];
    if (o_.keyed_trials)
      for (std::uint64_t j = 0; j < 4; ++j)
        u[j] = keyed_unit(o_.seed, {t->number, 100 + j});
    else
      coordinates_(x.hparams, u);
    t->shape = curve::at(o_.family, u);
    if (auto at = x.source_checkpoint.rfind('@'); at != std::string::npos)
      t->epochs = std::stod(x.source_checkpoint.substr(at + 1));
    waiting_.push_back(x.trial);
    trials_.emplace(x.trial, std::move(t));
  }
  void on(const stop_trial& x) {
    ++result_.stopped;
    auto it = trials_.find(x.trial);
    if (it == trials_.end())
      return;
    if (it->second->epochs >= o_.full_length)
      ++result_.full_length;
    leave_worker(x.trial);
    ending_.push_back(x.trial);
    if (!std::exchange(draining_, true)) { // exits are reported one after another, not inside each other
      while (!ending_.empty()) {
        auto key = ending_.front();
        ending_.pop_front();
        if (auto t = trials_.find(key); t != trials_.end())
          end(*t->second);
      }
      draining_ = false;
    }
  }
  void on(const pause_trial& x) {
    ++result_.pauses;
    leave_worker(x.trial);
  }
  void on(const resume_trial& x) { waiting_.push_back(x.trial); }
  void on(const perturb_trial& x) {
    auto it = trials_.find(x.trial);
    auto at = x.checkpoint.rfind('@');
    if (it == trials_.end() || at == std::string::npos)
      return;
    double u[4];
    coordinates_(x.hparams, u);
    it->second->shape = curve::at(o_.family, u);
    it->second->epochs = std::stod(x.checkpoint.substr(at + 1));
    ++it->second->clones;
  }
  void on(const shut_down&) { over_ = true; }

  searcher& search_;
  simulation_options o_;
  std::string metric_, time_metric_;
  double sign_;
  const std::function<void(const value&, double (&)[4])>& coordinates_;
  std::unordered_map<std::string, std::unique_ptr<paper_trial>> trials_;
  std::unordered_map<std::string, std::size_t> where_;
  std::vector<paper_trial*> running_;
  std::vector<std::uint64_t> plans_;
  std::set<std::size_t> idle_;
  std::deque<std::string> waiting_, ending_;
  std::priority_queue<finished_work> work_;
  simulation_result result_;
  const double least_ = best_possible(o_.family, o_.full_length);
  double now_ = 0, busy_ = 0, best_seen_ = std::numeric_limits<double>::infinity(), best_true_ = 1;
  bool over_ = false, draining_ = false;
};

} // namespace

double keyed_unit(std::uint64_t seed, std::initializer_list<std::uint64_t> keys) {
  auto h = mix64(0x243F6A8885A308D3u ^ seed);
  for (auto key : keys)
    h = mix64(h ^ key);
  return (static_cast<double>(h >> 11) + 0.5) * 0x1p-53;
}

curve curve::at(curve_family family, const double (&u)[4]) {
  return {family, -5 + 5 * u[0], -8 + 7 * u[1], 4 + 7 * u[2], 0.8 * u[3]};
}

double curve::loss(double epochs) const {
  bool benign = family == curve_family::benign;
  if (a > -0.7)
    return 0.90;
  double best_rate = (benign ? -2.2 : -3.0) - 0.1 * (c - 9);
  double tau = benign ? 2 * std::pow(10.0, 0.6 * std::max(0.0, -(a + 2))) * std::pow(2.0, 0.25 * (c - 7))
                      : 2 * std::pow(10.0, 0.9 * std::max(0.0, -(a + 1.5))) * std::pow(2.0, 0.4 * (c - 7));
  double asymptote = 0.06 + 0.25 * bump((a - best_rate) / 0.8) + 0.03 * bump((b + 4) / 1.5) +
                     0.02 * ((c - 9) / 5) * ((c - 9) / 5) + 0.15 * (d - 0.2) * (d - 0.2);
  return asymptote + (0.90 - asymptote) * std::pow(1 + epochs / tau, -0.9);
}

double curve::seconds_per_epoch() const { return std::pow(2.0, 0.3 * (c - 8)); }

simulation_result simulate(searcher& search, const simulation_options& options, const std::string& metric,
                           const std::string& time_metric, double sign,
                           const std::function<void(const value&, double (&)[4])>& coordinates) {
  return cluster(search, options, metric, time_metric, sign, coordinates).run();
}

std::function<void(const value&, double (&)[4])> coordinates_of(const value& hyperparameters) {
  std::vector<std::string> faults;
  auto domain = std::make_shared<space>(space::parse(hyperparameters, faults));
  return [domain](const value& hparams, double(&u)[4]) {
    auto p = domain->locate(hparams);
    std::uint64_t rest = 1;
    std::size_t used = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (used < 4 && !domain->dimensions()[j].categorical())
        u[used++] = p[j];
      rest = mix64(rest ^ std::bit_cast<std::uint64_t>(p[j]));
    }
    for (; used < 4; ++used)
      u[used] = unit(rest = mix64(rest));
  };
}

} // namespace troupe::searchers

#include "searchers/nsga2.hpp"

#include "model/rng.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe::searchers {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i])
      return false;
    better = better || a[i] < b[i];
  }
  return better;
}

/// For each row, the sum over the objectives of the gap between its neighbours, as a part of the range. The
/// rows at the ends get infinity.
std::vector<double> crowding(const std::vector<std::vector<double>>& rows,
                             const std::vector<std::size_t>& front) {
  std::vector<double> distance(front.size(), 0);
  auto objectives = rows.empty() ? 0 : rows[0].size();
  for (std::size_t k = 0; k < objectives; ++k) {
    std::vector<std::size_t> order(front.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return rows[front[a]][k] < rows[front[b]][k]; });
    double low = rows[front[order.front()]][k], high = rows[front[order.back()]][k];
    if (!(high > low))
      continue;
    distance[order.front()] = distance[order.back()] = infinite;
    for (std::size_t i = 1; i + 1 < order.size(); ++i) {
      double gap = rows[front[order[i + 1]]][k] - rows[front[order[i - 1]]][k];
      distance[order[i]] += std::isfinite(high - low) ? gap / (high - low) : 0;
    }
  }
  return distance;
}

struct individual {
  ordinal trial = 0;
  point at;
  std::vector<double> worth;
  std::uint8_t reported = 0;
  void persist(archive& ar) { ar(trial, at, worth, reported); }
};

class nsga2 final : public sampler {
public:
  nsga2(nsga2_settings s, std::shared_ptr<const space> domain)
      : s_(std::move(s)), domain_(std::move(domain)) {}

  point propose(ordinal fresh) override {
    if (parents_.empty())
      return domain_->sample(s_.seed, sample_stream, fresh);
    rng random(random_bits(s_.seed, model_stream, fresh));
    const auto& mother = tournament(random);
    const auto& father = tournament(random);
    auto child = mother.at;
    bool crossed = random.unit() < s_.crossover;
    double mutation = 1 / std::max(1.0, static_cast<double>(child.size()));
    for (std::size_t j = 0; j < child.size(); ++j) {
      bool swapped = random.unit() < s_.swap, anew = random.unit() < mutation;
      auto bits = random();
      if (crossed && swapped)
        child[j] = father.at[j];
      if (anew)
        child[j] = domain_->sample_dimension(j, bits);
    }
    return child;
  }

  void started(ordinal fresh, const point& p) override {
    running_.push_back({fresh, p, std::vector<double>(s_.objectives.size(), infinite), 0});
  }

  void observe(const report& r) override {
    auto it = find(r.trial);
    if (it == running_.end() || !r.metrics || !r.metrics->is_object())
      return;
    std::vector<double> worth;
    for (const auto& o : s_.objectives) {
      auto m = r.metrics->find(o.metric);
      auto x = m == r.metrics->end() ? std::nullopt : number_in(*m);
      worth.push_back(x && std::isfinite(*x) ? (o.smaller_is_better ? *x : -*x) : infinite);
    }
    // The last report speaks for the trial: objectives of different reports do not belong together.
    it->worth = std::move(worth);
    it->reported = 1;
  }

  void left(ordinal trial, ending how) override {
    auto it = find(trial);
    if (it == running_.end())
      return;
    auto gone = std::move(*it);
    running_.erase(it);
    if (how == ending::errored || how == ending::invalid || !gone.reported)
      return; // failed trials do not count towards a generation
    grown_.push_back(std::move(gone));
    if (grown_.size() >= static_cast<std::size_t>(s_.population_size))
      select();
  }

  void persist(archive& ar) override {
    ar(running_, grown_, parents_, ranks_);
    bool fits = ranks_.size() == parents_.size();
    for (auto* list : {&running_, &grown_, &parents_})
      for (const auto& x : *list)
        fits = fits && x.at.size() == domain_->size() && x.worth.size() == s_.objectives.size();
    if (!fits)
      ar.fail();
  }

private:
  std::vector<individual>::iterator find(ordinal trial) {
    return std::find_if(running_.begin(), running_.end(), [&](const auto& x) { return x.trial == trial; });
  }

  const individual& tournament(rng& random) const {
    auto a = random.below(parents_.size()), b = random.below(parents_.size());
    return ranks_[b] < ranks_[a] ? parents_[b] : parents_[a];
  }

  void select() {
    std::vector<individual> all = std::move(parents_);
    all.insert(all.end(), std::make_move_iterator(grown_.begin()), std::make_move_iterator(grown_.end()));
    grown_.clear();
    std::vector<std::vector<double>> rows;
    for (const auto& x : all)
      rows.push_back(x.worth);
    auto rank = non_dominated_ranks(rows);
    parents_.clear();
    ranks_.clear();
    auto size = static_cast<std::size_t>(s_.population_size);
    for (std::size_t r = 0; parents_.size() < size; ++r) {
      std::vector<std::size_t> front;
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rank[i] == r)
          front.push_back(i);
      if (front.empty())
        break;
      auto spread = crowding(rows, front);
      std::vector<std::size_t> order(front.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return spread[a] > spread[b]; });
      for (std::size_t i = 0; i < order.size() && parents_.size() < size; ++i) {
        parents_.push_back(std::move(all[front[order[i]]]));
        ranks_.push_back(static_cast<std::uint32_t>(r));
      }
    }
  }

  nsga2_settings s_;
  std::shared_ptr<const space> domain_;
  std::vector<individual> running_, grown_, parents_; ///< grown: finished since the parents were chosen
  std::vector<std::uint32_t> ranks_;                  ///< rank of each parent
};

} // namespace

std::vector<std::size_t> non_dominated_ranks(const std::vector<std::vector<double>>& rows) {
  constexpr auto none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> rank(rows.size(), none), beaten(rows.size(), 0);
  std::vector<std::vector<std::size_t>> beats(rows.size());
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j)
      if (dominates(rows[i], rows[j])) {
        beats[i].push_back(j);
        ++beaten[j];
      }
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (beaten[i] == 0)
      front.push_back(i);
  for (std::size_t r = 0; !front.empty(); ++r) {
    std::vector<std::size_t> next;
    for (auto i : front) {
      rank[i] = r;
      for (auto j : beats[i])
        if (--beaten[j] == 0)
          next.push_back(j);
    }
    front = std::move(next);
  }
  return rank;
}

std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& rows) {
  std::vector<std::size_t> front;
  auto rank = non_dominated_ranks(rows);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rank[i] == 0)
      front.push_back(i);
  return front;
}

nsga2_settings read_nsga2(section& in, const settings& common) {
  nsga2_settings s;
  s.seed = common.seed;
  auto names = in.texts("metrics");
  if (names.empty())
    names = in.texts("metric");
  const auto& each =
    in.has("smaller_is_better_each") ? in.member("smaller_is_better_each") : in.member("smaller_is_better");
  for (std::size_t i = 0; i < names.size(); ++i) {
    bool smaller = common.smaller_is_better;
    if (each.is_array()) {
      if (i >= each.size() || !each[i].is_boolean())
        in.fault("smaller_is_better_each", "must hold true or false for each of `metrics`");
      else
        smaller = each[i].get<bool>();
    }
    s.objectives.push_back({names[i], smaller});
  }
  s.population_size = in.integer("population_size", 50, 2, 100'000);
  return s;
}

std::unique_ptr<sampler> make_nsga2(nsga2_settings s, std::shared_ptr<const space> domain) {
  return std::make_unique<nsga2>(std::move(s), std::move(domain));
}

} // namespace troupe::searchers

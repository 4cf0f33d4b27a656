#include "searchers/pbt.hpp"

#include "searchers/portable_math.hpp"
#include "searchers/rung_sentence.hpp"

#include "model/rng.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::searchers {
namespace {

constexpr double worst = std::numeric_limits<double>::infinity();

struct member {
  ordinal trial = 0;
  point at;
  double score = 0;
  double last_ready = 0, last_step = 0;
  double checkpoint_step = 0;
  std::string checkpoint; ///< a committed checkpoint of its present weights; empty: it has none
  point checkpoint_at;    ///< the hyperparameters with which that checkpoint was trained
  std::uint64_t scored = 0;
  void persist(archive& ar) {
    ar(trial, at, score, last_ready, last_step, checkpoint_step, checkpoint, checkpoint_at, scored);
  }
};

class pbt final : public method {
public:
  pbt(pbt_settings s, std::shared_ptr<const space> domain, std::unique_ptr<sampler> source)
      : s_(std::move(s)), domain_(std::move(domain)), source_(std::move(source)) {}

  proposal next(ordinal fresh, bool may_create) override {
    if (!may_create)
      return {};
    member m;
    m.trial = fresh;
    std::string inherited;
    if (heirs_ > 0) { // a child of the best, where one has saved its weights, replaces a failed member
      --heirs_;
      auto parents = best_with_checkpoint(0);
      if (!parents.empty()) {
        const auto& parent = *parents[random_bits(s_.seed, explore_stream, fresh, 0, 1) % parents.size()];
        m.at = explore(parent.checkpoint_at, fresh, 0);
        m.last_ready = parent.checkpoint_step;
        inherited = parent.checkpoint;
      }
    }
    if (m.at.empty())
      m.at = source_->begin(fresh);
    auto hparams = domain_->assemble(m.at);
    members_.push_back(std::move(m));
    return start_new{std::move(hparams), std::move(inherited)};
  }

  void reported(const report& r, orders& out) override {
    auto mine = find(r.trial);
    if (mine == members_.end())
      return;
    mine->score = r.worth;
    mine->scored = 1;
    if (std::isnan(r.step))
      return;
    mine->last_step = r.step;
    if (s_.max_time > 0 && r.step >= s_.max_time) {
      auto reason = full_length(-1, s_.max_time, s_.time_metric, r.as_given);
      reason.why = "full length reached";
      return out.stop(r.trial, std::move(reason));
    }
    if (r.step - mine->last_ready < s_.interval || r.step < s_.burn_in)
      return;
    mine->last_ready = r.step;
    auto ranked = ranked_members();
    auto share = quantile(ranked.size());
    if (share == 0 ||
        std::find(ranked.end() - static_cast<std::ptrdiff_t>(share), ranked.end(), &*mine) == ranked.end())
      return;
    auto parents = best_with_checkpoint(share);
    if (!parents.empty())
      exploit(*mine, *parents[random_bits(s_.seed, explore_stream, r.trial, ++exploits_, 2) % parents.size()],
              out);
  }

  void left(ordinal trial, ending how) override {
    source_->left(trial, how);
    heirs_ += how == ending::errored;
    if (auto mine = find(trial); mine != members_.end())
      members_.erase(mine);
  }

  void checkpointed(ordinal trial, double step, const std::string& checkpoint) override {
    auto mine = find(trial);
    if (mine == members_.end())
      return;
    mine->checkpoint = checkpoint;
    mine->checkpoint_step = step;
    mine->checkpoint_at = mine->at;
  }

  void persist(archive& ar) override {
    ar(members_, heirs_, exploits_);
    source_->persist(ar);
    for (const auto& m : members_)
      if (m.at.size() != domain_->size())
        ar.fail();
  }

private:
  std::vector<member>::iterator find(ordinal trial) {
    return std::find_if(members_.begin(), members_.end(), [&](const auto& m) { return m.trial == trial; });
  }

  /// Members with a score, best first, then by trial.
  std::vector<const member*> ranked_members() const {
    std::vector<const member*> ranked;
    for (const auto& m : members_)
      if (m.scored)
        ranked.push_back(&m);
    std::sort(ranked.begin(), ranked.end(), [](auto* a, auto* b) {
      return a->score != b->score ? a->score < b->score : a->trial < b->trial;
    });
    return ranked;
  }

  std::size_t quantile(std::size_t n) const {
    auto m = static_cast<std::size_t>(std::ceil(static_cast<double>(n) * s_.truncate_fraction - 1e-12));
    return std::min(m, n / 2);
  }

  /// Members among the best `share` whose weights can be copied (0: as the quantile says).
  std::vector<const member*> best_with_checkpoint(std::size_t share) const {
    auto ranked = ranked_members();
    if (share == 0)
      share = std::max<std::size_t>(std::min<std::size_t>(1, ranked.size()), quantile(ranked.size()));
    ranked.resize(share);
    std::erase_if(ranked, [](auto* m) { return m->checkpoint.empty() || m->score == worst; });
    return ranked;
  }

  void exploit(member& mine, const member& parent, orders& out) {
    auto checkpoint = parent.checkpoint;
    auto step = parent.checkpoint_step;
    mine.at = explore(parent.checkpoint_at, mine.trial, exploits_);
    mine.score = parent.score;
    mine.last_ready = mine.last_step = step;
    mine.checkpoint.clear(); // the member lost its own weights
    out.perturb(mine.trial, parent.trial, std::move(checkpoint), step, domain_->assemble(mine.at));
  }

  point explore(point at, ordinal trial, std::uint64_t round) const {
    rng random(random_bits(s_.seed, explore_stream, trial, round, 3));
    const auto& dimensions = domain_->dimensions();
    for (std::size_t i = 0; i < at.size(); ++i) {
      auto bits = random();
      bool anew = random.chance(s_.resample_probability), up = random.chance(0.5);
      if (anew)
        at[i] = domain_->sample_dimension(i, bits);
      else if (!dimensions[i].categorical())
        at[i] = dimensions[i].settle(moved(dimensions[i], at[i], up));
    }
    return at;
  }

  /// Multiplies the value. Where a factor could never leave 0 or change the sign, adds a step on the axis.
  double moved(const dimension& d, double u, bool up) const {
    double by = up ? 1 + s_.perturb_factor : 1 - s_.perturb_factor;
    double low = d.kind == axis::integer ? static_cast<double>(d.least) : d.low;
    double high = d.kind == axis::integer ? static_cast<double>(d.most) : d.high;
    if (d.kind == axis::logarithmic)
      return std::clamp(u + portable_log(std::max(by, 1e-6)) / portable_log(d.base) / (high - low), 0.0, 1.0);
    if (low <= 0 && high >= 0)
      return std::clamp(u + (up ? 0.5 : -0.5) * s_.perturb_factor, 0.0, 1.0);
    if (d.kind == axis::real)
      return std::clamp(((low + (high - low) * u) * by - low) / (high - low), 0.0, 1.0);
    double x = d.at(u).get<double>(), grown = x * by;
    x = grown > x ? std::max(std::ceil(grown), x + 1) : std::min(std::floor(grown), x - 1);
    return d.coordinate_of(std::clamp(x, low, high));
  }

  pbt_settings s_;
  std::shared_ptr<const space> domain_;
  std::unique_ptr<sampler> source_;
  std::vector<member> members_; ///< living members in order of creation
  std::uint64_t heirs_ = 0, exploits_ = 0;
};

} // namespace

pbt_settings read_pbt(section& in, const settings& common) {
  pbt_settings s;
  s.seed = common.seed;
  s.time_metric = common.time_metric;
  auto slots = common.max_concurrent > 0 ? common.max_concurrent : std::int64_t{8};
  auto fallback = in.has("max_trials") ? std::min(common.max_trials, slots) : slots;
  s.population = in.integer("population_size", fallback, 1, 1'000'000);
  s.max_time = in.number("max_time", 0, 0);
  auto rounds = in.integer("num_rounds", 10, 1);
  s.interval =
    in.number("interval", s.max_time > 0 ? std::max(1.0, s.max_time / static_cast<double>(rounds)) : 1, 0);
  if (const auto& length = in.member("length_per_round");
      !in.has("interval") && length.is_object() && length.size() == 1 && length.begin()->is_number())
    s.interval = length.begin()->get<double>();
  s.burn_in = in.number("burn_in", 0, 0);
  section replace(in.member("replace_function"), "searcher.replace_function", in.faults());
  section explore(in.member("explore_function"), "searcher.explore_function", in.faults());
  s.truncate_fraction =
    in.number("truncate_fraction", replace.number("truncate_fraction", 0.2, 0, 0.5), 0, 0.5);
  s.resample_probability =
    in.number("resample_probability", explore.number("resample_probability", 0.25, 0, 1), 0, 1);
  s.perturb_factor = in.number("perturb_factor", explore.number("perturb_factor", 0.2, 0, 1), 0, 1);
  return s;
}

std::unique_ptr<method> make_pbt(pbt_settings s, std::shared_ptr<const space> domain,
                                 std::unique_ptr<sampler> source) {
  return std::make_unique<pbt>(std::move(s), std::move(domain), std::move(source));
}

} // namespace troupe::searchers

#include "searchers/compat/compat_method.hpp"

namespace troupe::searchers {
namespace {

class compat_random final : public compat_method {
public:
  explicit compat_random(compat_random_plan plan) : plan_(plan) {}

  void start(compat_orders& out) override {
    auto n = plan_.max_concurrent > 0 ? std::min(plan_.max_trials, plan_.max_concurrent) : plan_.max_trials;
    while (n-- > 0)
      create(out);
  }
  void exited_early(ordinal, bool invalid, compat_orders&) override {
    if (invalid && plan_.replaces_invalid)
      --created_; // the exit that follows makes the replacement
  }
  void exited(ordinal, compat_orders& out) override {
    if (created_ < plan_.max_trials)
      create(out);
  }
  double progress(const compat_tally& tally) const override {
    return tally.known == 0 ? 0 : tally.reported / static_cast<double>(tally.known);
  }
  void persist(archive& ar) override { ar(created_); }

private:
  void create(compat_orders& out) {
    ++created_;
    if (plan_.over_grid)
      out.create_point(plan_.max_trials - created_);
    else
      out.create();
  }

  compat_random_plan plan_;
  std::uint64_t created_ = 0; ///< number of trials without those that are replaced because they are invalid
};

} // namespace

std::unique_ptr<compat_method> make_compat_random(compat_random_plan plan) {
  return std::make_unique<compat_random>(plan);
}

} // namespace troupe::searchers

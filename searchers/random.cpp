#include "searchers/sampler.hpp"

namespace troupe::searchers {
namespace {

/// The configuration of trial i depends only on the seed and i, never on the order of events.
class uniform final : public sampler {
public:
  uniform(std::shared_ptr<const space> domain, std::uint64_t seed)
      : domain_(std::move(domain)), seed_(seed) {}
  point propose(ordinal fresh) override { return domain_->sample(seed_, sample_stream, fresh); }
  bool independent() const override { return true; }

private:
  std::shared_ptr<const space> domain_;
  std::uint64_t seed_;
};

class plain final : public method {
public:
  plain(std::shared_ptr<const space> domain, std::unique_ptr<sampler> source)
      : domain_(std::move(domain)), source_(std::move(source)) {}

  proposal next(ordinal fresh, bool may_create) override {
    if (!may_create)
      return {};
    return start_new{domain_->assemble(source_->begin(fresh)), {}};
  }
  void reported(const report& r, orders&) override { source_->observe(r); }
  void left(ordinal trial, ending how) override { source_->left(trial, how); }
  bool independent() const override { return source_->independent(); }
  void persist(archive& ar) override { source_->persist(ar); }

private:
  std::shared_ptr<const space> domain_;
  std::unique_ptr<sampler> source_;
};

} // namespace

std::unique_ptr<sampler> make_uniform(std::shared_ptr<const space> domain, std::uint64_t seed) {
  return std::make_unique<uniform>(std::move(domain), seed);
}

std::unique_ptr<method> make_plain(std::shared_ptr<const space> domain, std::unique_ptr<sampler> source) {
  return std::make_unique<plain>(std::move(domain), std::move(source));
}

} // namespace troupe::searchers

#include "searchers/sampler.hpp"

namespace troupe::searchers {
namespace {

class grid final : public method {
public:
  explicit grid(std::shared_ptr<const space> domain)
      : domain_(std::move(domain)), size_(domain_->grid_size()) {}

  /// Trial i is point i, so nothing need be remembered; an invalid point is not replaced.
  proposal next(ordinal fresh, bool may_create) override {
    if (!may_create || fresh >= size_)
      return {};
    return start_new{domain_->grid_point(fresh), {}};
  }
  bool independent() const override { return true; }
  void persist(archive&) override {}

private:
  std::shared_ptr<const space> domain_;
  std::uint64_t size_;
};

} // namespace

std::unique_ptr<method> make_grid(std::shared_ptr<const space> domain) {
  return std::make_unique<grid>(std::move(domain));
}

} // namespace troupe::searchers

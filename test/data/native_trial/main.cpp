// A trial as a user writes it, outside the source tree: a line fitted by gradient descent. The batch is
// shared by the ranks.
#include <troupe/trial.hpp>

#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

namespace {

class line {
public:
  troupe::result<troupe::schedule> build(troupe::trial_context& context) {
    rate_ = context.hparam<double>("lr");
    batch_ = context.hparam<std::int64_t>("batch_size", 64);
    pause_ = std::chrono::microseconds(context.hparam<std::int64_t>("pause_us", 0));
    die_at_ = context.hparam<std::int64_t>("die_at", -1);
    group_ = &context.collective();
    const auto batches = context.hparam<std::int64_t>("batches", 200);
    return troupe::schedule{
        .batches = batches, .report_every = 1, .validate_every = 50, .checkpoint_every = 70};
  }

  troupe::result<troupe::metrics> train_batch(std::int64_t step) {
    if (pause_.count() > 0)
      std::this_thread::sleep_for(pause_);
    if (step == die_at_ && group_->rank() == group_->size() - 1 && !resumed_)
      std::abort();
    const std::int64_t mine = batch_ / group_->size();
    double gradient[2] = {0, 0}, loss = 0;
    for (std::int64_t i = 0; i < mine; ++i) {
      const double x = sample(step, group_->rank() * mine + i);
      const double fault = w_[0] * x + w_[1] - (3 * x - 1);
      gradient[0] += 2 * fault * x / double(mine);
      gradient[1] += 2 * fault / double(mine);
      loss += fault * fault / double(mine);
    }
    if (auto done = group_->all_reduce(gradient, troupe::reduce::average); !done)
      return done.error();
    for (int k = 0; k < 2; ++k)
      w_[k] -= rate_ * gradient[k];
    return {{"loss", loss}, {"w", w_[0]}};
  }

  troupe::result<troupe::metrics> validate() { return {{"distance", std::hypot(w_[0] - 3, w_[1] + 1)}}; }

  troupe::result<void> save(const std::filesystem::path& folder) {
    std::ofstream out(folder / "weights", std::ios::binary);
    out.write(reinterpret_cast<const char*>(w_), sizeof w_);
    if (!out.flush())
      return troupe::error{troupe::errc::io, "cannot write " + (folder / "weights").string()};
    return {};
  }

  troupe::result<void> load(const std::filesystem::path& folder) {
    resumed_ = true;
    std::ifstream in(folder / "weights", std::ios::binary);
    if (!in.read(reinterpret_cast<char*>(w_), sizeof w_))
      return troupe::error{troupe::errc::corrupt, "cannot read " + (folder / "weights").string()};
    return {};
  }

private:
  static double sample(std::int64_t step, std::int64_t i) { return std::sin(double(step * 977 + i * 131)); }

  troupe::collective* group_ = nullptr;
  double w_[2] = {0, 0}, rate_ = 0;
  std::int64_t batch_ = 0, die_at_ = -1;
  std::chrono::microseconds pause_{};
  bool resumed_ = false;
};

} // namespace

int main(int argc, char** argv) {
  return troupe::run_trial<line>(argc, argv);
}

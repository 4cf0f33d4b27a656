// A trial as a user writes it, outside the source tree: a line fitted by gradient descent. The batch is
// shared by the ranks.
#include <troupe/trial.hpp>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace {

/// A byte in a file of $MARKS for each rank, 1 while the rank is inside a collective operation: it stays when
/// the process is killed.
class mark {
public:
  explicit mark(int rank) {
    const char* folder = std::getenv("MARKS");
    if (!folder || rank < 0)
      return;
    const int file =
      open((std::string(folder) + "/" + std::to_string(rank)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0 && ftruncate(file, 1) == 0)
      if (void* at = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0); at != MAP_FAILED)
        byte_ = static_cast<volatile char*>(at);
    if (file >= 0)
      close(file);
  }
  void set(bool inside) {
    if (byte_)
      *byte_ = inside ? '1' : '0';
  }

private:
  volatile char* byte_ = nullptr;
};

class line {
public:
  troupe::result<troupe::schedule> build(troupe::trial_context& context) {
    rate_ = context.hparam<double>("lr");
    batch_ = context.hparam<std::int64_t>("batch_size", 64);
    pause_ = std::chrono::microseconds(context.hparam<std::int64_t>("pause_us", 0));
    die_at_ = context.hparam<std::int64_t>("die_at", -1);
    group_ = &context.collective();
    share_ = context.share(batch_);
    mark_ = mark(group_->rank());
    const auto batches = context.hparam<std::int64_t>("batches", 200);
    return troupe::schedule{
      .batches = batches, .report_every = 1, .validate_every = 50, .checkpoint_every = 70};
  }

  troupe::result<troupe::metrics> train_batch(std::int64_t step) {
    // The ranks take turns at being late, in stretches of 20 batches: the others wait for it inside the
    // collective.
    if (pause_.count() > 0 && step / 20 % group_->size() == group_->rank())
      std::this_thread::sleep_for(pause_);
    if (step == die_at_ && group_->rank() == group_->size() - 1 && !resumed_)
      std::abort();
    const auto mine = share_.count;
    double gradient[2] = {0, 0}, loss = 0;
    for (std::int64_t i = 0; i < mine; ++i) {
      const double x = sample(step, share_.first + i);
      const double fault = w_[0] * x + w_[1] - (3 * x - 1);
      gradient[0] += 2 * fault * x / double(mine) * share_.weight;
      gradient[1] += 2 * fault / double(mine) * share_.weight;
      loss += fault * fault / double(mine) * share_.weight;
    }
    mark_.set(true);
    if (auto done = group_->all_reduce(gradient, troupe::reduce::average); !done)
      return done.error();
    mark_.set(false);
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
  troupe::batch_share share_;
  mark mark_{-1};
  std::chrono::microseconds pause_{};
  bool resumed_ = false;
};

} // namespace

int main(int argc, char** argv) { return troupe::run_trial<line>(argc, argv); }

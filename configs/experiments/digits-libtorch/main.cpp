// A small network on scikit-learn's digits, in C++ with the libtorch of the installed PyTorch. On a GPU where
// there is one: the ranks average their gradients in its memory, through NCCL; else in the processors'.
//
// By hand: python3 ../digits-native/export.py digits.csv && DIGITS=digits.csv digits-libtorch --lr=0.1
#include <troupe/trial.hpp>

#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

constexpr std::int64_t pixels = 64, classes = 10, for_validation = 360;

class digits {
public:
  troupe::result<troupe::schedule> build(troupe::trial_context& context) {
    ranks_ = &context.collective();
    seed_ = context.seed();
    batch_ = context.hparam<std::int64_t>("batch_size", 64);
    if (batch_ < ranks_->size() || batch_ % ranks_->size() != 0)
      return troupe::error{troupe::errc::invalid, "batch_size " + std::to_string(batch_) +
                                                    " cannot be shared by " + std::to_string(ranks_->size()) +
                                                    " ranks equally"};
    torch::set_num_threads(1);
    torch::manual_seed(seed_);
    // Gradients in a GPU's memory need ranks that can reduce there.
    if (torch::cuda::is_available() && (ranks_->size() == 1 || std::string(ranks_->member()) == "nccl")) {
      const char* local = std::getenv("LOCAL_RANK");
      device_ = torch::Device(
        torch::kCUDA,
        static_cast<c10::DeviceIndex>(local ? std::atoi(local) % int(torch::cuda::device_count()) : 0));
    }
    if (ranks_->rank() == 0)
      std::cout << "training on " << device_ << ", " << ranks_->size() << " ranks" << std::endl;
    if (auto read = read_digits(); !read)
      return read.error();

    const std::int64_t hidden = context.hparam<std::int64_t>("hidden", 64);
    network_ = torch::nn::Sequential(torch::nn::Linear(pixels, hidden), torch::nn::ReLU(),
                                     torch::nn::Linear(hidden, classes));
    network_->to(device_);
    optimizer_ = std::make_unique<torch::optim::SGD>(
      network_->parameters(), torch::optim::SGDOptions(context.hparam<double>("lr", 0.1)).momentum(0.9));
    std::vector<std::span<float>> gradients; // the last layer's first, as the backward pass makes them
    auto parameters = network_->parameters();
    for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
      p->mutable_grad() = torch::zeros_like(*p); // autograd adds into this memory
      gradients.emplace_back(p->mutable_grad().data_ptr<float>(), static_cast<std::size_t>(p->numel()));
    }
    bucketer_.emplace(*ranks_, gradients);
    return troupe::schedule{.batches = context.hparam<std::int64_t>("batches", 600),
                            .report_every = 20,
                            .validate_every = 100,
                            .checkpoint_every = 200};
  }

  troupe::result<troupe::metrics> train_batch(std::int64_t step) {
    const auto rows = rows_of(step);
    optimizer_->zero_grad(/*set_to_none=*/false);
    const auto loss = torch::nn::functional::cross_entropy(network_->forward(images_.index_select(0, rows)),
                                                           labels_.index_select(0, rows));
    loss.backward();
    if (auto ok = bucketer_->finish(); !ok)
      return ok.error();
    optimizer_->step();
    return {{"loss", loss.item<double>()}};
  }

  troupe::result<troupe::metrics> validate() {
    torch::NoGradGuard no_gradients;
    const auto first = images_.size(0) - for_validation;
    const auto odds = network_->forward(images_.slice(0, first));
    const auto labels = labels_.slice(0, first);
    return {{"val_loss", torch::nn::functional::cross_entropy(odds, labels).item<double>()},
            {"val_accuracy", odds.argmax(1).eq(labels).to(torch::kDouble).mean().item<double>()}};
  }

  troupe::result<void> save(const std::filesystem::path& folder) {
    torch::save(network_, (folder / "network.pt").string()); // what it throws ends the run with its text
    torch::save(*optimizer_, (folder / "optimizer.pt").string());
    return {};
  }

  troupe::result<void> load(const std::filesystem::path& folder) {
    torch::NoGradGuard no_gradients;
    torch::nn::Sequential saved(
      torch::nn::Linear(pixels, network_[0]->as<torch::nn::Linear>()->options.out_features()),
      torch::nn::ReLU(),
      torch::nn::Linear(network_[0]->as<torch::nn::Linear>()->options.out_features(), classes));
    torch::load(saved, (folder / "network.pt").string(), device_);
    const auto from = saved->parameters(), to = network_->parameters();
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i].copy_(from[i]); // the optimizer and the bucketer know this memory
    torch::load(*optimizer_, (folder / "optimizer.pt").string(), device_);
    return {};
  }

private:
  // This rank's part of batch `step`: each epoch in an order of its own that only the seed and its number
  // decide, so that a run goes on in the middle of an epoch as if it had never stopped.
  torch::Tensor rows_of(std::int64_t step) {
    const std::int64_t rows = images_.size(0) - for_validation, mine = batch_ / ranks_->size();
    std::vector<std::int64_t> part;
    for (std::int64_t i = 0; i < mine; ++i) {
      const std::int64_t at = (step - 1) * batch_ + ranks_->rank() * mine + i;
      if (at / rows != epoch_) {
        epoch_ = at / rows;
        auto random = at::detail::createCPUGenerator(seed_ * 1'000'003 + static_cast<std::uint64_t>(epoch_));
        order_ = torch::randperm(rows, random, torch::kLong);
      }
      part.push_back(order_[at % rows].item<std::int64_t>());
    }
    return torch::tensor(part, torch::kLong).to(device_);
  }

  troupe::result<void> read_digits() {
    const char* named = std::getenv("DIGITS");
    const std::string file = named ? named : "digits.csv";
    std::ifstream in(file);
    std::vector<float> numbers;
    for (std::string line; std::getline(in, line);) {
      std::replace(line.begin(), line.end(), ',', ' ');
      std::istringstream fields(line);
      for (float x; fields >> x;)
        numbers.push_back(x);
      if (numbers.size() % (pixels + 1) != 0)
        return troupe::error{troupe::errc::corrupt,
                             file + ": a line has other than 65 numbers: " + line.substr(0, 40)};
    }
    const auto rows = static_cast<std::int64_t>(numbers.size()) / (pixels + 1);
    if (rows <= for_validation)
      return troupe::error{troupe::errc::not_found,
                           "no digits in " + file + " (DIGITS names the file): python3 export.py " + file};
    const auto all = torch::tensor(numbers).reshape({rows, pixels + 1});
    images_ = (all.slice(1, 0, pixels) / 16.0).contiguous().to(device_);
    labels_ = all.select(1, pixels).to(torch::kLong).to(device_);
    return {};
  }

  troupe::collective* ranks_ = nullptr;
  torch::Device device_ = torch::kCPU;
  torch::nn::Sequential network_{nullptr};
  std::unique_ptr<torch::optim::SGD> optimizer_;
  std::optional<troupe::gradient_bucketer<float>> bucketer_;
  torch::Tensor images_, labels_, order_;
  std::int64_t batch_ = 0, epoch_ = -1;
  std::uint64_t seed_ = 0;
};

} // namespace

int main(int argc, char** argv) { return troupe::run_trial<digits>(argc, argv); }

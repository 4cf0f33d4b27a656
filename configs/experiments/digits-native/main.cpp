// A small network on scikit-learn's digits, in C++ with Eigen. The ranks share each batch, and average their
// gradients while the backward pass still makes the next ones.
//
// By hand: python3 export.py digits.csv && DIGITS=digits.csv digits-native --lr=0.1
#include <troupe/trial.hpp>

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

namespace {

using Eigen::Index;
using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using vector = Eigen::RowVectorXd;

constexpr Index pixels = 64, classes = 10, for_validation = 360;

class digits {
public:
  troupe::result<troupe::schedule> build(troupe::trial_context& context) {
    ranks_ = &context.collective();
    rate_ = context.hparam<double>("lr", 0.1);
    momentum_ = context.hparam<double>("momentum", 0.9);
    batch_ = context.hparam<std::int64_t>("batch_size", 64);
    seed_ = context.seed();
    const Index hidden = Index(context.hparam<std::int64_t>("hidden", 64));
    if (batch_ < ranks_->size() || batch_ % ranks_->size() != 0)
      return troupe::error{troupe::errc::invalid, "batch_size " + std::to_string(batch_) +
                                                    " cannot be shared by " + std::to_string(ranks_->size()) +
                                                    " ranks equally"};
    if (auto read = read_digits(); !read)
      return read.error();

    std::mt19937_64 random(seed_);
    layers_[0] = layer(pixels, hidden, random);
    layers_[1] = layer(hidden, classes, random);
    const auto size = [](const auto& m) { return std::size_t(m.size()); };
    auto bucketer = troupe::gradient_bucketer<double>::make(
      *ranks_,
      {size(layers_[1].weight), size(layers_[1].bias), size(layers_[0].weight), size(layers_[0].bias)}, 4096);
    if (!bucketer)
      return bucketer.error();
    bucketer_.emplace(std::move(*bucketer));
    return troupe::schedule{.batches = context.hparam<std::int64_t>("batches", 600),
                            .report_every = 20,
                            .validate_every = 100,
                            .checkpoint_every = 200};
  }

  troupe::result<troupe::metrics> train_batch(std::int64_t step) {
    const auto rows = rows_of(step);
    const matrix x = images_(rows, Eigen::all);
    const matrix inner = (x * layers_[0].weight).rowwise() + layers_[0].bias;
    const matrix active = inner.cwiseMax(0.0);
    matrix fault = softmax((active * layers_[1].weight).rowwise() + layers_[1].bias);
    double loss = 0;
    for (Index i = 0; i < fault.rows(); ++i) {
      double& mine = fault(i, labels_[std::size_t(rows[std::size_t(i)])]);
      loss -= std::log(std::max(mine, 1e-300)) / double(fault.rows());
      mine -= 1;
    }
    fault /= double(fault.rows());

    gradient(0, layers_[1].weight).noalias() = active.transpose() * fault;
    gradient(1, layers_[1].bias) = fault.colwise().sum();
    if (auto ok = ready(0); !ok) // on its way while the first layer's are computed
      return ok.error();
    fault =
      ((fault * layers_[1].weight.transpose()).array() * (inner.array() > 0).cast<double>()).matrix().eval();
    gradient(2, layers_[0].weight).noalias() = x.transpose() * fault;
    gradient(3, layers_[0].bias) = fault.colwise().sum();
    if (auto ok = ready(2); !ok)
      return ok.error();
    if (auto ok = bucketer_->finish(); !ok)
      return ok.error();

    for (const std::size_t i : {0, 1}) {
      auto& l = layers_[i];
      l.weight_speed = momentum_ * l.weight_speed - rate_ * gradient(2 - 2 * i, l.weight);
      l.bias_speed = momentum_ * l.bias_speed - rate_ * gradient(3 - 2 * i, l.bias);
      l.weight += l.weight_speed;
      l.bias += l.bias_speed;
    }
    return {{"loss", loss}};
  }

  troupe::result<troupe::metrics> validate() {
    const Index first = images_.rows() - for_validation;
    const matrix inner = (images_.bottomRows(for_validation) * layers_[0].weight).rowwise() + layers_[0].bias;
    const matrix odds = softmax((inner.cwiseMax(0.0) * layers_[1].weight).rowwise() + layers_[1].bias);
    double loss = 0, right = 0;
    for (Index i = 0; i < for_validation; ++i) {
      Index best = 0;
      odds.row(i).maxCoeff(&best);
      const int label = labels_[std::size_t(first + i)];
      right += best == label;
      loss -= std::log(std::max(odds(i, label), 1e-300));
    }
    return {{"val_loss", loss / for_validation}, {"val_accuracy", right / for_validation}};
  }

  troupe::result<void> save(const std::filesystem::path& folder) {
    std::ofstream out(folder / "weights", std::ios::binary);
    each_number([&](double* x, std::streamsize n) { out.write(reinterpret_cast<const char*>(x), n * 8); });
    if (!out.flush())
      return troupe::error{troupe::errc::io, "cannot write " + (folder / "weights").string()};
    return {};
  }

  troupe::result<void> load(const std::filesystem::path& folder) {
    std::ifstream in(folder / "weights", std::ios::binary);
    each_number([&](double* x, std::streamsize n) { in.read(reinterpret_cast<char*>(x), n * 8); });
    if (!in || in.peek() != std::ifstream::traits_type::eof())
      return troupe::error{troupe::errc::corrupt,
                           (folder / "weights").string() + " is not a checkpoint of this network"};
    return {};
  }

private:
  struct dense {
    matrix weight, weight_speed;
    vector bias, bias_speed;
  };

  // Gradient `index` of the bucketer, of the shape of `like`.
  template <class M>
  Eigen::Map<M> gradient(std::size_t index, const M& like) {
    return Eigen::Map<M>(bucketer_->gradient(index).data(), like.rows(), like.cols());
  }

  static dense layer(Index from, Index to, std::mt19937_64& random) {
    dense l;
    l.weight.resize(from, to);
    const double reach = std::sqrt(6.0 / double(from));
    for (Index i = 0; i < l.weight.size();
         ++i) // not of std::uniform_real_distribution, which differs between libraries
      l.weight.data()[i] = reach * (double(random() >> 11) * 0x1p-52 - 1);
    l.bias = vector::Zero(to);
    l.weight_speed = matrix::Zero(from, to);
    l.bias_speed = l.bias;
    return l;
  }

  static matrix softmax(matrix x) {
    x.colwise() -= x.rowwise().maxCoeff().eval();
    x = x.array().exp().matrix().eval();
    x.array().colwise() /= x.rowwise().sum().eval().array();
    return x;
  }

  template <class F>
  void each_number(F f) {
    for (auto& l : layers_)
      for (matrix* m : {&l.weight, &l.weight_speed})
        f(m->data(), m->size());
    for (auto& l : layers_)
      for (vector* v : {&l.bias, &l.bias_speed})
        f(v->data(), v->size());
  }

  troupe::result<void> ready(std::size_t first) {
    for (std::size_t i = first; i < first + 2; ++i)
      if (auto ok = bucketer_->ready(i); !ok)
        return ok;
    return {};
  }

  // This rank's part of batch `step`: each epoch in an order of its own, which only the seed and its number
  // decide, so that a run goes on in the middle of an epoch as if it had never stopped.
  std::vector<Index> rows_of(std::int64_t step) {
    const std::int64_t rows = images_.rows() - for_validation;
    const std::int64_t mine = batch_ / ranks_->size();
    std::vector<Index> part;
    for (std::int64_t i = 0; i < mine; ++i) {
      const std::int64_t at = (step - 1) * batch_ + ranks_->rank() * mine + i;
      part.push_back(order_of(at / rows)[std::size_t(at % rows)]);
    }
    return part;
  }

  const std::vector<Index>& order_of(std::int64_t epoch) {
    if (epoch != epoch_) {
      epoch_ = epoch;
      order_.resize(std::size_t(images_.rows() - for_validation));
      std::iota(order_.begin(), order_.end(), 0);
      std::mt19937_64 random(seed_ * 0x9e3779b97f4a7c15u + std::uint64_t(epoch) + 1);
      for (std::size_t i = order_.size() - 1; i > 0; --i)
        std::swap(order_[i], order_[random() % (i + 1)]);
    }
    return order_;
  }

  troupe::result<void> read_digits() {
    const char* named = std::getenv("DIGITS");
    const std::string file = named ? named : "digits.csv";
    std::ifstream in(file);
    std::vector<double> numbers;
    for (std::string line; std::getline(in, line);) {
      std::replace(line.begin(), line.end(), ',', ' ');
      std::istringstream fields(line);
      for (double x; fields >> x;)
        numbers.push_back(x);
      if (numbers.size() % (pixels + 1) != 0)
        return troupe::error{troupe::errc::corrupt,
                             file + ": a line has other than 65 numbers: " + line.substr(0, 40)};
    }
    const Index rows = Index(numbers.size()) / (pixels + 1);
    if (rows <= for_validation)
      return troupe::error{troupe::errc::not_found,
                           "no digits in " + file + " (DIGITS names the file): python3 export.py " + file};
    const Eigen::Map<const matrix> all(numbers.data(), rows, pixels + 1);
    images_ = all.leftCols(pixels) / 16.0;
    for (Index i = 0; i < rows; ++i)
      labels_.push_back(int(all(i, pixels)));
    return {};
  }

  troupe::collective* ranks_ = nullptr;
  dense layers_[2];
  std::optional<troupe::gradient_bucketer<double>> bucketer_;
  matrix images_;
  std::vector<int> labels_;
  double rate_ = 0, momentum_ = 0;
  std::int64_t batch_ = 0, epoch_ = -1;
  std::uint64_t seed_ = 0;
  std::vector<Index> order_;
};

} // namespace

int main(int argc, char** argv) { return troupe::run_trial<digits>(argc, argv); }

#pragma once
// A trial as an ordinary C++ program.
//
//     class digits {
//     public:
//       troupe::result<troupe::schedule> build(troupe::trial_context& context);
//       troupe::result<troupe::metrics> train_batch(std::int64_t step);
//       troupe::result<troupe::metrics> validate();
//       troupe::result<void> save(const std::filesystem::path& folder);
//       troupe::result<void> load(const std::filesystem::path& folder);
//     };
//     int main(int argc, char** argv) { return troupe::run_trial<digits>(argc, argv); }
//
// Run by hand, the program trains alone: hyperparameters are flags, `--lr=0.1`; reports and checkpoints go to
// ./troupe-runs/NAME, and TROUPE_RESUME=NAME (or `latest`) goes on from the newest checkpoint. Run as the
// entrypoint of an experiment, it gets hyperparameters from the cluster, which also takes the metrics, keeps
// the checkpoints and says when to stop.

#include "workers/collective.hpp"
#include "workers/gradient_bucketer.hpp"

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Numbers with names: `return troupe::metrics{{"loss", loss}, {"accuracy", right / total}};`
class metrics {
public:
  using listed = std::pair<std::string, double>;
  metrics() = default;
  metrics(std::initializer_list<listed> of) : all_(of) {}
  void set(std::string name, double x); ///< replaces a number of the same name
  const std::vector<listed>& all() const { return all_; }

private:
  std::vector<listed> all_;
};

/// Another result type, which can also be returned as a list: `return {{"loss", loss}};`
template <>
class [[nodiscard]] result<metrics> {
public:
  result(metrics value) : value_(std::move(value)) {}
  result(std::initializer_list<metrics::listed> of) : value_(of) {}
  result(troupe::error why) : why_(std::move(why)) {}

  explicit operator bool() const { return !why_; }
  metrics& value() { return TROUPE_ASSERT(!why_), value_; }
  const metrics& value() const { return TROUPE_ASSERT(!why_), value_; }
  metrics& operator*() { return value(); }
  const metrics& operator*() const { return value(); }
  metrics* operator->() { return &value(); }
  const metrics* operator->() const { return &value(); }
  const troupe::error& error() const { return TROUPE_ASSERT(why_.has_value()), *why_; }

private:
  metrics value_;
  std::optional<troupe::error> why_;
};

/// How long a trial is, in batches of all ranks together. A `*_every` of 0 means: only at the end.
struct schedule {
  std::int64_t batches = 0;
  std::int64_t report_every = 10;    ///< training metrics: means of the batches since the last report
  std::int64_t validate_every = 0;   ///< also at the end
  std::int64_t checkpoint_every = 0; ///< also at the end, and where the run is asked to stop
};

/// A hyperparameter, which converts to its value. Where it is missing or has another type, it is false and
/// converts to T{}, and the trial ends with its error as soon as build() has returned.
template <class T>
class hyperparameter {
public:
  hyperparameter(result<T> found) : found_(std::move(found)) {}
  explicit operator bool() const requires(!std::same_as<T, bool>) { return bool(found_); }
  bool has_value() const { return bool(found_); }
  operator T() const { return value(); }
  T value() const { return found_ ? *found_ : T{}; }
  T operator*() const { return value(); }
  const T* operator->() const { return &*found_; }
  const troupe::error& error() const { return found_.error(); }

private:
  result<T> found_;
};

/// One rank's part of a batch that all ranks share, so that the batch stays the same for any number of ranks.
struct batch_share {
  std::int64_t first = 0,
               count = 0; ///< samples [first, first + count) of the batch; parts differ by one sample at most
  double weight = 1; ///< weight of the rank's mean: the weighted means, averaged over the ranks, give the
                     ///< mean over the batch
};
batch_share share_of(std::int64_t batch, int rank, int size);

/// What the program gets from Troupe.
class trial_context {
public:
  virtual ~trial_context() = default;

  /// T is std::string, double, std::int64_t or bool. `name` may be a path into maps: "optimizer.lr". A whole
  /// number is also a double; on the command line any text is a string.
  template <class T>
  hyperparameter<T> hparam(std::string_view name);
  /// Takes `otherwise` where the hyperparameter is not given.
  template <class T>
  T hparam(std::string_view name, T otherwise);

  /// The group of all ranks of the trial; a trial that runs alone has a group of one rank.
  virtual troupe::collective& collective() = 0;
  int rank() { return collective().rank(); }
  int size() { return collective().size(); }
  /// This rank's share of a batch of `batch` samples over all ranks. Ask for it in build(): the number of
  /// ranks may change between two builds, even within a run.
  batch_share share(std::int64_t batch) { return share_of(batch, rank(), size()); }

  /// The trial's seed, the same on all ranks: from the cluster, or by hand from --seed; 0 without one.
  virtual std::uint64_t seed() const = 0;

protected:
  virtual result<std::string> find_text(std::string_view name) = 0;
  virtual result<double> find_double(std::string_view name) = 0;
  virtual result<std::int64_t> find_integer(std::string_view name) = 0;
  virtual result<bool> find_bool(std::string_view name) = 0;
  virtual bool given(std::string_view name) const = 0;
};

template <class T>
hyperparameter<T> trial_context::hparam(std::string_view name) {
  static_assert(std::same_as<T, std::string> || std::same_as<T, double> || std::same_as<T, std::int64_t> ||
                  std::same_as<T, bool>,
                "a hyperparameter is a std::string, double, std::int64_t or bool");
  if constexpr (std::same_as<T, std::string>)
    return find_text(name);
  else if constexpr (std::same_as<T, double>)
    return find_double(name);
  else if constexpr (std::same_as<T, bool>)
    return find_bool(name);
  else
    return find_integer(name);
}

template <class T>
T trial_context::hparam(std::string_view name, T otherwise) {
  return given(name) ? hparam<T>(name).value() : otherwise;
}

/// The interface of a trial: write a class with these functions, or derive from this one; it needs a
/// constructor without arguments.
/// All functions run on each rank, on one thread, and may use the collective. The exception is save(): only
/// rank 0 calls it, and load() reads on each rank what it wrote. Metrics are averaged over the ranks, which
/// must name the same ones. An error or an exception ends the trial's run on all ranks; the cluster starts it
/// again from the last checkpoint.
class trial_program {
public:
  virtual ~trial_program() = default;
  /// Called at every start; the collective can be used. load() follows, where there is a checkpoint.
  virtual result<schedule> build(trial_context& context) = 0;
  virtual result<metrics> train_batch(std::int64_t step) = 0; ///< `step` counts from 1
  virtual result<metrics> validate() = 0;
  /// `folder` exists and is empty. It is synced to disk afterwards. Troupe keeps the step.
  virtual result<void> save(const std::filesystem::path& folder) = 0;
  virtual result<void> load(const std::filesystem::path& folder) = 0;
};

template <class T>
concept trial_class = requires(T t, trial_context& context, const std::filesystem::path& folder) {
  { t.build(context) } -> std::convertible_to<result<schedule>>;
  { t.train_batch(std::int64_t{}) } -> std::convertible_to<result<metrics>>;
  { t.validate() } -> std::convertible_to<result<metrics>>;
  { t.save(folder) } -> std::convertible_to<result<void>>;
  { t.load(folder) } -> std::convertible_to<result<void>>;
};

/// Returns the exit code: 0 where the trial is complete or was asked to stop, 1 where it failed, 2 for a bad
/// command line.
int run_trial_program(int argc, char** argv, const std::function<std::unique_ptr<trial_program>()>& make);

template <trial_class T>
int run_trial(int argc, char** argv) {
  struct program final : trial_program {
    T trial;
    result<schedule> build(trial_context& context) override { return trial.build(context); }
    result<metrics> train_batch(std::int64_t step) override { return trial.train_batch(step); }
    result<metrics> validate() override { return trial.validate(); }
    result<void> save(const std::filesystem::path& folder) override { return trial.save(folder); }
    result<void> load(const std::filesystem::path& folder) override { return trial.load(folder); }
  };
  return run_trial_program(argc, argv, [] { return std::make_unique<program>(); });
}

} // namespace troupe

#pragma once
// Hyperparameter search by ask and tell, without a cluster: only the searchers, on the calling thread.
//
//   auto study = troupe::study::make(
//     {.searcher = R"({"name": "tpe", "max_trials": 50})",
//      .metric = "loss",
//      .space = {{"lr", troupe::parameter::json{
//                         R"({"type": "log", "base": 10, "minval": -5, "maxval": -1})"}}}});
//   while (auto next = study->ask()) {
//     study->tell(next->trial, {{"loss", train(next->number("lr"))}});
//     study->finish(next->trial);
//   }
//   study->best()->hparams;

#include "troupe/embed.hpp"

namespace troupe {
inline namespace v0 {

struct study_options {
  /// The `searcher` section of an experiment's configuration as YAML or JSON; "random" is short for {"name":
  /// "random"}.
  std::string searcher = "random";
  std::string metric = "loss";
  bool smaller_is_better = true;
  std::string time_metric{}; ///< shows how far a trial is, for searchers that stop trials early
  int max_trials = 0;        ///< 0: as `searcher` says
  parameters space{};        ///< constants, or ranges as JSON text
  std::uint64_t seed = 1;    ///< the same seed and answers give the same trials
};

struct proposal {
  std::string trial;
  std::vector<std::pair<std::string, std::string>>
    hparams;            ///< name and value as JSON, in the order of their names
  std::string from;     ///< the trial from whose checkpoint this one goes on; empty: none
  bool resumed = false; ///< whether the trial was paused and goes on
  /// NaN where it is missing or not a number.
  double number(std::string_view name) const;
  /// A text without its quotes; empty where it is missing.
  std::string text(std::string_view name) const;
};

/// What to do with a trial after a report.
enum class verdict {
  go_on,
  stop, ///< the trial need not be trained further; finish() it
  pause ///< keep its checkpoint; ask() may give it again
};

struct study_best {
  std::string trial;
  double metric = 0;
  std::vector<std::pair<std::string, std::string>> hparams;
};

/// Not thread-safe. Deterministic: the options and what it was told, in order, decide what it proposes.
class study {
public:
  /// Fails with errc::invalid, and names every fault of the searcher or the space.
  static result<study> make(const study_options& options);
  study(study&&) noexcept;
  study& operator=(study&&) noexcept;
  ~study();

  /// The next trial to train; nothing where the search is over, or waits for reports of running trials.
  std::optional<proposal> ask();
  /// Reports a validation of a running trial. With a time metric, its value must be among the metrics. Fails
  /// with errc::not_found for a trial that was never asked for; a trial that has ended changes nothing. NaN
  /// ranks last.
  result<verdict> tell(std::string_view trial, const std::vector<std::pair<std::string, double>>& metrics);
  /// Says that the trial ended: `failed` where it ended by itself and without a good reason.
  result<void> finish(std::string_view trial, bool failed = false);
  bool over() const;       ///< whether no trial will come and none runs
  double progress() const; ///< from 0 to 1
  std::optional<study_best> best() const;

  /// Bytes from which `load`, with the same options, goes on.
  std::string save() const;
  static result<study> load(const study_options& options, std::string_view bytes);

private:
  struct inside;
  explicit study(std::unique_ptr<inside> x);
  std::unique_ptr<inside> inside_;
};

} // namespace v0
} // namespace troupe

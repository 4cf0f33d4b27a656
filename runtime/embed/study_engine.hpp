#pragma once
// The layer between <troupe/study.hpp> and the searchers. It uses types of neither, as engine.hpp.

#include "runtime/embed/engine.hpp"

#include <deque>
#include <map>
#include <set>

namespace troupe::embedding {

struct asked {
  std::string trial, hparams_json, from;
  bool resumed = false;
};
enum class advice { go_on, stop, pause };

/// A search and the trials that it has created. Not thread-safe.
class study_engine {
public:
  struct options {
    std::string searcher, metric, time_metric, space_json; ///< `searcher` is a name, YAML or JSON
    bool smaller_is_better = true;
    int max_trials = 0;
    std::uint64_t seed = 1;
    std::string snapshot; ///< empty: a new study
  };
  static std::unique_ptr<study_engine> make(const options& how, fault& why);
  virtual ~study_engine() = default;

  virtual std::optional<asked> ask() = 0;
  virtual advice tell(const std::string& trial, const named_numbers& metrics, fault& why) = 0;
  virtual fault finish(const std::string& trial, bool failed) = 0;
  virtual bool over() const = 0;
  virtual double progress() const = 0;
  virtual bool best(std::string& trial, double& metric, std::string& hparams_json) const = 0;
  virtual std::string save() const = 0;
};

/// The members of a JSON object, values as JSON text.
std::vector<std::pair<std::string, std::string>> members_of(const std::string& json);
/// The text in a JSON string; nothing where it is not a string.
std::optional<std::string> text_in(const std::string& json);

} // namespace troupe::embedding

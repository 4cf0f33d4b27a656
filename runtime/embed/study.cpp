#include "runtime/embed/troupe/study.hpp"

#include "runtime/embed/convert.hpp"
#include "runtime/embed/json_text.hpp"
#include "runtime/embed/study_engine.hpp"

#include <cmath>

namespace troupe {
inline namespace v0 {

using embedding::fault;
using embedding::study_engine;

struct study::inside {
  std::unique_ptr<study_engine> held;
};

namespace {

const std::string* member(const std::vector<std::pair<std::string, std::string>>& of, std::string_view name) {
  for (const auto& [key, json] : of)
    if (key == name)
      return &json;
  return nullptr;
}

} // namespace

double proposal::number(std::string_view name) const {
  const auto* json = member(hparams, name);
  if (!json || json->empty())
    return std::nan("");
  char* end = nullptr;
  const double x = std::strtod(json->c_str(), &end);
  return *end == '\0' ? x : std::nan("");
}

std::string proposal::text(std::string_view name) const {
  const auto* json = member(hparams, name);
  return json ? embedding::text_in(*json).value_or("") : std::string();
}

study::study(std::unique_ptr<inside> x) : inside_(std::move(x)) {}
study::study(study&&) noexcept = default;
study& study::operator=(study&&) noexcept = default;
study::~study() = default;

result<study> study::make(const study_options& options) { return load(options, {}); }

result<study> study::load(const study_options& options, std::string_view bytes) {
  try {
    study_engine::options how;
    how.searcher = options.searcher;
    how.metric = options.metric;
    how.time_metric = options.time_metric;
    how.smaller_is_better = options.smaller_is_better;
    how.max_trials = options.max_trials;
    how.seed = options.seed;
    how.snapshot = bytes;
    for (const auto& [name, x] : options.space)
      how.space_json += (how.space_json.empty() ? "{" : ",") + embedding::quoted(name) + ":" + text_of(x);
    if (!how.space_json.empty())
      how.space_json += "}";
    fault why;
    auto held = study_engine::make(how, why);
    if (!held)
      return to_error(why);
    return study{std::make_unique<inside>(inside{std::move(held)})};
  } catch (const std::exception& thrown) {
    return error{errc::internal, thrown.what(), ""};
  }
}

std::optional<proposal> study::ask() {
  auto next = inside_->held->ask();
  if (!next)
    return {};
  return proposal{next->trial, embedding::members_of(next->hparams_json), next->from, next->resumed};
}

result<verdict> study::tell(std::string_view trial,
                            const std::vector<std::pair<std::string, double>>& metrics) {
  try {
    fault why;
    const auto advice = inside_->held->tell(std::string(trial), metrics, why);
    if (why)
      return to_error(why);
    return advice == embedding::advice::stop    ? verdict::stop
           : advice == embedding::advice::pause ? verdict::pause
                                                : verdict::go_on;
  } catch (const std::exception& thrown) {
    return error{errc::internal, thrown.what(), ""};
  }
}

result<void> study::finish(std::string_view trial, bool failed) {
  try {
    if (auto why = inside_->held->finish(std::string(trial), failed))
      return to_error(why);
    return {};
  } catch (const std::exception& thrown) {
    return error{errc::internal, thrown.what(), ""};
  }
}

bool study::over() const { return inside_->held->over(); }
double study::progress() const { return inside_->held->progress(); }

std::optional<study_best> study::best() const {
  study_best out;
  std::string hparams;
  if (!inside_->held->best(out.trial, out.metric, hparams))
    return {};
  out.hparams = embedding::members_of(hparams);
  return out;
}

std::string study::save() const { return inside_->held->save(); }

} // namespace v0
} // namespace troupe

#include "runtime/embed/study_engine.hpp"

#include "model/config/document.hpp"
#include "model/config/experiment_config.hpp"
#include "searchers/searcher.hpp"

#include <cmath>

namespace troupe::embedding {
namespace {

using namespace searchers;

constexpr int snapshot_version = 1;

fault fault_of(const error& why) { return {name(why.code), why.what, ""}; }

class running_study final : public study_engine {
public:
  running_study(std::unique_ptr<searcher> search, std::string metric, bool smaller_is_better)
      : search_(std::move(search)), metric_(std::move(metric)), smaller_(smaller_is_better) {}

  fault begin() {
    fault why;
    feed(search_started{}, why);
    return why;
  }

  std::optional<asked> ask() override {
    if (queue_.empty())
      return {};
    auto next = std::move(queue_.front());
    queue_.pop_front();
    trials_[next.trial].state = standing::running;
    return next;
  }

  advice tell(const std::string& trial, const named_numbers& metrics, fault& why) override {
    auto* t = running(trial, why);
    if (!t)
      return advice::stop;
    auto numbers = value::object();
    for (const auto& [name, x] : metrics)
      numbers[name] = x;
    if (auto at = numbers.find(metric_);
        at != numbers.end() && !std::isnan(at->get<double>()) &&
        (best_.empty() || (smaller_ ? at->get<double>() < best_metric_ : at->get<double>() > best_metric_))) {
      best_ = trial;
      best_metric_ = at->get<double>();
    }
    feed(trial_validated{trial, std::move(numbers)}, why);
    auto& now = trials_[trial];
    return now.state == standing::stopped  ? advice::stop
           : now.state == standing::paused ? advice::pause
                                           : advice::go_on;
  }

  fault finish(const std::string& trial, bool failed) override {
    fault why;
    auto at = trials_.find(trial);
    if (at == trials_.end())
      return unknown(trial);
    if (at->second.state == standing::ended)
      return {};
    const bool waits = at->second.state == standing::queued;
    if (waits)
      std::erase_if(queue_, [&](const asked& x) { return x.trial == trial; });
    at->second.state = standing::ended;
    if (failed)
      feed(trial_exited_early{trial, exit_reason::errored}, why);
    if (!why)
      feed(trial_exited{trial}, why);
    return why;
  }

  bool over() const override {
    if (!queue_.empty())
      return false;
    for (const auto& [key, t] : trials_)
      if (t.state == standing::running || t.state == standing::stopped ||
          (t.state == standing::paused && !shut_))
        return false;
    return true;
  }
  double progress() const override { return search_->progress(); }

  bool best(std::string& trial, double& metric, std::string& hparams_json) const override {
    if (best_.empty())
      return false;
    trial = best_;
    metric = best_metric_;
    hparams_json = trials_.at(best_).hparams;
    return true;
  }

  std::string save() const override {
    auto trials = value::array(), queue = value::array();
    for (const auto& [key, t] : trials_)
      trials.push_back({key, static_cast<int>(t.state), t.hparams});
    for (const auto& one : queue_)
      queue.push_back({one.trial, one.from, one.resumed});
    const auto snapshot = search_->snapshot();
    return to_msgpack(
      {{"version", snapshot_version},
       {"trials", trials},
       {"queue", queue},
       {"shut", shut_},
       {"best", best_},
       {"metric", best_metric_},
       {"search", value::binary(std::vector<std::uint8_t>(snapshot.begin(), snapshot.end()))}});
  }

  void restore(const value& from) {
    for (const auto& one : from.at("trials"))
      trials_[one.at(0)] = {static_cast<standing>(one.at(1).get<int>()), one.at(2)};
    for (const auto& one : from.at("queue"))
      queue_.push_back({one.at(0), trials_.at(one.at(0)).hparams, one.at(1), one.at(2)});
    shut_ = from.at("shut");
    best_ = from.at("best");
    best_metric_ = from.at("metric");
  }

private:
  enum class standing { queued, running, stopped, paused, ended };
  struct trial {
    standing state = standing::queued;
    std::string hparams;
  };

  static fault unknown(const std::string& trial) {
    return {"not_found", "the study has no trial '" + trial.substr(0, 100) + "'",
            "tell of those that ask() gave"};
  }

  /// The running trial of that key. Null for one that has ended, or, with a fault, for an unknown one.
  trial* running(const std::string& key, fault& why) {
    auto at = trials_.find(key);
    if (at == trials_.end() || at->second.state == standing::queued)
      return why = unknown(key), nullptr;
    return at->second.state == standing::running ? &at->second : nullptr;
  }

  void feed(const search_event& event, fault& why) {
    auto actions = search_->apply(event);
    if (!actions) {
      why = fault_of(actions.error());
      return;
    }
    for (const auto& action : *actions)
      std::visit([this](const auto& x) { on(x); }, action);
  }

  void on(const create_trial& x) {
    trials_[x.trial] = {standing::queued, to_json(x.hparams)};
    queue_.push_back({x.trial, to_json(x.hparams), "", false});
  }
  void on(const stop_trial& x) { move(x.trial, standing::stopped); }
  void on(const pause_trial& x) { move(x.trial, standing::paused); }
  void on(const resume_trial& x) {
    auto& t = trials_[x.trial];
    if (t.state != standing::paused)
      return;
    t.state = standing::queued;
    queue_.push_back({x.trial, t.hparams, x.trial, true});
  }
  void on(const perturb_trial& x) {
    auto& t = trials_[x.trial];
    t = {standing::queued, to_json(x.hparams)};
    queue_.push_back({x.trial, t.hparams, x.source, true});
  }
  void on(const shut_down&) { shut_ = true; }
  void move(const std::string& key, standing to) {
    auto& t = trials_[key];
    if (t.state == standing::queued)
      std::erase_if(queue_, [&](const asked& one) { return one.trial == key; });
    if (t.state != standing::ended)
      t.state = to;
  }

  std::unique_ptr<searcher> search_;
  const std::string metric_;
  const bool smaller_;
  std::map<std::string, trial> trials_;
  std::deque<asked> queue_;
  bool shut_ = false;
  std::string best_;
  double best_metric_ = 0;
};

/// The two sections, completed and checked like those of an experiment.
value sections_of(const study_engine::options& how, fault& why) {
  auto read = config::read_document(how.searcher, "searcher");
  if (!read.faults.empty())
    return why = {"invalid", config::render(read.faults.front(), how.searcher), ""}, value();
  auto section = config::to_value(read.root);
  if (section.is_string())
    section = {{"name", section}};
  if (!section.is_object())
    return why = {"invalid", "searcher is neither a name nor a mapping", "searcher = \"tpe\""}, value();
  section.emplace("metric", how.metric);
  section.emplace("smaller_is_better", how.smaller_is_better);
  if (!how.time_metric.empty())
    section.emplace("time_metric", how.time_metric);
  if (how.max_trials > 0)
    section["max_trials"] = how.max_trials;
  auto space = parse_json(how.space_json.empty() ? "{}" : how.space_json);
  if (!space)
    return why = {"invalid", "space: " + space.error().what,
                  "a range is JSON: {\"type\": \"double\", \"minval\": 0, \"maxval\": 1}"},
           value();
  const auto text = to_json(
    {{"name", "study"}, {"entrypoint", "none"}, {"searcher", section}, {"hyperparameters", *space}}, 2);
  auto whole = config::load_experiment(text, "study", config::level::complete);
  for (const auto& one : whole.faults) {
    why.code = "invalid";
    why.message +=
      (why.message.empty() ? "" : "\n") + (one.path.empty() ? "" : one.path + ": ") + one.message;
    if (why.hint.empty())
      why.hint = one.hint;
  }
  return why ? value() : whole.config;
}

} // namespace

std::unique_ptr<study_engine> study_engine::make(const options& how, fault& why) {
  auto config = sections_of(how, why);
  if (why)
    return nullptr;
  const auto& section = config.at("searcher");
  value kept;
  std::string bytes;
  if (!how.snapshot.empty()) {
    auto read = parse_msgpack(how.snapshot);
    if (!read || !read->is_object() || read->value("version", 0) != snapshot_version ||
        !read->contains("search"))
      return why = {"corrupt", "these bytes are not a saved study of this version", ""}, nullptr;
    kept = std::move(*read);
    const auto& inner = kept["search"].get_binary();
    bytes.assign(inner.begin(), inner.end());
  }
  auto made = how.snapshot.empty()
                ? make_searcher(section, config.at("hyperparameters"), how.seed)
                : load_searcher(section, config.at("hyperparameters"), how.seed, search_mode::native, bytes);
  if (!made)
    return why = fault_of(made.error()), nullptr;
  auto out = std::make_unique<running_study>(std::move(*made), section.value("metric", how.metric),
                                             section.value("smaller_is_better", how.smaller_is_better));
  if (how.snapshot.empty())
    why = out->begin();
  else
    try {
      out->restore(kept);
    } catch (const nlohmann::json::exception&) {
      why = {"corrupt", "these bytes are not a saved study of this version", ""};
    } catch (const std::out_of_range&) {
      why = {"corrupt", "these bytes are not a saved study of this version", ""};
    }
  return why ? nullptr : std::move(out);
}

std::vector<std::pair<std::string, std::string>> members_of(const std::string& json) {
  std::vector<std::pair<std::string, std::string>> out;
  if (auto x = parse_json(json); x && x->is_object())
    for (const auto& [key, one] : x->items())
      out.emplace_back(key, to_json(one));
  return out;
}

std::optional<std::string> text_in(const std::string& json) {
  auto x = parse_json(json);
  return x && x->is_string() ? std::optional(x->get<std::string>()) : std::nullopt;
}

} // namespace troupe::embedding

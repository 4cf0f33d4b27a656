#include "runtime/api/search_story.hpp"

#include "model/names.hpp"
#include "runtime/api/shapes.hpp"
#include "searchers/rung_book.hpp"
#include "searchers/rung_sentence.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace troupe::api {
namespace {

searchers::search_event event_of(const search_stepped& x, const std::string& key) {
  switch (x.input) {
  case search_input::started:
    return searchers::search_started{};
  case search_input::validated:
    return searchers::trial_validated{key, x.metrics};
  case search_input::exited_early:
    return searchers::trial_exited_early{key, static_cast<searchers::exit_reason>(x.reason)};
  case search_input::exited:
    return searchers::trial_exited{key};
  case search_input::checkpointed:
    return searchers::trial_checkpointed{key, x.time, x.checkpoint};
  case search_input::ordered:
    return searchers::search_ordered{x.metrics};
  case search_input::continued: {
    searchers::search_continued event;
    for (const auto& one : x.metrics)
      event.trials.push_back(one.get<std::string>());
    return event;
  }
  }
  return searchers::search_started{};
}

/// How far a trial has come, and what the search decided about it.
struct walk {
  std::size_t bracket = 0;
  std::map<std::size_t, double> passed; ///< metric at each rung that the trial reached
  std::map<std::size_t, double> bounds; ///< by rung: the bound at the moment of the trial's decision
  std::optional<trial_stop_decided> stop;
  bool exited = false, paused = false;
};

/// Describes the event on which the search made a decision.
std::string occasion(const search_stepped& x) {
  const auto trial = "trial " + to_string(x.trial);
  switch (x.input) {
  case search_input::started:
    return "the search begins";
  case search_input::validated:
    return trial + " has a new validation";
  case search_input::exited_early:
    return trial + " ended early";
  case search_input::exited:
    return trial + " has ended";
  case search_input::checkpointed:
    return trial + " has a new checkpoint";
  case search_input::ordered:
    return "its driver ordered it";
  case search_input::continued:
    return "the experiment is continued";
  }
  return {};
}

class story {
public:
  story(const experiment_row& row, const storage::reader& storage) : row_(row), storage_(storage) {
    const auto config = row.config->is_object() ? row.config.get() : value::object();
    section_ = config.value("searcher", value::object());
    const auto seed = config.value("reproducibility", value::object()).value("experiment_seed", value());
    auto made = searchers::make_searcher(section_, config.value("hyperparameters", value::object()),
                                         seed.is_number_unsigned() ? seed.get<std::uint64_t>() : 0);
    if (made)
      searcher_ = std::move(*made);
    if (searcher_)
      take_brackets(searcher_->brackets());
    if (auto time = section_.find("time_metric"); time != section_.end() && time->is_string())
      time_metric_ = time->get<std::string>();
  }

  result<value> tell() {
    auto stored = storage_.facts_of(entity(row_.id));
    if (!stored)
      return stored.error();
    std::uint64_t number = 0;
    for (const auto& bytes : *stored) {
      ++number;
      auto fact = decode_as<experiment_fact>(bytes);
      if (!fact)
        return fact.error();
      if (auto* changed = std::get_if<experiment_changed>(&*fact))
        add({{"what", std::string(name(changed->state))}, {"why", changed->why}}, number, changed->at);
      if (auto* step = std::get_if<search_stepped>(&*fact))
        take(*step, number);
    }
    place_trials();
    for (auto& one : decisions_)
      if (one.at("what") == "stopped" && at_full_length(walks_.at({one.at("trial").get<std::uint64_t>()})))
        one["what"] = "finished";
    return value{{"searcher", section_.value("name", value(""))},
                 {"metric", row_.metric},
                 {"timeMetric", time_metric_},
                 {"smallerIsBetter", row_.smaller_is_better},
                 {"brackets", brackets_shape()},
                 {"decisions", std::move(decisions_)}};
  }

private:
  /// What the real searcher says about its rungs; null where it says nothing.
  const searchers::rung_book* book_of() const {
    return dynamic_cast<const searchers::rung_book*>(searcher_.get());
  }

  void take_brackets(std::vector<searchers::bracket> all) {
    brackets_ = std::move(all);
    lengths_.clear();
    for (auto& b : brackets_) {
      b.units.erase(std::unique(b.units.begin(), b.units.end()), b.units.end());
      lengths_.insert(b.units.begin(), b.units.end());
    }
  }

  void add(value what, std::uint64_t number, time_point at) {
    what["sequence"] = number;
    what["at"] = to_rfc3339(at);
    decisions_.push_back(std::move(what));
  }

  /// Notes which lengths of rungs a trial has reached, and adds the decisions at the rungs of its own
  /// bracket.
  void validated(const search_stepped& x, std::uint64_t fact_number) {
    auto number = [&](const std::string& name) -> std::optional<double> {
      auto it = x.metrics.is_object() ? x.metrics.find(name) : x.metrics.end();
      return it == x.metrics.end() ? std::nullopt : number_in(*it);
    };
    const auto metric = number(row_.metric);
    const auto time =
      time_metric_.empty() ? std::optional(static_cast<double>(++reports_[x.trial])) : number(time_metric_);
    if (!time)
      return;
    std::set<std::int64_t> fresh; // lengths of rungs that the trial has not reached before
    for (const auto units : lengths_)
      if (*time >= static_cast<double>(units) &&
          reached_[x.trial]
            .try_emplace(units, metric.value_or(std::numeric_limits<double>::quiet_NaN()))
            .second)
        fresh.insert(units);
    if (fresh.empty())
      return;
    const auto own = bracket_of(x.trial);
    for (std::size_t k = 0; own < brackets_.size() && k < brackets_[own].units.size(); ++k)
      if (fresh.contains(brackets_[own].units[k]))
        went_on(x, own, k, fact_number);
  }

  /// Adds the decision that the trial goes on from this rung, which it has just reached, if it does.
  void went_on(const search_stepped& x, std::size_t bracket, std::size_t rung, std::uint64_t number) {
    if (walks_[x.trial].stop) // the search has dropped a report that came late
      return;
    const bool held = std::find(x.paused.begin(), x.paused.end(), x.trial) != x.paused.end();
    const bool stopped = std::any_of(x.stopped.begin(), x.stopped.end(), [&](const auto& one) {
      return one.trial == x.trial && (one.rung < 0 || static_cast<std::size_t>(one.rung) <= rung);
    });
    if (held || stopped || rung + 1 >= brackets_[bracket].units.size())
      return;
    if (auto why = against_bound(x.trial, bracket, rung); why.is_object()) {
      walks_[x.trial].bounds[rung] = why["needed"].get<double>();
      why.update({{"what", "went on"}, {"trial", x.trial.value}});
      add(std::move(why), number, x.at);
    }
  }

  /// The rung of which the trial is among the best now, with the bound that the real searcher has there;
  /// null where it has none.
  value against_bound(trial_id trial, std::size_t bracket, std::size_t rung) {
    const auto* book = book_of();
    const auto needed = book ? book->bound(bracket, rung) : std::nullopt;
    if (!needed || !std::isfinite(*needed)) // infinite: nobody has reported a number there
      return {};
    const auto units = brackets_[bracket].units[rung];
    const auto got = reached_[trial].find(units);
    searchers::report r;
    r.as_given = got == reached_[trial].end() ? std::numeric_limits<double>::quiet_NaN() : got->second;
    newest_[{bracket, rung}] = *needed;
    const auto length = static_cast<double>(units);
    return {{"rung", rung},
            {"units", length},
            {"metric", r.as_given},
            {"needed", *needed},
            {"why", searchers::beaten(static_cast<int>(rung), length, time_metric_, r, *needed).why}};
  }

  /// Adds the highest rung that the trial has reached, with the value there and the bound now. Returns the
  /// rung; nothing where the trial has reached none.
  std::optional<std::size_t> add_rung(value& to, trial_id trial, const std::string& before) {
    const auto bracket = bracket_of(trial);
    if (bracket >= brackets_.size())
      return {};
    const auto& units = brackets_[bracket].units;
    const auto reached = static_cast<std::size_t>(std::count_if(
      units.begin(), units.end(), [&](auto length) { return reached_[trial].contains(length); }));
    if (reached == 0)
      return {};
    if (auto why = against_bound(trial, bracket, reached - 1); why.is_object()) {
      why["why"] = before + why["why"].get<std::string>();
      to.update(why);
    }
    return reached - 1;
  }

  /// The bracket of the trial; as many as there are brackets where nobody knows it.
  std::size_t bracket_of(trial_id trial) const {
    const auto* book = book_of();
    const auto at = ordinals_.find(trial);
    return book && at != ordinals_.end() ? book->bracket_of(at->second) : brackets_.size();
  }

  void take(const search_stepped& x, std::uint64_t number) {
    for (const auto& t : x.created) // the first event of a trial
      keys_[t.trial] = t.key;
    if (searcher_) // the real searcher assigns the brackets
      if (auto fine = searcher_->apply(event_of(x, x.trial ? keys_[x.trial] : "")); !fine)
        searcher_.reset();
    if (x.input == search_input::validated)
      validated(x, number);
    if (x.input == search_input::exited)
      walks_[x.trial].exited = true;
    for (const auto& t : x.created) {
      walks_[t.trial];
      ordinals_.emplace(t.trial, static_cast<searchers::ordinal>(order_.size()));
      order_.push_back(t.trial);
      add({{"what", "created"},
           {"trial", t.trial.value},
           {"why",
            occasion(x) + (t.source_checkpoint.empty() ? "" : "; from checkpoint " + t.source_checkpoint)}},
          number, x.at);
    }
    if (!x.created.empty() && (!opened_ || bracket_of(order_.back()) >= brackets_.size()))
      if (auto all = book_of() ? book_of()->opened() : std::vector<searchers::bracket>(); !all.empty()) {
        take_brackets(std::move(all));
        opened_ = true;
      }
    for (auto id : x.paused) {
      walks_[id].paused = true;
      value one = {{"what", "paused"},
                   {"trial", id.value},
                   {"why", brackets_.empty() ? occasion(x) : "waits at its rung"}};
      add_rung(one, id, "waits at its rung; ");
      add(std::move(one), number, x.at);
    }
    for (const auto& t : x.stopped) {
      walks_[t.trial].stop = t;
      if (t.rung >= 0 && std::isfinite(t.needed)) {
        const auto own = bracket_of(t.trial);
        newest_[{own < brackets_.size() ? own : 0, static_cast<std::size_t>(t.rung)}] = t.needed;
      }
      value one = {{"what", "stopped"}, {"trial", t.trial.value}, {"why", t.why}};
      if (t.rung >= 0) {
        one["rung"] = t.rung;
        one["units"] = t.units;
        one["metric"] = t.metric;
        if (std::isfinite(t.needed))
          one["needed"] = t.needed;
      } else if (walks_[t.trial].paused) {
        if (const auto rung = add_rung(one, t.trial, t.why + "; "); rung && one.contains("needed"))
          walks_[t.trial].bounds[*rung] = one["needed"].get<double>();
      }
      add(std::move(one), number, x.at);
    }
    for (const auto& t : x.resumed) {
      walks_[t.trial].paused = false;
      value one = {{"what", "resumed"},
                   {"trial", t.trial.value},
                   {"until", t.until},
                   {"why", brackets_.empty() ? occasion(x) : "goes on to the next rung"}};
      if (const auto rung = add_rung(one, t.trial, ""); rung && one.contains("needed"))
        walks_[t.trial].bounds[*rung] = one["needed"].get<double>();
      add(std::move(one), number, x.at);
    }
    for (const auto& t : x.perturbed)
      add({{"what", "perturbed"},
           {"trial", t.trial.value},
           {"source", t.source.value},
           {"checkpoint", t.checkpoint},
           {"hparams", t.hparams},
           {"why", "took the weights of trial " + to_string(t.source)}},
          number, x.at);
    if (x.shut_down)
      add({{"what", x.failure  ? "failed"
                    : x.cancel ? "canceled"
                               : "finished"},
           {"why", occasion(x)}},
          number, x.at);
  }

  void place_trials() {
    for (const auto trial : order_) {
      auto& w = walks_[trial];
      w.bracket = book_of() ? bracket_of(trial) : 0;
      if (w.bracket >= brackets_.size())
        continue;
      const auto& units = brackets_[w.bracket].units;
      for (std::size_t k = 0; k < units.size(); ++k)
        if (auto got = reached_[trial].find(units[k]); got != reached_[trial].end())
          w.passed[k] = got->second;
    }
  }

  /// Whether the trial was stopped at the highest rung of its bracket, or at the end of its training.
  bool at_full_length(const walk& w) const {
    if (w.stop && w.stop->why.ends_with("full length reached"))
      return true;
    return w.stop && w.stop->rung >= 0 && w.bracket < brackets_.size() &&
           static_cast<std::size_t>(w.stop->rung) + 1 == brackets_[w.bracket].units.size();
  }

  const char* fate(const walk& w, std::size_t rung) const {
    if (w.passed.contains(rung + 1))
      return "went on";
    if (w.stop && w.stop->rung >= 0 && static_cast<std::size_t>(w.stop->rung) == rung)
      return at_full_length(w) ? "finished" : "stopped";
    if (w.stop && w.paused) // the search was over while the trial waited at its rung
      return "stopped";
    if (w.exited || w.stop || terminal(row_.state)) // a kill tells the search nothing about its trials
      return "ended";
    return w.paused ? "waits" : "runs";
  }

  /// The bound at a rung now, as the real searcher has it, else that of the newest decision; NaN where there
  /// is none.
  double bound_of(std::size_t bracket, std::size_t rung) const {
    const auto* book = book_of();
    if (const auto now = book ? book->bound(bracket, rung) : std::nullopt; now && std::isfinite(*now))
      return *now;
    const auto at = newest_.find({bracket, rung});
    return at == newest_.end() ? std::numeric_limits<double>::quiet_NaN() : at->second;
  }

  value brackets_shape() const {
    std::vector<std::vector<trial_id>> trials_in(brackets_.size());
    for (const auto id : order_)
      if (const auto b = walks_.at(id).bracket; b < trials_in.size())
        trials_in[b].push_back(id);
    value out = value::array();
    for (std::size_t b = 0; b < brackets_.size(); ++b) {
      value rungs = value::array();
      for (std::size_t k = 0; k < brackets_[b].units.size(); ++k) {
        value trials = value::array();
        std::size_t stopped = 0;
        for (auto id : trials_in[b]) {
          const auto& w = walks_.at(id);
          const auto here = w.passed.find(k);
          if (here == w.passed.end())
            continue;
          const std::string_view how = fate(w, k);
          stopped += how == "stopped";
          trials.push_back({{"trial", id.value}, {"metric", here->second}, {"fate", how}});
          if (const auto bound = w.bounds.find(k); bound != w.bounds.end())
            trials.back()["needed"] = bound->second;
          else if (w.stop && w.stop->rung >= 0 && static_cast<std::size_t>(w.stop->rung) == k &&
                   std::isfinite(w.stop->needed))
            trials.back()["needed"] = w.stop->needed;
        }
        rungs.push_back({{"units", brackets_[b].units[k]},
                         {"entered", trials.size()},
                         {"stopped", stopped},
                         {"needed", bound_of(b, k)},
                         {"trials", std::move(trials)}});
      }
      out.push_back({{"maxTrials", brackets_[b].max_trials}, {"rungs", std::move(rungs)}});
    }
    return out;
  }

  const experiment_row& row_;
  const storage::reader& storage_;
  value section_;
  std::string time_metric_;
  std::unique_ptr<searchers::searcher> searcher_;
  std::vector<searchers::bracket> brackets_;
  bool opened_ = false;            ///< whether `brackets_` are those that trials were put into, not the plan
  std::set<std::int64_t> lengths_; ///< lengths of the rungs of all brackets
  std::map<trial_id, std::string> keys_;
  std::map<trial_id, walk> walks_;
  std::map<trial_id, std::uint64_t> reports_;
  /// Metric of each trial at its first report at or beyond each length.
  std::map<trial_id, std::map<std::int64_t, double>> reached_;
  std::vector<trial_id> order_;
  std::map<trial_id, searchers::ordinal> ordinals_;              ///< places in `order_`
  std::map<std::pair<std::size_t, std::size_t>, double> newest_; ///< newest bound by bracket and rung
  value decisions_ = value::array();
};

} // namespace

result<value> search_story(const experiment_row& row, const storage::reader& storage) {
  return story(row, storage).tell();
}

} // namespace troupe::api

#pragma once
// What a user sees of a running experiment: takes facts, gives lines and frames. Pure; follow.cpp is the loop
// around it.

#include "model/ids.hpp"
#include "model/time.hpp"
#include "model/value.hpp"
#include "runtime/cli/terminal.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

/// What does not change while the experiment runs.
struct progress_setup {
  experiment_id id;
  std::string name, searcher, metric;
  bool smaller_is_better = true;
  std::string unit = "batches"; ///< unit of the time metric, in the plural
  double max_units = 0;         ///< length of one trial; 0: not known
  std::uint64_t max_trials = 0; ///< 0: not known
  time_point started;
};
/// Reads the answer of GET /api/v1/experiments/ID.
progress_setup setup_of(const value& experiment);

class progress_view {
public:
  /// `line_budget` limits the lines of a pipe, besides one for each trial's end: lines that are not needed
  /// stop there.
  progress_view(progress_setup setup, bool redraws, int line_budget = 60);

  /// Takes the experiment and its trials as they were when the watching began (`{"trials": [...]}` of
  /// docs/api.md).
  void take_snapshot(const value& experiment, const value& trials);
  /// Takes one event of the stream; unknown events change nothing.
  void take(const value& event);
  void take_lost(const std::string& why);
  void take_back();

  /// The lines that became final since the last call.
  std::vector<std::string> lines(const terminal& screen);
  /// The part below the lines, which is drawn again. Empty where `redraws` is false, or once the experiment
  /// has ended.
  std::vector<std::string> frame(const terminal& screen, time_point now) const;

  const progress_setup& setup() const { return setup_; }
  const std::string& state() const { return state_; } ///< "ACTIVE", "PAUSED", "COMPLETED", ...
  bool ended() const;
  std::optional<time_point> ended_at() const { return ended_at_; }
  std::size_t trial_count() const { return trials_.size(); }
  std::size_t stopped_early() const;
  /// Trials that hold slots now.
  std::vector<trial_id> running() const;
  /// The trials that a pause still waits for, with their steps: running trials whose newest checkpoint is
  /// older than their newest validation.
  std::string pause_text(std::chrono::seconds left) const;

private:
  struct stop {
    int rung = -1;
    double units = 0, metric = 0, needed = 0;
    std::string why;
  };
  struct one_trial {
    std::string state = "QUEUED";
    value hparams;
    double units = 0;
    std::optional<double> latest, best;
    std::optional<stop> stopped;
    int restarts = 0, slots = 0;
    std::uint64_t run = 0;
    std::string agents;
    std::optional<time_point> since; ///< start of the open run
    bool running = false, ended = false;
  };

  one_trial& trial(const value& id);
  void on_search(const value& event);
  void on_stop(trial_id id, const value& event);
  /// None where the trial ended at its full length.
  static std::optional<stop> stop_in(const value& x);
  void on_run_ended(trial_id id, one_trial& t, const value& event);
  void on_trial_ended(trial_id id, one_trial& t, const value& event);
  void say(std::string line, paint how = paint::plain);
  void say_if_room(std::string line, paint how = paint::plain);
  bool better(double a, double b) const { return setup_.smaller_is_better ? a < b : a > b; }
  void note_metric(trial_id id, one_trial& t, double metric);
  std::string metric_text(double x) const;
  std::string units_text(double x) const; ///< "epoch 4"
  std::string bar(double part, int cells, const terminal& screen) const;
  std::string row(trial_id id, const one_trial& t, const terminal& screen, time_point now) const;
  std::string summary(const terminal& screen, time_point now) const;

  progress_setup setup_;
  bool redraws_;
  int budget_;
  std::string state_ = "ACTIVE";
  double progress_ = 0;
  std::map<trial_id, one_trial> trials_;
  trial_id best_trial_;
  std::optional<double> best_;
  std::optional<time_point> ended_at_, best_said_;
  bool lost_ = false;
  std::vector<std::pair<std::string, paint>> lines_;
};

/// The last lines of a trial that failed, oldest first; the trial is 0 where none failed.
struct failed_log {
  trial_id trial;
  std::vector<std::string> lines;
};

/// The last lines: how the experiment ended, the best trial with hyperparameters, metric and checkpoint, its
/// curve, and the command that shows it again. `outcome` is the answer of GET
/// /troupe/v1/experiments/ID/outcome; `curve` holds the best trial's validations.
std::vector<std::string> final_report(const progress_view& view, const value& outcome,
                                      const std::vector<std::pair<double, double>>& curve,
                                      const failed_log& failed, const terminal& screen, time_point now);

} // namespace troupe::cli

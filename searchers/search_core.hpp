#pragma once
// The core of every native search: numbers trials, filters events that cannot count, holds slots and budget,
// refills a slot however it became free, and ends the search. The method decides what to run.
//
//   trial:  running --stop--> stopping --exited--> closed
//              |  \--pause--> paused --resume--> running; paused --stop--> closed
//              |--left early--> leaving --exited--> closed
//              `--exited--> closed

#include "searchers/early_stopping.hpp"
#include "searchers/method.hpp"
#include "searchers/settings.hpp"

#include <memory>
#include <optional>

namespace troupe::searchers {

struct core_limits {
  std::string name;
  std::string metric;
  std::string time_metric;
  double sign = 1;                  ///< -1 where larger is better
  std::uint64_t max_trials = 1;     ///< limit; trials that replace invalid ones do not count
  std::uint64_t max_concurrent = 0; ///< 0: no limit
  bool replaces_invalid = true;
  std::uint64_t seed = 0;
  std::uint64_t dimensions = 0;
  std::uint64_t max_invalid() const {
    return std::max<std::uint64_t>(100, 10 * std::min<std::uint64_t>(max_trials, 1u << 30));
  }
};

class search_core final : public searcher, public rung_book, private orders {
public:
  search_core(core_limits limits, std::unique_ptr<method> inner, std::unique_ptr<early_stopping> policies);

  result<std::vector<search_action>> apply(const search_event& event) override;
  double progress() const override;
  std::vector<bracket> brackets() const override { return inner_->brackets(); }
  std::vector<bracket> opened() const override { return inner_->opened(); }
  std::size_t bracket_of(ordinal trial) const override { return inner_->bracket_of(trial); }
  std::optional<double> bound(std::size_t bracket, std::size_t rung) const override {
    return inner_->bound(bracket, rung);
  }
  std::int64_t max_trials() const override { return static_cast<std::int64_t>(limits_.max_trials); }
  std::string snapshot() const override;
  /// Takes the state from `bytes`; only allowed before the first event.
  result<void> restore(std::string_view bytes);

private:
  enum class stage : std::uint8_t { running, stopping, leaving, paused, closed };
  struct trial_record {
    double last_step = 0;
    double progress = 0;
    std::uint32_t reports = 0;
    stage at = stage::running;
    std::uint8_t left_early = 0, invalid = 0;
    std::uint8_t again = 0; ///< 1: was continued and waits for a slot; such a record is paused
  };
  struct ledger {
    std::vector<trial_record> trials;
    std::uint64_t live = 0; ///< trials that hold a slot
    std::uint64_t open = 0; ///< trials that are neither closed nor paused
    std::uint64_t invalid = 0, failed = 0, canceled = 0;
    double progress_sum = 0; ///< sum over the trials that are not invalid
    std::uint8_t started = 0, over = 0;
    void persist(archive& ar);
  };

  void on(const search_started&);
  result<void> on(const search_continued& event);
  void on(const trial_validated&, ordinal);
  void on(const trial_exited_early&, ordinal);
  void on(const trial_exited&, ordinal);
  void on(const trial_progressed&, ordinal);
  void on(const trial_checkpointed&, ordinal);

  // orders
  void stop(ordinal trial, stop_trial reason) override;
  void pause(ordinal trial) override;
  void perturb(ordinal trial, ordinal source, std::string checkpoint, double step, value hparams) override;

  report read(const trial_validated& event, ordinal trial) const;
  void give_up_slot(ordinal trial, stage next, ending how);
  void set_progress(trial_record& r, double progress);
  void fill();
  void finish();
  void check() const;
  void persist(archive& ar) const;

  core_limits limits_;
  std::unique_ptr<method> inner_;
  std::unique_ptr<early_stopping> policies_;
  std::unique_ptr<ledger> book_ = std::make_unique<ledger>();
  std::vector<search_action> actions_; ///< actions of the event that is being applied
};

/// Key "1" is ordinal 0.
std::string key_of(ordinal trial);
std::optional<ordinal> ordinal_of(const trial_key& key);

} // namespace troupe::searchers

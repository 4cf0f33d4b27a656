#pragma once
// The core of a compat search: Determined's order of random draws, request ids, counts and shutdown.

#include "searchers/compat/compat_method.hpp"
#include "searchers/compat/nprand.hpp"
#include "searchers/space.hpp"

#include <unordered_map>

namespace troupe::searchers {

class compat_search final : public searcher, private compat_orders {
public:
  compat_search(settings common, std::shared_ptr<const space> domain, std::unique_ptr<compat_method> inner);

  result<std::vector<search_action>> apply(const search_event& event) override;
  double progress() const override;
  std::vector<bracket> brackets() const override { return inner_->brackets(); }
  std::int64_t max_trials() const override { return common_.max_trials; }
  std::string snapshot() const override;
  result<void> restore(std::string_view bytes);

private:
  struct trial_record {
    double progress = 0;
    std::uint8_t left_early = 0, closed = 0, invalid = 0, spare[5] = {};
  };
  struct ledger {
    std::vector<std::string> ids;
    std::vector<trial_record> trials;
    std::uint64_t closed = 0, failed = 0, canceled = 0, invalid = 0;
    compat_tally tally;
    std::uint8_t started = 0, over = 0;
    void persist(archive& ar) { ar(ids, trials, closed, failed, canceled, invalid, tally, started, over); }
  };

  void on(const trial_validated&, ordinal);
  void on(const trial_exited_early&, ordinal);
  void on(const trial_exited&, ordinal);
  void on(const trial_progressed&, ordinal);
  void on(const trial_checkpointed&, ordinal) {}

  ordinal create() override;
  ordinal create_point(std::uint64_t index) override;
  ordinal create_with(value hparams);
  void stop(ordinal trial, stop_trial reason) override;
  void finish(bool exit);
  std::uint64_t max_invalid() const;

  settings common_;
  std::shared_ptr<const space> domain_;
  std::unique_ptr<compat_method> inner_;
  std::unique_ptr<nprand> random_;
  std::unique_ptr<ledger> book_ = std::make_unique<ledger>();
  std::unordered_map<std::string, ordinal> by_id_;
  std::vector<search_action> actions_;
};

} // namespace troupe::searchers

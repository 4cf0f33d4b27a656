#pragma once
// A search that a process outside drives: it hears the events over the API, and its orders are the actions.
// This class keeps what makes orders safe: it knows the trials, a repeat changes nothing, and orders are
// taken whole or not at all.
//
// Orders: `{"actions": [...], "upto": N, "driver": NAME, "take_over": true}`. An action is one of
//   {"create": KEY, "hparams": {...}, "trial_seed"?: int, "source_checkpoint"?: UUID}   KEY: a string, the
//   caller's own
//   {"stop": KEY, "why"?: text}   {"pause": KEY}   {"resume": KEY, "until"?: number}
//   {"perturb": KEY, "source": KEY, "checkpoint": UUID, "hparams": {...}}
//   {"progress": 0..1}   {"shutdown": true, "cancel"?: bool, "failure"?: bool}
// `upto` (optional) is the number of the newest event that these orders answer. Orders whose number is not
// above that of earlier orders are a repeat and change nothing. A `create` of a known key and an action on an
// ended trial change nothing either. `driver` (optional) names the process that decides. Once orders have
// named a driver, all others are refused, so that two processes never drive one search without knowing;
// `take_over` makes a new process the driver and shuts the former one out.

#include "searchers/archive.hpp"
#include "searchers/settings.hpp"

#include <map>

namespace troupe::searchers {

class custom_search final : public searcher {
public:
  explicit custom_search(const settings& common) : seed_(common.seed), max_trials_(common.max_trials) {}

  result<std::vector<search_action>> apply(const search_event& event) override;
  double progress() const override { return over_ ? 1 : progress_; }
  std::vector<bracket> brackets() const override { return {}; }
  std::int64_t max_trials() const override { return max_trials_; }
  std::string snapshot() const override;
  result<void> restore(std::string_view bytes);

private:
  enum class stage : std::uint8_t { running, paused, closed };
  /// What one batch of orders changes. It is kept apart until the whole batch is known to make sense.
  struct draft;
  result<std::vector<search_action>> obey(const value& orders);
  /// Returns the driver after these orders, or why they are refused.
  result<std::string> driver_of(const value& orders) const;
  result<void> obey_one(draft& d, const value& action) const;
  void persist(archive& ar, std::uint32_t version);

  std::uint64_t seed_;
  std::int64_t max_trials_;
  std::map<trial_key, stage> trials_;
  std::uint64_t taken_upto_ = 0;
  double progress_ = 0;
  bool over_ = false;
  std::string driver_; ///< empty: no orders have named one
};

} // namespace troupe::searchers

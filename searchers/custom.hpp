#pragma once
// A search that a process outside drives: it hears the events over the API, and its orders are the actions.
// Here is kept what makes them safe: known trials, a repeat that changes nothing, orders that are taken whole
// or not at all.
//
// Orders: `{"actions": [...], "upto": N, "driver": NAME, "take_over": true}`. An action is one of
//   {"create": KEY, "hparams": {...}, "trial_seed"?: int, "source_checkpoint"?: UUID}   KEY: a string, the
//   caller's own
//   {"stop": KEY, "why"?: text}   {"pause": KEY}   {"resume": KEY, "until"?: number}
//   {"perturb": KEY, "source": KEY, "checkpoint": UUID, "hparams": {...}}
//   {"progress": 0..1}   {"shutdown": true, "cancel"?: bool, "failure"?: bool}
// `upto` (optional) is the number of the newest event these orders answer: orders with the same or a lower
// one than was taken before are a repeat and change nothing. A `create` of a known key changes nothing
// either; nor does an action on a trial that has ended. `driver` (optional) names the process that decides.
// From the first orders with one on, all others are refused, so that two processes never drive one search
// without knowing; `take_over` makes a new one the driver and shuts the former out.

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
  /// What one batch of orders changes: kept apart until all of it is known to make sense.
  struct draft;
  result<std::vector<search_action>> obey(const value& orders);
  /// The driver after these orders, or why they are refused.
  result<std::string> driver_of(const value& orders) const;
  result<void> obey_one(draft& d, const value& action) const;
  void persist(archive& ar, std::uint32_t version);

  std::uint64_t seed_;
  std::int64_t max_trials_;
  std::map<trial_key, stage> trials_;
  std::uint64_t taken_upto_ = 0;
  double progress_ = 0;
  bool over_ = false;
  std::string driver_; ///< empty: nobody has named itself
};

} // namespace troupe::searchers

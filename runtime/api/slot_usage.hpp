#pragma once
// Slots over time: how many there were, how many were used, and how many were waited for.

#include "storage/journal.hpp"
#include "storage/usage.hpp"

#include <map>
#include <mutex>

namespace troupe::api {

/// What each run of the experiment asks for; the most where it takes fewer as well.
std::int64_t slots_of(const experiment_row& row);

/// The runs that held slots between two times; one that runs ends `now`.
result<std::vector<storage::usage_record>> usage_between(const storage::reader& from, time_point begin,
                                                         time_point end, time_point now);

/// "training" for a trial, else the kind of the task.
std::string usage_kind(const storage::usage_record& x);
/// Runs as Determined's tables have them: one a line, and what each used.
std::string raw_table(const std::vector<storage::usage_record>& all);
std::string allocations_table(const std::vector<storage::usage_record>& all);

/// The mean of a number that is the sum of what is added, over each of some steps of one length.
class step_means {
public:
  step_means(time_point begin, duration step, std::size_t count)
      : begin_(begin), step_(step), partly_(count), whole_(count + 1) {}
  void add(time_point from, time_point until, double amount);
  std::vector<double> means() const;

private:
  time_point begin_;
  duration step_;
  std::vector<double> partly_; ///< amount times seconds, of steps that were not covered whole
  std::vector<double> whole_;  ///< what begins and ends with a step
};

/// How many slots agents offered, and since when. Told by the facts of the cluster, of which each look reads
/// only those that are new. Thread-safe.
class slot_history {
public:
  struct change {
    time_point at;
    std::int64_t slots = 0; ///< from then on
  };
  result<std::vector<change>> changes(const storage::reader& from);

private:
  std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::map<std::string, std::int64_t> agents_;
  std::vector<change> changes_;
};

} // namespace troupe::api

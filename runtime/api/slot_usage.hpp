#pragma once
// Slots over time: how many existed, how many were used, and how many were waited for.

#include "storage/journal.hpp"
#include "storage/usage.hpp"

#include <map>
#include <mutex>

namespace troupe::api {

/// The slots that each run of the experiment asks for; the largest number where fewer slots are accepted,
/// too.
std::int64_t slots_of(const experiment_row& row);

/// The runs that held slots between two times. A run that still goes on counts as ending `now`.
result<std::vector<storage::usage_record>> usage_between(const storage::reader& from, time_point begin,
                                                         time_point end, time_point now);

/// "training" for a trial, otherwise the kind of the task.
std::string usage_kind(const storage::usage_record& x);
/// The runs in the form of Determined's tables: one run a line, and what each run used.
std::string raw_table(const std::vector<storage::usage_record>& all);
std::string allocations_table(const std::vector<storage::usage_record>& all);

/// Means of a quantity over each of several steps of one length. The quantity is the sum of the added
/// amounts.
class step_means {
public:
  step_means(time_point begin, duration step, std::size_t count)
      : begin_(begin), step_(step), partly_(count), whole_(count + 1) {}
  void add(time_point from, time_point until, double amount);
  std::vector<double> means() const;

private:
  time_point begin_;
  duration step_;
  std::vector<double> partly_; ///< amount times seconds, for steps that an amount covers in part
  /// Amounts added where the steps that they cover whole begin, and subtracted where these end.
  std::vector<double> whole_;
};

/// How many slots agents offered, and since when, read from the facts of the cluster. Each call reads only
/// new facts. Thread-safe.
class slot_history {
public:
  struct change {
    time_point at;
    std::int64_t slots = 0; ///< slots from `at` on
  };
  result<std::vector<change>> changes(const storage::reader& from);

private:
  std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::map<std::string, std::int64_t> agents_;
  std::vector<change> changes_;
};

} // namespace troupe::api

#pragma once
// Metrics as columns of numbers and as summaries, kept in memory beside the rows of storage: a million rows
// are read once, and afterwards only what is new. Nothing here is durable; what is lost is read again.

#include "model/rows.hpp"
#include "storage/journal.hpp"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::api {

/// One reported number.
struct series_point {
  std::uint64_t row = 0;
  std::int64_t steps = 0;
  std::int64_t at = 0; ///< microseconds since 1970
  std::uint32_t run = 0;
  double y = 0;
};
using series_column = std::vector<series_point>;

enum class metric_kind { number, matrix, table, vector, text, other };
const char* name(metric_kind kind);

/// What is known of one metric of one trial. Reports of a run that was given up do not count.
struct metric_summary {
  metric_kind kind = metric_kind::number;
  std::uint64_t reports = 0;
  double last = 0, min = 0, max = 0; ///< of numbers: the newest, and the least and largest finite one, or NaN
  time_point newest{};               ///< time of the newest report
  double sum = 0;                    ///< of the finite ones
  std::uint64_t finite = 0;          ///< so many
  std::string text;                  ///< of texts: the newest, its first 4 KiB
  /// Of the finite ones; NaN where there is none.
  double mean() const { return sum / static_cast<double>(finite); }
};
/// By group, then by name.
using metric_summaries = std::map<std::string, std::map<std::string, metric_summary>>;

/// Thread-safe.
class series_columns {
public:
  static constexpr std::size_t most_points = 3'000'000; ///< in memory, over all columns: 120 MB

  /// The numbers of one metric, in the order of arrival; reports of runs that were given up are left in.
  result<std::shared_ptr<const series_column>> column(const trial_row& of, const std::string& group,
                                                      const std::string& metric, const storage::reader& from);
  /// `group`: "system", the samples of hosts; empty: all other groups.
  result<std::shared_ptr<const metric_summaries>> summaries(const trial_row& of, const storage::reader& from,
                                                            const std::string& group = {});

private:
  struct key {
    std::uint64_t trial = 0;
    std::string group, metric;
    friend auto operator<=>(const key&, const key&) = default;
  };
  struct entry {
    std::mutex mutex; ///< one reader of storage at a time
    std::uint64_t up_to = 0;
    std::shared_ptr<series_column> points = std::make_shared<series_column>();
    std::list<key>::iterator used;
  };
  struct summary_entry {
    std::mutex mutex;
    std::uint64_t up_to = 0;
    std::size_t runs = 0; ///< of the trial when it was made: a new run may give up reports
    std::shared_ptr<const metric_summaries> made = std::make_shared<metric_summaries>();
  };
  void forget_old(std::size_t added);

  std::mutex mutex_;
  std::map<key, std::shared_ptr<entry>> columns_;
  std::list<key> recent_; ///< newest use first
  std::size_t points_ = 0;
  std::map<std::pair<std::uint64_t, std::string>, std::shared_ptr<summary_entry>>
    summaries_; ///< by trial, group
};

/// All numbers and texts of a trial as Determined's summaryMetrics: {group: {name: {type, count, min, max,
/// sum, mean, last}}}; of a text `type`, `count` and `last`.
result<value> summary_metrics(const trial_row& of, series_columns& columns, const storage::reader& from);

/// The step of each run's first report that a later run trains again: reports above it are given up.
class given_up {
public:
  explicit given_up(const std::vector<run_row>& runs);
  /// Also what a later run has reported again of this metric, as one whose script began anew though there was
  /// a checkpoint.
  given_up(const std::vector<run_row>& runs, const series_column& points);
  bool operator()(std::uint32_t run, std::int64_t steps) const;

private:
  std::vector<std::pair<std::uint32_t, std::int64_t>> limits_; ///< by run, from the oldest
};

/// The number under `name` in a msgpack map; nullopt where it is missing or no number.
std::optional<double> number_of(std::string_view msgpack_map, std::string_view name);
/// Calls `each` with the key and the bytes of the value, for every entry of a msgpack map.
void each_entry(std::string_view msgpack_map,
                const std::function<void(std::string_view key, std::string_view bytes)>& each);
metric_kind kind_of(const value& x);

/// Which of a column's points stand for it: the first, the last, the lowest and the highest of each bucket,
/// and one of each bucket that is not finite; all of them where `most` suffices. Rising indices, at most
/// `most` (2 or more).
std::vector<std::size_t> chosen_points(const std::vector<double>& y, std::size_t most);

struct metric_name {
  std::string group, metric;
};
/// "validation.acc,training.loss"; errc::invalid for one without a group.
result<std::vector<metric_name>> metric_names(std::string_view text);
/// {"training.loss": {"last", "min", "max"}} of those that the trial has.
value summaries_shape(const metric_summaries& known, const std::vector<metric_name>& wanted);

} // namespace troupe::api

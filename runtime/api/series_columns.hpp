#pragma once
// Metrics as columns of numbers and as summaries, kept in memory beside the rows of storage. A million rows
// are read once; afterwards only new rows are read. Nothing here is durable: what memory loses is read again.

#include "model/rows.hpp"
#include "storage/rollback.hpp"

#include <limits>
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

/// Whether a number replaces the one before it in its group: a run may report a step twice. Step 0 has any
/// number of reports.
bool replaces(const series_point& x, const series_point& before, std::string_view group);

enum class metric_kind { number, matrix, table, vector, text, other };
const char* name(metric_kind kind);

/// Counts of the reports of one metric. `last`, `min` and `max` are NaN where no number was finite.
struct metric_numbers {
  std::uint64_t reports = 0;
  double last = std::numeric_limits<double>::quiet_NaN(); ///< the newest number
  double min = std::numeric_limits<double>::quiet_NaN();  ///< the least finite number
  double max = std::numeric_limits<double>::quiet_NaN();  ///< the largest finite number
  double sum = 0;                                         ///< sum of the finite numbers
  std::uint64_t finite = 0;                               ///< how many numbers were finite
  /// Mean of the finite numbers; NaN where none is finite.
  double mean() const { return sum / static_cast<double>(finite); }
};

/// What is known of one metric of one trial. Archived reports do not count. Of reports of one step that
/// follow each other the last one counts, but at step 0, which has any number of reports.
struct metric_summary : metric_numbers {
  metric_kind kind = metric_kind::number;
  const char* type = "number"; ///< the word of Determined's summaryMetrics for the first report's value
  time_point newest{};         ///< time of the newest report
  std::int64_t steps = 0;      ///< step of the newest report
  metric_numbers before;       ///< the counts without the reports of that step
  /// For texts: the first 4 KiB of the newest. For all that is neither number nor text: the newest as
  /// msgpack, or empty where it is longer than 4 KiB.
  std::string text;
};
/// Summaries by group, then by name of the metric.
using metric_summaries = std::map<std::string, std::map<std::string, metric_summary>>;

/// What the curve of one trial is made of.
struct curve_source {
  std::shared_ptr<const series_column> points;
  std::shared_ptr<const series_column> beside; ///< the metric that is x; null for other axes
  std::shared_ptr<const storage::rollback> gone;
};

/// Keeps curves as `series` has written them, each for as long as what it was made of stays the same: of a
/// search with many trials, few change between two looks. Thread-safe.
class curve_texts {
public:
  static constexpr std::size_t most_bytes = 32'000'000; ///< when there is more, all are forgotten
  struct name {
    std::uint64_t trial = 0;
    std::string group, metric, axis;
    std::size_t points = 0; ///< largest number of points that the request allows
    friend auto operator<=>(const name&, const name&) = default;
  };
  /// null where it is not there or was made of something else.
  std::shared_ptr<const std::string> find(const name& of, const curve_source& made_of) const;
  void keep(const name& of, const curve_source& made_of, std::shared_ptr<const std::string> text);

private:
  /// A column and its length, as columns grow in place. It does not hold the column in memory.
  struct column {
    std::weak_ptr<const series_column> points;
    std::size_t size = 0;
    explicit column(const std::shared_ptr<const series_column>& of) : points(of), size(of ? of->size() : 0) {}
    bool is(const std::shared_ptr<const series_column>& other) const {
      return points.lock() == other && (!other || other->size() == size);
    }
  };
  struct entry {
    column points, beside;
    std::shared_ptr<const storage::rollback> gone;
    std::shared_ptr<const std::string> text;
  };
  mutable std::mutex mutex_;
  std::map<name, entry> all_;
  std::size_t bytes_ = 0;
};

/// Thread-safe.
class series_columns {
public:
  static constexpr std::size_t most_points = 3'000'000; ///< limit of all columns together, 120 MB

  /// Which reports of the trial are archived. The same object is returned while the answer stays the same.
  result<std::shared_ptr<const storage::rollback>> rollback(const trial_row& of, const storage::reader& from);
  /// The numbers of one metric in the order of arrival, including archived reports.
  result<std::shared_ptr<const series_column>> column(const trial_row& of, const std::string& group,
                                                      const std::string& metric, const storage::reader& from);
  /// The summaries of a trial's metrics. `group`: "system" for the samples of its hosts; empty: all other
  /// groups.
  result<std::shared_ptr<const metric_summaries>> summaries(const trial_row& of, const storage::reader& from,
                                                            const std::string& group = {});
  curve_texts& texts() { return texts_; }

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
    /// The rule by which the summaries were made; a later run may archive what they count.
    std::shared_ptr<const storage::rollback> gone;
    std::shared_ptr<const metric_summaries> made = std::make_shared<metric_summaries>();
  };
  struct rollback_entry {
    std::mutex mutex;
    std::uint64_t up_to = 0;
    std::shared_ptr<const storage::rollback> known;
  };
  static constexpr std::size_t most_trials = 20'000;
  void forget_old(std::size_t added);

  std::mutex mutex_;
  std::map<key, std::shared_ptr<entry>> columns_;
  std::list<key> recent_; ///< newest use first
  std::size_t points_ = 0;
  /// By number of the trial and `group`.
  std::map<std::pair<std::uint64_t, std::string>, std::shared_ptr<summary_entry>> summaries_;
  std::map<std::uint64_t, std::shared_ptr<rollback_entry>> rollbacks_; ///< by number of the trial
  curve_texts texts_;
};

/// Group of the reports that hold the samples of Determined's profiler, which are no metrics.
inline constexpr const char* profiler_group = "profiler";

/// All metrics of a trial as Determined's summaryMetrics: {group: {name: {type, count, min, max, sum, mean,
/// last}}}. What is not a number has only `type`, `count` and `last`, and no `last` where it is a list or a
/// map of more than 4 KiB.
result<value> summary_metrics(const trial_row& of, series_columns& columns, const storage::reader& from);

/// The number under `name` in a msgpack map; nullopt where it is missing or not a number.
std::optional<double> number_of(std::string_view msgpack_map, std::string_view name);
/// Calls `each` with the key and the bytes of the value, for every entry of a msgpack map.
void each_entry(std::string_view msgpack_map,
                const std::function<void(std::string_view key, std::string_view bytes)>& each);
metric_kind kind_of(const value& x);

/// Chooses the points that a curve is drawn from, as rising indices, at most `most` (2 or more). They are the
/// first, the last, the lowest and the highest point of each bucket, and one point of each bucket that is not
/// finite; all points where `most` suffices.
std::vector<std::size_t> chosen_points(const std::vector<double>& y, std::size_t most);

struct metric_name {
  std::string group, metric;
};
/// Reads a list as "validation.acc,training.loss". Fails with errc::invalid for a name without a group.
result<std::vector<metric_name>> metric_names(std::string_view text);
/// {"training.loss": {"last", "min", "max"}}, for those of `wanted` that the trial has.
value summaries_shape(const metric_summaries& known, const std::vector<metric_name>& wanted);

} // namespace troupe::api

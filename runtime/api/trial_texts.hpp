#pragma once
// The texts of trials as `trial_progress_shape` prints them, kept, so that a list right after some facts
// costs only the trials that these facts were about. Thread-safe.

#include "storage/journal.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace troupe::api {

class trial_texts {
public:
  /// `most_bytes`: limit of all texts; beyond it the lists whose last use is the oldest are dropped.
  explicit trial_texts(std::size_t most_bytes = 64u << 20) : most_bytes_(most_bytes) {}

  /// Appends the JSON of every trial of the experiment, in the order of their ids, with commas between them.
  /// `everything` has to show all trials; where it is not a `storage::trial_watch`, nothing is kept.
  result<void> write(experiment_id of, const storage::reader& everything, std::string& out);

private:
  /// The text before and after the trial's steps, which change with each report.
  struct text {
    std::string before, after;
    std::int64_t steps = 0;    ///< steps that the trial's facts tell
    std::int64_t reported = 0; ///< steps of the newest report when the text was made
  };
  struct list {
    std::mutex mutex;
    std::uint64_t version = 0;
    std::map<trial_id, text> texts;
    std::size_t bytes = 0;
  };
  struct place {
    std::shared_ptr<list> kept;
    std::size_t bytes = 0;
    std::uint64_t asked = 0; ///< value of `asks_` at the last use
  };
  static text text_of(const trial_row& row);
  static result<void> print(const list& all, const storage::reader& everything, std::string& out);
  result<void> read_on(experiment_id of, list& into, const storage::reader& everything);

  const std::size_t most_bytes_;
  std::mutex mutex_;
  std::map<experiment_id, place> lists_;
  const storage::reader* of_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t asks_ = 0;
};

} // namespace troupe::api

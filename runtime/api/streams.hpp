#pragma once
// Bodies that are read from storage while they are sent: events, logs, metrics. Each holds at most one batch
// in memory, so that a slow reader delays only itself.

#include "runtime/api/told_facts.hpp"

namespace troupe::api {

struct event_filter {
  experiment_id experiment; ///< experiment of the events; 0: all
  std::string entity;       ///< entity as fact_shape names it, or a stream; empty: all
  bool audit = false;       ///< only facts that say who caused them
  time_point since;         ///< only facts of this time and later
  std::uint64_t until = 0;  ///< the stream ends after the fact with this number; 0: never
  fact_choice tells;        ///< facts that the reader may know of
};
/// Server-sent events, from the first fact after the sequence `after` on.
std::unique_ptr<body_stream> event_stream(std::shared_ptr<storage::reader> storage, std::uint64_t after,
                                          event_filter keep);

/// Which lines of a log are sent, and in which form: the query of the routes for logs.
struct log_request {
  task_id task;
  bool follow = false, newest_first = false;
  std::uint64_t limit = 0; ///< lines at most; 0: all
  std::function<bool(const log_line&)> keep;
  std::function<value(const log_line&)> shape;
};
/// Reads the query. Fails with errc::invalid on a wrong filter, and on `limit` together with `follow`.
result<log_request> log_request_of(const query_list& query);
/// A body of lines {"result": line}. With `follow` it ends when the task has ended and its last lines have
/// had time to arrive.
std::unique_ptr<body_stream> log_stream(std::shared_ptr<storage::reader> storage, log_request what);

/// A body of lines {"result": ...} with the values that filters of the log can take. With `follow` it gives
/// them again whenever they have changed, until the task has ended. `keep` says which lines count; empty:
/// all.
std::unique_ptr<body_stream> log_field_stream(std::shared_ptr<storage::reader> storage, task_id of,
                                              bool follow, std::function<bool(const log_line&)> keep);

/// As lines of batches, for the stock client, archived reports are left out; the other forms mark them.
struct metric_request {
  std::vector<trial_id> trials;
  std::string group;                  ///< group of the metrics; empty: all
  std::uint64_t after = 0, limit = 0; ///< in rows; a limit of 0: all
  enum class form { lines_of_batches, array, lines } as = form::array;
  bool follow = false;
  std::shared_ptr<series_columns> columns;
};
std::unique_ptr<body_stream> metric_stream(std::shared_ptr<storage::reader> storage, metric_request what);

} // namespace troupe::api

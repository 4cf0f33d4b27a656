#pragma once
// Bodies that are read from storage while they are sent: events, logs, metrics. Each holds one batch in
// memory at most, so that a slow reader costs nothing but its own lag.

#include "runtime/api/route.hpp"

namespace troupe::api {

struct event_filter {
  experiment_id experiment; ///< 0: all
  std::string entity;       ///< as fact_shape names it, or a stream; empty: all
  bool audit = false;       ///< only facts that say who did it
  time_point since;         ///< only facts of then and later
  std::uint64_t until = 0;  ///< the stream ends behind the fact of this number; 0: never
};
/// Server-sent events from the fact after `after` on.
std::unique_ptr<body_stream> event_stream(std::shared_ptr<storage::reader> storage, std::uint64_t after,
                                          event_filter keep);

/// Which lines, and how: the query of the logs' routes.
struct log_request {
  task_id task;
  bool follow = false, newest_first = false;
  std::uint64_t limit = 0; ///< 0: all
  std::function<bool(const log_line&)> keep;
  std::function<value(const log_line&)> shape;
};
/// errc::invalid on a wrong filter, or `limit` with `follow`.
result<log_request> log_request_of(const query_list& query);
/// Newline-delimited {"result": line}. With `follow` it ends when the task has, and its last lines had time
/// to come.
std::unique_ptr<body_stream> log_stream(std::shared_ptr<storage::reader> storage, log_request what);

/// Newline-delimited {"result": ...}: the values that filters of the log can take. With `follow` once more
/// whenever there are others, until the task has ended.
std::unique_ptr<body_stream> log_field_stream(std::shared_ptr<storage::reader> storage, task_id of,
                                              bool follow);

struct metric_request {
  std::vector<trial_id> trials;
  std::string group;                  ///< empty: all
  std::uint64_t after = 0, limit = 0; ///< rows; limit 0: all
  enum class form { lines_of_batches, array, lines } as = form::array;
  bool follow = false;
};
std::unique_ptr<body_stream> metric_stream(std::shared_ptr<storage::reader> storage, metric_request what);

} // namespace troupe::api

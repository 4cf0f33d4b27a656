#pragma once
// Rows as JSON in the form in which grpc-gateway prints Determined's messages: required keys are always
// there, 64-bit sizes are text, enums have their full names, times are in RFC 3339, optional keys are left
// out while unset. The functions are pure, except for reads of `storage`.

#include "model/names.hpp"
#include "model/rows.hpp"
#include "runtime/api/accounts.hpp"
#include "runtime/api/http.hpp"
#include "storage/journal.hpp"

namespace troupe::api {

class place_book;
value experiment_shape(const experiment_row& row, const accounts& users, const place_book& places);
/// The part of experiment_shape that changes only when somebody edits the experiment. It,
/// changing_experiment_shape and place_book::place_of make up the whole shape; no key is in two of them.
/// `usual_pool`: the pool of experiments that name none.
value lasting_experiment_shape(const experiment_row& row, const std::string& usual_pool);
/// The pool that the experiment was moved to, or else the pool that it names, or else `usual_pool`.
std::string pool_of(const experiment_row& row, const std::string& usual_pool);
value changing_experiment_shape(const experiment_standing& now, const std::string& owner, time_point created,
                                const accounts& users);
/// The answer where no experiment was created: every required key, unset.
value empty_experiment_shape();

/// `full` adds what has to be read from storage: the values of the validations, and the best checkpoint.
result<value> trial_shape(const trial_row& row, const storage::reader& storage, time_point now);
/// Adds logRetentionDays to shapes of trials of one experiment, where somebody set how long their logs are
/// kept.
result<void> add_log_retention(value& shapes, const experiment_row& of, const storage::reader& storage);
/// The row of a progress table, made from the trial's row alone.
value trial_progress_shape(const trial_row& row);

result<value> checkpoint_shape(const checkpoint_row& row, const storage::reader& storage);
/// The checkpoint at the step of the best validation, or else the newest one; nullopt where the trial has
/// none.
result<std::optional<checkpoint_row>> best_checkpoint(const trial_row& row, const storage::reader& storage);
/// `path` is the folder of the files, or their address in a bucket.
result<value> checkpoint_files_shape(const checkpoint_row& row, const experiment_row& experiment,
                                     const storage::reader& storage);

/// Whether two reports are of one run, group and step; their readers see them as one report.
bool of_one_step(const metric_row& a, const metric_row& b);
/// Adds the metrics of `more` to `to`; where both have a metric, the value of `more` wins. Both are of one
/// step.
void join_step(metric_row& to, const metric_row& more);
/// `wrapped`: the metrics stand under avg_metrics or validation_metrics, as the stock client reads them.
value metric_report_shape(const metric_row& report, trial_id of, bool archived, bool wrapped);
value training_workload(const metric_row& report);
value checkpoint_workload(const checkpoint_row& row);
/// The map of metrics as it was reported; {} where its bytes do not decode.
value reported(const metric_row& report);

value user_shape(const user& u);
value trial_log_shape(const log_line& line, trial_id trial);
value task_log_shape(const log_line& line, const task_row& of);
std::string rendered(const log_line& line);

/// `continued`: number of the continuation that this task belongs to; 0: the first task of a trial.
/// `outside`: the task is an unmanaged trial, which needs no slots.
value task_shape(const task_row& row, const std::vector<run_row>& runs, std::uint32_t continued,
                 bool outside);
value allocation_shape(const task_row& row, const run_row& run, bool outside);

/// `one` is an element of `agents` in the answer of the command agent.list.
value agent_shape(const value& one);
value slot_shape(const value& slot, const std::string& agent);

std::string state_name(experiment_state state); ///< "STATE_ACTIVE"
/// True for every name of state_name, and for further names that Determined shows.
bool is_state_of_experiments(std::string_view text);
std::string state_name(const trial_row& trial);
std::string level_name(const std::string& level); ///< level of a line, as "LOG_LEVEL_INFO"
std::int64_t steps_processed(const trial_row& row);

/// The part of a list that a query asks for, [first, last), and the `pagination` of the answer.
struct page {
  std::size_t first = 0, last = 0;
  value pagination;
};
result<page> page_of(const query_list& query, std::size_t total, std::int64_t usual = 0);

} // namespace troupe::api

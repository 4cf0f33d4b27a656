#pragma once
// Rows as JSON, as grpc-gateway prints Determined's messages: every required key always there, 64-bit sizes
// as text, enums by their full names, times in RFC 3339, optional keys left out while unset. Pure but for
// `storage` reads.

#include "model/names.hpp"
#include "model/rows.hpp"
#include "runtime/api/accounts.hpp"
#include "runtime/api/http.hpp"
#include "storage/journal.hpp"

namespace troupe::api {

class place_book;
value experiment_shape(const experiment_row& row, const accounts& users, const place_book& places);
/// The parts of it, besides place_book::place_of: no key is in two of them.
/// `usual_pool`: where those are that name none.
value lasting_experiment_shape(const experiment_row& row, const std::string& usual_pool);
/// The pool that the experiment was moved to, or names, or the usual one.
std::string pool_of(const experiment_row& row, const std::string& usual_pool);
value changing_experiment_shape(const experiment_standing& now, const std::string& owner, time_point created,
                                const accounts& users);
/// What is answered where nothing was created: every required key, unset.
value empty_experiment_shape();

/// `full` adds what costs reads: the values of the validations, the best checkpoint.
result<value> trial_shape(const trial_row& row, const storage::reader& storage, time_point now);
/// logRetentionDays into shapes of trials of one experiment, where somebody says how long their logs are
/// kept.
result<void> add_log_retention(value& shapes, const experiment_row& of, const storage::reader& storage);
/// The row that a progress table needs, from the trial's row alone.
value trial_progress_shape(const trial_row& row);

result<value> checkpoint_shape(const checkpoint_row& row, const storage::reader& storage);
/// The checkpoint at the best validation's step, else the newest; nullopt where there is none.
result<std::optional<checkpoint_row>> best_checkpoint(const trial_row& row, const storage::reader& storage);
value checkpoint_files_shape(const checkpoint_row& row);

/// `wrapped`: under avg_metrics or validation_metrics, as the client reads them.
/// Several reports of a run in one group at one step are one to its readers.
bool of_one_step(const metric_row& a, const metric_row& b);
/// The metrics of `more`, too; its values win. Both are of one step.
void join_step(metric_row& to, const metric_row& more);
value metric_report_shape(const metric_row& report, const trial_row& of, bool wrapped);
value training_workload(const metric_row& report);
value checkpoint_workload(const checkpoint_row& row);
/// The map as it was reported; {} where its bytes do not decode.
value reported(const metric_row& report);

value user_shape(const user& u);
value trial_log_shape(const log_line& line, trial_id trial);
value task_log_shape(const log_line& line, const task_row& of);
std::string rendered(const log_line& line);

/// `continued`: number of the continuation whose task it is; 0: the first task of a trial.
/// `outside`: it is an unmanaged trial, which needs no slots.
value task_shape(const task_row& row, const std::vector<run_row>& runs, std::uint32_t continued,
                 bool outside);
value allocation_shape(const task_row& row, const run_row& run, bool outside);

/// `one` is an element of `agents` that the command agent.list answers.
value agent_shape(const value& one);
value slot_shape(const value& slot, const std::string& agent);

std::string state_name(experiment_state state);      ///< "STATE_ACTIVE"
bool is_state_of_experiments(std::string_view text); ///< what state_name gives, or Determined shows beside it
std::string state_name(trial_state state);
std::string level_name(const std::string& level); ///< of a line, as "LOG_LEVEL_INFO"
std::int64_t steps_processed(const trial_row& row);

/// Which part of a list is wanted: {first, last} and the `pagination` of the answer. `usual` is the limit
/// where none is given, 0: all. errc::invalid where the offset lies outside.
struct page {
  std::size_t first = 0, last = 0;
  value pagination;
};
result<page> page_of(const query_list& query, std::size_t total, std::int64_t usual = 0);

} // namespace troupe::api

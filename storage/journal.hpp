#pragma once
// The durable side of the cluster: one writer (`journal`), any number of readers (`reader`), one database.
//
// The writer queues what arrives and makes it durable with one synced write per commit; nothing may be
// acknowledged before the commit that holds it has returned. Facts are never held up. At most `lane_bytes` of
// reports and log lines go into one commit, at most half of that being lines (a single batch may be larger);
// what exceeds this is refused with `errc::busy`. A commit that holds only log lines and samples (group
// "system") is not synced.

#include "model/rows.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace troupe::storage {

struct append {
  std::string entity;
  /// Number of the first fact. A repeat of stored facts is not an error.
  std::uint64_t first = 0;
  std::vector<std::string> facts; ///< encoded facts
};

/// The reports of one library instance in a task. Sequence numbers count from 1 without gaps.
struct report_batch {
  allocation_id allocation;
  std::int32_t rank = 0;
  std::string process; ///< random text, one for each library instance
  std::uint64_t first_sequence = 1;
  struct report {
    /// "training", "validation", or "system" for samples of the host; empty: the report was refused before
    /// and only its number is used up.
    std::string group;
    std::int64_t steps = 0;
    time_point at;
    std::string metrics; ///< a msgpack map; the gateway has checked it
    std::string batches; ///< a msgpack array with a map for each batch; may be empty
    TROUPE_PACKED(group, steps, at, metrics, batches)
  };
  std::vector<report> reports;
};

/// A validation that is durable now and that the experiment has to hear of.
struct recorded_validation {
  experiment_id experiment;
  allocation_id allocation;
  std::int32_t rank = 0;
  std::string process;
  std::uint64_t sequence = 0, row = 0;
  std::int64_t steps = 0;
  std::string metrics;
};

/// What the caller may tell the task once `commit` has returned.
struct report_receipt {
  std::uint64_t up_to = 0; ///< every sequence number up to here is stored, repeats included
  std::vector<recorded_validation> validations; ///< only validations that are new
};

struct log_batch {
  task_id task;
  std::vector<log_line> lines; ///< the journal gives the numbers
  std::string source;          ///< name of the spool that counts `position`, for example "12.3@gpu01"
  /// Position in the spool after the last line; a batch whose position is not above the stored one is a
  /// repeat.
  std::uint64_t position = 0;
};

struct committed_fact {
  std::uint64_t sequence = 0; ///< counts all facts of the cluster from 1, in commit order
  std::string entity;
  std::uint64_t number = 0;
  std::string bytes;
};

struct commit_summary {
  std::uint64_t sequence = 0; ///< sequence of the newest fact
  std::vector<committed_fact> facts;
};

/// The state of an entity after the first `facts` facts of its stream.
struct kept_snapshot {
  std::uint64_t facts = 0;
  std::string bytes; ///< bytes as the owner of the snapshot wrote them
  TROUPE_PACKED(facts, bytes)
};

struct journal_options {
  std::filesystem::path directory;
  std::size_t lane_bytes = 1 << 20;
  std::uint64_t reserve_bytes = 64 << 20; ///< if less space is free, appends are refused with errc::no_space
  /// Whether every row is folded anew from the facts before `open_journal` returns.
  bool rebuild_projections = false;
  /// Called on any thread when background writing begins to wait for space, and when it continues.
  std::function<void(std::string_view)> notice;
};

/// Thread-safe: reads go to a RocksDB snapshot and never wait for the writer.
class reader {
public:
  virtual ~reader() = default;
  virtual std::uint64_t sequence() const = 0; ///< sequence of the newest durable fact
  virtual trial_id newest_trial() const = 0;  ///< highest id that a fact holds; 0: none
  virtual result<std::vector<experiment_row>> experiments() const = 0;
  /// Standings of all experiments, in the order of their ids. They lack the configurations, so that reading
  /// them is a hundred times faster.
  virtual result<std::vector<experiment_standing>> experiment_standings() const = 0;
  virtual result<experiment_row> experiment(experiment_id id) const = 0;
  /// The experiments that were created with this key of their submitters (`numbered_key`). There is more than
  /// one only where a later submitter could not see the earlier ones.
  virtual result<std::vector<experiment_id>> experiments_with_key(std::string_view key) const = 0;
  virtual result<std::vector<trial_row>> trials(experiment_id id) const = 0;
  /// Ids of the experiment's trials that are not deleted, in their order; reads less than `trials`.
  virtual result<std::vector<trial_id>> trial_ids(experiment_id id) const = 0;
  virtual result<trial_row> trial(trial_id id) const = 0;
  /// The trial that has or had this name: after a move, or a change of the project's key, the old name still
  /// leads to the trial. `errc::not_found` if there is none, or it was deleted.
  virtual result<trial_id> trial_with_name(const local_name& name) const = 0;
  virtual result<task_row> task(task_id id) const = 0;
  /// The runs of a task, oldest first.
  virtual result<std::vector<run_row>> runs(task_id id) const = 0;
  /// A task that is not a trial; errc::not_found for any other task.
  virtual result<task_detail> other_task(task_id id) const = 0;
  /// Tasks of one kind other than trials, in the order of their creation. `since`: tasks that ended earlier
  /// are left out.
  virtual result<std::vector<task_detail>> other_tasks(task_kind kind, time_point since = {}) const = 0;
  /// The tasks whose newest run is open, in the order of their ids.
  virtual result<std::vector<task_row>> open_tasks() const = 0;
  /// Rows with numbers above `after`, oldest first; an empty `group` means both groups.
  virtual result<std::vector<metric_row>> metrics(trial_id id, std::uint64_t after, std::size_t limit,
                                                  std::string_view group = {}) const = 0;
  virtual result<metric_row> metric(trial_id id, std::uint64_t row) const = 0;
  virtual result<std::vector<checkpoint_row>> checkpoints(trial_id id) const = 0;
  virtual result<checkpoint_row> checkpoint(std::string_view uuid) const = 0;
  /// `logs` returns lines with numbers above `after`, oldest first; `logs_before` returns lines below
  /// `before`, newest first.
  virtual result<std::vector<log_line>> logs(task_id id, std::uint64_t after, std::size_t limit) const = 0;
  virtual result<std::vector<log_line>> logs_before(task_id id, std::uint64_t before,
                                                    std::size_t limit) const = 0;
  /// Facts above `after` in the order of commits, for live streams.
  virtual result<std::vector<committed_fact>> facts_after(std::uint64_t after, std::size_t limit) const = 0;
  /// The facts of one entity from number `first` on, oldest first.
  virtual result<std::vector<std::string>> facts_of(std::string_view entity,
                                                    std::uint64_t first = 0) const = 0;
  /// The number that the next fact of an entity gets; 0 if it has no facts.
  virtual result<std::uint64_t> next_of(std::string_view entity) const = 0;
  /// The newest fact of each user, in the order of their ids; of each token, including revoked ones; of each
  /// setting; and of the configuration, none if no configuration was ever put in force.
  virtual result<std::vector<user_changed>> users() const = 0;
  virtual result<std::vector<token_changed>> tokens() const = 0;
  virtual result<std::vector<setting_changed>> settings() const = 0;
  virtual result<std::optional<configuration_changed>> configuration() const = 0;
  /// Workspaces, projects and the others that are not deleted, in the order of their ids or names; the
  /// built-in workspace and project come first.
  virtual result<std::vector<workspace_changed>> workspaces() const = 0;
  virtual result<std::vector<project_changed>> projects() const = 0;
  /// A project that is not deleted; errc::not_found for any other.
  virtual result<project_changed> project(project_id id) const;
  virtual result<std::vector<template_changed>> templates() const = 0;
  virtual result<std::vector<model_changed>> models() const = 0;
  virtual result<std::vector<model_version_changed>> model_versions() const = 0;
  /// The newest fact with this tag for each name that begins with `prefix`, encoded, in the order of the
  /// names. For facts that projections/records.cpp keeps; see records_of.
  virtual result<std::vector<std::string>> records(std::string_view tag,
                                                   std::string_view prefix = {}) const = 0;
  /// The newest snapshot of an entity; none if there is none.
  virtual result<std::optional<kept_snapshot>> snapshot_of(std::string_view entity) const = 0;
  /// Names of the entities of one kind ("experiment", "trial", ...) that hold facts.
  virtual result<std::vector<std::string>> entities(std::string_view kind) const = 0;
  /// A blob by its name (see journal::put_blob).
  virtual result<std::string> blob(std::string_view name) const = 0;
};

/// The records of one kind of fact, without those whose thing is deleted.
template <class Fact>
result<std::vector<Fact>> records_of(const reader& reads, std::string_view prefix = {}) {
  auto bytes = reads.records(Fact::tag, prefix);
  if (!bytes)
    return bytes.error();
  std::vector<Fact> out;
  for (const auto& one : *bytes) {
    auto known = decode(one);
    if (!known)
      return known.error();
    auto* wanted = std::get_if<Fact>(&*known);
    if (!wanted)
      return error{errc::corrupt, std::string("a record of ") + Fact::tag + " is something else"};
    if constexpr (requires { wanted->deleted; })
      if (wanted->deleted)
        continue;
    out.push_back(std::move(*wanted));
  }
  return out;
}

/// The only writer. Not thread-safe: the journal actor owns it.
class journal {
public:
  virtual ~journal() = default;

  /// Queues facts. `errc::gap` if `first` leaves a gap, or if other bytes are stored at these numbers. An
  /// exact repeat queues nothing and succeeds (it is durable after the next commit at the latest).
  /// `errc::no_space` if less space is free than the reserve.
  virtual result<void> append(const struct append& x) = 0;

  /// Queues the snapshot of an entity, which replaces the last one. `errc::gap` if the stream has fewer
  /// facts.
  virtual result<void> keep_snapshot(const std::string& entity, const kept_snapshot& x) = 0;

  /// Queues reports. Refused with `errc::conflict` if the run is not the open one of its task (it was fenced
  /// or has ended), or if the task is not a trial, because only trials report metrics; with `errc::gap` if
  /// sequence numbers are missing; with `errc::busy` if the commit has no room left; with `errc::no_space`;
  /// and with `errc::invalid` if a report over HTTP (a negative rank) has a metric that the same run has
  /// reported in that group at those steps. An exact repeat is no such report: it gets the old receipt.
  /// The receipt holds once the next commit has returned.
  virtual result<report_receipt> report(const report_batch& x) = 0;

  virtual result<void> log(const log_batch& x) = 0;

  /// Queues the removal of all stored lines of a task; later lines may follow, with any numbers. `reports`:
  /// whether the task's reports are removed as well.
  virtual result<void> erase_log(task_id task, bool reports = false) = 0;

  /// Position up to which the log of this source is stored; 0 for a new source.
  virtual std::uint64_t log_position(const std::string& source) const = 0;

  /// Stores bytes under the hex digest of their BLAKE2b-256 (durable at the next commit) and returns that
  /// name.
  virtual result<std::string> put_blob(std::string_view bytes) = 0;

  virtual bool dirty() const = 0; ///< whether anything is queued

  /// Writes everything that is queued at once. After `errc::no_space` none of it is durable and nothing stays
  /// queued: whoever queued it is told, and may send it again once there is space. Any other failure closes
  /// the journal for good, and the process has to end: after `errc::io`, nobody knows whether the next start
  /// finds what this commit wrote.
  virtual result<commit_summary> commit() = 0;

  virtual std::shared_ptr<reader> reads() const = 0;
};

/// Opens or creates the database. `errc::conflict` if another process holds it, `errc::no_space` if even the
/// space of the ballast does not suffice, `errc::io` if the directory is read-only or not ours; each error
/// names the directory and the mend.
result<std::unique_ptr<journal>> open_journal(const journal_options& options);

/// The same contract in memory, for the simulation and actor tests.
std::unique_ptr<journal> make_memory_journal();

} // namespace troupe::storage

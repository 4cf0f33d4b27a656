#pragma once
// The durable side of the cluster: one writer (`journal`), any number of readers (`reader`), one database.
//
// The writer queues what arrives and makes it durable with one synced write per commit; nothing may be
// acknowledged before the commit that holds it has returned. Facts are never held up; of reports and log
// lines at most `lane_bytes` go into one commit, lines at most half of that (one batch alone may be larger);
// more is `errc::busy`. A commit of log lines and samples (group "system") alone is not synced.

#include "model/rows.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace troupe::storage {

struct append {
  std::string entity;
  std::uint64_t first = 0;        ///< number of the first fact; a repeat of what is stored is not an error
  std::vector<std::string> facts; ///< encoded
};

/// The reports of one library instance in a task. Sequence numbers count from 1 without gaps.
struct report_batch {
  allocation_id allocation;
  std::int32_t rank = 0;
  std::string process; ///< random, one per library instance
  std::uint64_t first_sequence = 1;
  struct report {
    std::string group; ///< "training", "validation", or "system" for samples of its host; empty: refused
                       ///< before, its number is used up
    std::int64_t steps = 0;
    time_point at;
    std::string metrics; ///< a msgpack map, checked by the gateway
    std::string batches; ///< a msgpack array of maps, one a batch, or empty
    MSGPACK_DEFINE_ARRAY(group, steps, at, metrics, batches)
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
  std::vector<recorded_validation> validations; ///< new ones only
};

struct log_batch {
  task_id task;
  std::vector<log_line> lines; ///< numbers are given by the journal
  std::string source;          ///< name of the spool that counts `position`, as "12.3@gpu01"
  std::uint64_t position =
    0; ///< position in the spool after the last line; a batch at or below the stored one is a repeat
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

/// What an entity was after the first `facts` facts of its stream.
struct kept_snapshot {
  std::uint64_t facts = 0;
  std::string bytes; ///< bytes as the owner of the snapshot wrote them
  MSGPACK_DEFINE_ARRAY(facts, bytes)
};

struct journal_options {
  std::filesystem::path directory;
  std::size_t lane_bytes = 1 << 20;
  std::uint64_t reserve_bytes = 64 << 20; ///< below this much free space appends answer no_space
  bool rebuild_projections = false;       ///< fold every row anew from the facts before the call returns
  /// Told, from any thread, when background writing starts to wait for space and when it goes on.
  std::function<void(std::string_view)> notice;
};

/// Thread-safe: reads go to a RocksDB snapshot and never wait for the writer.
class reader {
public:
  virtual ~reader() = default;
  virtual std::uint64_t sequence() const = 0; ///< sequence of the newest durable fact
  virtual trial_id newest_trial() const = 0;  ///< the highest id that a fact holds, or 0
  virtual result<std::vector<experiment_row>> experiments() const = 0;
  /// Rows of all experiments, in the order of their ids: without the configurations, and so a hundred times
  /// faster.
  virtual result<std::vector<experiment_standing>> experiment_standings() const = 0;
  virtual result<experiment_row> experiment(experiment_id id) const = 0;
  /// The experiment that was created with this key of its submitter; `errc::not_found` where there is none.
  virtual result<experiment_id> experiment_with_key(std::string_view key) const = 0;
  virtual result<std::vector<trial_row>> trials(experiment_id id) const = 0;
  /// Of those that are not deleted, in their order; reads less than `trials`.
  virtual result<std::vector<trial_id>> trial_ids(experiment_id id) const = 0;
  virtual result<trial_row> trial(trial_id id) const = 0;
  /// The trial that has or had this name: a move and another key of the project leave the old one leading to
  /// it. `errc::not_found` where there is none, or it was deleted.
  virtual result<trial_id> trial_with_name(const local_name& name) const = 0;
  virtual result<task_row> task(task_id id) const = 0;
  /// The runs of a task, oldest first.
  virtual result<std::vector<run_row>> runs(task_id id) const = 0;
  /// A task that is no trial; errc::not_found for any other.
  virtual result<task_detail> other_task(task_id id) const = 0;
  /// Tasks of one kind that is not trials, in the order of their creation; `since`: without those that ended
  /// before.
  virtual result<std::vector<task_detail>> other_tasks(task_kind kind, time_point since = {}) const = 0;
  /// The tasks whose newest run is open, in the order of their ids.
  virtual result<std::vector<task_row>> open_tasks() const = 0;
  /// Rows above `after`, oldest first; `group` empty for both.
  virtual result<std::vector<metric_row>> metrics(trial_id id, std::uint64_t after, std::size_t limit,
                                                  std::string_view group = {}) const = 0;
  virtual result<metric_row> metric(trial_id id, std::uint64_t row) const = 0;
  virtual result<std::vector<checkpoint_row>> checkpoints(trial_id id) const = 0;
  virtual result<checkpoint_row> checkpoint(std::string_view uuid) const = 0;
  /// Lines above `after`, oldest first; or with `newest_first` those below `before`.
  virtual result<std::vector<log_line>> logs(task_id id, std::uint64_t after, std::size_t limit) const = 0;
  virtual result<std::vector<log_line>> logs_before(task_id id, std::uint64_t before,
                                                    std::size_t limit) const = 0;
  /// Facts above `after` in commit order: for live streams.
  virtual result<std::vector<committed_fact>> facts_after(std::uint64_t after, std::size_t limit) const = 0;
  /// The facts of one entity from number `first` on, oldest first.
  virtual result<std::vector<std::string>> facts_of(std::string_view entity,
                                                    std::uint64_t first = 0) const = 0;
  /// The number that the next fact of an entity gets; 0 where it has none.
  virtual result<std::uint64_t> next_of(std::string_view entity) const = 0;
  /// The newest fact of each user, in the order of their ids; of each token, revoked ones as well; of each
  /// setting; and of the configuration, none where none was ever put in force.
  virtual result<std::vector<user_changed>> users() const = 0;
  virtual result<std::vector<token_changed>> tokens() const = 0;
  virtual result<std::vector<setting_changed>> settings() const = 0;
  virtual result<std::optional<configuration_changed>> configuration() const = 0;
  /// Those that are not deleted, in the order of their ids or names; of workspaces and projects the built-in
  /// one first.
  virtual result<std::vector<workspace_changed>> workspaces() const = 0;
  virtual result<std::vector<project_changed>> projects() const = 0;
  /// One of those that `projects` gives; errc::not_found for any other.
  virtual result<project_changed> project(project_id id) const;
  virtual result<std::vector<template_changed>> templates() const = 0;
  virtual result<std::vector<model_changed>> models() const = 0;
  virtual result<std::vector<model_version_changed>> model_versions() const = 0;
  /// The newest fact of each name among those with this tag, encoded, in the order of the names; only names
  /// that begin with `prefix`. For facts that projections/records.cpp keeps; see records_of.
  virtual result<std::vector<std::string>> records(std::string_view tag,
                                                   std::string_view prefix = {}) const = 0;
  /// The newest snapshot of an entity; none where there is none.
  virtual result<std::optional<kept_snapshot>> snapshot_of(std::string_view entity) const = 0;
  /// Names of the entities of one kind ("experiment", "trial", ...) that hold facts.
  virtual result<std::vector<std::string>> entities(std::string_view kind) const = 0;
  /// A blob by its name (see journal::put_blob).
  virtual result<std::string> blob(std::string_view name) const = 0;
};

/// The records of one kind of fact, those that say that their thing is deleted left out.
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

  /// Queues facts. `errc::gap` where `first` leaves a gap or other bytes stand at its numbers; an exact
  /// repeat queues nothing and succeeds (it is durable after the next commit at the latest). `errc::no_space`
  /// below the reserve.
  virtual result<void> append(const struct append& x) = 0;

  /// Queues the snapshot of an entity in place of its last one. `errc::gap` where its stream has fewer facts.
  virtual result<void> keep_snapshot(const std::string& entity, const kept_snapshot& x) = 0;

  /// Queues reports. Refused with `errc::conflict` when the run is not the open one of its task (a fenced or
  /// ended run), or the task is not a trial: only trials report metrics; with `errc::gap` when sequence
  /// numbers are missing, `errc::busy` when the lane is full, `errc::no_space`. The receipt holds once the
  /// next commit has returned.
  virtual result<report_receipt> report(const report_batch& x) = 0;

  virtual result<void> log(const log_batch& x) = 0;

  /// Queues the end of all stored lines of a task; later ones may follow, with any numbers. `reports`: and of
  /// what it reported.
  virtual result<void> erase_log(task_id task, bool reports = false) = 0;

  /// Where the log of this source was stored up to; 0 for a new one.
  virtual std::uint64_t log_position(const std::string& source) const = 0;

  /// Stores bytes under the hex digest of their BLAKE2b-256 (durable at the next commit) and returns that
  /// name.
  virtual result<std::string> put_blob(std::string_view bytes) = 0;

  virtual bool dirty() const = 0; ///< whether anything is queued

  /// One write of everything queued. On `errc::no_space` nothing of it is durable and nothing stays queued:
  /// whoever queued it is told, and may send it again once there is space. Any other failure closes the
  /// journal for good, and the process has to end: `errc::io` leaves open whether the last group is found
  /// again.
  virtual result<commit_summary> commit() = 0;

  virtual std::shared_ptr<reader> reads() const = 0;
};

/// Opens or creates the database. `errc::conflict` where another process holds it, `errc::no_space` where
/// even the ballast does not make room, `errc::io` for a read-only or foreign directory; each names the
/// directory and the cure.
result<std::unique_ptr<journal>> open_journal(const journal_options& options);

/// The same contract in memory, for the simulation and actor tests.
std::unique_ptr<journal> make_memory_journal();

} // namespace troupe::storage

#pragma once
// The reader over any store, and the encodings that it shares with the journal.

#include "storage/former_places.hpp"
#include "storage/journal.hpp"
#include "storage/log_search.hpp"
#include "storage/standing_watch.hpp"
#include "storage/store.hpp"
#include "storage/trial_watch.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

namespace troupe::storage {

/// Consecutive facts of one stream within a commit.
struct commit_part {
  std::string entity;
  std::uint64_t first = 0, count = 0;
  TROUPE_PACKED(entity, first, count)
};

/// Facts above number `after`, in the order of commits, at most `limit`.
result<std::vector<committed_fact>> read_facts_after(const view& of, std::uint64_t after, std::size_t limit);

/// The greatest number in the last 8 bytes of the keys in [from, until), 0 where there is no key.
result<std::uint64_t> greatest_number(const view& of, family where, std::string_view from,
                                      std::string_view until);

/// Remembers which trials changed, for the newest 50,000 changes. Thread-safe.
class trial_log {
public:
  void note(const std::vector<trial_id>& changed);
  trial_changes since(std::uint64_t version) const;

private:
  mutable std::mutex mutex_;
  std::deque<std::pair<std::uint64_t, trial_id>> changed_; ///< with their versions, oldest first
  std::uint64_t version_ = 1;
  std::uint64_t known_after_ = 1; ///< changes at this version or before are forgotten
};

class stored_reader : public reader,
                      public line_finder,
                      public standing_watch,
                      public trial_watch,
                      public former_places {
public:
  stored_reader(std::shared_ptr<store> of, std::uint64_t sequence)
      : store_(std::move(of)), sequence_(sequence) {}

  /// Notes what a commit has changed; to be called once it is durable, before `advance`.
  void note(const std::vector<experiment_standing>& changed);
  void note(const std::vector<trial_id>& changed) { changed_trials_.note(changed); }
  void note_reports(const std::vector<trial_id>& of) { reports_.note(of); }
  void advance(std::uint64_t sequence) { sequence_.store(sequence, std::memory_order_release); }

  trial_id newest_trial() const override;
  std::uint64_t sequence() const override { return sequence_.load(std::memory_order_acquire); }
  result<std::vector<experiment_row>> experiments() const override;
  result<std::vector<experiment_standing>> experiment_standings() const override;
  result<standing_changes> standings_since(std::uint64_t version) const override;
  trial_changes trials_since(std::uint64_t version) const override { return changed_trials_.since(version); }
  trial_changes reports_since(std::uint64_t version) const override { return reports_.since(version); }
  result<std::map<trial_id, std::int64_t>> reported_steps(const std::vector<trial_id>& of) const override;
  result<experiment_row> experiment(experiment_id id) const override;
  result<std::vector<experiment_id>> experiments_with_key(std::string_view key) const override;
  result<std::vector<trial_row>> trials(experiment_id id) const override;
  result<std::vector<trial_id>> trial_ids(experiment_id id) const override;
  result<trial_row> trial(trial_id id) const override;
  result<trial_id> trial_with_name(const local_name& name) const override;
  result<task_row> task(task_id id) const override;
  result<std::vector<run_row>> runs(task_id id) const override;
  result<task_detail> other_task(task_id id) const override;
  result<std::vector<task_detail>> other_tasks(task_kind kind, time_point since) const override;
  result<std::vector<task_row>> open_tasks() const override;
  result<std::vector<metric_row>> metrics(trial_id id, std::uint64_t after, std::size_t limit,
                                          std::string_view group) const override;
  result<metric_row> metric(trial_id id, std::uint64_t row) const override;
  result<std::vector<checkpoint_row>> checkpoints(trial_id id) const override;
  result<checkpoint_row> checkpoint(std::string_view uuid) const override;
  result<std::vector<log_line>> logs(task_id id, std::uint64_t after, std::size_t limit) const override;
  result<std::vector<log_line>> logs_before(task_id id, std::uint64_t before,
                                            std::size_t limit) const override;
  result<lines_found> find_lines(const line_search& what) const override;
  result<std::vector<committed_fact>> facts_after(std::uint64_t after, std::size_t limit) const override;
  result<std::vector<std::string>> facts_of(std::string_view entity, std::uint64_t first) const override;
  result<std::uint64_t> next_of(std::string_view entity) const override;
  result<std::vector<user_changed>> users() const override;
  result<std::vector<token_changed>> tokens() const override;
  result<std::vector<setting_changed>> settings() const override;
  result<std::optional<configuration_changed>> configuration() const override;
  result<std::vector<workspace_changed>> workspaces() const override;
  result<std::vector<project_changed>> projects() const override;
  result<project_changed> project(project_id id) const override;
  result<workspace_id> former_workspace(experiment_id id) const override;
  result<workspace_id> former_workspace(model_id id) const override;
  result<std::vector<template_changed>> templates() const override;
  result<std::vector<model_changed>> models() const override;
  result<std::vector<model_version_changed>> model_versions() const override;
  result<std::vector<std::string>> records(std::string_view tag, std::string_view prefix) const override;
  result<std::optional<kept_snapshot>> snapshot_of(std::string_view entity) const override;
  result<std::vector<std::string>> entities(std::string_view kind) const override;
  result<std::string> blob(std::string_view name) const override { return store_->blob(name); }

private:
  result<void> read_standings() const;

  std::shared_ptr<store> store_;
  std::atomic<std::uint64_t> sequence_;
  mutable std::mutex standings_mutex_;
  /// All standings in the order of ids; a deleted experiment stays, without a project. Empty until the first
  /// question.
  mutable std::optional<std::vector<experiment_standing>> standings_;
  mutable std::vector<std::uint64_t> standing_versions_; ///< version of each standing's last change
  std::uint64_t standing_version_ = 1;
  trial_log changed_trials_, reports_;
};

} // namespace troupe::storage

#pragma once
// The tasks as which people see that files of checkpoints are removed: facts of their begin and end, and
// their logs. A part of the retention actor, which alone calls it.

#include "actors/retention/collection.hpp"
#include "actors/shells/probed.hpp"

#include <functional>
#include <map>

namespace troupe {

class collections {
public:
  collections(actor_base<retention_actor>* self, journal_actor journal,
              std::shared_ptr<storage::reader> reads, std::function<std::string(std::size_t)> id_bytes);

  /// Orders of an earlier life that have not ended; to be called once, first.
  std::vector<checkpoint_files_removed> recover();

  /// What begins a collection, but for its id and time: `wanted` below.
  checkpoint_files_removed order_of(experiment_id id, const char* cause, const std::string& by) const;
  checkpoint_files_removed order_of(const experiment_row& row, const char* cause,
                                    const std::string& by) const;

  /// None where it is not open.
  std::optional<checkpoint_files_removed> order(task_id id) const;
  /// Whether the same work goes on already.
  bool is_open(const checkpoint_files_removed& wanted) const;

  /// `wanted` has no id and no time: it becomes a new task, or goes on as an open one for the same work.
  /// `then` gets its id once that is durable. No file goes before that.
  void begin(checkpoint_files_removed wanted, std::function<void(result<task_id>)> then);
  /// Counts it; its line is written by `write_log`.
  void note(task_id id, const removal& one);
  /// `then` runs when the journal has answered; lines that it refused are lost.
  void write_log(task_id id, std::function<void()> then);
  /// Together with the lines that are not yet written. `then` gets an error where the end could not be noted:
  /// the task stays open. One that is not open has ended.
  void end(task_id id, std::function<void(result<void>)> then);

  /// Sends something to the journal, as `goes_to_journal` says together with what others have for it.
  void post(std::function<void()> mail);
  /// While a remover is at work.
  void removing() { ++removing_; }
  void removed();

private:
  struct entry {
    collection what;
    std::vector<log_line> lines; ///< not yet written
    std::uint64_t position = 0;  ///< in its log, of this life
    std::size_t unanswered = 0;  ///< writes of lines
    std::vector<std::function<void()>> when_written;
  };
  void empty_outbox();
  void add_line(task_id id, entry& to, collection_line line);
  void written(task_id id);
  void when_log_written(task_id id, std::function<void()> then);

  actor_base<retention_actor>* self_;
  journal_actor journal_;
  std::shared_ptr<storage::reader> reads_;
  std::function<std::string(std::size_t)> id_bytes_;
  std::string life_; ///< in the names of logs' sources: positions begin anew
  std::map<task_id, entry> open_;
  std::vector<std::function<void()>> outbox_;
  std::size_t removing_ = 0;
};

} // namespace troupe

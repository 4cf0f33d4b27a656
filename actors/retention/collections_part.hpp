#pragma once
// The tasks that show people which files of checkpoints are removed: the facts of their begin and end, and
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

  /// Returns the orders of an earlier life that have not ended; to be called once, before all other
  /// functions.
  std::vector<checkpoint_files_removed> recover();

  /// The order that begins a collection, still without id and time: see `wanted` below.
  checkpoint_files_removed order_of(experiment_id id, const char* cause, const std::string& by) const;
  checkpoint_files_removed order_of(const experiment_row& row, const char* cause,
                                    const std::string& by) const;

  /// The order of an open collection; none if the collection is not open.
  std::optional<checkpoint_files_removed> order(task_id id) const;
  /// Whether an open collection does the same work.
  bool is_open(const checkpoint_files_removed& wanted) const;

  /// Begins a new task, or goes on with an open one for the same work. `wanted` has neither an id nor a time.
  /// `then` gets the task's id once the order is durable. No file is removed before that.
  void begin(checkpoint_files_removed wanted, std::function<void(result<task_id>)> then);
  /// Counts a removal; `write_log` writes its line.
  void note(task_id id, const removal& one);
  /// Writes the lines that are not yet written. `then` runs when the journal has answered; lines that it
  /// refused are lost.
  void write_log(task_id id, std::function<void()> then);
  /// Ends a task, and writes the rest of its lines. `then` gets an error if the end could not be noted: the
  /// task then stays open. A task that is not open counts as ended.
  void end(task_id id, std::function<void(result<void>)> then);

  /// Sends mail to the journal, at once or together with other mail, as `goes_to_journal` says.
  void post(std::function<void()> mail);
  /// A remover begins its work; `removed` tells that it has ended.
  void removing() { ++removing_; }
  void removed();

private:
  struct entry {
    collection what;
    std::vector<log_line> lines; ///< lines that are not yet written
    std::uint64_t position = 0;  ///< position in the log, counted in this life
    std::size_t unanswered = 0;  ///< writes of lines that the journal has not answered
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
  /// Part of the names of logs' sources, because each life counts positions from the beginning.
  std::string life_;
  std::map<task_id, entry> open_;
  std::vector<std::function<void()>> outbox_;
  std::size_t removing_ = 0;
};

} // namespace troupe

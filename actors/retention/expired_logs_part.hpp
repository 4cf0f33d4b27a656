#pragma once
// Erases the logs whose time to be kept is over. A part of the retention actor, which alone calls it.

#include "actors/shells/probed.hpp"

namespace troupe {

class expired_logs {
public:
  expired_logs(actor_base<retention_actor>* self, journal_actor journal,
               std::shared_ptr<storage::reader> reads)
      : self_(self), journal_(std::move(journal)), reads_(std::move(reads)) {}

  /// Erases the logs and answers how many there were.
  caf::result<logs_cleaned> erase();
  /// Erases the logs without an answer; the next look finds what is left.
  void look();

private:
  struct cleaning {
    std::vector<task_id> left;
    std::uint64_t erased = 0;
    caf::typed_response_promise<logs_cleaned> promise;
  };
  std::vector<task_id> find() const;
  bool has_lines(task_id id) const;
  void erase_next(const std::shared_ptr<cleaning>& work);

  actor_base<retention_actor>* self_;
  journal_actor journal_;
  std::shared_ptr<storage::reader> reads_;
};

} // namespace troupe

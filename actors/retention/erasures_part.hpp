#pragma once
// Erases what a user deletes: experiments, single trials, TensorBoard files, files of checkpoints. A part of
// the retention actor, which alone calls it.

#include "actors/retention/bucket_removals_part.hpp"
#include "actors/retention/collections_part.hpp"
#include "actors/retention/remover_actor.hpp"
#include "actors/retention/retention_actor.hpp"

#include <array>

namespace troupe {

class erasures {
public:
  /// `peers`, `tasks` and `buckets` belong to the retention actor and live longer than this object. Spawns
  /// the removers, which end with that actor.
  erasures(actor_base<retention_actor>* self, const retention_peers& peers, collections& tasks,
           bucket_removals& buckets);

  /// Erases what erase_stored names; answers when all of it is gone.
  caf::result<stored_erased> erase(const erase_stored& x);
  /// If the actor was a remover, spawns it again. False if it died too often.
  bool remover_down(const caf::actor_addr& who);

private:
  struct erasing {
    std::vector<trial_id> left; ///< trials whose rows are erased when the files are gone
    stored_erased done;
    caf::typed_response_promise<stored_erased> promise;
    std::vector<checkpoint_files_removed> to_begin; ///< orders that a look at checkpoints has made
    std::vector<task_id> to_carry_out;
    /// Checkpoints of which files could not be removed, with the patterns of the removal.
    std::map<std::string, std::vector<std::string>> failed;
    task_id task; ///< the task that is being carried out
    std::vector<removal_piece> pieces;
    std::size_t removed = 0;  ///< number of `pieces` that are removed or being removed
    std::string why;          ///< reason of the first failure
    bool is_deletion = false; ///< whether an experiment or a trial goes, not only some of its files
    /// Number of checkpoints in buckets at the last look; none: nobody looked yet.
    std::optional<std::size_t> in_bucket;
    bool boards_ordered = false; ///< whether a task removes the TensorBoard files in the bucket
    /// Writes that are not finished: the end of the last task, and the rows.
    int unfinished = 0;
  };
  using work_ptr = std::shared_ptr<erasing>;

  result<void> erase_experiment(const erase_stored& x, const work_ptr& work);
  result<std::vector<bucket_order>> in_buckets(const checkpoint_files_removed& order,
                                               storage_history& history,
                                               const std::vector<trial_row>& trials) const;
  void order_boards(const erase_stored& x, std::vector<bucket_order> orders, const work_ptr& work);
  bucket_removals::done_callback going_on(const erase_stored& x, const work_ptr& work);
  result<void> empty_buckets(const erase_stored& x, std::vector<bucket_order> orders, const work_ptr& work);
  result<std::vector<removal_piece>> pieces_of(const checkpoint_files_removed& order) const;
  result<std::vector<removal_piece>> pieces_of(const checkpoint_files_removed& order,
                                               const experiment_row& experiment,
                                               const std::vector<trial_row>& trials) const;
  std::optional<removal_piece> tensorboards_in(const std::string& folder, experiment_id of,
                                               trial_id trial) const;
  result<std::vector<removal_piece>> pieces_asked_for(const checkpoint_files_removed& order) const;
  void make_remover(std::size_t i);
  void remove_some(const work_ptr& work);
  void remove(const work_ptr& work, const std::shared_ptr<removal_work>& some);
  void note(const work_ptr& work, const removal& one);
  void go_on(const work_ptr& work);
  void end_task(const work_ptr& work);
  void finish(const work_ptr& work);
  void note_left(const work_ptr& work) const;
  void carry_out_next(const work_ptr& work);
  result<void> look_at_checkpoints(const erase_stored& x, const work_ptr& work);
  void order_next(std::vector<bucket_order> orders, const work_ptr& work);
  void begin_next(const work_ptr& work);
  void erase_rows(const work_ptr& work);

  actor_base<retention_actor>* self_;
  const retention_peers& peers_;
  collections& tasks_;
  bucket_removals& buckets_;
  std::shared_ptr<std::array<remover_actor, 2>> removers_ = std::make_shared<std::array<remover_actor, 2>>();
  child_restarts<std::size_t> restarts_; ///< restarts of the removers
  std::size_t next_remover_ = 0;
};

} // namespace troupe

#pragma once
// The users who end, continue, move, archive and delete the searches of a history, and who remember what was
// acknowledged. The orders for one search come one after another, so that the last answer says what has to
// hold.

#include "test/sim/platform/platform.hpp"
#include "test/sim/platform/scene.hpp"

namespace troupe::sim {

class search_users {
public:
  search_users(scene with, const platform_plan& plan, project_id other_project);
  void begin(std::size_t search, experiment_id id);
  /// Whether no user waits for an answer or a deletion.
  bool done() const;
  /// Compares what was acknowledged with what is stored; also right after a restart.
  void check_acknowledged() const;
  void check_ends() const; ///< checks the searches after all have ended
  /// Whether a user may have ended the search early.
  bool is_stopped(experiment_id id) const;
  bool is_deleted(experiment_id id) const; ///< whether its deletion was acknowledged
  bool is_deleted(trial_id id) const;      ///< whether its experiment's deletion was acknowledged

private:
  struct user {
    experiment_id id; ///< 0: the search was not submitted yet
    bool waits = false;
    bool stopped = false, stop_acknowledged = false; ///< since the search's newest continuation
    bool delete_sent = false, deleted = false;
    std::uint32_t continued = 0;       ///< number of acknowledged continuations
    std::optional<bool> archived;      ///< acknowledged value; nullopt: not known
    std::optional<project_id> project; ///< acknowledged value; nullopt: not known
    /// Acknowledged values; nullopt: not known, or never asked for.
    std::optional<int> priority, max_slots, pool;
    std::vector<trial_id> trials;     ///< trials at the time of the order to delete
    std::vector<std::string> folders; ///< folders of checkpoints at that time
  };
  user* user_of(experiment_id id);
  const user* user_of(experiment_id id) const;
  void go_on(std::size_t n, std::size_t wish);
  void await_end(std::size_t n, std::size_t wish, std::function<void()> then);
  void perform(std::size_t n, std::size_t wish, int tries);
  void await_deletion(std::size_t n);
  void note_what_goes(user& of) const;
  void check_gone(const user& of) const;

  scene with_;
  const platform_plan& plan_;
  project_id other_project_;
  std::vector<user> users_;
};

} // namespace troupe::sim

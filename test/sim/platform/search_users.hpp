#pragma once
// Who ends, continues, moves, archives and deletes the searches of a history, and remembers what was
// acknowledged. One after the other for each search, so that what has to hold follows from the last answer.

#include "test/sim/platform/platform.hpp"
#include "test/sim/platform/scene.hpp"

namespace troupe::sim {

class search_users {
public:
  search_users(scene with, const platform_plan& plan, project_id other_project);
  void begin(std::size_t search, experiment_id id);
  /// Whether nobody waits for an answer or a deletion.
  bool done() const;
  void check_acknowledged() const; ///< against what is stored; also right after a restart
  void check_ends() const;         ///< after the end of all
  /// Whether a user may have ended it before its time.
  bool is_stopped(experiment_id id) const;
  bool is_deleted(experiment_id id) const; ///< acknowledged
  bool is_deleted(trial_id id) const;      ///< with its experiment

private:
  struct user {
    experiment_id id; ///< none: it is not submitted
    bool waits = false;
    bool stopped = false, stop_acknowledged = false; ///< since its newest continuation
    bool delete_sent = false, deleted = false;
    std::uint32_t continued = 0;                  ///< acknowledged
    std::optional<bool> archived;                 ///< acknowledged; none: nobody knows
    std::optional<project_id> project;            ///< the same
    std::optional<int> priority, max_slots, pool; ///< the same; of what was ever asked for
    std::vector<trial_id> trials;                 ///< when its deletion was ordered
    std::vector<std::string> folders;             ///< of its checkpoints, then
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

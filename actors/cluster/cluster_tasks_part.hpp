#pragma once
// The tasks that are not trials: this part creates them, owns their actors, and hands on orders to one of
// them or to a whole tree. It is a part of the cluster actor, which alone calls it.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/cluster/created_task.hpp"
#include "actors/cluster/task_tree.hpp"
#include "actors/shells/probed.hpp"
#include "actors/task/task_actor.hpp"
#include "model/commands/table.hpp"

#include <map>
#include <optional>
#include <set>

namespace troupe {

class cluster_members;

class cluster_tasks {
public:
  struct needs {
    std::function<std::map<std::string, pool_actor>()> pools;
    std::function<void(const members_event&)> tell_members;
    std::function<void()> arm;      ///< to be called when `deadline` has changed
    const cluster_members& members; ///< another part of the cluster actor; it outlives this object
  };
  /// `setup`, `peers` and `machine` belong to the cluster actor and outlive this object.
  cluster_tasks(actor_base<cluster_actor>* self, const cluster_setup& setup, const cluster_peers& peers,
                cluster_machines& machine, needs with);

  /// Makes an actor for every task that has not ended, as the journal knows it.
  void recover();
  /// Calls `each` for every live task whose newest run may be open, with that run.
  void each_open(const std::function<void(task_id, const run_row&)>& each) const;
  std::vector<task_actor> all() const;
  task_actor actor_of(task_id id) const; ///< null where the task has no live actor
  void finished(task_id id);
  /// Whether the dead actor was one of this part's; then the actor is made again from the journal.
  bool child_down(const caf::down_msg& down);
  std::optional<time_point> deadline() const { return end_at_; }
  void time_passed();
  void end_all(const caf::error& why);
  /// Kills the tasks of a workspace that is being deleted.
  void kill_in(workspace_id workspace, const commands::task_stop& order);

  using commands_here = commands::work_commands;
  /// Obeys one of `commands_here`.
  caf::result<command_result> obey(client_command& x);
  /// Hands a call of a task's processes to the task, which hands it on to its open allocation where needed.
  caf::result<command_result> hand_on(allocation_id from, task_call call);

private:
  caf::result<command_result> on(const std::string& user, commands::task_create x);
  caf::result<command_result> on(const std::string& user, const commands::task_kill& x);
  caf::result<command_result> on(const std::string& user, const commands::task_pause& x);
  caf::result<command_result> on(const std::string& user, const commands::task_unpause& x);
  caf::result<command_result> on(const std::string& user, const commands::task_set& x);
  caf::result<command_result> on(const std::string& user, const commands::task_use& x);

  using promise = caf::typed_response_promise<command_result>;
  struct live_task {
    task_actor actor; ///< null: the actor is being made again
    task_id parent;
    int no_pause = -1;
    workspace_id workspace;
    std::optional<commands::task_stop> to_hear; ///< order that waits until the actor lives again
  };
  /// The end of a task that is given up, until that end is durable.
  struct last_words {
    std::string why;
    allocation_id run; ///< run that was open when the task was given up; run 0: none was open
    std::vector<placement> on;
  };

  result<task_created> with_experiment(task_created made) const;
  result<task_settings> settings_of(const task_created& created) const;
  void start(task_settings settings, const task_created& made, const std::vector<task_fact>& past,
             std::vector<allocation_fact> of_run = {});
  void recover_one(const task_detail& row);
  void make_again(task_id id);
  void stop(task_id id, const commands::task_stop& order);
  void abandon(const task_detail& row, const std::string& why);
  void say_last_words(task_id id);
  void last_words_are_said(task_id id);
  /// Stores the files of a task that is to be created, then its creation.
  void store(created_task wanted, std::string files, promise to);
  void give_up(const task_created& made);
  struct creation;
  /// Appends the creation, and answers `to` when the journal has said whether it is stored, however late.
  void append(task_created made, value answer, promise to);
  void append(std::shared_ptr<creation> x);
  task_world world(const std::string& user) const;
  result<task_detail> known(const std::string& id) const;
  caf::result<command_result> order(task_id id, task_call call);
  task_parents parents_of_all(task_id asked) const;
  std::vector<task_id> live_below(task_id asked, bool from_root = false) const;
  std::vector<tree_member> members_below(task_id root) const;
  /// Sends `call` to each task, and answers `to` when all have answered. The answer is the first refusal; a
  /// refusal because the task has ended meanwhile does not count.
  void order_all(const std::vector<task_id>& ids, const std::function<task_call(task_id)>& call, promise to);

  actor_base<cluster_actor>* self_;
  const cluster_setup& setup_;
  const cluster_peers& peers_;
  cluster_machines& machine_;
  needs with_;
  std::map<task_id, live_task> tasks_;
  std::map<caf::actor_addr, task_id> by_address_;
  /// The task that this user created with this key, and that lives or ended within the last day; none: no
  /// such task.
  std::optional<task_detail> made_with(task_kind kind, const std::string& user, const std::string& key) const;
  std::set<std::string> creating_; ///< user and key (see key_of) of each creation that is not durable yet
  child_restarts<task_id> restarts_;
  std::map<task_id, last_words> ending_;
  std::optional<time_point> end_at_; ///< when the appends of `ending_` are tried again
  bool closing_ = false;
};

} // namespace troupe

#pragma once
// The users who create the tasks of a history that are not trials, give the orders of their plans, and
// remember what was acknowledged. The orders for one task come one after another, so that the last answer
// says what has to hold.

#include "test/sim/platform/platform.hpp"
#include "test/sim/platform/scene.hpp"

namespace troupe::sim {

class task_users {
public:
  /// `keyless` is a planted fault: creations have no key.
  task_users(scene with, const platform_plan& plan, bool keyless);
  void begin();
  bool want_nothing() const; ///< whether every user has had all answers, and waits at most for an end
  /// Whether every task was created and has ended, and no user waits for an answer. It reads facts.
  bool done() const;
  /// Compares what users were told with what is stored. Also used right after a restart.
  void check_acknowledged() const;
  /// Checks after the end of all tasks that each has ended once, as its plan and its users say. `all`: what
  /// is stored of tasks that are not trials; `losses`: whether hosts were away so long that any task may have
  /// been lost.
  void check_ends(const std::vector<task_detail>& all, bool losses) const;
  void hit(task_id id); ///< says that the task's sandbox or its host has died
  std::string describe() const;

  /// The plan of the task that is started with these environment variables; null where it has none.
  static const task_plan* plan_of(const platform_plan& plan, const std::map<std::string, std::string>& env);
  /// The configuration with which the task is submitted; its environment variables say which task it is.
  static value config_of(const task_plan& one, std::size_t number);

private:
  struct user {
    task_id id;              ///< none: the creation was not answered yet
    bool waits = true;       ///< the user waits for a time, an answer, or the end
    bool only_looks = false; ///< the user has no wish left, and looks now and then whether the task has ended
    bool kill_sent = false;  ///< a kill was sent, by its own user or by that of a task above it
    bool killed = false;     ///< a kill was acknowledged
    std::optional<bool> paused;  ///< acknowledged value; nullopt: not known
    std::optional<int> priority; ///< acknowledged value; nullopt: not known
  };
  void create(std::size_t n);
  void go_on(std::size_t n, std::size_t wish);
  void perform(std::size_t n, std::size_t wish);
  void kill(std::size_t n, bool tree, std::function<void()> then);
  void hold(std::size_t n, bool on, std::function<void()> then);
  void wait_for_end(std::size_t n, int looks);
  void order(std::size_t n, const char* what, value fields, std::function<void(bool done)> then);
  std::vector<std::size_t> below(std::size_t n) const; ///< the task itself and the tasks below it
  /// Whether the task is paused and resumed together with the task above it.
  bool follows(std::size_t n) const;
  /// `made`: number of tasks that were made of this one's plan.
  void check_end(std::size_t n, const std::vector<task_detail>& all, std::ptrdiff_t made, bool losses) const;

  scene with_;
  const platform_plan& plan_;
  bool keyless_;
  std::vector<user> users_;
  std::set<task_id> hit_; ///< may hold ids that no user knows yet
};

} // namespace troupe::sim

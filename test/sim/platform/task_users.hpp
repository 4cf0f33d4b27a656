#pragma once
// Who creates the tasks of a history that are no trials, orders what their plans say, and remembers what was
// acknowledged. One after the other for each task, so that what has to hold follows from the last answer.

#include "test/sim/platform/platform.hpp"
#include "test/sim/platform/scene.hpp"

namespace troupe::sim {

class task_users {
public:
  /// `keyless`: a planted fault, creations have no key.
  task_users(scene with, const platform_plan& plan, bool keyless);
  void begin();
  /// Whether each is created and has ended, and nobody waits for an answer.
  bool done() const;
  /// What a user was told, against what is stored. Also right after a restart.
  void check_acknowledged() const;
  /// After the end of all: each has ended once, as its plan and its users say. `losses`: whether hosts were
  /// so long away that any of them may have been lost.
  void check_ends(bool losses) const;
  void hit(task_id id); ///< its sandbox, or the host of it, has died of itself
  std::string describe() const;

  /// The plan of the one that is started with these variables of the environment; null: it has none.
  static const task_plan* plan_of(const platform_plan& plan, const std::map<std::string, std::string>& env);
  /// The configuration that it is submitted with, and whose variables say which it is.
  static value config_of(const task_plan& one, std::size_t number);

private:
  struct user {
    task_id id;                  ///< none: nobody has answered yet
    bool waits = true;           ///< for a time or an answer, or for the end
    bool kill_sent = false;      ///< by its own users, or by those of one above it
    bool killed = false;         ///< acknowledged
    std::optional<bool> paused;  ///< acknowledged; none: nobody knows
    std::optional<int> priority; ///< acknowledged; none: nobody knows
  };
  void create(std::size_t n);
  void go_on(std::size_t n, std::size_t wish);
  void perform(std::size_t n, std::size_t wish);
  void kill(std::size_t n, bool tree, std::function<void()> then);
  void hold(std::size_t n, bool on, std::function<void()> then);
  void wait_for_end(std::size_t n, int looks);
  void order(std::size_t n, const char* what, value fields, std::function<void(bool done)> then);
  std::vector<std::size_t> below(std::size_t n) const; ///< itself first
  bool follows(std::size_t n) const; ///< whether it is paused and goes on with the one above it
  void check_end(std::size_t n, bool losses) const;

  scene with_;
  const platform_plan& plan_;
  bool keyless_;
  std::vector<user> users_;
  std::set<task_id> hit_; ///< also before its user knows its id
};

} // namespace troupe::sim

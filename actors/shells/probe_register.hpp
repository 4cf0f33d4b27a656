#pragma once
// The live actors of one node by name, and what watches, disturbs or traces them. The shell stands on it.

#include "actors/shells/message_watch.hpp"
#include "model/result.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/actor_system_config.hpp>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

namespace troupe {

/// Something worth knowing that is no fact: an actor died, came again, was disturbed.
struct supervision_event {
  std::uint64_t number = 0;
  time_point at;
  std::string kind, actor, what, user;
};

/// The live actors of one node, and what watches them. Thread-safe.
class probe_register {
public:
  struct entry {
    std::shared_ptr<probe> what;
    caf::weak_actor_ptr who;
  };
  ~probe_register();
  void add(std::shared_ptr<probe> p, caf::weak_actor_ptr who);
  /// `why`: the reason of an end that nobody wanted, or empty.
  void remove(const std::shared_ptr<probe>& p, const std::string& why);
  std::vector<std::shared_ptr<probe>> all() const;
  std::optional<entry> find(const std::string& name) const;
  /// Also of the last thousand that have ended; empty where it is not known.
  std::string name_of(std::uint64_t actor_id) const;
  int restarts(const std::string& name) const;

  void watch(std::shared_ptr<message_watch> x);
  void unwatch(const std::shared_ptr<message_watch>& x);
  void disturb(std::shared_ptr<message_fault> x);
  void forget_faults();
  /// Changes whenever watches or faults do.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  std::vector<std::shared_ptr<message_watch>> watches() const;
  std::vector<std::shared_ptr<message_fault>> faults() const;

  void note(std::string kind, std::string actor, std::string what, std::string user = {});
  /// The newest few with numbers above `after`, oldest first.
  std::vector<supervision_event> events(std::uint64_t after, std::size_t most) const;

  /// One line a message from now on, into this file. Fails when it cannot be opened.
  result<void> trace_to(const std::string& file);
  bool tracing() const { return trace_on_.load(std::memory_order_relaxed); }
  void write(const std::string& actor, const std::string& what, const std::string& text);

  const tick_scale scale;
  std::atomic<int> log_level{2}; ///< 0 error, 1 warning, 2 info, 3 debug: how much goes to stderr
  bool allow_faults = false;     ///< set before any actor lives

private:
  void changed() { version_.fetch_add(1, std::memory_order_relaxed); }
  void note_locked(std::string kind, std::string actor, std::string what, std::string user);

  mutable std::mutex mutex_;
  std::map<std::string, entry> live_;
  std::unordered_map<std::uint64_t, std::string> names_;
  std::deque<std::uint64_t> ended_;
  std::map<std::string, int> restarts_;
  std::set<std::string> dead_;
  std::vector<std::shared_ptr<message_watch>> watches_;
  std::vector<std::shared_ptr<message_fault>> faults_;
  std::deque<supervision_event> events_;
  std::uint64_t newest_event_ = 0;
  std::atomic<std::uint64_t> version_{1};
  std::atomic<bool> trace_on_{false};
  std::FILE* trace_ = nullptr;
};

/// Ours: message types, and the register that the actors of this system enter.
class node_config : public caf::actor_system_config {
public:
  node_config();
  std::shared_ptr<probe_register> probes = std::make_shared<probe_register>();
};

} // namespace troupe

#pragma once
// The live actors of one node by name, and what watches, disturbs or traces them. The operators' shell reads
// it.

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

/// An event that operators may want to know and that is not a fact: an actor died, was made again, or was
/// disturbed.
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
  /// `why`: the reason of an end that nobody wanted; empty: the end was wanted.
  void remove(const std::shared_ptr<probe>& p, const std::string& why);
  std::vector<std::shared_ptr<probe>> all() const;
  std::optional<entry> find(const std::string& name) const;
  /// The name of an actor that lives, or is one of the last thousand that have ended; empty if it is not
  /// known.
  std::string name_of(std::uint64_t actor_id) const;
  int restarts(const std::string& name) const;

  void watch(std::shared_ptr<message_watch> x);
  void unwatch(const std::shared_ptr<message_watch>& x);
  void disturb(std::shared_ptr<message_fault> x);
  void forget_faults();
  /// Changes whenever watches or faults change.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  std::vector<std::shared_ptr<message_watch>> watches() const;
  std::vector<std::shared_ptr<message_fault>> faults() const;

  void note(std::string kind, std::string actor, std::string what, std::string user = {});
  /// The newest events with numbers above `after`, at most `most`, oldest first.
  std::vector<supervision_event> events(std::uint64_t after, std::size_t most) const;

  /// From now on, writes one line for each message into this file. Fails if the file cannot be opened.
  result<void> trace_to(const std::string& file);
  bool tracing() const { return trace_on_.load(std::memory_order_relaxed); }
  void write(const std::string& actor, const std::string& what, const std::string& text);

  const tick_scale scale;
  /// Limit of what is written to stderr: 0 error, 1 warning, 2 info, 3 debug.
  std::atomic<int> log_level{2};
  bool allow_faults = false; ///< set before any actor lives; constant from then on

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

/// The configuration of our own actor systems: message types, and the register that their actors enter.
class node_config : public caf::actor_system_config {
public:
  node_config();
  std::shared_ptr<probe_register> probes = std::make_shared<probe_register>();
};

} // namespace troupe

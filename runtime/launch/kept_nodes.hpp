#pragma once
// When the agents that a configuration names are started, given up and started again. Pure; the processes are
// node_keeper.cpp's.

#include "model/time.hpp"
#include "model/value.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace troupe::launch {

// Events.
struct nodes_wanted {
  value nodes; ///< of the configuration in force, as a list
};
struct start_tried {
  std::string name;
  std::string fault; ///< why the process could not be made; empty: it runs
};
struct child_ended { ///< the agent of this host, or the ssh that starts one elsewhere
  std::string name;
  int exit_code = -1; ///< -1: a signal ended it
  int signal = 0;
};
struct clock_ticked {};
using keeper_event = std::variant<nodes_wanted, start_tried, child_ended, clock_ticked>;

// Actions.
struct start_agent { ///< answered by start_tried
  std::string name;
  value node; ///< as the configuration has it
};
struct kill_ssh { ///< the ssh has taken too long; child_ended follows
  std::string name;
};
struct end_agent { ///< with its tasks
  std::string name;
  value node;
};
struct say_line { ///< to people
  std::string text;
};
using keeper_action = std::variant<start_agent, kill_ssh, end_agent, say_line>;

/// Over ssh; else a child of this process.
bool is_remote(const value& node);

/// Not thread-safe: one thread owns it. One node:
///
///   due --start_agent--> running --ended--> waiting --back-off--> due
///
/// Of a host over ssh the child is the ssh: where it ends well its agent runs, and it is looked for again.
class kept_nodes {
public:
  static constexpr duration first_wait = std::chrono::milliseconds(500),
                            longest_wait = std::chrono::seconds(30); ///< between two starts
  static constexpr duration good_life = std::chrono::seconds(60);    ///< after which the back-off begins anew
  static constexpr duration remote_every = std::chrono::seconds(20); ///< an agent over ssh is looked for
  static constexpr duration ssh_limit = std::chrono::seconds(120);

  /// `logs`: the folder in which the agents' logs lie, for people.
  explicit kept_nodes(std::string logs) : logs_(std::move(logs)) {}

  [[nodiscard]] std::vector<keeper_action> apply(const keeper_event& ev, time_point now);
  /// Ends all that is kept.
  [[nodiscard]] std::vector<end_agent> stop();

private:
  struct kept_node {
    value node;
    bool running = false;
    time_point begun, due;
    int failures = 0; ///< in a row
    bool up = false;  ///< whether the agent over ssh was seen
  };
  using out = std::vector<keeper_action>;
  void on(out& o, const nodes_wanted& ev, time_point now);
  void on(out& o, const start_tried& ev, time_point now);
  void on(out& o, const child_ended& ev, time_point now);
  void on(out& o, const clock_ticked& ev, time_point now);
  /// Answers how long it waits before the next start.
  static duration put_off(kept_node& one, time_point now);

  std::string logs_;
  std::map<std::string, kept_node> nodes_;
};

} // namespace troupe::launch

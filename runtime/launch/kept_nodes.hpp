#pragma once
// When the agents that a configuration names are started, given up and started again. Pure; node_keeper.cpp
// holds the processes.

#include "model/time.hpp"
#include "model/value.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace troupe::launch {

// Events.
struct nodes_wanted {
  value nodes; ///< nodes of the configuration in force, as a list
};
struct start_tried {
  std::string name;
  std::string fault; ///< why the process could not be made; empty: it runs
};
struct child_ended { ///< the agent of this host, or the ssh that starts an agent elsewhere
  std::string name;
  int exit_code = -1; ///< -1: a signal ended it
  int signal = 0;
};
struct clock_ticked {};
using keeper_event = std::variant<nodes_wanted, start_tried, child_ended, clock_ticked>;

// Actions.
struct start_agent { ///< start_tried answers it
  std::string name;
  value node; ///< as the configuration has it
};
struct kill_ssh { ///< the ssh took too long; child_ended follows
  std::string name;
};
struct end_agent { ///< ends its tasks too
  std::string name;
  value node;
};
struct say_line { ///< for people
  std::string text;
};
using keeper_action = std::variant<start_agent, kill_ssh, end_agent, say_line>;

/// Whether it is started over ssh; otherwise it is a child of this process.
bool is_remote(const value& node);

/// Not thread-safe: one thread owns it. The states of one node:
///   due --start_agent--> running --ended--> waiting --back-off--> due
/// For a host over ssh the child is the ssh: where that ends well, the agent runs, and is looked for again.
class kept_nodes {
public:
  static constexpr duration first_wait = std::chrono::milliseconds(500),
                            longest_wait = std::chrono::seconds(30); ///< between two starts
  static constexpr duration good_life = std::chrono::seconds(60);    ///< then the back-off begins anew
  static constexpr duration remote_every = std::chrono::seconds(20); ///< looks for an agent over ssh
  static constexpr duration ssh_limit = std::chrono::seconds(120);

  /// `logs` is the folder of the agents' logs, for messages.
  explicit kept_nodes(std::string logs) : logs_(std::move(logs)) {}

  [[nodiscard]] std::vector<keeper_action> apply(const keeper_event& ev, time_point now);
  /// Ends all agents that are kept.
  [[nodiscard]] std::vector<end_agent> stop();

private:
  struct kept_node {
    value node;
    bool running = false;
    time_point begun, due;
    int failures = 0; ///< in a row
    bool up = false;  ///< whether the agent over ssh was found
  };
  using out = std::vector<keeper_action>;
  void on(out& o, const nodes_wanted& ev, time_point now);
  void on(out& o, const start_tried& ev, time_point now);
  void on(out& o, const child_ended& ev, time_point now);
  void on(out& o, const clock_ticked& ev, time_point now);
  /// Returns how long the node waits before its next start.
  static duration put_off(kept_node& one, time_point now);

  std::string logs_;
  std::map<std::string, kept_node> nodes_;
};

} // namespace troupe::launch

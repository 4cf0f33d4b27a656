#pragma once
// `troupe pool replay -`: runs one pool by hand and prints a JSON line for each JSON line that it reads.

#include "actors/pool/pool.hpp"

#include <iosfwd>

namespace troupe::replay {

class pool_replay {
public:
  /// The answer to one line: its actions; or `{"error": ...}`, and then nothing has changed.
  value answer(std::string_view line);

private:
  /// What the lines have said so far: the ids of the names in the lines, and what a line may say next. It is
  /// small enough to be copied before a batch, in which one bad event undoes all others.
  struct story {
    time_point at;
    std::map<std::string, allocation_id> ids;
    std::map<std::string, experiment_id> jobs;
    std::map<experiment_id, job_terms> terms;
    std::map<std::string, int> agents; ///< number of slots of each agent that is there
    std::set<std::string> came;        ///< all agents that have ever been there
    std::vector<std::string> names;    ///< the name for each number of an id, beginning with 1
    std::map<std::pair<std::string, int>, std::string> held;
    std::map<std::string, std::vector<std::pair<std::string, int>>> holders;
    void take(const std::string& agent, int slot, const std::string& name);
    void let_go(const std::string& name);
  };
  class reading;

  result<value> start(const value& header);
  result<value> step(const value& line);
  result<value> explain(const value& line);
  value shown(const std::vector<pool_action>& actions);
  std::string name_of(allocation_id id) const;

  std::optional<pool> pool_;
  story story_;
};

int replay_pool(std::istream& in, std::ostream& out);
} // namespace troupe::replay

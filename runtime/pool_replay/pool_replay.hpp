#pragma once
// `troupe pool replay -`: one pool by hand, a JSON line out for each JSON line in.

#include "actors/pool/pool.hpp"

#include <iosfwd>

namespace troupe::replay {

class pool_replay {
public:
  /// The answer to one line: its actions, or `{"error": ...}` with nothing changed.
  value answer(std::string_view line);

private:
  /// What the lines have said so far: how the names of the lines map to ids, and what a line may say next.
  /// Small enough to be copied before a batch, of which one bad event undoes all.
  struct story {
    time_point at;
    std::map<std::string, allocation_id> ids;
    std::map<std::string, experiment_id> jobs;
    std::map<experiment_id, job_terms> terms;
    std::map<std::string, int> agents; ///< slots of those that have come
    std::vector<std::string> names;    ///< by the number of the id, from 1
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

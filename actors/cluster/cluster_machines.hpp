#pragma once
// The two machines whose facts are the stream "cluster": each takes its own facts and passes over the
// other's.

#include "actors/cluster/cluster.hpp"
#include "actors/cluster/members.hpp"

namespace troupe {

struct cluster_machines {
  cluster ids;
  members who;

  void replay(const cluster_fact& fact) {
    ids.replay(fact);
    who.replay(fact);
  }
  std::string snapshot() const { return ids.snapshot() + who.snapshot(); }
  value describe() const {
    auto shown = ids.describe();
    shown.update(who.describe());
    return shown;
  }
};

} // namespace troupe

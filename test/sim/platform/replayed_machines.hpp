#pragma once
// Machines of experiments and trials that see nothing but what is stored. Whenever all that a live one has
// decided is stored, both are in the same state, byte by byte.

#include "actors/experiment/experiment_settings.hpp"
#include "actors/shells/probe_register.hpp"
#include "storage/journal.hpp"

#include <caf/all.hpp>

#include <map>
#include <set>

namespace troupe::sim {

class replayed_machines {
public:
  /// `skips`: a planted fault, what a trial's machine replays lacks its pauses.
  replayed_machines(node_config& config, bool skips);

  void stored(const storage::commit_summary& what, const storage::reader& reads);
  /// `ran` has heard an answer. What differs; empty: nothing.
  std::string differs_after(const caf::scheduled_actor* ran);
  std::uint64_t compared() const { return compared_; }

private:
  template <class Machine>
  struct replayed {
    Machine machine;
    std::uint64_t facts = 0;
  };
  void take(const storage::committed_fact& x, const storage::reader& reads);
  void take(experiment_id id, const experiment_fact& fact, const storage::reader& reads);
  void take(trial_id id, const trial_fact& fact);
  template <class Machine>
  std::string compare(const std::string& entity, const replayed<Machine>& with, caf::scheduled_actor& live);

  node_config& config_;
  probe_register& probes_;
  bool skips_;
  std::map<experiment_id, experiment_settings> settings_;
  std::map<std::string, replayed<experiment>> experiments_;
  std::map<std::string, replayed<trial>> trials_;
  std::set<std::string> changed_; ///< entities whose machines are to be compared
  std::uint64_t compared_ = 0;
};

} // namespace troupe::sim

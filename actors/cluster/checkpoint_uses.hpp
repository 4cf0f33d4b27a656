#pragma once
// Which checkpoints trials begin with, and of which checkpoints files are being removed. No checkpoint is
// both: the parts of the cluster actor ask here when they decide that a checkpoint comes into use, or that
// its files go. Pure, and soft state: after a start the parts tell again what is open.

#include "actors/catalogue/registry.hpp"
#include "actors/cluster/cluster.hpp"
#include "model/rows.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// Not thread-safe: one actor owns it.
class checkpoint_uses {
public:
  /// Trials of experiment `who` begin with these checkpoints, as well as with those that were told before.
  void begin_with(experiment_id who, const std::set<std::string>& uuids);
  void forget(experiment_id who); ///< no trial of the experiment will begin any more
  const std::map<experiment_id, std::set<std::string>>& sources() const { return sources_; }
  /// The experiment that begins its trials with the checkpoint; 0: no experiment does.
  experiment_id beginner_with(const std::string& uuid) const;
  /// Whether the checkpoint is a version of a model, or an experiment begins its trials with it. Then its
  /// files stay.
  bool in_use(const std::string& uuid, const registry& books) const;

  /// The order `name` removes files of these checkpoints until `end_removal`. A repeat changes nothing.
  void begin_removal(const std::string& name, const std::vector<std::string>& uuids);
  void end_removal(const std::string& name);
  /// Why the checkpoint can come into no use, in words that follow its name ("is deleted"); empty: it can.
  std::string unusable(const checkpoint_row& row, const cluster& ids) const;

private:
  std::map<experiment_id, std::set<std::string>> sources_;
  std::map<std::string, std::vector<std::string>> removals_; ///< UUIDs, by the name of the order
  std::map<std::string, std::size_t> removing_;              ///< number of orders, by UUID
};

} // namespace troupe

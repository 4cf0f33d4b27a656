#pragma once
// The files that Determined's master and agents are started with, as what Troupe is started with. Pure.

#include "model/config/cluster_file.hpp"

namespace troupe::config {

struct moved_master {
  value cluster_file; ///< as a person would write it; meaningful where there is no fault
  std::vector<diagnostic>
    faults;                      ///< what cannot be read, or contradicts what Troupe does: images, Kubernetes
  std::vector<diagnostic> notes; ///< each key without effect, once, with the reason; and what is done by hand
};
moved_master move_master(std::string_view text, std::string_view file);

struct moved_agent {
  std::string master; ///< HOST:PORT
  std::string name, pool;
  std::optional<int> slots;
  std::vector<diagnostic> faults, notes;
};
/// Whether it is a file of an agent: it names a master.
bool is_of_agent(std::string_view text, std::string_view file);
moved_agent move_agent(std::string_view text, std::string_view file);

/// Faults with their lines and carets, then notes, each in a line (and its hint); no secret of `text` is in
/// it.
std::string rendered(const std::vector<diagnostic>& faults, const std::vector<diagnostic>& notes,
                     std::string_view text);

/// Reads the file at `path`, of a master of Determined, as the cluster file that it becomes. `say` hears the
/// notes; a file with faults cannot be read, the reason being all of them.
file_world as_determined(file_world world, const std::string& path,
                         std::function<void(const std::string&)> say);

} // namespace troupe::config

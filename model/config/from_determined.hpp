#pragma once
// Turns the files that start Determined's master and agents into what starts Troupe. Pure.

#include "model/config/cluster_file.hpp"

namespace troupe::config {

struct moved_master {
  value cluster_file; ///< as a person would write it; meaningful where there is no fault
  std::vector<diagnostic>
    faults;                      ///< what cannot be read, or contradicts what Troupe does: images, Kubernetes
  std::vector<diagnostic> notes; ///< each key without effect, once, with the reason; and what is left to do
};
moved_master move_master(std::string_view text, std::string_view file);

struct moved_agent {
  std::string master; ///< HOST:PORT
  std::string name, pool;
  std::optional<int> slots;
  std::vector<diagnostic> faults, notes;
};
/// Whether it is the file of an agent, which names a master.
bool is_of_agent(std::string_view text, std::string_view file);
moved_agent move_agent(std::string_view text, std::string_view file);

/// The faults with their lines and carets, then the notes, each on a line with its hint. No secret of `text`
/// is in it.
std::string rendered(const std::vector<diagnostic>& faults, const std::vector<diagnostic>& notes,
                     std::string_view text);

/// Makes a world in which the file at `path`, of a Determined master, reads as the cluster file that it
/// becomes. `say` gets the notes. A file with faults cannot be read; the error holds all of them.
file_world as_determined(file_world world, const std::string& path,
                         std::function<void(const std::string&)> say);

} // namespace troupe::config

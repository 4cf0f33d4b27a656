#pragma once
// What a master does about its cluster file: puts it in force at the start and on SIGHUP, and keeps the nodes
// that the configuration in force names.

#include "runtime/client/cluster_configuration.hpp"
#include "runtime/launch/node_keeper.hpp"
#include "runtime/node/node.hpp"

#include <memory>

namespace troupe::launch {

class cluster_service {
public:
  /// `file` may be empty: then the configuration in force counts. `determined`: it is one of a master of
  /// Determined (model/config/from_determined.hpp).
  explicit cluster_service(std::filesystem::path file, bool determined = false);
  ~cluster_service();

  /// Reads the file and takes from it what the command line left open. Fails with errc::invalid, the text
  /// being every fault with its place.
  result<void> read(node::node_options& options);
  /// Hooks into a node that is about to start.
  void attach(node::node_options& options);
  /// Puts the file in force in the node that has started, and begins to keep nodes.
  result<void> begin(const node::node& running, const node::node_options& how);
  /// Whether the configuration has nodes of its own, so that none is in this process.
  bool has_nodes() const;
  /// What else somebody has to do; lines, or empty.
  std::string to_do() const;
  /// Blocks until the nodes that it starts have registered, or for 60 s.
  result<void> wait_for_nodes();
  /// Reads the file again, from a thread of its own; a bad one is logged and changes nothing. `done` hears
  /// the end.
  void reload(std::function<void()> begun, std::function<void()> done);
  void stop();
  bool answers() const; ///< whether the HTTP port of this process answers

private:
  struct impl;
  std::unique_ptr<impl> inside_;
};

} // namespace troupe::launch

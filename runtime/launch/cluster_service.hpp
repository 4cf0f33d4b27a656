#pragma once
// What a master does with its cluster file: it puts the file in force at the start and on SIGHUP, and keeps
// the nodes that the configuration in force names.

#include "runtime/client/cluster_configuration.hpp"
#include "runtime/launch/node_keeper.hpp"
#include "runtime/node/node.hpp"

#include <memory>

namespace troupe::launch {

class cluster_service {
public:
  /// `file` may be empty: then the configuration in force counts. `determined` says that it is a file of a
  /// Determined master (model/config/from_determined.hpp).
  explicit cluster_service(std::filesystem::path file, bool determined = false);
  ~cluster_service();

  /// Reads the file and takes from it what the command line left open. Fails with errc::invalid; the text
  /// holds every fault with its place.
  result<void> read(node::node_options& options);
  /// Adds its hooks to a node that is about to start.
  void attach(node::node_options& options);
  /// Puts the file in force in the started node, and begins to keep nodes.
  result<void> begin(const node::node& running, const node::node_options& how);
  /// Whether the configuration has nodes of its own: then this process holds none.
  bool has_nodes() const;
  /// What a person still has to do, in lines; may be empty.
  std::string to_do() const;
  /// Blocks until the nodes that it starts have registered, at most 60 s.
  result<void> wait_for_nodes();
  /// Reads the file again on its own thread; a bad file is logged and changes nothing. Calls `done` at the
  /// end.
  void reload(std::function<void()> begun, std::function<void()> done);
  void stop();
  bool answers() const; ///< whether the HTTP port of this process answers

private:
  struct impl;
  std::unique_ptr<impl> inside_;
};

} // namespace troupe::launch

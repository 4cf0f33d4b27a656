#pragma once
// What embed_caf.cpp may do with a node.

#include "runtime/embed/engine.hpp"
#include "runtime/embed/troupe/embed.hpp"

namespace troupe {
inline namespace v0 {

struct caf_door {
  static result<node> open(caf::actor_system& sys, const node_options& options);
  static embedding::engine& engine_of(const node& of);
};

} // namespace v0
} // namespace troupe

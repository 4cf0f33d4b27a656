#include "runtime/node/role_ground.hpp"

#include <cstdio>
#include <unistd.h>

namespace troupe::node {

std::string host_name() {
  char text[256] = "localhost";
  ::gethostname(text, sizeof text - 1);
  return text;
}

void role_ground::say(const std::string& line) const {
  if (options.host.say)
    options.host.say(line);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
}

void await_own_threads(caf::actor_system& system, std::size_t before) {
  wait_while([&] { return system.detached_actors() > before; });
}

} // namespace troupe::node

#include "runtime/node/cluster_gate.hpp"

#include <caf/all.hpp>

namespace troupe::node {

void cluster_gate::call(const api::principal& who, const std::string& command, value fields, api::answer done) {
  client_command mail{who.user, who.admin, who.allocation, command, std::move(fields)};
  // One short-lived actor a command: it has the timeout, and nobody blocks.
  sys_.spawn([to = cluster_, mail = std::move(mail), done = std::move(done)](caf::event_based_actor* self) mutable {
    auto answer = std::make_shared<api::answer>(std::move(done));
    self->request(to, std::chrono::seconds(60), std::move(mail))
      .then(
        [answer](command_result& x) {
          if (x.refused)
            (*answer)(error{static_cast<errc>(x.refused - 1), std::move(x.why)});
          else
            (*answer)(std::move(x.answer));
        },
        [answer](const caf::error& why) { (*answer)(from_caf(why)); });
  });
}

} // namespace troupe::node

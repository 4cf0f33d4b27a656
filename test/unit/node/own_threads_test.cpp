// Tests that an actor system ends where an actor with a thread of its own writes to another node at its very
// end, after the system counts it as ended.

#include "runtime/node/role_ground.hpp"

#include <caf/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>

#include <cstdlib>
#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe::node {
namespace {

[[noreturn]] void end_a_system() {
  ::alarm(30); // where the system does not end
  {
    caf::actor_system_config settings;
    settings.load<caf::io::middleman>();
    caf::actor_system system{settings};
    const auto before = system.detached_actors();
    auto links = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
    auto writer =
      system.spawn<caf::detached>([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
    auto itself = caf::actor_cast<caf::actor_addr>(writer);
    writer->attach_functor([links, itself] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300)); // as on a busy host
      links->enqueue(caf::actor_cast<caf::strong_actor_ptr>(itself), caf::make_message_id(),
                     caf::make_message(caf::atom("last")), nullptr);
    });
    caf::anon_send_exit(writer, caf::exit_reason::user_shutdown);
    writer = nullptr;
    await_own_threads(system, before);
  }
  std::_Exit(EXIT_SUCCESS);
}

TEST(OwnThreads, OfAnActorThatWritesToAnotherNodeAtItsEndDoNotHoldUpTheSystem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_a_system(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

} // namespace
} // namespace troupe::node

#include "host.hpp"
#include "troupe/embed_caf.hpp"

#include <caf/all.hpp>

#include <atomic>
#include <mutex>

// As a host has them: its own messages, from CAF's first number on.
struct greeting {
  std::string text;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, greeting& x) {
  return f(caf::meta::type_name("greeting"), x.text);
}
CAF_BEGIN_TYPE_ID_BLOCK(host_types, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(host_types, (greeting))
CAF_END_TYPE_ID_BLOCK(host_types)

using namespace host;

namespace {

struct heard {
  std::mutex mutex;
  std::vector<std::string> types;
  std::atomic<bool> ended{false}, completed{false};
  bool knows(const std::string& type) {
    std::lock_guard lock(mutex);
    return std::find(types.begin(), types.end(), type) != types.end();
  }
};

troupe::event_sink::behavior_type listen(troupe::event_sink::pointer self, std::shared_ptr<heard> to) {
  self->attach_functor([to](const caf::error&) { to->ended = true; });
  return {[to](const troupe::cluster_event& x) {
    std::lock_guard lock(to->mutex);
    to->types.push_back(x.type);
    to->completed =
      to->completed || (x.type == "experiment_changed" && x.json.find("\"COMPLETED\"") != std::string::npos);
  }};
}

template <class True>
bool comes(True true_) {
  for (int i = 0; i < 3000 && !true_(); ++i)
    std::this_thread::sleep_for(10ms);
  return true_();
}

struct host_config : caf::actor_system_config {
  explicit host_config(bool with_ours = true) {
    add_message_types<caf::id_block::host_types>();
    if (with_ours)
      troupe::add_message_types(*this);
    set("scheduler.max-threads", std::size_t{2});
  }
};

TEST(HostOfActors, LendsItsActorSystemAndKeepsIt) {
  folder at;
  const auto files = descriptors();
  {
    host_config config;
    caf::actor_system system(config);
    auto echo = system.spawn([](caf::event_based_actor*) -> caf::behavior {
      return {[](greeting& x) { return greeting{x.text + "!"}; }};
    });
    const auto threads_before = threads();
    auto seen = std::make_shared<heard>();
    auto sink = system.spawn(listen, seen);
    for (int round = 0; round < 3; ++round) {
      auto node = troupe::open_in(system, options(at));
      ASSERT_OK(node);
      ASSERT_OK(node->ready(60s));
      ASSERT_OK(troupe::subscribe(*node, sink));
      EXPECT_EQ(troupe::actors_of(*node).value(), &system);
      auto second = troupe::open_in(system, options(at, "other"));
      ASSERT_FALSE(second);
      EXPECT_EQ(second.error().code, troupe::errc::conflict) << text(second.error());
      auto run = node->client().submit({.entrypoint = "true"});
      ASSERT_OK(run);
      EXPECT_EQ(run->wait(), troupe::outcome::completed);
      EXPECT_TRUE(comes([&] { return seen->completed.load(); }));
      EXPECT_TRUE(seen->knows("experiment_created"));
      EXPECT_TRUE(seen->knows("trial_ended"));
      ASSERT_OK(node->stop());
      EXPECT_TRUE(come_back_to(threads, threads_before)) << names_of_threads();
      EXPECT_FALSE(troupe::actors_of(*node));
      seen->completed = false;
    }
    EXPECT_FALSE(seen->ended) << "the host's actors are the host's";
    caf::scoped_actor self{system};
    self->request(echo, 10s, greeting{"still here"})
      .receive([](greeting& x) { EXPECT_EQ(x.text, "still here!"); }, [](caf::error&) { FAIL(); });
    self->send_exit(sink, caf::exit_reason::user_shutdown);
    self->send_exit(echo, caf::exit_reason::user_shutdown);
  }
  EXPECT_TRUE(come_back_to(descriptors, files));
}

TEST(HostOfActors, SpawnsItsActorsInTheNodesSystem) {
  folder at;
  auto node = troupe::node::open(options(at));
  ASSERT_OK(node);
  auto seen = std::make_shared<heard>();
  ASSERT_OK(troupe::subscribe(*node, (*troupe::actors_of(*node))->spawn(listen, seen)));
  auto run = node->client().submit({.entrypoint = "true"});
  ASSERT_OK(run);
  EXPECT_EQ(run->wait(), troupe::outcome::completed);
  EXPECT_TRUE(comes([&] { return seen->completed.load(); }));
  ASSERT_OK(node->stop());
  EXPECT_TRUE(seen->ended);
  EXPECT_FALSE(troupe::subscribe(*node, troupe::event_sink{}));
}

TEST(HostOfActors, ASystemWithoutOurMessagesIsRefused) {
  folder at;
  host_config config(false);
  caf::actor_system system(config);
  auto node = troupe::open_in(system, options(at));
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code, troupe::errc::invalid);
  EXPECT_NE(node.error().hint.find("add_message_types"), std::string::npos) << text(node.error());
}

TEST(HostOfActors, TwoNodesHaveTwoSystemsWithAnIdEach) {
  folder at;
  auto a = troupe::node::open(options(at, "a")), b = troupe::node::open(options(at, "b"));
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_NE((*troupe::actors_of(*a))->node(), (*troupe::actors_of(*b))->node());
}

} // namespace

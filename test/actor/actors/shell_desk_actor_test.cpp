// The desk of `troupe shell`: who may act, that an order is on disk before it is carried out, and that a
// failure is noted as well. The inspector is real, and a listener stands for the cluster.

#include "actors/agent_twin/agent_twin_actor.hpp"
#include "actors/inspector/shell_desk_actor.hpp"
#include "actors/pool/pool_actor.hpp"

#include "stage.hpp"

#include <cstdlib>
#include <filesystem>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ShellDesk : public Stage {
protected:
  void SetUp() override {
    system_.reset();
    add_shell_messages(config_);
    system_ = std::make_unique<caf::actor_system>(config_);
    char pattern[] = "/tmp/troupe-desk-XXXXXX";
    folder = ::mkdtemp(pattern);
    auto opened = storage::audit_log::open(folder / "audit");
    ASSERT_TRUE(opened);
    audit = std::shared_ptr<storage::audit_log>(std::move(*opened));
    cluster = make_listener([this](const caf::message& asked) -> caf::result<caf::message> {
      if (!asked.match_element<client_command>(0))
        return caf::message{};
      noted_when_told = audit->rows().size();
      return caf::make_message(cluster_refuses ? refused(*cluster_refuses) : answered());
    });
    pool = on_stage(spawn_pool(*system_, "default"));
    inspector = on_stage(spawn_inspector(*system_, {"master", "master", "0"}));
    desk_setup setup;
    setup.node = "master";
    setup.inspector = inspector;
    setup.cluster = cluster.as<cluster_actor>();
    setup.audit = audit;
    setup.standing = [] { return value::array(); };
    desk = on_stage(spawn_shell_desk(*system_, std::move(setup)));
    twin = on_stage(spawn_twin(*system_, "a", {}, pool));
    run();
  }
  void TearDown() override {
    Stage::TearDown();
    desk = nullptr;
    inspector = nullptr;
    pool = nullptr;
    twin = nullptr;
    std::filesystem::remove_all(folder);
  }

  result<value> call(const std::string& name, value fields, bool admin = true) {
    std::optional<result<value>> got;
    system_->spawn([this, &got, name, fields, admin](caf::event_based_actor* self) {
      self->request(desk, 60s, shell_call{"ada", admin, name, fields})
        .then([&got](command_result& x) { got = std::move(x.got); },
              [&got](const caf::error& why) { got = result<value>(from_caf(why)); });
    });
    for (int n = 0; n < 40 && !got; ++n) {
      run();
      if (!got)
        pass(1s);
    }
    return got ? *got : result<value>(error{errc::timeout, "no answer"});
  }

  std::filesystem::path folder;
  std::shared_ptr<storage::audit_log> audit;
  listener cluster;
  std::optional<error> cluster_refuses;
  std::size_t noted_when_told = 0;
  pool_actor pool;
  twin_actor twin;
  inspector_actor inspector;
  desk_actor desk;
};

TEST_F(ShellDesk, WhoIsNoAdminLooksAndDoesNotAct) {
  const auto seen = call("ps", value::object(), false);
  ASSERT_TRUE(seen) << seen.error().what;
  EXPECT_THAT(to_json(*seen), HasSubstr("pool/default"));
  const auto no = call("kill", {{"actor", "pool/default"}}, false);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, errc::denied);
  EXPECT_TRUE(audit->rows().empty());
  EXPECT_TRUE(config_.probes->find("pool/default"));
}

TEST_F(ShellDesk, WhatIsOrderedIsNotedFirst) {
  const auto done = call("kill", {{"actor", "pool/default"}});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_FALSE(config_.probes->find("pool/default"));
  ASSERT_EQ(audit->rows().size(), 1u);
  EXPECT_EQ(audit->rows()[0].at("user"), "ada");
  EXPECT_EQ(audit->rows()[0].at("actor"), "pool/default");
}

TEST_F(ShellDesk, ADrainIsNotedBeforeTheClusterHearsOfIt) {
  const auto done = call("drain", {{"node", "a"}});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(noted_when_told, 1u);
  ASSERT_EQ(cluster.all<client_command>().size(), 1u);
  EXPECT_EQ(cluster.all<client_command>()[0].user, "ada");
}

TEST_F(ShellDesk, WhatCouldNotBeDoneIsNotedToo) {
  cluster_refuses = error{errc::not_found, "agent a is not known"};
  const auto no = call("drain", {{"node", "a"}});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, errc::not_found);
  ASSERT_EQ(audit->rows().size(), 2u);
  EXPECT_THAT(to_json(audit->rows()[1]), HasSubstr("that failed: agent a is not known"));
}

TEST_F(ShellDesk, AnActorThatNobodyMakesAgainSaysSo) {
  const auto done = call("restart", {{"actor", "pool/default"}});
  ASSERT_FALSE(done) << "this pool has no owner";
  EXPECT_EQ(done.error().code, errc::timeout);
  EXPECT_THAT(done.error().what, HasSubstr("is not back after"));
}

TEST_F(ShellDesk, UnknownNamesAreRefusedWithTheName) {
  for (const auto& [name, fields] : std::initializer_list<std::pair<const char*, value>>{
         {"state", {{"actor", "trial/99"}}}, {"kill", {{"actor", "trial/99"}}}}) {
    const auto no = call(name, fields);
    ASSERT_FALSE(no) << name;
    EXPECT_EQ(no.error().code, errc::not_found) << name;
    EXPECT_THAT(no.error().what, HasSubstr("trial/99")) << name;
  }
  EXPECT_TRUE(audit->rows().empty());
}

} // namespace
} // namespace troupe

// What `troupe shell` sees of actors and does to them, on a scheduler that runs only when told.

#include "actors/inspector/inspector_actor.hpp"
#include "actors/inspector/shell_desk_actor.hpp"
#include "actors/pool/pool_actor.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

class Inspector : public testing::Test {
protected:
  void SetUp() override {
    config_.set("scheduler.policy", caf::atom("testing"));
    add_shell_messages(config_);
    config_.probes->allow_faults = true;
    system_ = std::make_unique<caf::actor_system>(config_);
    pool_ = spawn_pool(*system_, "default");
    inspector_ = spawn_inspector(*system_, {"master", "master", "0"});
    run();
  }
  void TearDown() override {
    for (const caf::actor& one :
         {caf::actor_cast<caf::actor>(pool_), caf::actor_cast<caf::actor>(inspector_)})
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
    run();
    pool_ = nullptr;
    inspector_ = nullptr;
    system_.reset();
  }

  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  }
  void run() { scheduler().run(); }

  template <class Handle, class Message>
  command_result ask(const Handle& to, Message message) {
    auto got = std::make_shared<std::optional<command_result>>();
    system_->spawn([to, message, got](caf::event_based_actor* self) {
      self->request(caf::actor_cast<caf::actor>(to), std::chrono::seconds(30), message)
        .then([got](const command_result& x) { *got = x; },
              [got](const caf::error& why) { *got = refused(from_caf(why)); });
    });
    for (int i = 0; i < 100 && !*got; ++i) {
      run();
      if (!*got)
        scheduler().advance_time(std::chrono::milliseconds(500));
    }
    EXPECT_TRUE(*got) << "no answer";
    return got->value_or(command_result{});
  }
  command_result inspect(const std::string& what, value fields = value::object()) {
    return ask(inspector_, inspect_request{what, std::move(fields)});
  }
  value actor(const std::string& what, value more = value::object()) {
    more["actor"] = "pool/default";
    more["what"] = what;
    auto got = inspect("actor", more);
    EXPECT_TRUE(got.got) << got.got.error().what;
    return *got.got;
  }
  void agent(const std::string& name, int slots = 2) { caf::anon_send(pool_, agent_up{name, slots, {}}); }

  node_config config_;
  std::unique_ptr<caf::actor_system> system_;
  pool_actor pool_;
  inspector_actor inspector_;
};

TEST_F(Inspector, CountsExactlyWhatWasSent) {
  for (int i = 0; i < 100; ++i)
    agent("a" + std::to_string(i));
  run();
  inspect("ps", {{"window_ms", 0}}); // the inspector's own questions do not count
  actor("state");
  const auto rows = inspect("ps", {{"window_ms", 0}, {"kind", "pool"}}).got->at("rows");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["actor"], "pool/default");
  EXPECT_EQ(rows[0]["messages"], 100);
  EXPECT_EQ(rows[0]["backlog"], 0);
  EXPECT_EQ(actor("stats")["by_type"][0]["type"], "agent_up");
  EXPECT_EQ(actor("stats")["by_type"][0]["count"], 100);
}

TEST_F(Inspector, ShowsTheMachinesState) {
  agent("a1", 3);
  run();
  const auto state = actor("state")["state"];
  EXPECT_EQ(state["total"], 3);
  EXPECT_EQ(state["agents"]["a1"]["away"], false);
  EXPECT_EQ(actor("state", {{"path", "agents.a1.slots"}})["state"].size(), 3u);
  auto missing = inspect("actor", {{"actor", "pool/default"}, {"what", "state"}, {"path", "queeu"}});
  EXPECT_EQ(missing.got.error().code, errc::not_found);
}

TEST_F(Inspector, ListsTheLastMessages) {
  for (int i = 0; i < 40; ++i)
    agent("a");
  caf::anon_send(pool_, slots_requested{{{7}, {2}}, 99});
  run();
  const auto rows = actor("msgs")["rows"];
  ASSERT_EQ(rows.size(), 32u);
  EXPECT_EQ(rows.back()["type"], "slots_requested");
  EXPECT_EQ(rows.back()["correlation"], "trial/7");
  EXPECT_EQ(rows[0]["type"], "agent_up");
  EXPECT_EQ(actor("msgs", {{"max", 3}})["rows"].size(), 3u);
}

TEST_F(Inspector, ShowsTheFieldsOfWhatACalmActorTook) {
  agent("a1", 3);
  caf::anon_send(pool_, slots_requested{{{7}, {2}}, 99});
  run();
  const auto rows = actor("msgs")["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0]["text"].get<std::string>(), testing::StartsWith("[\"a1\", 3"));
  EXPECT_THAT(rows[1]["text"].get<std::string>(), testing::StartsWith("[[7, 2], 99"));
}

TEST_F(Inspector, TellsTheNamesOfItsActors) {
  const auto id = actor("here")["id"];
  const auto got = inspect("names", {{"ids", {id, 999'999}}}).got->at("names");
  EXPECT_EQ(got, (value{{std::to_string(id.get<std::uint64_t>()), "pool/default"}}));
}

TEST_F(Inspector, AnActorThatIsNotThereIsNotFound) {
  for (const char* what : {"info", "state", "msgs", "stats", "links"})
    EXPECT_EQ(inspect("actor", {{"actor", "trial/1"}, {"what", what}}).got.error().code, errc::not_found)
      << what;
  EXPECT_EQ(inspect("end", {{"actor", "trial/1"}, {"why", "x"}}).got.error().code, errc::not_found);
}

TEST_F(Inspector, ADeathIsNotedAndTheNextOfTheNameIsARestart) {
  auto got = inspect("end", {{"actor", "pool/default"}, {"why", "killed by ada"}});
  EXPECT_TRUE(got.got) << got.got.error().what;
  run();
  EXPECT_FALSE(config_.probes->find("pool/default"));
  pool_ = spawn_pool(*system_, "default");
  run();
  EXPECT_EQ(config_.probes->find("pool/default")->what->restarts, 1);
  const auto events = inspect("events").got->at("rows");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["what"], "died: killed by ada");
  EXPECT_EQ(events[1]["what"], "is back, restart 1");
}

TEST_F(Inspector, AnOrderlyEndIsNoDeath) {
  caf::anon_send_exit(pool_, caf::exit_reason::user_shutdown);
  run();
  pool_ = spawn_pool(*system_, "default");
  run();
  EXPECT_EQ(config_.probes->find("pool/default")->what->restarts, 0);
  EXPECT_TRUE(inspect("events").got->at("rows").empty());
}

TEST_F(Inspector, ATraceShowsMessagesUpToItsBound) {
  const auto id = inspect("watch", {{"actor", "pool/default"}, {"max", 3}, {"rate", 1000}}).got->at("id");
  for (int i = 0; i < 10; ++i)
    agent("a" + std::to_string(i));
  run();
  const auto got = *inspect("taken", {{"id", id}}).got;
  ASSERT_EQ(got["rows"].size(), 3u);
  EXPECT_EQ(got["rows"][0]["type"], "agent_up");
  EXPECT_EQ(got["rows"][0]["actor"], "pool/default");
  EXPECT_NE(got["rows"][0]["text"].get<std::string>().find("\"a0\""), std::string::npos) << got["rows"][0];
  EXPECT_TRUE(got["over"].get<bool>());
  EXPECT_TRUE(inspect("unwatch", {{"id", id}}).got);
  EXPECT_EQ(inspect("taken", {{"id", id}}).got.error().code, errc::not_found);
  EXPECT_TRUE(config_.probes->watches().empty());
}

TEST_F(Inspector, ATraceDropsWhatIsOverItsRateAndCountsIt) {
  const auto id = inspect("watch", {{"actor", "pool/default"}, {"max", 1000}, {"rate", 5}}).got->at("id");
  for (int i = 0; i < 400; ++i)
    agent("a");
  run();
  const auto got = *inspect("taken", {{"id", id}}).got;
  EXPECT_EQ(got["seen"], 400);
  EXPECT_EQ(got["seen"].get<int>(), got["shown"].get<int>() + got["dropped"].get<int>());
  EXPECT_LT(got["shown"].get<int>(), 100);
}

TEST_F(Inspector, ATraceOfOneTypeSeesNoOther) {
  const auto id = inspect("watch", {{"actor", "pool/default"}, {"msg", "agent_down"}}).got->at("id");
  agent("a");
  caf::anon_send(pool_, agent_down{"a"});
  run();
  const auto got = *inspect("taken", {{"id", id}}).got;
  ASSERT_EQ(got["rows"].size(), 1u);
  EXPECT_EQ(got["rows"][0]["type"], "agent_down");
  EXPECT_EQ(inspect("watch", {{"msg", "no_such"}}).got.error().code, errc::invalid);
}

TEST_F(Inspector, AFollowedTrialIsSeenAtAllActors) {
  const auto id = inspect("watch", {{"about", {"trial/7"}}}).got->at("id");
  caf::anon_send(pool_, slots_requested{{{7}, {1}}, 1});
  caf::anon_send(pool_, slots_requested{{{8}, {1}}, 1});
  run();
  const auto got = *inspect("taken", {{"id", id}}).got;
  ASSERT_EQ(got["rows"].size(), 1u);
  EXPECT_EQ(got["rows"][0]["correlation"], "trial/7");
}

TEST_F(Inspector, AWatchThatNobodyAsksForIsForgotten) {
  inspect("watch", {{"actor", "pool/default"}, {"for_ms", 3'600'000}});
  EXPECT_EQ(config_.probes->watches().size(), 1u);
  for (int i = 0; i < 5; ++i) {
    scheduler().advance_time(std::chrono::seconds(5));
    run();
  }
  EXPECT_TRUE(config_.probes->watches().empty());
}

TEST_F(Inspector, AFaultDropsTheNextMessagesAndNoMore) {
  ASSERT_TRUE(inspect("fault", {{"actor", "pool/default"}, {"fault", "drop"}, {"n", 2}}).got);
  for (const char* name : {"a1", "a2", "a3", "a4"})
    agent(name, 1);
  run();
  EXPECT_EQ(actor("state")["state"]["total"], 2);
  EXPECT_FALSE(actor("state")["state"]["agents"].contains("a2"));
}

TEST_F(Inspector, DelayedMessagesComeLaterInTheirOrder) {
  ASSERT_TRUE(
    inspect("fault", {{"actor", "pool/default"}, {"fault", "delay"}, {"n", 1}, {"delay_ms", 20}}).got);
  agent("a", 1);
  agent("a", 2); // this message comes after the delayed one, never before it
  agent("a", 3);
  run();
  EXPECT_EQ(actor("state")["state"]["total"], 0);
  const auto end = ticks_now() + config_.probes->scale.ticks(std::chrono::milliseconds(100));
  while (ticks_now() < end) {
  }
  scheduler().advance_time(std::chrono::seconds(1));
  run();
  EXPECT_EQ(actor("state")["state"]["total"], 3);
  EXPECT_EQ(config_.probes->find("pool/default")->what->done(), 3u);
  EXPECT_EQ(config_.probes->find("pool/default")->what->backlog(), 0u);
}

TEST_F(Inspector, FaultsAreBoundedAndNeedTheFlag) {
  for (const value& wrong : {value{{"fault", "drop"}, {"n", 0}}, value{{"fault", "drop"}, {"n", 100'000}},
                             value{{"fault", "delay"}, {"delay_ms", 1e9}},
                             value{{"fault", "pause"}, {"for_ms", 1e9}}, value{{"fault", "melt"}}})
    EXPECT_EQ(inspect("fault", wrong).got.error().code, errc::invalid) << wrong;
  config_.probes->allow_faults = false;
  const auto got = inspect("fault", {{"fault", "drop"}, {"actor", "pool/default"}});
  EXPECT_EQ(got.got.error().code, errc::denied);
  EXPECT_NE(got.got.error().what.find("--allow-faults"), std::string::npos);
}

TEST_F(Inspector, WhoWaitsIsSeen) {
  auto deaf = system_->spawn([](caf::event_based_actor* self) -> caf::behavior {
    self->set_default_handler(caf::skip);
    return {[](const time_passed&) {}};
  });
  // The allocation asks the pool for slots, and the pool asks the allocation whether it takes the grant.
  caf::anon_send(pool_, agent_up{"a1", 1, {}});
  auto from = caf::actor_cast<caf::strong_actor_ptr>(deaf);
  caf::send_as(deaf, caf::actor_cast<caf::actor>(pool_), slots_requested{{{7}, {1}}, 1});
  run();
  const auto rows = inspect("waits").got->at("rows");
  ASSERT_EQ(rows.size(), 1u) << rows;
  EXPECT_EQ(rows[0]["actor"], "pool/default");
  EXPECT_EQ(rows[0]["what"], "slots_granted");
  caf::anon_send_exit(deaf, caf::exit_reason::kill);
  run();
  EXPECT_TRUE(inspect("waits").got->at("rows").empty());
}

TEST_F(Inspector, RatesAreOverTheWindow) {
  for (int i = 0; i < 50; ++i)
    agent("a");
  run();
  const auto rows = inspect("ps", {{"window_ms", 400}, {"kind", "pool"}}).got->at("rows");
  EXPECT_EQ(rows[0]["messages"], 50);
  EXPECT_EQ(rows[0]["msg_per_s"], 0.0);
}

TEST_F(Inspector, OperatorsMessagesReachTheActor) {
  agent("a1", 2);
  run();
  auto got =
    inspect("send", {{"actor", "pool/default"}, {"message", "describe"}, {"fields", value::object()}});
  ASSERT_TRUE(got.got) << got.got.error().what;
  EXPECT_EQ(got.got->at("total"), 2);
  got = inspect("send", {{"actor", "pool/default"}, {"message", "ping"}});
  ASSERT_TRUE(got.got) << got.got.error().what;
  EXPECT_TRUE(got.got->at("wait_us").is_number());
}

TEST(Readers, TellWhatAMessageIsAbout) {
  const auto about = [](const auto& x) {
    const auto it = message_readers().find(reinterpret_cast<type_key>(&typeid(x)));
    return it == message_readers().end() || !it->second.about ? std::string()
                                                              : to_string_of(it->second.about(&x));
  };
  EXPECT_EQ(about(task_started{{{7}, {1}}, "a", 1}), "trial/7");
  EXPECT_EQ(about(append_facts{"trial/9", 0, {}}), "trial/9");
  EXPECT_EQ(about(append_facts{"cluster", 0, {}}), "");
  EXPECT_EQ(about(experiment_finished{{3}}), "experiment/3");
  EXPECT_EQ(about(client_command{"ada", true, "", "trial.kill", {{"id", 4}}}), "trial/4");
  link_order order;
  order.kill.push_back({{{5}, {2}}});
  EXPECT_EQ(about(order), "trial/5");
}

TEST(Readers, TextIsBoundedAndTellsNoSecret) {
  const auto text = [](const auto& x) {
    const auto it = message_readers().find(reinterpret_cast<type_key>(&typeid(x)));
    return it == message_readers().end() || !it->second.text ? std::string() : it->second.text(&x);
  };
  EXPECT_EQ(text(store_blob{std::string(1 << 20, 'x')}), std::to_string((1 << 20) + 6) + " bytes");
  EXPECT_LE(text(store_blob{std::string(3000, 'x')}).size(), 403u);
  EXPECT_EQ(text(harness_task{{{7}, {1}}, "secret", ""}), "");
  EXPECT_EQ(text(client_command{"ada", true, "", "fence", {{"token", "secret"}}}), "fence by ada");
}

TEST(Readers, ABriefTextIsMsgpackCutOff) {
  const auto brief = [](const auto& x, std::size_t most = probe::brief_bytes) {
    const auto it = message_readers().find(reinterpret_cast<type_key>(&typeid(x)));
    if (it == message_readers().end() || !it->second.brief)
      return std::string("none");
    std::string bytes(most, 0);
    bytes.resize(it->second.brief(&x, bytes.data(), most));
    return text_of_brief(bytes);
  };
  EXPECT_EQ(brief(task_started{{{7}, {1}}, "a", 1}).substr(0, 14), "[[7, 1], \"a\", ");
  EXPECT_EQ(brief(store_blob{"abc"}), "[\"abc\"]");
  EXPECT_EQ(brief(store_blob{std::string(3000, 'x')}, 8), "[\"xxxx...");
  EXPECT_EQ(brief(store_blob{std::string("\0\1", 2)}), "[2 bytes]");
  EXPECT_EQ(brief(harness_task{{{7}, {1}}, "secret", ""}), "none");
  EXPECT_EQ(brief(client_command{"ada", true, "", "fence", {{"token", "secret"}}}), "[\"fence\", \"ada\"]");
  pool_description many; // the text is cut long before its end
  for (int i = 0; i < 100'000; ++i)
    many.waiting.push_back({{{7}, {1}}, 1});
  EXPECT_THAT(brief(many), testing::EndsWith("..."));
  EXPECT_EQ(text_of_brief(""), "");
  EXPECT_EQ(text_of_brief(std::string_view("\x95\xc0\xc3\xe0\xca\x3f\x80\x00\x00\xcd\x01\x00", 12)),
            "[null, true, -32, 1, 256]");
}

} // namespace
} // namespace troupe

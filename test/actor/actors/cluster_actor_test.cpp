// The root of the master: the agents that it admits, what a creation stores, and what it makes again at the
// next start. Its journal is a real one in memory; the experiments and pools below it are real.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/journal/journal_actor.hpp"
#include "actors/retention/bucket_order.hpp"
#include "actors/shells/obey.hpp"
#include "storage/stored_journal.hpp"

#include "stage.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class ClusterActor : public Stage {
protected:
  void SetUp() override { open(); }
  void TearDown() override {
    close();
    Stage::TearDown();
  }

  void open() {
    auto made = storage::make_journal(store, {});
    ASSERT_TRUE(made);
    stored = std::shared_ptr<storage::journal>(std::move(*made));
    journal = spawn_journal(*system_, stored, {});
    cluster_setup setup;
    setup.checkpoint_dir = "/checkpoints";
    setup.join_token = "the token";
    setup.roles = roles;
    setup.lines = lines;
    setup.fence_token = [](const std::string& agent) { return "fence of " + agent; };
    setup.deliver = [this](std::vector<webhook_delivery> some, const webhook_ear&) {
      for (const auto& one : some)
        sent.push_back(one.id);
    };
    cluster = spawn_cluster(*system_, std::move(setup), {before(journal), stored->reads()});
    run();
  }
  /// The actor that the cluster uses as its journal.
  virtual journal_actor before(const journal_actor& real) { return real; }
  /// Ends everything as the death of the master does: nothing more is stored.
  void close() {
    caf::anon_send_exit(journal, caf::exit_reason::kill);
    end_with_fault(cluster, "the master dies");
    journal = nullptr;
    cluster = nullptr;
    run();
    stored.reset();
  }

  template <class Answer, class... Question>
  result<Answer> ask(Question... x) {
    std::optional<result<Answer>> got;
    system_->spawn([this, &got, x...](caf::event_based_actor* self) {
      self->request(cluster, 30s, x...)
        .then([&got](const Answer& answer) { got = answer; },
              [&got](const caf::error& why) { got = result<Answer>(from_caf(why)); });
    });
    for (int n = 0; n < 60 && !got; ++n) {
      run();
      if (!got)
        pass(1s);
    }
    return got ? *got : result<Answer>(error{errc::timeout, "no answer"});
  }
  result<value> order(const std::string& name, value fields) {
    auto got = ask<command_result>(client_command{"ada", true, "", name, std::move(fields)});
    return got ? std::move(got->got) : result<value>(got.error());
  }
  result<registered> admit(const listener& agent, register_agent x) {
    return ask<registered>(std::move(x), agent.as<agent_actor>());
  }
  static register_agent host(std::string name, std::string id) {
    register_agent x;
    x.name = std::move(name);
    x.id = std::move(id);
    x.token = "the token";
    x.slots = 2;
    return x;
  }
  static value search(const std::string& key) {
    return {
      {"config",
       {{"name", "search"}, {"entrypoint", "train"}, {"searcher", {{"name", "single"}, {"metric", "loss"}}}}},
      {"key", key}};
  }
  static std::string uuid_of(int n) { return "0189c0de-0000-7000-8000-0000000000" + std::to_string(10 + n); }
  /// Makes experiment 1, which has ended, with `count` checkpoints of its trial 1, each of the files `a` and
  /// `b`.
  void ended_with_checkpoints(int count, const std::string& folder = "/checkpoints") {
    auto wanted = search("k");
    wanted["config"]["checkpoint_storage"] = {
      {"type", "directory"}, {"container_path", folder}, {"save_trial_latest", 100}};
    ASSERT_TRUE(order("experiment.create", wanted));
    ASSERT_TRUE(order("experiment.kill", {{"id", 1}}));
    pass(2s);
    ASSERT_EQ(stored->reads()->experiment({1})->state, experiment_state::canceled);
    record_checkpoints(*stored, count, folder);
  }
  /// Records checkpoints of the trial 1, whose actor must not live.
  static void record_checkpoints(storage::journal& in, int count, const std::string& folder) {
    std::vector<std::string> facts;
    for (int n = 0; n < count; ++n) {
      const auto uuid = uuid_of(n);
      facts.push_back(encode(checkpoint_recorded{
        time_point{}, {1}, {uuid, n, {{"a", 1}, {"b", 2}}, value::object(), folder + "/" + uuid}}));
    }
    const auto stream = entity(trial_id{1});
    ASSERT_TRUE(in.append({stream, *in.reads()->next_of(stream), std::move(facts)}));
    ASSERT_TRUE(in.commit());
  }
  /// The tasks that an agent was ordered to start, each once: an order without an answer is given again.
  static std::vector<std::string> started_on(const listener& agent) {
    std::vector<std::string> ids;
    for (const auto& x : agent.all<link_order>())
      for (const auto& one : x.start)
        if (const auto id = to_string(one.allocation); std::find(ids.begin(), ids.end(), id) == ids.end())
          ids.push_back(id);
    return ids;
  }
  /// The number of orders to kill a task that an agent got.
  static std::size_t killed_on(const listener& agent) {
    std::size_t n = 0;
    for (const auto& x : agent.all<link_order>())
      n += x.kill.size();
    return n;
  }

  bool roles = false;               ///< whether rights follow roles
  std::shared_ptr<log_watch> lines; ///< null: nobody looks at lines
  std::vector<std::string> sent;    ///< ids of the events that receivers of webhooks got
  std::shared_ptr<storage::store> store = storage::make_memory_store();
  std::shared_ptr<storage::journal> stored;
  journal_actor journal;
  cluster_actor cluster;
};

TEST_F(ClusterActor, AnAgentWithAnotherTokenOrProtocolIsRefused) {
  auto agent = make_listener();
  auto wrong = host("a", "1");
  wrong.token = "another";
  auto no = admit(agent, wrong);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, errc::denied);
  auto old = host("a", "1");
  old.protocol = link_protocol + 1;
  no = admit(agent, old);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, errc::unsupported);
}

TEST_F(ClusterActor, ANameBelongsToTheHostThatHasIt) {
  auto agent = make_listener(), other = make_listener();
  auto yes = admit(agent, host("a", "1"));
  ASSERT_TRUE(yes) << yes.error().what;
  EXPECT_EQ(yes->fence_token, "fence of a");
  const auto no = admit(other, host("a", "2"));
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, errc::conflict);
}

TEST_F(ClusterActor, ASlotThatTheAgentDoesNotHaveIsNotDrained) {
  auto agent = make_listener();
  ASSERT_TRUE(admit(agent, host("a", "1")));
  for (const std::int64_t slot : {std::int64_t(-1), std::int64_t(2), std::int64_t(1) << 32}) {
    const auto no = order("agent.drain", {{"agent", "a"}, {"slot", slot}});
    ASSERT_FALSE(no) << slot;
    EXPECT_EQ(no.error().what, "agent 'a' has no slot " + std::to_string(slot));
  }
  EXPECT_TRUE(order("agent.drain", {{"agent", "a"}, {"slot", 1}}));
}

TEST_F(ClusterActor, WhatIsCreatedRunsOnWhoRegisters) {
  const auto made = order("experiment.create", search("k"));
  ASSERT_TRUE(made) << made.error().what;
  EXPECT_EQ(made->at("id"), 1);
  const auto again = order("experiment.create", search("k"));
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(*again, *made) << "the same key is the same experiment";
  auto agent = make_listener();
  ASSERT_TRUE(admit(agent, host("a", "1")));
  pass(2s);
  EXPECT_THAT(started_on(agent), testing::ElementsAre("1.1"));
}

TEST_F(ClusterActor, WhatIsLargerThanItsPoolIsWarnedOfOrRefused) {
  auto agent = make_listener();
  ASSERT_TRUE(admit(agent, host("a", "1")));
  const auto of = [](const char* key, int slots) {
    auto wanted = search(key);
    wanted["config"]["resources"] = {{"slots_per_trial", slots}};
    return wanted;
  };
  const auto exceeds = value::array({"LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"});
  const value notebook = {{"kind", "notebook"}, {"config", {{"resources", {{"slots", 2}}}}}};
  EXPECT_EQ(*order("experiment.create", of("two", 2)), (value{{"id", 1}, {"warnings", value::array()}}));
  EXPECT_EQ(*order("experiment.create", of("three", 3)), (value{{"id", 2}, {"warnings", exceeds}}));
  EXPECT_EQ(*order("experiment.create", of("three", 3)), (value{{"id", 2}, {"warnings", exceeds}}));
  EXPECT_EQ(order("task.create", notebook)->at("warnings"), value::array());
  const value strict = {{"pools", {{"default", {{"launch_error", true}, {"max_slots", 1}}}}}};
  ASSERT_TRUE(order("configuration.record", {{"configuration", strict}, {"revision", 0}}));
  pass(1s);
  EXPECT_EQ(order("task.create", notebook)->at("warnings"), exceeds) << "a task is not refused";
  EXPECT_EQ(order("experiment.create", of("one", 1))->at("warnings"), value::array());
  for (const char* command : {"experiment.create", "experiment.validate"}) {
    const auto refused = order(command, of("two again", 2));
    ASSERT_FALSE(refused) << command;
    EXPECT_THAT(refused.error().what, testing::HasSubstr("2 slots, and pool 'default' has 1"));
  }
  ASSERT_TRUE(order("experiment.kill", {{"id", 2}}));
  pass(2s);
  const auto again = order("experiment.continue", {{"id", 2}});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().what, testing::HasSubstr("3 slots, and pool 'default' has 1"));
}

TEST_F(ClusterActor, ALongQueueIsToldAsAShortOneIs) {
  const auto rows_of = [this](const std::string& key, int trials) {
    auto wanted = search(key);
    wanted["config"]["searcher"] = {
      {"name", "random"}, {"metric", "loss"}, {"max_trials", trials}, {"max_concurrent_trials", trials}};
    wanted["config"]["hyperparameters"]["x"] = {{"type", "double"}, {"minval", 0}, {"maxval", 1}};
    const auto made = order("experiment.create", wanted);
    EXPECT_TRUE(made) << made.error().what;
    pass(2s);
    const auto got = order("queue.list", value::object());
    EXPECT_TRUE(got) << got.error().what;
    return got ? got->at("waiting") : value::array();
  };
  const auto few = rows_of("a", 2);
  ASSERT_EQ(few.size(), 2u);
  EXPECT_EQ(few[0].at("allocation"), "1.1");
  EXPECT_EQ(few[0].at("reason"), "no_agents");
  const auto many = rows_of("b", 1100);
  ASSERT_EQ(many.size(), 1102u);
  EXPECT_EQ(many[0], few[0]);
  EXPECT_EQ(many[1], few[1]);
  EXPECT_EQ(many[1101].at("position"), 1102);
  EXPECT_EQ(many[1101].at("experiment"), 2);
  EXPECT_EQ(many[1101].at("pool"), few[0].at("pool"));
}

TEST_F(ClusterActor, TellsAtItsNextStartOfAnEndThatItFellOver) {
  ASSERT_TRUE(
    order("webhook.create",
          {{"url", "http://receiver.lab/x"},
           {"triggers", {{{"type", "EXPERIMENT_STATE_CHANGE"}, {"condition", {{"state", "COMPLETED"}}}}}}}));
  auto outside = search("k");
  outside["unmanaged"] = true;
  ASSERT_TRUE(order("experiment.create", outside));
  ASSERT_TRUE(order("experiment.create", search("l")));
  close();
  {
    auto fallen = storage::make_journal(store, {});
    ASSERT_TRUE(fallen);
    for (const auto id : {experiment_id{1}, experiment_id{2}}) {
      const auto stream = entity(id);
      ASSERT_TRUE((*fallen)->append(
        {stream,
         *(*fallen)->reads()->next_of(stream),
         {encode(experiment_changed{time_point{1000000h}, experiment_state::completed, ""})}}));
    }
    ASSERT_TRUE((*fallen)->commit());
  }
  open();
  EXPECT_EQ(sent.size(), 2u);
  close();
  open(); // nobody has confirmed that the events arrived
  EXPECT_EQ(sent.size(), 4u);
  EXPECT_EQ((std::set<std::string>{sent.begin(), sent.end()}).size(), 2u) << "each end is one event";
}

TEST_F(ClusterActor, ARunThatItsAgentStillHasIsNotStartedAgain) {
  ASSERT_TRUE(order("experiment.create", search("k")));
  auto agent = make_listener();
  ASSERT_TRUE(admit(agent, host("a", "1")));
  pass(2s);
  ASSERT_EQ(started_on(agent).size(), 1u);
  close();
  open();
  auto back = make_listener();
  auto x = host("a", "1");
  x.inventory = {{{{1}, {1}}, {0}, false, 7}};
  ASSERT_TRUE(admit(back, x));
  pass(10s);
  EXPECT_TRUE(started_on(back).empty());
  EXPECT_EQ(stored->reads()->experiment({1})->state, experiment_state::active);
}

TEST_F(ClusterActor, AnExperimentThatDiesIsMadeAgain) {
  ASSERT_TRUE(order("experiment.create", search("k")));
  auto entry = config_.probes->find("experiment/1");
  ASSERT_TRUE(entry);
  end_with_fault(caf::actor_cast<caf::actor>(entry->who.lock()), "the test ends it");
  pass(1s);
  EXPECT_TRUE(config_.probes->find("experiment/1"));
  auto agent = make_listener();
  ASSERT_TRUE(admit(agent, host("a", "1")));
  pass(2s);
  EXPECT_THAT(started_on(agent), testing::ElementsAre("1.1"));
}

TEST_F(ClusterActor, AMatchInTheLogOfATaskIsDurableBeforeItsLineIs) {
  const auto made = order("task.create", {{"kind", "command"}, {"config", {{"entrypoint", {"sleep", "9"}}}}});
  ASSERT_TRUE(made) << made.error().what;
  const auto id = parse_task(made->at("id").get<std::string>());
  line_matched line{{id, {1}}, "a", "ECC", "an ECC fault", {}, "ecc", true, false};
  const auto done = ask<committed>(lines_matched{{line}});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(stored->reads()->other_task(id)->log_policy, "ecc");
  line.allocation.task = task_id::of(task_kind::command, 77, 77);
  EXPECT_TRUE(ask<committed>(lines_matched{{line}})) << "one that has ended holds nothing up";
}

/// The journal of this cluster gets nothing while it is `late`, and then everything in the order in which it
/// was sent.
class LateJournal : public ClusterActor {
protected:
  struct letter {
    caf::strong_actor_ptr from;
    caf::message_id id;
    caf::message what;
  };
  journal_actor before(const journal_actor& real) override {
    return on_stage(
      caf::actor_cast<journal_actor>(system_->spawn([this, to = caf::actor_cast<caf::strong_actor_ptr>(real)](
                                                      caf::event_based_actor* self) -> caf::behavior {
        self->set_default_handler(
          [this, to](caf::scheduled_actor* at, caf::message_view& x) -> caf::result<caf::message> {
            const auto& in = *at->current_mailbox_element();
            letters.push_back({in.sender, in.mid, x.move_content_to_message()});
            if (!late)
              hand_on(to);
            return caf::delegated<caf::message>{};
          });
        return {[](bool) {}};
      })));
  }
  void hand_on(const caf::strong_actor_ptr& to) {
    for (auto& x : std::exchange(letters, {}))
      to->enqueue(x.from, x.id, std::move(x.what), nullptr);
  }
  void catch_up() {
    late = false;
    hand_on(caf::actor_cast<caf::strong_actor_ptr>(journal));
    run();
  }

  bool late = false;
  std::vector<letter> letters;
};

TEST_F(LateJournal, KeepsNoTaskFromItsActor) {
  const value wanted = {{"kind", "command"}, {"key", "k"}, {"config", {{"entrypoint", {"sleep", "9"}}}}};
  late = true;
  const auto made = order("task.create", wanted);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::timeout) << "nobody knows yet";
  pass(40s); // the append was requested once more
  const auto meanwhile = order("task.create", wanted);
  ASSERT_FALSE(meanwhile);
  EXPECT_EQ(meanwhile.error().code, errc::busy) << "one with this key is on its way";
  catch_up();
  auto agent = make_listener();
  ASSERT_TRUE(admit(agent, host("a", "1")));
  pass(2s);
  EXPECT_EQ(started_on(agent).size(), 1u) << "it was stored late, and lives";
  const auto again = order("task.create", wanted);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(stored->reads()->other_tasks(task_kind::command)->size(), 1u);
  EXPECT_TRUE(order("task.kill", {{"id", again->at("id")}})) << "it takes orders";
}

TEST_F(LateJournal, OrdersThatComeTogetherAreOneCommitWithAnAnswerEach) {
  ASSERT_TRUE(order("experiment.create", search("a")));
  ASSERT_TRUE(order("experiment.create", search("b")));
  auto orders = value::array();
  for (const int id : {1, 99, 2}) {
    value labels{{"id", id}};
    labels["add_labels"] = std::vector<std::string>{"urgent"};
    orders.push_back({{"name", "experiment.describe"}, {"parameters", std::move(labels)}});
  }
  const value all{{"orders", std::move(orders)}};
  late = true;
  caf::anon_send(cluster, client_command{"ada", true, "", "orders.together", all});
  pass(2s);
  EXPECT_TRUE(stored->reads()->experiment({1})->labels.empty()) << "nothing is durable yet";
  std::vector<std::size_t> facts; // number of facts in each requested commit
  for (const auto& x : letters)
    if (x.what.match_element<append_facts>(0) && x.what.get_as<append_facts>(0).entity == cluster_entity)
      facts.push_back(x.what.get_as<append_facts>(0).facts.size());
  EXPECT_THAT(facts, testing::ElementsAre(2u));
  catch_up();
  for (const std::uint64_t id : {1, 2})
    EXPECT_THAT(stored->reads()->experiment({id})->labels, testing::ElementsAre("urgent"));
  const auto again = order("orders.together", all);
  ASSERT_TRUE(again) << again.error().what;
  const auto& answers = again->at("answers");
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_FALSE(answers[0].contains("error") || answers[2].contains("error")) << answers.dump();
  EXPECT_TRUE(answers[1].contains("error")) << answers.dump();
}

TEST_F(ClusterActor, ATaskThatIsGivenUpLeavesNoProcessAndNoSlotBehind) {
  auto agent = make_listener();
  const auto here = admit(agent, host("a", "1"));
  ASSERT_TRUE(here);
  const value all_slots = {{"entrypoint", {"sleep", "9"}}, {"resources", {{"slots", 2}}}};
  const auto made = order("task.create", {{"kind", "command"}, {"config", all_slots}});
  ASSERT_TRUE(made) << made.error().what;
  const auto id = parse_task(made->at("id").get<std::string>());
  pass(2s);
  ASSERT_EQ(started_on(agent).size(), 1u);
  for (std::size_t n = 0; n <= child_restarts<task_id>::most; ++n) {
    const auto entry = config_.probes->find(entity(id));
    ASSERT_TRUE(entry) << n;
    end_with_fault(caf::actor_cast<caf::actor>(entry->who.lock()), "the test ends it");
    pass(1s);
  }
  EXPECT_EQ(stored->reads()->other_task(id)->state, task_state::error);
  ASSERT_TRUE(order("task.create", {{"kind", "command"}, {"config", all_slots}}));
  pass(2s);
  EXPECT_EQ(killed_on(agent), 1u);
  EXPECT_EQ(started_on(agent).size(), 1u) << "its process may live";
  caf::anon_send(here->twin, link_report{here->epoch, {}, {task_exited{{id, {1}}, "a", -1, 9}}, {}, {}});
  pass(2s);
  EXPECT_EQ(started_on(agent).size(), 2u) << "the slots are free";
}

TEST_F(ClusterActor, ATaskThatIsGivenUpHoldsItsSlotsUntilTheLeaseOfItsAgentEnds) {
  const value limited = {{"pools", {{"default", {{"max_slots", 2}}}}}};
  ASSERT_TRUE(order("configuration.record", {{"configuration", limited}, {"revision", 0}}));
  auto silent = make_listener(), other = make_listener();
  ASSERT_TRUE(admit(silent, host("a", "1")));
  const value all_slots = {{"entrypoint", {"sleep", "9"}}, {"resources", {{"slots", 2}}}};
  const auto made = order("task.create", {{"kind", "command"}, {"config", all_slots}});
  ASSERT_TRUE(made) << made.error().what;
  const auto id = parse_task(made->at("id").get<std::string>());
  pass(2s);
  ASSERT_EQ(started_on(silent).size(), 1u);
  const auto here = admit(other, host("b", "2"));
  ASSERT_TRUE(here);
  ASSERT_TRUE(order("task.create", {{"kind", "command"}, {"config", all_slots}}));
  const auto end = [this](const std::string& name) {
    const auto entry = config_.probes->find(name);
    ASSERT_TRUE(entry) << name;
    end_with_fault(caf::actor_cast<caf::actor>(entry->who.lock()), "the test ends it");
    pass(1s);
  };
  for (std::size_t n = 0; n <= child_restarts<task_id>::most; ++n)
    end(entity(id));
  EXPECT_EQ(stored->reads()->other_task(id)->state, task_state::error);
  end("agent/a"); // its twin is made again, and knows of the task still
  const auto wait = [&](int times) {
    for (int n = 0; n < times; ++n) {
      caf::anon_send(here->twin, agent_heartbeat{here->epoch, {}});
      pass(10s);
    }
  };
  wait(4);
  EXPECT_TRUE(started_on(other).empty()) << "the limit of the pool is full";
  wait(2);
  EXPECT_EQ(started_on(other).size(), 1u);
}

/// The task's actor ends when the journal is late, and the next actor has to know what is stored after that.
TEST_F(LateJournal, AKillThatIsStoredLateIsObeyed) {
  auto agent = make_listener();
  ASSERT_TRUE(admit(agent, host("a", "1")));
  const auto made = order("task.create", {{"kind", "command"}, {"config", {{"entrypoint", {"sleep", "9"}}}}});
  ASSERT_TRUE(made) << made.error().what;
  pass(2s);
  ASSERT_EQ(started_on(agent).size(), 1u);
  late = true;
  EXPECT_FALSE(order("task.kill", {{"id", made->at("id")}})) << "nobody knows yet";
  pass(2s);
  const auto meanwhile = order("task.kill", {{"id", made->at("id")}});
  ASSERT_FALSE(meanwhile);
  EXPECT_EQ(meanwhile.error().code, errc::busy);
  catch_up();
  pass(2s);
  EXPECT_EQ(killed_on(agent), 1u);
}

TEST_F(LateJournal, ATaskThatIsGivenUpEndsWhenTheJournalIsBack) {
  auto agent = make_listener();
  ASSERT_TRUE(admit(agent, host("a", "1")));
  const auto made = order("task.create", {{"kind", "command"}, {"config", {{"entrypoint", {"sleep", "9"}}}}});
  ASSERT_TRUE(made) << made.error().what;
  const auto id = parse_task(made->at("id").get<std::string>());
  pass(1s);
  ASSERT_EQ(started_on(agent).size(), 1u);
  for (std::size_t n = 0; n <= child_restarts<task_id>::most; ++n) {
    late = n == child_restarts<task_id>::most;
    const auto entry = config_.probes->find(entity(id));
    ASSERT_TRUE(entry) << n;
    end_with_fault(caf::actor_cast<caf::actor>(entry->who.lock()), "the test ends it");
    pass(1s);
  }
  pass(31s);
  catch_up();
  pass(2s);
  EXPECT_EQ(stored->reads()->other_task(id)->state, task_state::error);
  EXPECT_EQ(killed_on(agent), 1u) << "its process ends";
}

TEST_F(ClusterActor, WhatIsBeingContinuedIsNotDeleted) {
  ASSERT_TRUE(order("experiment.create", search("k")));
  ASSERT_TRUE(order("experiment.kill", {{"id", 1}}));
  pass(2s);
  ASSERT_EQ(stored->reads()->experiment({1})->state, experiment_state::canceled);
  std::vector<std::string> said;
  // The second order comes while the first is under way.
  for (const char* name : {"experiment.continue", "experiment.delete"})
    system_->spawn([this, name, &said](caf::event_based_actor* self) {
      self->request(cluster, 30s, client_command{"ada", true, "", name, {{"id", 1}}})
        .then([&said](const command_result& x) { said.push_back(x.got ? "done" : x.got.error().what); },
              [&said](const caf::error& why) { said.push_back(from_caf(why).what); });
    });
  pass(2s);
  EXPECT_THAT(said, testing::UnorderedElementsAre("done", "experiment 1 is being continued"));
  EXPECT_EQ(stored->reads()->experiment({1})->state, experiment_state::active);
  EXPECT_TRUE(config_.probes->find("experiment/1"));
}

TEST_F(ClusterActor, WhatAContinuationIsGivenCountsOverWhatUsersSetBefore) {
  auto wanted = search("k");
  wanted["config"]["name"] = "orig";
  wanted["config"]["description"] = "d0";
  ASSERT_TRUE(order("experiment.create", wanted));
  ASSERT_TRUE(order("experiment.set", {{"id", 1}, {"priority", 33}}));
  ASSERT_TRUE(order("experiment.describe", {{"id", 1}, {"name", "patched"}, {"save_trial_best", 3}}));
  ASSERT_TRUE(order("log.retain", {{"experiment", 1}, {"days", 8}}));
  ASSERT_TRUE(order("experiment.kill", {{"id", 1}}));
  pass(2s);
  const value given{{"name", "orig"},
                    {"resources", {{"priority", 55}}},
                    {"checkpoint_storage", {{"save_trial_best", 5}}},
                    {"retention_policy", {{"log_retention_days", 3}}}};
  const auto done = order("experiment.continue", {{"id", 1}, {"config", given}});
  ASSERT_TRUE(done) << done.error().what;
  pass(2s);
  const auto queue = order("queue.list", value::object());
  ASSERT_TRUE(queue) << queue.error().what;
  ASSERT_EQ(queue->at("waiting").size(), 1u);
  EXPECT_EQ(queue->at("waiting")[0].at("priority"), 55);
  const auto check = [&](const std::string& when) {
    const auto row = stored->reads()->experiment({1});
    ASSERT_TRUE(row) << row.error().what;
    EXPECT_EQ(row->name, "orig") << when;
    EXPECT_EQ(row->description, "d0") << when;
    EXPECT_EQ(row->config.get()["checkpoint_storage"]["save_trial_best"], 5) << when;
    const auto kept = storage::records_of<log_retention_changed>(*stored->reads());
    ASSERT_TRUE(kept) << kept.error().what;
    ASSERT_EQ(kept->size(), 1u);
    EXPECT_EQ(kept->front().days, 3) << when;
  };
  check("at once");
  ASSERT_TRUE(order("experiment.describe", {{"id", 1}, {"notes", "x"}}));
  check("described again");
  close();
  open();
  ASSERT_TRUE(order("experiment.describe", {{"id", 1}, {"notes", "y"}}));
  check("after the next start");
  ASSERT_TRUE(order("experiment.kill", {{"id", 1}}));
  pass(2s);
  ASSERT_TRUE(order("experiment.describe", {{"id", 1}, {"name", "patched"}}));
  ASSERT_TRUE(order("experiment.continue", {{"id", 1}, {"config", {{"max_restarts", 1}}}}));
  pass(2s);
  EXPECT_EQ(stored->reads()->experiment({1})->name, "patched") << "the override does not name it";
}

TEST_F(ClusterActor, ManyCheckpointsOfOneTrialThatHasEndedChangeTogether) {
  ended_with_checkpoints(20);
  auto changes = value::array();
  const auto before = stored->reads()->checkpoints({1});
  ASSERT_TRUE(before);
  for (const auto& row : *before)
    changes.push_back({{"uuid", row.saved.uuid}, {"files", {{"a", 1}}}});
  const auto done = order("checkpoint.patch", {{"checkpoints", std::move(changes)}});
  ASSERT_TRUE(done) << done.error().what;
  const auto rows = stored->reads()->checkpoints({1});
  ASSERT_EQ(rows->size(), 20u);
  for (const auto& row : *rows)
    EXPECT_EQ(row.saved.files.size(), 1u) << row.saved.uuid;
}

TEST_F(ClusterActor, KeepsUsersFromFilesOfARegisteredCheckpointAndNamesNoModelThatIsNotSeen) {
  ended_with_checkpoints(2);
  const auto model = order("model.create", {{"name", "hush"}});
  ASSERT_TRUE(model) << model.error().what;
  ASSERT_TRUE(order("model.version.create", {{"model", model->at("id")}, {"checkpoint", uuid_of(1)}}));
  const auto patch = [&](const std::string& allocation) {
    auto all = value::array();
    for (int n : {0, 1})
      all.push_back({{"uuid", uuid_of(n)}, {"files", value::object()}});
    auto done = ask<command_result>(
      client_command{"ada", false, allocation, "checkpoint.patch", {{"checkpoints", all}}});
    return done ? done->got ? "fine" : done->got.error().what : done.error().what;
  };
  const auto states = [&] {
    std::vector<checkpoint_state> all;
    for (int n : {0, 1})
      all.push_back(stored->reads()->checkpoint(uuid_of(n))->state);
    return all;
  };
  const std::string said = "this subset of checkpoints provided are in the model registry and cannot be ";
  EXPECT_EQ(patch(""), said + "patched: " + uuid_of(1));
  EXPECT_EQ(states(), std::vector(2, checkpoint_state::completed)) << "nothing was changed";
  value wanted = {{"uuids", value::array({uuid_of(0), uuid_of(1)})}};
  const auto hidden = order("checkpoint.remove", wanted);
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().what, said + "deleted: " + uuid_of(1));
  wanted["models"] = value::array({model->at("id")});
  const auto seen = order("checkpoint.remove", wanted);
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().what,
            said + "deleted: " + uuid_of(1) + ", registered to hush (model #1), version 1");
  EXPECT_EQ(patch("1.1"), "fine") << "a task says what it has deleted";
  EXPECT_EQ(states(), std::vector(2, checkpoint_state::deleted));
}

TEST_F(ClusterActor, WhatARemovalHasListedBringsNoFileBackThatIsGone) {
  const std::string user,
    removal = to_string(allocation_id{task_id::of(task_kind::checkpoint_gc, 1, 2), {1}});
  const value none = value::object(), a = {{"a", 1}}, b = {{"b", 2}}, both = {{"a", 1}, {"b", 2}};
  const struct {
    const char* what;
    std::string first; ///< who tells first: the allocation of a task, or none for a user
    value told_first;
    std::string then;
    value told_then;
    value left;
  } cases[] = {
    {"deleted meanwhile", removal, none, removal, both, none},
    {"deleted by a user", user, none, removal, both, none},
    {"partly deleted meanwhile", removal, b, removal, both, b},
    {"each has deleted another file", removal, b, removal, a, none},
    {"only a folder would be left", removal, {{"d/", 0}, {"b", 2}}, removal, {{"d/", 0}, {"a", 1}}, none},
    {"the record did not know a file", removal, {{"c", 3}}, removal, {{"a", 1}, {"c", 3}}, {{"c", 3}}},
    {"users may say what they like", removal, none, user, both, both},
  };
  const int count = static_cast<int>(std::size(cases));
  for (const bool live : {false, true}) {
    if (live) {
      close();
      store = storage::make_memory_store();
      open();
      ASSERT_TRUE(order("experiment.create", search("k")));
      pass(2s);
      close();
      {
        auto fallen = storage::make_journal(store, {});
        ASSERT_TRUE(fallen);
        record_checkpoints(**fallen, count, "/checkpoints");
      }
      open();
      pass(2s);
      ASSERT_TRUE(config_.probes->find("experiment/1"));
    } else {
      ended_with_checkpoints(count);
    }
    for (int n = 0; n < count; ++n) {
      const auto& c = cases[n];
      int fine = 0;
      // The second comes before the first is stored.
      system_->spawn([&, uuid = uuid_of(n)](caf::event_based_actor* self) {
        for (const auto& [from, files] : {std::pair(c.first, c.told_first), std::pair(c.then, c.told_then)}) {
          const value told = {{"uuid", uuid}, {"files", files}};
          self
            ->request(
              cluster, 30s,
              client_command{"ada", true, from, "checkpoint.patch", {{"checkpoints", value::array({told})}}})
            .then([&fine](const command_result& x) { fine += x.got ? 1 : 0; }, [](const caf::error&) {});
        }
      });
      pass(2s);
      EXPECT_EQ(fine, 2) << c.what << ", live " << live;
      const auto row = stored->reads()->checkpoint(uuid_of(n));
      ASSERT_TRUE(row) << row.error().what;
      EXPECT_EQ(value(row->saved.files), c.left) << c.what << ", live " << live;
      EXPECT_EQ(row->state, c.left.empty() ? checkpoint_state::deleted : checkpoint_state::partially_deleted)
        << c.what << ", live " << live;
    }
  }
}

TEST_F(ClusterActor, RemovalsAtTheSameTimeBringNoFileBack) {
  char pattern[] = "/tmp/troupe-cluster-XXXXXX";
  const fs::path folder = ::mkdtemp(pattern);
  const struct {
    std::vector<std::string> first, then; ///< patterns; none: all files
    std::map<std::string, std::int64_t> left;
  } cases[] = {
    {{"a"}, {"none"}, {{"b", 2}}},
    {{"a"}, {"a", "x"}, {{"b", 2}}},
    {{"a"}, {"b"}, {}},
    {{}, {"a"}, {}},
    {{"a"}, {}, {}},
  };
  const int count = static_cast<int>(std::size(cases));
  for (int n = 0; n < count; ++n) {
    fs::create_directories(folder / uuid_of(n));
    for (const char* file : {"a", "b"})
      std::ofstream(folder / uuid_of(n) / file) << "x";
  }
  ended_with_checkpoints(count, folder.string());
  for (int n = 0; n < count; ++n) {
    const auto& c = cases[n];
    int fine = 0;
    // The second looks at the files before the first is stored.
    system_->spawn([&, uuid = uuid_of(n)](caf::event_based_actor* self) {
      for (const auto& globs : {c.first, c.then})
        self
          ->request(
            cluster, 30s,
            client_command{
              "ada", true, "", "checkpoint.remove", {{"uuids", value::array({uuid})}, {"globs", globs}}})
          .then([&fine](const command_result& x) { fine += x.got ? 1 : 0; }, [](const caf::error&) {});
    });
    pass(2s);
    EXPECT_EQ(fine, 2) << n;
    const auto row = stored->reads()->checkpoint(uuid_of(n));
    ASSERT_TRUE(row) << row.error().what;
    EXPECT_EQ(row->saved.files, c.left) << n;
    EXPECT_EQ(row->state, c.left.empty() ? checkpoint_state::deleted : checkpoint_state::partially_deleted)
      << n;
    for (const char* file : {"a", "b"})
      EXPECT_EQ(fs::exists(folder / uuid_of(n) / file), c.left.contains(file)) << n << file;
  }
  fs::remove_all(folder);
}

TEST_F(LateJournal, ARemovalThatIsStoredLateBringsNoFileBack) {
  ended_with_checkpoints(1);
  late = true;
  const value told = {{"uuid", uuid_of(0)}, {"files", {{"a", 1}}}};
  const auto removal = to_string(allocation_id{task_id::of(task_kind::checkpoint_gc, 1, 2), {1}});
  system_->spawn([&](caf::event_based_actor* self) {
    self
      ->request(
        cluster, 30s,
        client_command{"ada", true, removal, "checkpoint.patch", {{"checkpoints", value::array({told})}}})
      .then([](const command_result&) {}, [](const caf::error&) {});
  });
  run();
  ASSERT_FALSE(letters.empty());
  // A sweep writes into the same stream.
  const auto stream = entity(trial_id{1});
  ASSERT_TRUE(stored->append({stream,
                              *stored->reads()->next_of(stream),
                              {encode(checkpoint_changed{time_point{}, uuid_of(0), {}, ""})}}));
  ASSERT_TRUE(stored->commit());
  catch_up();
  pass(2s);
  const auto row = stored->reads()->checkpoint(uuid_of(0));
  ASSERT_TRUE(row) << row.error().what;
  EXPECT_EQ(row->state, checkpoint_state::deleted);
  EXPECT_EQ(row->saved.files.size(), 0u);
}

TEST_F(ClusterActor, NamesNoExperimentThatTheCallerMayNotSee) {
  close();
  roles = true;
  open();
  ended_with_checkpoints(1);
  auto wanted = search("k2");
  wanted["config"]["searcher"]["source_checkpoint_uuid"] = uuid_of(0);
  const auto made = order("experiment.create", wanted);
  ASSERT_TRUE(made) << made.error().what;
  const auto check = [&](const std::string& named) {
    const auto held = "checkpoint " + uuid_of(0) + " is in use: " + named + " begins its trials with it";
    for (const auto& no : {order("experiment.delete", {{"id", 1}}),
                           order("checkpoint.remove", {{"uuids", value::array({uuid_of(0)})}})}) {
      ASSERT_FALSE(no);
      EXPECT_EQ(no.error().what, held);
    }
  };
  check("an experiment that you may not see");
  const auto user = order("user.create", {{"name", "ada"}});
  ASSERT_TRUE(user) << user.error().what;
  const value viewer = {{"role", 4}, {"user", user->at("id")}};
  const auto given = order("role.assign", {{"roles", value::array({viewer})}});
  ASSERT_TRUE(given) << given.error().what;
  check("experiment " + made->at("id").dump());
}

TEST_F(ClusterActor, GoesOnAtItsNextStartWithARemovalOfCheckpointsThatItFellOver) {
  char pattern[] = "/tmp/troupe-cluster-XXXXXX";
  const fs::path folder = ::mkdtemp(pattern);
  for (const auto& uuid : {uuid_of(0), uuid_of(1), uuid_of(2)}) {
    fs::create_directories(folder / uuid);
    for (const char* file : {"a", "b"})
      std::ofstream(folder / uuid / file) << "x";
  }
  ended_with_checkpoints(3, folder.string());
  const auto model = order("model.create", {{"name", "m"}});
  ASSERT_TRUE(model) << model.error().what;
  const auto version =
    order("model.version.create", {{"model", model->at("id")}, {"checkpoint", uuid_of(2)}});
  ASSERT_TRUE(version) << version.error().what;
  close();
  checkpoint_files_removed begun;
  begun.by = "ada";
  begun.id = task_id::of(task_kind::checkpoint_gc, 1, 2);
  begun.experiment = {1};
  begun.cause = "files";
  begun.checkpoints = {uuid_of(0), uuid_of(1), uuid_of(2)};
  {
    auto fallen = storage::make_journal(store, {});
    ASSERT_TRUE(fallen);
    const auto trial = entity(trial_id{1});
    ASSERT_TRUE((*fallen)->append({entity(begun.id), 0, {encode(begun)}}));
    // Only one of the two checkpoints.
    ASSERT_TRUE((*fallen)->append({trial,
                                   *(*fallen)->reads()->next_of(trial),
                                   {encode(checkpoint_changed{time_point{}, uuid_of(0), {}, "ada"})}}));
    ASSERT_TRUE((*fallen)->commit());
  }
  open();
  pass(5s);
  const auto there = [&](int n) {
    const auto uuid = uuid_of(n);
    return std::pair{stored->reads()->checkpoint(uuid)->state, fs::exists(folder / uuid)};
  };
  EXPECT_EQ(there(0), std::pair(checkpoint_state::deleted, false));
  EXPECT_EQ(there(1), std::pair(checkpoint_state::deleted, false)) << "nothing was noted of it";
  EXPECT_EQ(there(2), std::pair(checkpoint_state::completed, true)) << "a version of a model";
  EXPECT_FALSE(stored->reads()->task(begun.id)->open);
  fs::remove_all(folder);
}

/// What keeps a checkpoint from coming into use; "": nothing does.
class Removals : public LateJournal {
protected:
  struct refusals {
    std::string version, source, continuation;
  };
  /// Asks for each use, one after the other. What is granted is done.
  refusals uses(int n) {
    const auto why = [](const result<value>& got) { return got ? std::string() : got.error().what; };
    auto wanted = search("");
    wanted["config"]["searcher"]["source_checkpoint_uuid"] = uuid_of(n);
    return {why(order("model.version.create", {{"model", 1}, {"checkpoint", uuid_of(n)}})),
            why(order("experiment.validate", {{"config", wanted["config"]}})),
            why(order("experiment.continue", {{"id", 1}}))};
  }
  /// `what`: the words that follow the name of the checkpoint.
  void expect_refused(int n, const std::string& what) {
    const auto got = uses(n);
    EXPECT_EQ(got.version, "checkpoint " + uuid_of(n) + " " + what);
    EXPECT_EQ(got.source, "searcher.source_checkpoint_uuid: checkpoint '" + uuid_of(n) + "' " + what);
    EXPECT_EQ(got.continuation, "checkpoint " + uuid_of(n) + ", with which trial 1 would continue, " + what);
  }
  void send(const std::string& name, value fields) {
    system_->spawn([this, name, fields = std::move(fields)](caf::event_based_actor* self) {
      self->request(cluster, 300s, client_command{"ada", true, "", name, fields})
        .then([](const command_result&) {}, [](const caf::error&) {});
    });
    run();
  }
  void SetUp() override {
    LateJournal::SetUp();
    char pattern[] = "/tmp/troupe-cluster-XXXXXX";
    folder = ::mkdtemp(pattern);
  }
  void TearDown() override {
    LateJournal::TearDown();
    fs::remove_all(folder);
  }
  void ended_with_a_model(int count) {
    for (int n = 0; n < count; ++n) {
      fs::create_directories(folder / uuid_of(n));
      for (const char* file : {"a", "b"})
        std::ofstream(folder / uuid_of(n) / file) << "x";
    }
    ended_with_checkpoints(count, folder.string());
    ASSERT_TRUE(order("model.create", {{"name", "m"}}));
  }
  /// The command by which retention has files removed from a bucket.
  static value removal_task(std::vector<std::string> globs) {
    bucket_order what;
    what.experiment = {1};
    what.cause = "policy";
    what.checkpoints = {uuid_of(0)};
    what.globs = std::move(globs);
    return creation_of(what, {1});
  }

  fs::path folder;
};

TEST_F(Removals, WhatAUserRemovesComesIntoNoUse) {
  ended_with_a_model(1);
  late = true;
  send("checkpoint.remove", {{"uuids", value::array({uuid_of(0)})}, {"globs", {"a"}}});
  expect_refused(0, "has files that are being deleted");
  catch_up();
  pass(2s);
  ASSERT_EQ(stored->reads()->checkpoint(uuid_of(0))->state, checkpoint_state::partially_deleted);
  EXPECT_EQ(uses(0).version, "checkpoint " + uuid_of(0) + " is partially deleted");
}

TEST_F(Removals, ARefusedRemovalLeavesTheCheckpointUsable) {
  ended_with_a_model(1);
  fs::remove_all(folder / uuid_of(0));
  ASSERT_FALSE(order("checkpoint.remove", {{"uuids", value::array({uuid_of(0)})}, {"globs", {"a"}}}))
    << "nobody can see what would be left";
  ASSERT_EQ(stored->reads()->checkpoint(uuid_of(0))->state, checkpoint_state::completed);
  EXPECT_EQ(uses(0).version, "");
}

TEST_F(Removals, WhatIsToldAsGoneComesIntoNoUseBeforeThatIsStored) {
  ended_with_a_model(1);
  late = true;
  const value told = {{"uuid", uuid_of(0)}, {"files", value::object()}};
  send("checkpoint.patch", {{"checkpoints", value::array({told})}});
  expect_refused(0, "has files that are being deleted");
  catch_up();
  pass(2s);
  EXPECT_EQ(uses(0).version, "checkpoint " + uuid_of(0) + " is deleted");
}

TEST_F(Removals, CheckpointsOfAnExperimentThatIsBeingDeletedComeIntoNoUse) {
  ended_with_a_model(1);
  late = true;
  send("experiment.delete", {{"id", 1}});
  const auto got = uses(0);
  EXPECT_EQ(got.version, "checkpoint " + uuid_of(0) + " is being deleted");
  EXPECT_EQ(got.source, "searcher.source_checkpoint_uuid: checkpoint '" + uuid_of(0) + "' is being deleted");
  catch_up();
}

TEST_F(Removals, WhatATaskRemovesFromABucketComesIntoNoUse) {
  ended_with_a_model(1);
  ASSERT_TRUE(order("task.create", removal_task({}))) << "it only lists files";
  ASSERT_TRUE(order("model.version.create", {{"model", 1}, {"checkpoint", uuid_of(0)}}));
  const auto no = order("task.create", removal_task({"**/*"}));
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().what, "checkpoint " + uuid_of(0) + " is in use");
  ASSERT_TRUE(order("model.version.remove", {{"model", 1}, {"version", 1}}));
  const auto made = order("task.create", removal_task({"**/*"}));
  ASSERT_TRUE(made) << made.error().what;
  expect_refused(0, "has files that are being deleted");
  close();
  open();
  pass(2s);
  expect_refused(0, "has files that are being deleted");
  const auto id = parse_task(made->at("id").get<std::string>());
  close();
  {
    auto fallen = storage::make_journal(store, {});
    ASSERT_TRUE(fallen);
    const auto next = (*fallen)->reads()->next_of(entity(id));
    ASSERT_TRUE((*fallen)->append(
      {entity(id), *next, {encode(task_ended{time_point{}, task_state::error, 1, "it failed"})}}));
    ASSERT_TRUE((*fallen)->commit());
  }
  open();
  EXPECT_EQ(uses(0).version, "") << "the task could not remove it";
}

TEST_F(Removals, ASweepDeletesNothingThatHasComeIntoUseSinceItsPlan) {
  ended_with_a_model(2);
  close();
  checkpoint_files_removed begun;
  begun.id = task_id::of(task_kind::checkpoint_gc, 1, 2);
  begun.experiment = {1};
  begun.cause = "other"; // so that no sweep goes on with it at the start
  {
    auto fallen = storage::make_journal(store, {});
    ASSERT_TRUE(fallen);
    ASSERT_TRUE((*fallen)->append({entity(begun.id), 0, {encode(begun)}}));
    ASSERT_TRUE((*fallen)->commit());
  }
  open();
  const auto note = [&] {
    auto all = value::array();
    for (int n : {0, 1})
      all.push_back({{"uuid", uuid_of(n)}, {"files", value::object()}});
    const auto got = ask<command_result>(client_command{
      "", false, to_string(allocation_id{begun.id, {1}}), "checkpoint.patch", {{"checkpoints", all}}});
    return !got ? got.error().what : got->got ? "noted" : got->got.error().what;
  };
  const auto states = [&] {
    return std::pair{stored->reads()->checkpoint(uuid_of(0))->state,
                     stored->reads()->checkpoint(uuid_of(1))->state};
  };
  const std::pair kept{checkpoint_state::completed, checkpoint_state::completed};
  ASSERT_TRUE(order("model.version.create", {{"model", 1}, {"checkpoint", uuid_of(1)}}));
  EXPECT_EQ(note(), "checkpoint " + uuid_of(1) + " is in use");
  EXPECT_EQ(states(), kept);
  ASSERT_TRUE(order("model.version.remove", {{"model", 1}, {"version", 1}}));
  auto warm = search("warm");
  warm["config"]["searcher"]["source_checkpoint_uuid"] = uuid_of(0);
  ASSERT_TRUE(order("experiment.create", warm));
  EXPECT_EQ(note(), "checkpoint " + uuid_of(0) + " is in use");
  EXPECT_EQ(states(), kept);
  ASSERT_TRUE(order("experiment.kill", {{"id", 2}}));
  pass(2s);
  ASSERT_TRUE(order("experiment.continue", {{"id", 1}}));
  EXPECT_EQ(note(), "experiment 1 goes on");
  EXPECT_EQ(states(), kept);
  ASSERT_TRUE(order("experiment.kill", {{"id", 1}}));
  pass(2s);
  EXPECT_EQ(note(), "noted");
  EXPECT_EQ(states(), std::pair(checkpoint_state::deleted, checkpoint_state::deleted));
}

TEST_F(Removals, ACustomSearchBeginsNoTrialWithACheckpointThatGoes) {
  ended_with_a_model(2);
  auto custom = search("custom");
  custom["config"]["searcher"]["name"] = "custom";
  ASSERT_TRUE(order("experiment.create", custom));
  const auto begin = [&](const std::string& key, int n) {
    value create = {{"create", key}, {"hparams", value::object()}, {"source_checkpoint", uuid_of(n)}};
    const auto got =
      order("search.order", {{"id", 2}, {"orders", {{"actions", value::array({std::move(create)})}}}});
    return got ? std::string() : got.error().what;
  };
  const auto tell_gone = [&](int n) {
    const value told = {{"uuid", uuid_of(n)}, {"files", value::object()}};
    return order("checkpoint.patch", {{"checkpoints", value::array({told})}});
  };
  EXPECT_EQ(begin("a", 0), "");
  EXPECT_FALSE(order("checkpoint.remove", {{"uuids", value::array({uuid_of(0)})}})) << "it is in use";
  ASSERT_TRUE(tell_gone(0));
  EXPECT_EQ(begin("a", 0), "") << "orders may be repeated";
  ASSERT_TRUE(tell_gone(1));
  EXPECT_EQ(begin("b", 1), "source_checkpoint: checkpoint '" + uuid_of(1) + "' is deleted");
  EXPECT_EQ(begin("b", 7), "source_checkpoint: checkpoint '" + uuid_of(7) + "' not found");
}

TEST_F(Removals, ACheckpointIsInUseBeforeTheExperimentThatBeginsWithItIsStored) {
  ended_with_a_model(1);
  late = true;
  auto warm = search("warm");
  warm["config"]["searcher"]["source_checkpoint_uuid"] = uuid_of(0);
  send("experiment.create", warm);
  const auto no = order("checkpoint.remove", {{"uuids", value::array({uuid_of(0)})}});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().what,
            "checkpoint " + uuid_of(0) + " is in use: experiment 2 begins its trials with it");
  catch_up();
}

TEST_F(Removals, ARefusedContinuationHoldsNoCheckpoint) {
  ended_with_a_model(1);
  auto warm = search("warm");
  warm["config"]["searcher"]["source_checkpoint_uuid"] = uuid_of(0);
  ASSERT_TRUE(order("experiment.create", warm));
  ASSERT_TRUE(order("experiment.kill", {{"id", 2}}));
  pass(2s);
  late = true;
  send("experiment.delete", {{"id", 2}});
  const auto no = order("experiment.continue", {{"id", 2}});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().what, "experiment 2 is being continued or deleted");
  catch_up();
  pass(2s);
  const auto removed = order("checkpoint.remove", {{"uuids", value::array({uuid_of(0)})}});
  EXPECT_TRUE(removed) << removed.error().what;
}

TEST_F(Removals, ACheckpointThatGoesWhileFilesAreStoredIsNoSource) {
  ended_with_a_model(1);
  commands::experiment_create warm;
  warm.config = search("warm")["config"];
  warm.config["searcher"]["source_checkpoint_uuid"] = uuid_of(0);
  warm.context.held = "a tar"; // stored before the experiment is
  late = true;
  std::string said;
  system_->spawn([&](caf::event_based_actor* self) {
    self->request(cluster, 300s, client_command_of(warm, "ada", true))
      .then([&](const command_result& x) { said = x.got ? "made" : x.got.error().what; },
            [&](const caf::error& why) { said = from_caf(why).what; });
  });
  run();
  const value told = {{"uuid", uuid_of(0)}, {"files", value::object()}};
  send("checkpoint.patch", {{"checkpoints", value::array({told})}});
  catch_up();
  pass(2s);
  EXPECT_THAT(said, testing::StartsWith("searcher.source_checkpoint_uuid: checkpoint '" + uuid_of(0)));
  EXPECT_FALSE(stored->reads()->experiment({2}));
}

TEST_F(ClusterActor, ACheckOfAConfigurationTellsOfItsMasks) {
  auto wanted = search("k");
  wanted["config"]["data"] = {{"secrets", {{"key", "********"}}}};
  const auto checked = order("experiment.validate", {{"config", wanted["config"]}});
  ASSERT_TRUE(checked) << checked.error().what;
  const auto made = order("experiment.create", wanted);
  ASSERT_FALSE(made);
  EXPECT_EQ(checked->value("masked", ""), made.error().what);
  EXPECT_THAT(made.error().what, testing::HasSubstr("data.secrets.key: '********' stands for a secret"));
  wanted["config"]["data"]["secrets"]["key"] = "open sesame";
  EXPECT_EQ(*order("experiment.validate", {{"config", wanted["config"]}}), value::object());
}

TEST_F(ClusterActor, OrdersAboutWhatIsNotThereSaySo) {
  for (const char* name : {"experiment.pause", "experiment.kill", "trial.kill"}) {
    const auto no = order(name, {{"id", 7}});
    ASSERT_FALSE(no) << name;
    EXPECT_EQ(no.error().code, errc::not_found) << name;
  }
  const auto broken = order("experiment.create", {{"config", {{"entrypoint", ""}}}});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, errc::invalid);
  EXPECT_FALSE(stored->reads()->experiment({1})) << "nothing was made";
}

/// A store that counts the rows that views of it read.
class counting_store : public storage::store {
public:
  std::size_t rows_read() const { return count_; }

  std::unique_ptr<storage::view> look() const override {
    struct counted : storage::view {
      std::unique_ptr<storage::view> inner;
      std::size_t* count;
      counted(std::unique_ptr<storage::view> x, std::size_t* n) : inner(std::move(x)), count(n) {}
      result<std::optional<std::string>> get(storage::family where, std::string_view key) const override {
        ++*count;
        return inner->get(where, key);
      }
      std::unique_ptr<storage::cursor> scan(storage::family where, std::string_view from,
                                            std::string_view until,
                                            storage::direction towards) const override {
        return inner->scan(where, from, until, towards);
      }
    };
    return std::make_unique<counted>(inner_->look(), &count_);
  }
  result<std::optional<std::string>> get(storage::family where, std::string_view key) const override {
    return inner_->get(where, key);
  }
  std::unique_ptr<storage::batch> make_batch() const override { return inner_->make_batch(); }
  result<void> admit(std::size_t bytes) override { return inner_->admit(bytes); }
  result<void> write(storage::batch& changes, bool sync) override { return inner_->write(changes, sync); }
  result<void> put_blob(std::string_view name, std::string_view bytes) override {
    return inner_->put_blob(name, bytes);
  }
  result<std::string> blob(std::string_view name) const override { return inner_->blob(name); }

private:
  std::shared_ptr<storage::store> inner_ = storage::make_memory_store();
  mutable std::size_t count_ = 0;
};

class UnmanagedTrials : public ClusterActor {
protected:
  void SetUp() override {
    store = counted;
    lines = std::make_shared<log_watch>([this](task_id id) {
      const auto row = stored->reads()->task(id);
      return row ? row->experiment : experiment_id{};
    });
    ClusterActor::SetUp();
    auto outside = search("k");
    outside["unmanaged"] = true;
    outside["config"]["log_policies"] = {{{"name", "oom"}, {"pattern", "out of memory"}}};
    ASSERT_TRUE(order("experiment.create", outside));
  }
  std::uint64_t made(const std::string& name) {
    const auto got = order("trial.create", {{"experiment", 1}, {"external_id", name}});
    EXPECT_TRUE(got) << name << ": " << got.error().what;
    return got ? got->at("id").get<std::uint64_t>() : 0;
  }
  void start(std::uint64_t id) { EXPECT_TRUE(order("trial.start", {{"id", id}})); }
  void end(std::uint64_t id, const char* as) {
    EXPECT_TRUE(order("trial.hear", {{"id", id}, {"state", as}}));
  }
  std::string state() { return std::string(name(stored->reads()->experiment({1})->state)); }

  std::shared_ptr<counting_store> counted = std::make_shared<counting_store>();
};

TEST_F(UnmanagedTrials, OneMoreOfThemReadsNoRowsOfTheOthers) {
  const auto one_more = [this](int n) {
    const auto before = counted->rows_read();
    const auto id = made("t" + std::to_string(n));
    start(id);
    EXPECT_EQ(state(), "ACTIVE");
    end(id, n == 150 ? "error" : "completed");
    return counted->rows_read() - before;
  };
  for (int n = 0; n < 3; ++n)
    one_more(n);
  const auto few = one_more(3);
  for (int n = 4; n < 150; ++n)
    one_more(n);
  EXPECT_LE(one_more(150), few + 10);
  EXPECT_EQ(state(), "COMPLETED") << "the furthest of its trials";
  EXPECT_EQ(made("t7"), made("t7")) << "found again by its name";
  EXPECT_EQ(stored->reads()->trials({1})->size(), 151u);
}

TEST_F(UnmanagedTrials, ReportsAndLinesAreSignsOfLife) {
  const auto silent = made("a"), reports = made("b"), prints = made("c"), saves = made("d"), lies = made("e");
  for (const auto id : {silent, reports, prints, saves, lies})
    start(id);
  const auto shown = [this](std::uint64_t id) {
    return std::string(name(stored->reads()->trial({id})->state));
  };
  pass(4min);
  const auto now = stored->reads()->trial({silent})->heard + 4min;
  for (std::uint64_t n = 1; n <= 20; ++n) {
    const auto steps = static_cast<std::int64_t>(n);
    const auto metrics = to_msgpack({{"loss", 0.5}});
    ASSERT_TRUE(
      stored->report({{trial_id{reports}, {1}}, 0, "process", n, {{"training", steps, now, metrics, ""}}}));
  }
  const log_line line{1, now, {trial_id{prints}, {1}}, "", 0, "stdout", "INFO", "a line"};
  ASSERT_TRUE(stored->log({trial_id{prints}, {line}, "http", 1}));
  auto ahead = line;
  ahead.at = now + 1h;
  ahead.allocation = {trial_id{lies}, {1}};
  ASSERT_TRUE(stored->log({trial_id{lies}, {ahead}, "http", 2}));
  const auto stream = entity(trial_id{saves});
  const checkpoint saved{uuid_of(1), 1, {{"a", 1}}, value::object(), "/checkpoints/" + uuid_of(1)};
  ASSERT_TRUE(stored->append(
    {stream, *stored->reads()->next_of(stream), {encode(checkpoint_recorded{now, {1}, saved})}}));
  ASSERT_TRUE(stored->commit());
  pass(2min);
  EXPECT_EQ(shown(silent), "ERROR");
  EXPECT_EQ(shown(reports), "RUNNING");
  EXPECT_EQ(shown(prints), "RUNNING");
  EXPECT_EQ(shown(saves), "RUNNING");
  EXPECT_EQ(shown(lies), "ERROR") << "a time in the future is no sign";
  pass(4min);
  EXPECT_EQ(shown(reports), "ERROR");
  EXPECT_EQ(stored->reads()->trial({reports})->ended, stored->reads()->trial({prints})->ended)
    << "since the last sign, not since the start";
  EXPECT_EQ(stored->reads()->trial({reports})->ended - stored->reads()->trial({silent})->ended, 4min);
}

TEST_F(UnmanagedTrials, TheirLinesMeetLogPolicies) {
  const auto id = made("a");
  start(id);
  const log_line line{1, {}, {trial_id{id}, {1}}, "", 0, "stdout", "", "CUDA error: out of memory"};
  const auto found = lines->look({line});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].policy, "oom");
  for (int twice = 0; twice < 2; ++twice) // as after a restart of the journal
    ASSERT_TRUE(ask<committed>(lines_matched{found}));
  lines->told(found);
  start(made("b"));
  EXPECT_TRUE(lines->look({line}).empty()) << "the start of another trial forgets nothing";
  EXPECT_EQ(stored->reads()->trial({id})->log_policy, "oom");
  const auto facts = stored->reads()->facts_of(entity(trial_id{id}), 0);
  EXPECT_EQ(std::count_if(facts->begin(), facts->end(),
                          [](const auto& one) {
                            const auto fact = decode_as<trial_fact>(one);
                            return fact && std::holds_alternative<log_policy_matched>(*fact);
                          }),
            1);
}

TEST_F(UnmanagedTrials, OneThatIsDeletedCountsNoMore) {
  const auto first = made("a"), second = made("b");
  start(first);
  end(first, "completed");
  trial_deleted gone;
  gone.experiment = {1}, gone.trial = {first}, gone.step = deletion_step::done;
  const std::string stream(cluster_entity);
  ASSERT_TRUE(stored->append({stream, *stored->reads()->next_of(stream), {encode(fact(gone))}}));
  ASSERT_TRUE(stored->commit());
  start(second);
  end(second, "error");
  EXPECT_EQ(state(), "ERROR") << "of the trials that are left none completed";
  EXPECT_NE(made("a"), first) << "the name is free";
  EXPECT_EQ(made("b"), second);
}

} // namespace
} // namespace troupe

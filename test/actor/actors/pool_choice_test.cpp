// A run whose experiment was moved into another pool.

#include "actors/allocation/allocation_actor.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

class PoolChoice : public Stage {
protected:
  PoolChoice() {
    auto found = [](const caf::message& asked) -> caf::result<caf::message> {
      return asked.match_element<locate_agents>(0) ? caf::make_message(std::vector<twin_actor>(1))
                                                   : caf::message{};
    };
    a = make_listener(found);
    b = make_listener(found);
    c = make_listener(found);
    journal = make_listener([](const caf::message&) { return caf::make_message(committed{}); });
    owner = make_listener();
  }
  void start(const std::vector<allocation_fact>& past) {
    known_pools pools;
    pools.all = {{"a", a.as<pool_actor>()}, {"b", b.as<pool_actor>()}, {"c", c.as<pool_actor>()}};
    allocation = on_stage(spawn_allocation(
      *system_, {id}, {},
      {owner.as<allocation_owner>(), journal.as<journal_actor>(), a.as<pool_actor>(), "a", pools}, past));
    run();
  }
  void choose(const std::string& name, const listener& pool) {
    caf::anon_send(allocation, pool_chosen{name, pool.as<pool_actor>()});
    run();
  }
  void grant(const std::string& pool) {
    caf::anon_send(allocation, slots_granted{id, {{"agent", {0}}}, pool});
    run();
  }
  /// The tags of the facts that the allocation has noted.
  std::string noted() const {
    std::string out;
    for (const auto& one : journal.all<append_facts>())
      for (const auto& bytes : one.facts) {
        auto fact = decode_as<allocation_fact>(bytes).value();
        out += std::visit([](const auto& x) { return std::string(x.tag); }, fact) + " ";
        if (const auto* preempted = std::get_if<allocation_preempted>(&fact))
          out += preempted->reason + " ";
      }
    return out;
  }

  const allocation_id id{{7}, {1}};
  listener a, b, c, journal, owner;
  allocation_actor allocation;
};

TEST_F(PoolChoice, OneThatWaitsAsksThereAndALateGrantIsVoid) {
  start({});
  EXPECT_EQ(a.all<slots_requested>().size(), 1u);
  choose("b", b);
  choose("b", b); // the second message is a repeat
  EXPECT_EQ(a.all<slots_released>().size(), 1u);
  EXPECT_EQ(b.all<slots_requested>().size(), 1u);
  grant("a");
  EXPECT_EQ(noted(), "");
  grant("b");
  EXPECT_EQ(noted(), "allocation_placed ");
}

TEST_F(PoolChoice, OneThatHoldsSlotsIsPreemptedOnce) {
  start({allocation_placed{time_point{1s}, {{"agent", {0}}}, "a"}});
  choose("a", a); // the pool where the run is already
  EXPECT_EQ(noted(), "");
  choose("b", b);
  choose("b", b);
  EXPECT_EQ(noted(), "allocation_preempted pool ");
  EXPECT_TRUE(a.all<slots_released>().empty()) << "it saves first";
  EXPECT_TRUE(b.all<slots_requested>().empty()) << "its next run asks there";
}

TEST_F(PoolChoice, ThePoolThatItHasLeftLetsItAskNoOther) {
  start({});
  choose("b", b);
  a.send(allocation, fall_back{id, {"c"}}); // this message was on its way when the run moved
  run();
  EXPECT_TRUE(c.all<slots_requested>().empty());
  b.send(allocation, fall_back{id, {"c"}});
  run();
  EXPECT_EQ(c.all<slots_requested>().size(), 1u);
}

TEST_F(PoolChoice, OneWhoseStartOrderWasLostIsInThePoolThatPlacesItNext) {
  start({allocation_placed{time_point{1s}, {{"agent", {0}}}, "a"}});
  caf::anon_send(allocation, task_unknown{id, "agent", time_point{1s}});
  run();
  EXPECT_EQ(a.all<slots_released>().size(), 1u);
  EXPECT_EQ(a.all<slots_requested>().size(), 1u);
  a.send(allocation, fall_back{id, {"b"}});
  run();
  grant("b");
  EXPECT_EQ(noted(), "allocation_placed allocation_placed ");
  caf::anon_send(allocation, pool_renewed{"b", b.as<pool_actor>()});
  run();
  EXPECT_EQ(b.all<slots_held>().size(), 1u) << "else that pool places before it has heard of this run";
}

/// Else the release would give away what the new pool has granted.
TEST_F(PoolChoice, WhatItAsksOfANewPoolFollowsAReleaseThatWaitsForTheJournal) {
  const auto order = std::make_shared<std::string>();
  a = make_listener([order](const caf::message& x) -> caf::result<caf::message> {
    *order += x.match_element<slots_released>(0) ? "released " : "";
    *order += x.match_element<slots_requested>(0) ? "requested " : "";
    return caf::message{};
  });
  start({allocation_placed{time_point{1s}, {{"agent", {0}}}, "a"}});
  caf::anon_send(allocation, task_unknown{id, "agent", time_point{1s}});
  caf::anon_send(allocation, pool_renewed{"a", a.as<pool_actor>()}); // handled before the journal answers
  run();
  EXPECT_EQ(*order, "released requested requested ");
}

TEST_F(PoolChoice, OnlyItsOwnPoolIsMetAgain) {
  start({});
  choose("b", b);
  const auto asked = b.all<slots_requested>().size();
  caf::anon_send(allocation, pool_renewed{"a", a.as<pool_actor>()});
  run();
  EXPECT_EQ(a.all<slots_requested>().size(), 1u) << "the first one";
  caf::anon_send(allocation, pool_renewed{"b", b.as<pool_actor>()});
  run();
  EXPECT_EQ(b.all<slots_requested>().size(), asked + 1);
}

} // namespace
} // namespace troupe

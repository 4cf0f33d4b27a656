#include "actors/cluster/cluster.hpp"

#include "model/names.hpp"
#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};

sight everybody(experiment_id) { return sight::seen; }

TEST(Cluster, CreatesOncePerKey) {
  cluster c({{6}, {40}});
  experiment_created wanted;
  wanted.key = "mine";
  auto first = c.create(wanted, everybody);
  EXPECT_EQ(first.id, experiment_id{7});
  EXPECT_EQ(show(first.facts), "created(7)");
  auto again = c.create(wanted, everybody);
  EXPECT_EQ(again.id, experiment_id{7});
  EXPECT_TRUE(again.facts.empty());
  wanted.key.clear(); // without a key every request creates a new experiment
  EXPECT_EQ(c.create(wanted, everybody).id, experiment_id{8});
  EXPECT_EQ(c.create(wanted, everybody).id, experiment_id{9});

  cluster after({{6}, {40}});
  for (const auto& fact : first.facts)
    after.replay(*decode_as<cluster_fact>(encode_as(fact)));
  wanted.key = "mine";
  EXPECT_EQ(after.create(wanted, everybody).id, experiment_id{7});
}

TEST(Cluster, TellsNobodyOfAnotherExperimentByItsKey) {
  cluster c({{0}, {0}}), after({{0}, {0}});
  const auto sees = [](std::set<std::uint64_t> mine) {
    return [mine](experiment_id id) { return mine.contains(id.value) ? sight::seen : sight::none; };
  };
  experiment_created wanted;
  std::vector<std::string> keys;
  const auto create = [&](const std::string& key, const seen_by& by) {
    wanted.key = key;
    const auto made = c.create(wanted, by);
    for (const auto& fact : made.facts) {
      keys.push_back(std::get<experiment_created>(fact).key);
      after.replay(*decode_as<cluster_fact>(encode_as(fact)));
    }
    return made.id.value;
  };
  EXPECT_EQ(create("nightly", sees({1})), 1u);
  EXPECT_EQ(create("nightly", sees({2})), 2u) << "a name of one's own";
  EXPECT_EQ(create("nightly", sees({2})), 2u);
  EXPECT_EQ(create("nightly", sees({1})), 1u);
  EXPECT_EQ(create("nightly", sees({})), 3u);
  EXPECT_EQ(create("nightly", sees({2, 3})), 2u) << "the first that one may see";
  EXPECT_EQ(create("night", sees({2, 3})), 4u);
  EXPECT_EQ(create("nightly2", sees({2, 3})), 5u);
  EXPECT_EQ(keys, (std::vector<std::string>{"nightly", numbered_key("nightly", 2), numbered_key("nightly", 3),
                                            "night", "nightly2"}));
  EXPECT_EQ(c.with_key("nightly", sees({})), experiment_id{});
  EXPECT_EQ(c.with_key("nightly", [](auto id) { return id.value == 2 ? sight::own : sight::seen; }),
            experiment_id{2})
    << "the own one before an older one that can be seen now";
  for (std::uint64_t id : {1, 2, 3})
    EXPECT_EQ(after.with_key("nightly", sees({id})), experiment_id{id}) << "also after a restart";

  EXPECT_EQ(c.order_deletion({1}, "ada", t0).size(), 1u);
  EXPECT_EQ(c.deleted(experiment_id{1}, {}, t0).size(), 1u);
  EXPECT_EQ(create("nightly", sees({2})), 2u) << "also where an earlier one is gone";
  EXPECT_EQ(create("nightly", sees({})), 6u);
  EXPECT_EQ(keys.back(), "nightly");
}

TEST(Cluster, ReservesTrialIdsInARow) {
  cluster c({{6}, {40}});
  EXPECT_EQ(c.reserve_trials(3), trial_id{41});
  EXPECT_EQ(c.reserve_trials(1), trial_id{44});
}

TEST(Cluster, KnowsWhatIsNotSwept) {
  cluster c({}), after({});
  for (int i = 0; i < 2; ++i)
    for (const auto& fact : c.create({}, everybody).facts)
      after.replay(*decode_as<cluster_fact>(encode_as(fact)));
  EXPECT_TRUE(c.unswept({1}));
  auto facts = c.swept({1}, t0);
  EXPECT_EQ(show(facts), "swept(1)");
  EXPECT_TRUE(c.swept({1}, t0).empty()) << "once is enough";
  EXPECT_TRUE(c.swept({7}, t0).empty()) << "nobody made it";
  for (const auto& fact : facts)
    after.replay(*decode_as<cluster_fact>(encode_as(fact)));
  EXPECT_FALSE(after.unswept({1}));
  EXPECT_TRUE(after.unswept({2}));
  EXPECT_EQ(after.snapshot(), c.snapshot());
}

TEST(Cluster, DeletesSingleTrialsWhileTheirExperimentsStay) {
  cluster c({}), after({});
  const auto told = [&](const std::vector<cluster_fact>& facts) {
    for (const auto& fact : facts)
      after.replay(*decode_as<cluster_fact>(encode_as(fact)));
    EXPECT_EQ(after.snapshot(), c.snapshot());
    return show(facts);
  };
  told(c.create({}, everybody).facts);
  EXPECT_EQ(told(c.order_deletion({1}, {7}, "ada", t0)), "deleted(1/7 ordered)");
  EXPECT_EQ(told(c.order_deletion({1}, {7}, "eve", t0)), "") << "it is ordered already";
  EXPECT_EQ(c.deleting_trials().at({7}).by, "ada");
  experiment_continued more;
  more.id = {1};
  EXPECT_EQ(told(c.go_on(more, 0)), "") << "not while a trial of it goes";
  EXPECT_EQ(told(c.deletion_failed(trial_id{7}, "disk", t0)), "deleted(1/7 failed: disk)");
  EXPECT_EQ(told(c.deletion_failed(trial_id{7}, "disk", t0)), "");
  EXPECT_EQ(told(c.deleted(trial_id{7}, t0)), "") << "nobody asks for it any more";
  EXPECT_EQ(told(c.order_deletion({1}, {7}, "eve", t0)), "deleted(1/7 ordered)") << "tried anew";
  EXPECT_EQ(told(c.deleted(trial_id{7}, t0)), "deleted(1/7 done)");
  EXPECT_TRUE(after.deleting_trials().empty());
  EXPECT_EQ(told(c.go_on(more, 0)), "continued(1#1)");

  EXPECT_EQ(told(c.order_deletion({1}, {8}, "ada", t0)), "deleted(1/8 ordered)");
  EXPECT_EQ(told(c.order_deletion({1}, "ada", t0)), "deleted(1 ordered)");
  EXPECT_EQ(told(c.order_deletion({1}, {9}, "ada", t0)), "") << "it goes with its experiment";
  EXPECT_EQ(told(c.deleted({1}, {{8}, {9}}, t0)), "deleted(1 done)");
  EXPECT_TRUE(c.deleting_trials().empty());
  EXPECT_EQ(told(c.deleted(trial_id{8}, t0)), "");
}

} // namespace
} // namespace troupe

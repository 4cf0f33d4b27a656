// How a search answers: with its faults, and after a recovery as before it.

#include "actors/searcher/searcher_actor.hpp"

#include "stage.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

class SearcherActor : public Stage {
protected:
  searcher_actor start(const value& config, std::string snapshot = "",
                       std::vector<searchers::search_event> history = {}) {
    return on_stage(
      spawn_searcher(*system_, {{3}, config, value::object(), 5, std::move(snapshot), std::move(history)}));
  }
  search_decided ask(const searcher_actor& to, search_ask x) {
    search_decided out;
    auto answer = self->request(to, 60s, std::move(x));
    run();
    answer.receive([&](search_decided& got) { out = std::move(got); },
                   [](const caf::error& why) { ADD_FAILURE() << "error " << int(why.code()); });
    return out;
  }
  result<std::string> save(const searcher_actor& of) {
    result<std::string> out = "";
    auto answer = self->request(of, 60s, search_save{});
    run();
    answer.receive([&](const search_saved& x) { out = x.bytes; },
                   [&](const caf::error& why) { out = from_caf(why); });
    return out;
  }

  caf::scoped_actor self{*system_};
  const value random{{"name", "random"}, {"metric", "loss"}, {"max_trials", 2}, {"max_concurrent_trials", 1}};
};

TEST_F(SearcherActor, AConfigurationThatCannotBeUsedIsTheFaultOfEveryAnswer) {
  auto broken = start({{"name", "of no kind"}});
  EXPECT_NE(ask(broken, {search_input::started}).fault, "");
  EXPECT_NE(ask(broken, {search_input::exited, "x"}).fault, "");
  const auto saved = save(broken);
  ASSERT_FALSE(saved) << "there is nothing to save";
  EXPECT_EQ(saved.error().code, errc::conflict);
}

TEST_F(SearcherActor, OrdersThatItDoesNotTakeAreRefusedAndNoFault) {
  auto one = start(random);
  const auto first = ask(one, {search_input::started});
  ASSERT_EQ(first.created.size(), 1u);
  const auto ordered = ask(one, {search_input::ordered, "", {{"actions", value::array()}}});
  EXPECT_NE(ordered.refused, "");
  EXPECT_EQ(ordered.fault, "");
  EXPECT_EQ(ask(one, {search_input::exited, first.created[0].key}).created.size(), 1u);
}

TEST_F(SearcherActor, ReplayedOrRestoredItGoesOnAsItWouldHave) {
  auto undisturbed = start(random);
  const auto first = ask(undisturbed, {search_input::started});
  ASSERT_EQ(first.created.size(), 1u);
  const auto bytes = save(undisturbed);
  ASSERT_TRUE(bytes);
  const auto next = ask(undisturbed, {search_input::exited, first.created[0].key});
  ASSERT_EQ(next.created.size(), 1u);
  auto replayed = start(random, "", {searchers::search_started{}});
  auto restored = start(random, *bytes);
  for (const auto& other : {replayed, restored}) {
    const auto same = ask(other, {search_input::exited, first.created[0].key});
    ASSERT_EQ(same.created.size(), 1u);
    EXPECT_EQ(same.created[0].key, next.created[0].key);
    EXPECT_EQ(same.created[0].hparams, next.created[0].hparams);
  }
}

} // namespace
} // namespace troupe

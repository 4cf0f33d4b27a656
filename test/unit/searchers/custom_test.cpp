// Tests a search that a process outside drives: a batch is taken whole or not at all, and a repeat changes
// nothing.

#include "searchers/searcher.hpp"

#include <gtest/gtest.h>

namespace troupe::searchers {
namespace {

const value config{{"name", "custom"}, {"metric", "loss"}, {"max_trials", 3}};

std::unique_ptr<searcher> fresh() {
  auto s = std::move(make_searcher(config, value::object(), 5)).value();
  EXPECT_TRUE(s->apply(search_started{}).value().empty());
  return s;
}

std::string show(const search_action& a) {
  if (auto* x = std::get_if<create_trial>(&a))
    return "create " + x->trial + " " + to_json(x->hparams) +
           (x->source_checkpoint.empty() ? "" : " from " + x->source_checkpoint);
  if (auto* x = std::get_if<stop_trial>(&a))
    return "stop " + x->trial + " (" + x->why + ")";
  if (auto* x = std::get_if<pause_trial>(&a))
    return "pause " + x->trial;
  if (auto* x = std::get_if<resume_trial>(&a))
    return "resume " + x->trial + " until " + to_json(x->until);
  if (auto* x = std::get_if<perturb_trial>(&a))
    return "perturb " + x->trial + " from " + x->source + "@" + x->checkpoint;
  return std::get<shut_down>(a).failure ? "failed" : "over";
}

/// Returns the actions that the orders lead to, or why they are refused.
std::string told(searcher& s, const char* orders) {
  auto got = s.apply(search_ordered{parse_json(orders).value()});
  if (!got)
    return "refused: " + got.error().what;
  std::string text;
  for (const auto& a : *got)
    text += (text.empty() ? "" : ", ") + show(a);
  return text;
}

TEST(CustomSearch, TakesOrdersWholeOrNotAtAll) {
  auto s = fresh();
  struct {
    const char* orders;
    std::string said;
  } rows[] = {
    {R"({"actions": [{"create": "a", "hparams": {"x": 1}}, {"create": "b", "hparams": {}, "source_checkpoint": "u"}], "upto": 1})",
     R"(create a {"x":1}, create b {} from u)"},
    // these orders answer an event that is answered already
    {R"({"actions": [{"create": "c", "hparams": {}}], "upto": 1})", ""},
    {R"({"actions": [{"create": "a", "hparams": {"x": 2}}]})", ""}, // this trial exists already
    {R"({"actions": [{"stop": "a"}, {"stop": "z"}]})",
     "refused: actions[1]: trial `z` was never created by this search"},
    // Trial b runs already. Trial a was not stopped by the refused orders above.
    {R"({"actions": [{"pause": "a"}, {"resume": "b"}]})", "pause a"},
    {R"({"actions": [{"resume": "a", "until": 4}]})", "resume a until 4.0"},
    {R"({"actions": [{"perturb": "a", "source": "b", "checkpoint": "v", "hparams": {}}]})",
     "perturb a from b@v"},
    {R"({"actions": [{"perturb": "a", "source": "q", "checkpoint": "v", "hparams": {}}]})",
     "refused: actions[0]: `source` must name a trial of this search"},
    {R"({"actions": [{"create": "c", "hparams": {}}, {"create": "d", "hparams": {}}]})",
     "refused: actions[1]: `max_trials` of the configuration are 3"},
    {R"({"actions": [{"create": "c", "hparams": 3}]})", "refused: actions[0]: `hparams` must be an object"},
    {R"({"actions": [{"create": "c", "stop": "a", "hparams": {}}]})",
     "refused: actions[0]: both `create` and `stop`; one action an object"},
    {R"({"actions": [{"progress": 2}]})", "refused: actions[0]: `progress` must be a number, 0 to 1"},
    {R"({"actions": [{"progress": 0.5}]})", ""},
    {R"({"action": []})", "refused: orders are an object with the list `actions`"},
    {R"({"actions": [{"stop": "a", "why": "enough"}, {"stop": "a"}]})", "stop a (enough)"},
    {R"({"actions": [{"shutdown": true, "failure": true}, {"progress": 1}]})",
     "refused: actions[1]: nothing can follow the shutdown"},
    {R"({"actions": [{"shutdown": true}], "upto": 9})", "over"},
    {R"({"actions": [{"shutdown": true}], "upto": 9})", ""},
    {R"({"actions": [{"stop": "b"}]})", "refused: the search was shut down"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(told(*s, row.orders), row.said) << row.orders;
  EXPECT_EQ(s->progress(), 1);
}

TEST(CustomSearch, HearsEventsOfItsTrialsOnlyAndGoesOnFromASnapshot) {
  auto s = fresh();
  told(*s, R"({"actions": [{"create": "a", "hparams": {}}, {"progress": 0.25}], "upto": 4})");
  EXPECT_FALSE(s->apply(trial_exited{"b"}));
  EXPECT_TRUE(s->apply(trial_validated{"a", {{"loss", 1}}}).value().empty());
  EXPECT_TRUE(s->apply(trial_exited{"a"}).value().empty());
  auto again =
    std::move(load_searcher(config, value::object(), 5, search_mode::native, s->snapshot())).value();
  EXPECT_EQ(again->snapshot(), s->snapshot());
  EXPECT_EQ(again->progress(), 0.25);
  EXPECT_EQ(told(*again, R"({"actions": [{"stop": "a"}]})"), ""); // the trial has ended
  EXPECT_EQ(told(*again, R"({"actions": [{"create": "b", "hparams": {}}], "upto": 4})"), "");
  EXPECT_FALSE(load_searcher(config, value::object(), 5, search_mode::native, s->snapshot().substr(3)));
}

TEST(CustomSearch, HasOneDriverAtATimeOnceItNamesItself) {
  auto s = fresh();
  struct {
    const char* orders;
    std::string said;
  } rows[] = {
    {R"({"actions": [{"create": "a", "hparams": {}}]})", "create a {}"}, // no driver has named itself yet
    {R"({"actions": [], "take_over": true})", "refused: `take_over` needs `driver`, the name of the new one"},
    {R"({"actions": [], "driver": 3})",
     "refused: `driver` must name the process that decides: a string of at most 256 bytes"},
    {R"({"actions": [], "driver": "one", "take_over": 1})", "refused: `take_over` must be true or false"},
    {R"({"actions": [{"stop": "q"}], "driver": "lost"})",
     "refused: actions[0]: trial `q` was never created by this search"},
    {R"({"actions": [], "driver": "one", "upto": 3})", ""}, // the refused orders above made nobody the driver
    {R"({"actions": [{"create": "b", "hparams": {}}], "driver": "two", "upto": 3})",
     "refused: the search is driven by `one`, not by `two`; to take it over, send `driver` and "
     "`\"take_over\": true`"},
    {R"({"actions": [{"create": "b", "hparams": {}}]})",
     "refused: the search is driven by `one`; these orders name no driver; to take it over, send `driver` "
     "and `\"take_over\": true`"},
    {R"({"actions": [{"create": "b", "hparams": {}}], "driver": "one", "upto": 4})", "create b {}"},
    {R"({"actions": [{"create": "c", "hparams": {}}], "driver": "two", "take_over": true, "upto": 5})",
     "create c {}"},
    {R"({"actions": [{"stop": "a"}], "driver": "one", "upto": 6})",
     "refused: the search is driven by `two`, not by `one`; to take it over, send `driver` and "
     "`\"take_over\": true`"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(told(*s, row.orders), row.said) << row.orders;
    s = std::move(load_searcher(config, value::object(), 5, search_mode::native, s->snapshot())).value();
  }
  EXPECT_EQ(told(*s, R"({"actions": [{"stop": "a"}], "driver": "two"})"),
            "stop a (stopped by the custom search)");
}

TEST(CustomSearch, IsTheOnlyOneThatTakesOrders) {
  auto s =
    std::move(make_searcher({{"name", "random"}, {"metric", "loss"}, {"max_trials", 2}}, value::object(), 1))
      .value();
  EXPECT_EQ(told(*s, R"({"actions": []})"),
            "refused: a `random` search decides by itself; only `custom` takes orders");
}

} // namespace
} // namespace troupe::searchers

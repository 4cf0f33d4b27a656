// Compares with golden vectors that Determined's own searcher package made.

#include "searchers/compat/nprand.hpp"
#include "searchers/searcher.hpp"
#include "searchers/space.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace troupe::searchers {
namespace {

const value& vectors() {
  static const value all = [] {
    std::ifstream in(TROUPE_SOURCE_DIR "/test/data/searchers/searcher-vectors.json");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    return parse_json(text).value();
  }();
  return all;
}

const value space_of_vectors = {{"lr", {{"type", "log"}, {"base", 10}, {"minval", -5}, {"maxval", 0}}},
                                {"dropout", {{"type", "double"}, {"minval", 0}, {"maxval", 0.7}}},
                                {"layers", {{"type", "int"}, {"minval", 1}, {"maxval", 8}}},
                                {"opt", {{"type", "categorical"}, {"vals", {"sgd", "adam", "rmsprop"}}}},
                                {"c", {{"type", "const"}, {"val", 3}}}};

value shown(const search_action& action) {
  if (auto* x = std::get_if<create_trial>(&action))
    return {{"create", x->trial}, {"hparams", x->hparams}, {"trial_seed", x->trial_seed}};
  if (auto* x = std::get_if<stop_trial>(&action))
    return {{"stop", x->trial}};
  auto& x = std::get<shut_down>(action);
  return {{"shutdown", true}, {"cancel", x.cancel}, {"failure", x.failure}};
}

value shown(const std::vector<search_action>& actions) {
  value list = value::array();
  for (const auto& a : actions)
    list.push_back(shown(a));
  return list;
}

TEST(Compat, DrawsTheStreamOfDetermined) {
  const auto& golden = vectors()["rng_seed42"];
  nprand bits(42), units(42), ints(42), ids(42);
  for (const auto& x : golden["bits32"])
    EXPECT_EQ(bits.bits32(), x.get<std::uint32_t>());
  for (const auto& x : golden["unit"])
    EXPECT_EQ(units.unit(), x.get<double>());
  for (const auto& x : golden["intn10"])
    EXPECT_EQ(ints.below(10), x.get<std::uint64_t>());
  for (const auto& x : golden["request_ids"])
    EXPECT_EQ(ids.request_id(), x.get<std::string>());
}

TEST(Compat, SamplesAsDetermined) {
  auto s = std::move(make_searcher({{"name", "random"}, {"metric", "loss"}, {"max_trials", 5}},
                                   space_of_vectors, 42, search_mode::compat))
             .value();
  EXPECT_EQ(shown(s->apply(search_started{}).value()), vectors()["random_seed42_5trials"]["creates"]);
}

TEST(Compat, BuildsTheBracketTablesOfDetermined) {
  for (const auto& row : vectors()["brackets"]) {
    value config{{"name", "adaptive_asha"}, {"metric", "loss"}, {"time_metric", "batches"}};
    for (auto key : {"divisor", "max_rungs", "max_time", "max_trials", "mode"})
      config[key] = row[key];
    config["max_concurrent_trials"] = row["max_concurrent"];
    auto s = make_searcher(config, value::object(), 0, search_mode::compat);
    ASSERT_TRUE(s) << s.error().what;
    value table = value::array();
    for (const auto& b : (*s)->brackets())
      table.push_back({{"rungs", b.rungs},
                       {"max_trials", b.max_trials},
                       {"max_concurrent", b.max_concurrent},
                       {"units", b.units}});
    ASSERT_EQ(table, row["brackets"]) << to_json(row);
  }
}

/// Replays the golden transcript. `reload_every` above 0: the search is saved and loaded after so many
/// events.
void replay(int reload_every) {
  const auto& golden = vectors()["replay_adaptive_standard_seed7"];
  value config = golden["config"];
  config["name"] = "adaptive_asha";
  auto s = std::move(make_searcher(config, space_of_vectors, 7, search_mode::compat)).value();
  int line = 0;
  for (const auto& e : golden["events"]) {
    search_event event = search_started{};
    auto kind = e["event"].get<std::string>();
    if (kind == "validation")
      event = trial_validated{e["trial"], {{"loss", e["loss"]}, {"batches", e["batches"]}}};
    else if (kind == "exited")
      event = trial_exited{e["trial"]};
    else if (kind == "exited_early")
      event = trial_exited_early{e["trial"],
                                 e["reason"] == "ERRORED" ? exit_reason::errored : exit_reason::invalid_hp};
    auto actions = s->apply(event);
    ASSERT_TRUE(actions) << actions.error().what;
    ASSERT_EQ(shown(*actions), e["actions"]) << "event " << line;
    char progress[32];
    std::snprintf(progress, sizeof progress, "%.12f", s->progress());
    ASSERT_EQ(progress, e["progress"].get<std::string>()) << "event " << line;
    if (reload_every > 0 && ++line % reload_every == 0) {
      auto bytes = s->snapshot();
      s = std::move(load_searcher(config, space_of_vectors, 7, search_mode::compat, bytes)).value();
      ASSERT_EQ(s->snapshot(), bytes);
    }
  }
}

TEST(Compat, DecidesTheGoldenTranscript) { replay(0); }
TEST(Compat, DecidesTheGoldenTranscriptThroughSnapshots) { replay(1); }

TEST(Compat, LaysGridAxesAsDetermined) {
  struct {
    value spec;
    const char* name;
  } axes[] = {
    {{{"type", "double"}, {"minval", 0.1}, {"maxval", 0.5}, {"count", 3}}, "double(0.1,0.5,count=3)"},
    {{{"type", "int"}, {"minval", -3}, {"maxval", 0}, {"count", 1}}, "int(-3,0,count=1)"},
    {{{"type", "int"}, {"minval", 0}, {"maxval", 10}, {"count", 1}}, "int(0,10,count=1)"},
    {{{"type", "int"}, {"minval", 0}, {"maxval", 10}, {"count", 4}}, "int(0,10,count=4)"},
    {{{"type", "int"}, {"minval", 0}, {"maxval", 3}, {"count", 1}}, "int(0,3,count=1)"},
    {{{"type", "int"}, {"minval", 0}, {"maxval", 5}, {"count", 4}}, "int(0,5,count=4)"},
    {{{"type", "int"}, {"minval", 1}, {"maxval", 3}, {"count", 100}}, "int(1,3,count=100)"},
    {{{"type", "log"}, {"base", 10}, {"minval", -5}, {"maxval", -3}, {"count", 1}}, "log10(-5,-3,count=1)"},
  };
  for (const auto& axis : axes) {
    std::vector<std::string> faults;
    auto s = space::parse({{"x", axis.spec}}, faults);
    value got = value::array();
    for (std::uint64_t i = 0; i < s.grid_size(); ++i)
      got.push_back(s.grid_point(i)["x"]);
    EXPECT_EQ(got, vectors()["grid_axes"][axis.name]) << axis.name;
  }
}

} // namespace
} // namespace troupe::searchers

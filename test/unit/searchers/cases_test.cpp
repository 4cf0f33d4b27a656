// Tests the cases of Determined's own unit tests, which are data (test/data/searchers/*_cases.json).

#include "searchers/compat/nprand.hpp"
#include "searchers/halving.hpp"
#include "searchers/preview.hpp"
#include "searchers/searcher.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace troupe::searchers {
namespace {

value data(const std::string& name) {
  std::ifstream in(TROUPE_SOURCE_DIR "/test/data/searchers/" + name + ".json");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_json(text).value();
}

space space_of(const value& hyperparameters) {
  std::vector<std::string> faults;
  auto s = space::parse(hyperparameters, faults);
  EXPECT_TRUE(faults.empty()) << faults.front();
  return s;
}

TEST(SearcherCases, SplitsBudgetsAndSlotsOverBrackets) {
  auto all = data("searcher_cases");
  for (const auto& c : all["bracket_max_trials"]["cases"])
    EXPECT_EQ(value(bracket_trials(c["max_trials"], c["divisor"], c["bracket_rungs"])), c["expect"])
      << to_json(c);
  for (const auto& c : all["bracket_max_concurrent_trials"]["cases"])
    EXPECT_EQ(value(bracket_slots(c["max_concurrent_trials"], c["divisor"], c["bracket_max_trials"])),
              c["expect"])
      << to_json(c);
  for (const auto& c : all["make_rungs"]["cases"])
    EXPECT_EQ(value(rung_units(c["num_rungs"], c["max_time"], c["divisor"])), c["expect"]) << to_json(c);
  for (auto mode : {search_mode::native, search_mode::compat})
    for (const auto& c : all["make_brackets"]["cases"]) {
      value config = c["searcher"];
      config["metric"] = "loss";
      auto s = make_searcher(config, value::object(), 0, mode);
      ASSERT_TRUE(s) << s.error().what;
      value got = value::array();
      for (const auto& b : (*s)->brackets())
        got.push_back({{"num_rungs", b.rungs},
                       {"max_trials", b.max_trials},
                       {"max_concurrent_trials", b.max_concurrent}});
      EXPECT_EQ(got, c["expect"]) << c["name"];
    }
}

/// Runs one trial after the other in the order of their creation; each reports until the search stops it.
/// Returns how many trials were stopped at each step.
std::map<int, int> stops_of(searcher& s, const value& c, std::size_t& created, std::vector<value>& hparams) {
  std::vector<create_trial> trials;
  std::map<int, int> stopped_at;
  const auto& driver = c["driver"];
  bool up = driver["trend"] == "up";
  auto metric = c["searcher"]["metric"].get<std::string>(),
       time = c["searcher"].value("time_metric", "batches");
  auto take = [&](const std::vector<search_action>& actions, const std::string& trial) {
    bool stopped = false;
    for (const auto& a : actions) {
      if (auto* x = std::get_if<create_trial>(&a))
        trials.push_back(*x);
      if (auto* x = std::get_if<stop_trial>(&a))
        stopped = stopped || x->trial == trial;
    }
    return stopped;
  };
  take(s.apply(search_started{}).value(), "");
  double y = 0; // the next trial continues from the last value
  for (std::size_t i = 0; i < trials.size(); ++i) {
    auto trial = trials[i].trial;
    for (int step = 0; step <= driver["max_units"].get<int>(); step += driver["period"].get<int>()) {
      y += up ? 1 : -1;
      if (take(s.apply(trial_validated{trial, {{metric, y}, {time, step}}}).value(), trial)) {
        ++stopped_at[step];
        break;
      }
    }
    take(s.apply(trial_exited{trial}).value(), trial);
    hparams.push_back(trials[i].hparams);
  }
  created = trials.size();
  return stopped_at;
}

TEST(SearcherCases, RunsTheSearches) {
  auto all = data("searcher_cases");
  for (const auto& c : all["search_runs"]["cases"]) {
    auto s =
      std::move(make_searcher(c["searcher"], c["hyperparameters"], 102932948, search_mode::compat)).value();
    std::size_t created = 0;
    std::vector<value> hparams;
    auto stops = stops_of(*s, c, created, hparams);
    EXPECT_EQ(created, c["expect"]["trials"].get<std::size_t>()) << c["name"];
    std::map<int, int> wanted;
    const auto& expect = c["expect"];
    auto add = [&](const value& table) {
      for (const auto& [step, n] : table.items())
        wanted[std::stoi(step)] += n.get<int>();
    };
    if (expect.contains("stopped_at"))
      add(expect["stopped_at"]);
    for (const auto& b : expect.value("brackets", value::array()))
      add(b["stopped_at"]);
    EXPECT_EQ(stops, wanted) << c["name"];
    if (expect.contains("hparam_set"))
      for (const auto& [name, values] : expect["hparam_set"].items()) {
        std::set<value> got;
        for (const auto& h : hparams)
          got.insert(h[name]);
        EXPECT_EQ(value(got), values);
      }
  }
}

TEST(SearcherCases, PreviewsTheSearches) {
  auto all = data("searcher_cases");
  for (const auto& c : all["simulate"]["cases"]) {
    auto p = preview_search(c["searcher"], c["hyperparameters"]);
    ASSERT_TRUE(p) << p.error().what;
    auto shown = to_determined(*p)["trials"];
    ASSERT_EQ(shown.size(), c["expect"].size()) << c["name"];
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const auto& wanted = c["expect"][i];
      EXPECT_EQ(shown[i]["count"], wanted["count"]);
      EXPECT_EQ(shown[i]["unit"]["maxLength"], wanted["unit"]["max_length"]);
      EXPECT_EQ(shown[i]["unit"].value("value", value()), wanted["unit"].value("value", value()));
    }
  }
}

TEST(SearcherCases, SamplesNestedSpacesReproducibly) {
  auto all = data("searcher_cases");
  for (const auto& c : all["nested_and_reproducible_sampling"]["cases"]) {
    auto s = space_of(c["hyperparameters"]);
    if (c.contains("expect_sample")) {
      EXPECT_EQ(s.assemble(s.sample(0, 1, 0)), c["expect_sample"]);
    }
    for (std::uint64_t seed = 0; seed < 50; ++seed)
      for (auto mode : {search_mode::native, search_mode::compat}) {
        auto first = [&] {
          auto made = std::move(make_searcher({{"name", "random"}, {"metric", "x"}, {"max_trials", 5}},
                                              c["hyperparameters"], seed, mode))
                        .value();
          auto actions = made->apply(search_started{}).value();
          value list = value::array();
          for (const auto& a : actions)
            list.push_back(std::get<create_trial>(a).hparams);
          return list;
        };
        EXPECT_EQ(first(), first());
      }
  }
}

TEST(GridCases, CountsAndOrdersThePoints) {
  auto all = data("hp_grid_cases");
  for (const auto& c : all["grid_size"]["cases"]) {
    value hp = value::object();
    for (std::size_t i = 0; i < c["counts"].size(); ++i)
      hp["x" + std::to_string(i)] = {
        {"type", "double"}, {"minval", -1}, {"maxval", 1}, {"count", c["counts"][i]}};
    EXPECT_EQ(space_of(hp).grid_size(), c["expect_points"].get<std::uint64_t>());
  }
  for (const auto& c : all["axis_length"]["cases"])
    EXPECT_EQ(space_of({{"x", c["hp"]}}).grid_size(), c["expect_len"].get<std::uint64_t>()) << to_json(c);
  for (const auto& c : all["nested_axes"]["cases"]) {
    auto s = space_of({{"x", c["hp"]}});
    ASSERT_EQ(s.grid_size(), 3u);
    EXPECT_EQ(s.grid_point(2), (value{{"x", {{"empty", value::object()}, {"full", 3}}}}));
  }
  for (const auto& c : all["grid_points"]["cases"]) {
    auto s = space_of(c["hyperparameters"]);
    value got = value::array();
    for (std::uint64_t i = 0; i < s.grid_size(); ++i)
      got.push_back(s.grid_point(i));
    if (c.contains("expect")) {
      EXPECT_EQ(got, c["expect"]) << c["source"];
    } else {
      EXPECT_EQ(std::set<value>(got.begin(), got.end()).size(), 16u);
    }
  }
  for (const auto& c : all["derived_cases"]) {
    auto s = space_of({{"x", c["hp"]}});
    value got = value::array();
    for (std::uint64_t i = 0; i < s.grid_size(); ++i)
      got.push_back(s.grid_point(i)["x"]);
    EXPECT_EQ(got, c["expect"]) << to_json(c);
  }
}

double number(const value& x) { return x.is_string() ? std::stod(x.get<std::string>()) : x.get<double>(); }

TEST(NprandCases, DrawsAsNumpy) {
  auto all = data("nprand_cases");
  for (const auto& c : all["integers"]["cases"]) {
    nprand r(c["seed"]);
    auto low = static_cast<std::uint64_t>(c["low"].get<std::int64_t>()),
         high = static_cast<std::uint64_t>(c["high"].get<std::int64_t>());
    std::uint64_t sum = 0, drawn = 0;
    for (std::size_t i = 0; i < 100; ++i) {
      drawn = low + r.below(high - low);
      sum += drawn;
      if (i < c["first"].size()) {
        EXPECT_EQ(static_cast<std::int64_t>(drawn), c["first"][i].get<std::int64_t>());
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(drawn), c["last"].get<std::int64_t>());
    EXPECT_EQ(sum, c["sum_mod_2_64"].get<std::uint64_t>());
  }
  for (const auto& c : all["uniform"]["cases"]) {
    nprand r(c["seed"]);
    double drawn = 0;
    for (std::size_t i = 0; i < 100; ++i) {
      drawn = r.uniform(number(c["low"]), number(c["high"]));
      if (i < c["first"].size()) {
        EXPECT_EQ(drawn, number(c["first"][i]));
      }
    }
    EXPECT_EQ(drawn, number(c["last"]));
  }
}

TEST(NprandCases, CreatesTrialsInItsSequence) {
  auto all = data("nprand_cases");
  for (const auto& c : all["derived_create_sequences"]["cases"]) {
    value config =
      c.value("searcher",
              value{{"name", "random"}, {"metric", "loss"}, {"max_trials", 3}, {"max_concurrent_trials", 0}});
    auto s = std::move(make_searcher(config, c.value("hyperparameters", value::object()), c["seed"],
                                     search_mode::compat))
               .value();
    std::vector<create_trial> trials;
    auto take = [&](const std::vector<search_action>& actions) {
      for (const auto& a : actions)
        if (auto* x = std::get_if<create_trial>(&a))
          trials.push_back(*x);
    };
    take(s->apply(search_started{}).value());
    for (std::size_t i = 0; i < trials.size(); ++i) {
      auto key = trials[i].trial;
      take(s->apply(trial_exited{key}).value());
    }
    ASSERT_EQ(trials.size(), c["expect"].size());
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const auto& wanted = c["expect"][i];
      EXPECT_EQ(trials[i].trial, wanted["request_id"]);
      EXPECT_EQ(trials[i].trial_seed, wanted["trial_seed"].get<std::uint32_t>());
      const auto hparams = wanted.value("hparams", value::object());
      for (const auto& [name, x] : hparams.items()) {
        if (x.is_number_float()) {
          EXPECT_DOUBLE_EQ(trials[i].hparams[name].get<double>(), x.get<double>())
            << "computed there with another pow";
        } else {
          EXPECT_EQ(trials[i].hparams[name], x);
        }
      }
    }
  }
}

} // namespace
} // namespace troupe::searchers

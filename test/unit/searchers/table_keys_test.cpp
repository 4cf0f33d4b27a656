// Compares the table of configuration keys with what the searchers read: neither knows a key that the other
// does not.

#include "model/config/schema.hpp"
#include "searchers/searcher.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

namespace troupe::searchers {
namespace {

using config::key;
using config::kind;
using config::schemas;
using config::shape;

/// Keys that are kept for old files, or that another part of the platform reads in place of the searcher.
const std::set<std::string> read_by_others{
  "max_length", "stop_once", "source_trial_id", "source_checkpoint_uuid", "train_stragglers",
  "budget",     "unit",      "length_per_round"}; // the searcher reads this length as a whole, in any unit

/// A searcher without rungs uses max_time only for progress and simulation.
bool is_shown_only(const std::string& searcher, const std::string& name) {
  static const std::set<std::string> plain{"tpe", "gp", "cma_es", "nsga2", "median"};
  return name == "max_time" && plain.contains(searcher);
}

value good_search(const std::string& name) {
  value x{{"name", name},
          {"metric", "loss"},
          {"max_trials", 8},
          {"max_concurrent_trials", 4},
          {"time_metric", "batches"},
          {"max_time", 64}};
  const auto& s = *schemas().at("searcher")->member_named(name)->what;
  for (auto it = x.begin(); it != x.end();)
    it = s.find(it.key()) ? std::next(it) : x.erase(it);
  if (name == "nsga2")
    x["metric"] = {"loss", "cost"};
  return x;
}

const value space{{"a", {{"type", "double"}, {"minval", 0.0}, {"maxval", 1.0}, {"count", 2}}}};

std::string fault_of(const value& search) {
  auto made = make_searcher(search, space, 0);
  return made ? "" : made.error().what;
}

/// Returns a value that `s` does not accept.
value wrong_for(const shape& s) {
  if (s.takes(kind::list) && !s.takes(kind::string))
    return value::array({value{{"x", 1}}});
  for (auto [k, x] : {std::pair{kind::string, value("no such word")},
                      {kind::map, value{{"x", 1}}},
                      {kind::boolean, value(true)}})
    if (!s.takes(k))
      return x;
  return 17;
}

/// Returns the search with the key at `path`, such as {"early_stopping", "median"}, set to `x`.
value with(value search, const std::vector<std::string>& path, const value& x) {
  auto* at = &search;
  for (const auto& step : path)
    at = &(*at)[step];
  *at = x;
  return search;
}

void expect_read(const value& base, const shape& s, const std::vector<std::string>& path) {
  for (const auto& k : s.keys) {
    if (read_by_others.contains(k.name) || (path.empty() && is_shown_only(base["name"], k.name)))
      continue;
    auto way = path;
    way.push_back(k.name);
    bool holds_keys = k.what->takes(kind::map) && !k.what->keys.empty();
    if (holds_keys) {
      expect_read(base, *k.what, way);
      continue;
    }
    auto search = base;
    if (k.name == "metrics") // `metrics` replaces `metric`
      search.erase("metric");
    if (k.name == "time_metric" && !path.empty()) // the key of a policy is read where the searcher has none
      search.erase("time_metric");
    auto said = fault_of(with(search, way, k.what->takes(kind::map) ? value("text") : wrong_for(*k.what)));
    EXPECT_NE(said.find(k.name), std::string::npos)
      << base["name"] << ": the table has the key " << k.name << ", which nobody reads: " << said;
  }
}

TEST(SearcherTable, EveryKeyIsRead) {
  for (const auto& m : schemas().at("searcher")->members) {
    if (m.legacy || m.value == "custom")
      continue;
    auto base = good_search(m.value);
    ASSERT_EQ(fault_of(base), "") << m.value;
    expect_read(base, *m.what, {});
  }
}

/// The searcher also accepts the numbers at the ends of a range.
TEST(SearcherTable, RangesAreThoseOfTheSearchers) {
  for (const auto& m : schemas().at("searcher")->members) {
    if (m.since != "troupe")
      continue;
    auto base = good_search(m.value);
    for (const auto& k : m.what->keys) {
      const auto& s = *k.what;
      if (k.since != "troupe" || !s.takes(kind::integer) || !s.alternatives.empty())
        continue;
      for (auto bound : {s.least, s.most})
        if (bound) {
          value x = s.takes(kind::number) ? value(*bound) : value(static_cast<std::int64_t>(*bound));
          EXPECT_EQ(fault_of(with(base, {k.name}, x)), "") << m.value << "." << k.name << " = " << x;
        }
    }
  }
}

std::set<std::string> keys_of_table() {
  std::set<std::string> known;
  auto add = [&](const shape& s, auto& again) -> void {
    for (const auto& k : s.keys) {
      known.insert(k.name);
      if (k.what->name != "experiment")
        again(*k.what, again);
    }
    for (const auto& m : s.members)
      again(*m.what, again);
  };
  add(*schemas().at("searcher"), add);
  for (auto hyperparameter : {"int", "double", "log", "const", "categorical"})
    add(*schemas().at(std::string("hyperparameter-") + hyperparameter), add);
  for (auto old : {"truncate_fraction", "resample_probability", "perturb_factor"})
    known.insert(old);
  return known;
}

TEST(SearcherTable, EveryKeyThatIsReadIsThere) {
  auto known = keys_of_table();
  std::regex read(R"re(\.(?:text|texts|one_of|flag|number|integer|integers|member|has)\(\s*"(\w+)")re");
  int found = 0;
  for (const auto& file : std::filesystem::directory_iterator(TROUPE_SOURCE_DIR "/searchers")) {
    if (file.path().extension() != ".cpp")
      continue;
    std::ifstream in(file.path());
    std::string text((std::istreambuf_iterator<char>(in)), {});
    for (std::sregex_iterator it(text.begin(), text.end(), read), end; it != end; ++it, ++found)
      EXPECT_TRUE(known.contains((*it)[1]))
        << file.path().filename() << " reads " << (*it)[1] << ", which the table lacks";
  }
  EXPECT_GT(found, 40);
}

} // namespace
} // namespace troupe::searchers

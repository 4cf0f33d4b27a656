// Compares the table with Determined's own schemas: the verdict has to be the same on every sample and on
// thousands of changed samples.

#include "model/config/check.hpp"
#include "model/config/complete.hpp"
#include "model/config/schema.hpp"
#include "model/rng.hpp"

#include "files.hpp"
#include "original_schema.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe::config {
namespace {

const original_schemas& originals() {
  static const original_schemas all(data_file("schemas"));
  return all;
}

bool table_accepts(const std::string& name, const value& x, bool complete) {
  const auto& s = *schemas().at(name);
  auto text = to_node(x);
  report found("");
  check(text, s, found);
  if (!found.take().empty())
    return false;
  if (!complete)
    return true;
  auto normal = x;
  normalize(normal, s);
  report missing("");
  check_completeness(normal, s, text, missing);
  return missing.take().empty();
}

TEST(Table, HasEverySchemaOfDetermined) {
  for (const auto& [name, schema] : originals().all())
    EXPECT_TRUE(schemas().find(name)) << name;
}

TEST(Table, HasTheKeysAndDefaultsOfDetermined) {
  // Images and log policies have the platform's own defaults in their shapes, so their defaults are not
  // compared here.
  for (const auto& [name, schema] : originals().all()) {
    const auto& s = *schemas().at(name);
    if (s.keys.empty() || !schema.contains("properties"))
      continue;
    for (const auto& [key_name, property] : schema["properties"].items()) {
      const auto* k = s.find(key_name);
      ASSERT_TRUE(k) << name << "." << key_name;
      if (property.is_object() && property.contains("default") && name != "environment-image-map") {
        ASSERT_TRUE(k->fallback) << name << "." << key_name;
        auto given = property["default"];
        if (!k->quiet || !(given.empty() || given.is_null())) {
          EXPECT_EQ(*k->fallback, given) << name << "." << key_name;
        }
      }
    }
    for (const auto& k : s.keys)
      EXPECT_TRUE(schema["properties"].contains(k.name) || k.since == "troupe") << name << "." << k.name;
  }
}

TEST(Table, AcceptsTheSamplesAtTheirLevel) {
  auto samples = read_data("samples.yaml");
  std::set<std::string> covered;
  for (const auto& [name, levels] : samples.items()) {
    covered.insert(name);
    for (const auto& x : levels["complete"]) {
      EXPECT_TRUE(originals().accepts(name, x, true)) << name << " " << x;
      EXPECT_TRUE(table_accepts(name, x, true)) << name << " " << x;
    }
    if (levels.contains("sane"))
      for (const auto& x : levels["sane"]) {
        EXPECT_TRUE(originals().accepts(name, x, false) && !originals().accepts(name, x, true))
          << name << " " << x;
        EXPECT_TRUE(table_accepts(name, x, false)) << name << " " << x;
        EXPECT_FALSE(table_accepts(name, x, true)) << name << " " << x;
      }
  }
  for (const auto& [name, schema] : originals().all())
    EXPECT_TRUE(covered.contains(name)) << "no sample for " << name;
}

/// Collects the keywords that `schema` uses and that can refuse something.
void collect_keywords(const value& schema, std::set<std::string>& words) {
  static const std::set<std::string> silent{"$schema", "$id",      "$comment",       "title",
                                            "default", "unionKey", "defaultMessage", "then"};
  if (!schema.is_object())
    return;
  for (const auto& [word, part] : schema.items()) {
    if (!silent.contains(word) && part != value(true) &&
        !((part.is_array() || part.is_object()) && part.empty()))
      words.insert(word);
    if (word == "properties" || word == "checks")
      for (const auto& [name, inner] : part.items())
        collect_keywords(inner, words);
    else if (word == "allOf" || word == "anyOf" || word == "oneOf")
      for (const auto& inner : part)
        collect_keywords(inner, words);
    else if (word == "union")
      for (const auto& inner : part["items"])
        collect_keywords(inner, words);
    else if (word == "items" || word == "additionalProperties" || word == "not" || word == "if" ||
             word == "then" || word == "else" || word == "eventually")
      collect_keywords(part, words);
  }
}

TEST(Table, EveryKeywordOfEveryFileAcceptsAndRefusesSomething) {
  auto cases = read_data("keyword_cases.yaml");
  int keywords = 0;
  for (const auto& [name, schema] : originals().all()) {
    std::set<std::string> words;
    collect_keywords(schema, words);
    EXPECT_FALSE(words.empty()) << name;
    for (const auto& word : words) {
      ++keywords;
      ASSERT_TRUE(cases.contains(name) && cases[name].contains(word))
        << "no case for the keyword " << word << " of " << name;
      const auto &good = cases[name][word]["accept"], &bad = cases[name][word]["refuse"];
      EXPECT_TRUE(originals().accepts(name, good, true)) << name << " " << word << " " << good;
      EXPECT_TRUE(table_accepts(name, good, true)) << name << " " << word << " " << good;
      bool complete = originals().accepts(name, bad, false);
      EXPECT_FALSE(originals().accepts(name, bad, complete)) << name << " " << word << " " << bad;
      EXPECT_FALSE(table_accepts(name, bad, complete)) << name << " " << word << " " << bad;
      EXPECT_TRUE(originals().refusing(name, bad, complete).contains(word))
        << name << ": not " << word << " refuses " << bad;
    }
  }
  EXPECT_GT(keywords, 350);
}

/// Changes one place of `x`: it gets another value, loses a key or gets a key.
void change(value& x, rng& draw, const std::vector<std::string>& keys) {
  static const value others[] = {nullptr,
                                 true,
                                 false,
                                 0,
                                 1,
                                 -1,
                                 2,
                                 100,
                                 1.5,
                                 1.0,
                                 2001,
                                 "",
                                 "x",
                                 ".",
                                 "..",
                                 "/a",
                                 "../b",
                                 "O1",
                                 "o1",
                                 "best",
                                 "1 GiB",
                                 "a/../b",
                                 "/a:/b",
                                 "exclude_node",
                                 value::array(),
                                 value::array({"a"}),
                                 value::array({1}),
                                 value::object(),
                                 {{"batches", 1}},
                                 {{"type", "int"}, {"minval", 1}, {"maxval", 2}},
                                 {{"name", "x"}},
                                 "grid",
                                 "single",
                                 "azure",
                                 "s3",
                                 "custom",
                                 "random",
                                 "gcs",
                                 "categorical"};
  auto other = [&] { return others[draw.below(std::size(others))]; };
  if (x.is_object() && draw.chance(0.9)) {
    if (!x.empty() && draw.chance(0.75)) {
      auto it = std::next(x.begin(), static_cast<std::ptrdiff_t>(draw.below(x.size())));
      if (draw.chance(0.2))
        x.erase(it);
      else
        change(*it, draw, keys);
    } else {
      x[keys[draw.below(keys.size())]] = other();
    }
  } else if (x.is_array() && !x.empty() && draw.chance(0.8)) {
    change(x[draw.below(x.size())], draw, keys);
  } else {
    x = other();
  }
}

/// Returns whether `x` has a searcher that Determined lacks, or sync_halving, which Determined only reads.
bool differs_on_purpose(const value& x) {
  auto text = x.dump();
  if (text.find("\"sync_halving\"") != std::string::npos)
    return true;
  for (const auto& m : schemas().at("searcher")->members)
    if (m.since == "troupe" && text.find("\"" + m.value + "\"") != std::string::npos)
      return true;
  return false;
}

/// Troupe refuses what no pool could meet, and Determined accepts it: a weight below 0, and a limit below the
/// slots of one trial.
bool no_pool_can_do_it(const std::string& name, const value& x) {
  const auto resources = name == "resources" ? x : x.is_object() ? x.value("resources", value()) : value();
  if (!resources.is_object())
    return false;
  const auto number = [&](const char* key, double otherwise) {
    const auto at = resources.value(key, value());
    return at.is_number() ? at.get<double>() : otherwise;
  };
  return number("weight", 0) < 0 || (resources.value("max_slots", value()).is_number() &&
                                     number("max_slots", 0) < number("slots_per_trial", 1));
}

void collect_keys(const value& schema, std::set<std::string>& keys) {
  if (schema.is_object()) {
    for (const auto& [word, part] : schema.items()) {
      if (word == "properties" || word == "disallowProperties")
        for (const auto& [name, inner] : part.items())
          keys.insert(name);
      collect_keys(part, keys);
    }
  } else if (schema.is_array()) {
    for (const auto& part : schema)
      collect_keys(part, keys);
  }
}

/// Troupe refuses a port that no connection can have, and Determined accepts it.
bool has_no_such_port(const value& x) {
  if (x.is_array())
    return std::any_of(x.begin(), x.end(), has_no_such_port);
  if (!x.is_object())
    return false;
  const auto port = x.value("proxy_port", value());
  return (port.is_number() && (port.is_number_float() || port < 1 || port > 65535)) ||
         std::any_of(x.begin(), x.end(), has_no_such_port);
}

/// Troupe refuses a storage whose bucket, container or directory has no name, and Determined accepts it.
bool names_no_place(const value& x) {
  if (!x.is_structured())
    return false;
  for (const char* key : {"bucket", "container", "host_path", "container_path"})
    if (x.is_object() && x.value(key, value()) == value(""))
      return true;
  return std::any_of(x.begin(), x.end(), names_no_place);
}

// The schema alone refuses what Determined means to accept: a missing searcher counts as a grid there, and
// the schema does not know that `gpu` is the old name of `cuda`.
bool is_known_exception(const std::string& name, const value& x, bool complete) {
  if (has_no_such_port(x) || names_no_place(x))
    return true;
  if (complete && x.dump().find("\"gpu\"") != std::string::npos)
    return true;
  if (name == "experiment" && x.is_object())
    return !x.contains("searcher") || !x["searcher"].is_object() || !x["searcher"].contains("name");
  return false;
}

constexpr int times_each = 500; ///< 30,000 in all; the fuzz target tests more

TEST(Table, JudgesChangedSamplesAsDeterminedDoes) {
  auto samples = read_data("samples.yaml");
  std::set<std::string> all_keys{"zzz"};
  for (const auto& [name, schema] : originals().all())
    collect_keys(schema, all_keys);
  int refused = 0, accepted = 0;
  for (const auto& [name, levels] : samples.items()) {
    std::set<std::string> own{"zzz", "type", "name"};
    collect_keys(originals().all().at(name), own);
    std::vector<std::string> keys(own.begin(), own.end()), any(all_keys.begin(), all_keys.end());
    value seeds = levels["complete"];
    if (levels.contains("sane"))
      seeds.insert(seeds.end(), levels["sane"].begin(), levels["sane"].end());
    rng draw(std::hash<std::string>{}(name));
    for (int i = 0; i < times_each; ++i) {
      value x = seeds[draw.below(seeds.size())];
      for (auto times = 1 + draw.below(2); times > 0; --times)
        change(x, draw, draw.chance(0.7) ? keys : any);
      if (differs_on_purpose(x))
        continue;
      for (bool complete : {false, true}) {
        if (is_known_exception(name, x, complete) || no_pool_can_do_it(name, x))
          continue;
        bool expected = originals().accepts(name, x, complete);
        (expected ? accepted : refused)++;
        ASSERT_EQ(table_accepts(name, x, complete), expected)
          << name << (complete ? " complete " : " sane ") << x.dump();
      }
    }
  }
  EXPECT_GT(refused, 10000);
  EXPECT_GT(accepted, 10000);
}

} // namespace
} // namespace troupe::config

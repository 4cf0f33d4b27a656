// Tests the cases of test/data/config/config_merge_cases.yaml that concern masters and agents.

#include "model/config/experiment_config.hpp"
#include "model/config/master_config.hpp"

#include "files.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::config {
namespace {

const value& cases() {
  static const value all = read_data("config_merge_cases.yaml");
  return all;
}

outcome completed(const char* schema, const value& x) {
  return complete_as(schema, to_json(x), "case", level::sane);
}

/// Expects that `got` has everything that `want` says.
void expect_covers(const value& got, const value& want, const std::string& where) {
  if (want.is_object()) {
    for (const auto& [key, part] : want.items())
      expect_covers(got.is_object() ? got.value(key, value()) : value(), part, where + "." + key);
  } else if (want.is_array()) {
    ASSERT_EQ(got.size(), want.size()) << where;
    for (std::size_t i = 0; i < want.size(); ++i)
      expect_covers(got[i], want[i], where + "[" + std::to_string(i) + "]");
  } else {
    EXPECT_EQ(got, want) << where;
  }
}

/// Returns what the cases write in words as parts of a completed configuration.
value spelled_out(const value& expect) {
  value want = value::object();
  auto scheduler = [&](const char* name) {
    if (expect.contains(name))
      want["resource_manager"]["scheduler"] =
        expect[name].is_string() ? value{{"type", expect[name]}} : expect[name];
  };
  scheduler("rm_scheduler");
  scheduler("scheduler");
  if (expect.contains("default_aux"))
    want["resource_manager"]["default_aux_resource_pool"] = expect["default_aux"];
  if (expect.contains("default_compute"))
    want["resource_manager"]["default_compute_resource_pool"] = expect["default_compute"];
  for (auto kept : {"resource_manager", "resource_pools"})
    if (expect.contains(kept))
      want[kept] = expect[kept];
  if (expect.contains("pool_task_container_defaults"))
    want["resource_pools"] =
      value::array({{{"task_container_defaults", expect["pool_task_container_defaults"]}}});
  if (expect.contains("pool_scheduler"))
    want["resource_pools"] = value::array({{{"scheduler", {{"type", expect["pool_scheduler"]}}}}});
  if (expect.contains("aux_limits"))
    for (const auto& [pool, limit] : expect["aux_limits"].items())
      want["resource_pools"].push_back({{"pool_name", pool}, {"max_aux_containers_per_agent", limit}});
  return want;
}

TEST(MasterCases, DefaultsOldNamesAndFaults) {
  int seen = 0;
  for (const auto& c : cases()["master_config"]) {
    if (!c.contains("config"))
      continue;
    ++seen;
    auto got = completed("master-config", c["config"]);
    auto expect = c.value("expect", value());
    if (c.contains("expect_error_contains") || expect == "error") {
      ASSERT_FALSE(got.ok()) << c;
      EXPECT_NE(got.faults[0].message.find(c.value("expect_error_contains", std::string())),
                std::string::npos)
        << got.faults[0].message;
      continue;
    }
    ASSERT_TRUE(got.ok()) << c << got.faults[0].message;
    if (c.contains("expect_scheduler"))
      expect = {{"scheduler", c["expect_scheduler"]}};
    auto want = spelled_out(expect);
    EXPECT_FALSE(want.empty()) << c;
    expect_covers(got.config, want, "");
  }
  EXPECT_EQ(seen, 10);
}

TEST(MasterCases, WhetherAPoolPreempts) {
  int seen = 0;
  for (const auto& group : cases()["master_config"]) {
    if (!group.contains("cases"))
      continue;
    for (const auto& c : group["cases"]) {
      value master{{"resource_manager", {{"type", "agent"}, {"scheduler", c["rm"]}}},
                   {"resource_pools", value::array()}};
      for (const auto& [name, scheduler] : c["pools"].items()) {
        value pool{{"pool_name", name}};
        if (!scheduler.empty())
          pool["scheduler"] = scheduler;
        master["resource_pools"].push_back(pool);
      }
      auto got = completed("master-config", master);
      ASSERT_TRUE(got.ok()) << c << got.faults[0].message;
      EXPECT_EQ(preempts(got.config, c["pool"].get<std::string>()), c["expect"].get<bool>()) << c;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 7);
}

TEST(MasterCases, AnOldKeyOfAPoolIsNamedWithItsPool) {
  value master{
    {"resource_pools", {{{"pool_name", "gpus"}, {"agent_reattach_enabled", true}}, {{"pool_name", "cpus"}}}}};
  EXPECT_TRUE(check_as("master-config", to_json(master), "case", level::complete).ok());
  auto said = deprecations(master);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("gpus"), std::string::npos);
}

TEST(MasterCases, SecretsAreHiddenInTheCopyThatIsShown) {
  value master{
    {"checkpoint_storage", {{"type", "s3"}, {"bucket", "b"}, {"access_key", "AAA"}, {"secret_key", "SSS"}}},
    {"telemetry", {{"segment_master_key", "MMM"}, {"segment_webui_key", "WWW"}}},
    {"task_container_defaults", {{"registry_auth", {{"username", "u"}, {"password", "PPP"}}}}},
    {"resource_pools",
     {{{"pool_name", "p"}, {"provider", {{"startup_script", "XXX"}, {"container_startup_script", "YYY"}}}}}}};
  ASSERT_TRUE(check_as("master-config", to_json(master), "case", level::complete).ok());
  auto before = master;
  auto shown = to_json(printable(master));
  for (auto secret : {"AAA", "SSS", "MMM", "WWW", "PPP", "XXX", "YYY"})
    EXPECT_EQ(shown.find(secret), std::string::npos) << secret;
  EXPECT_NE(shown.find("\"bucket\":\"b\""), std::string::npos);
  EXPECT_EQ(master, before);
}

TEST(AgentCases, KeysAndDefaults) {
  const auto& all = cases()["agent_config"];
  for (const auto& c : all) {
    if (!c.contains("config"))
      continue;
    auto got = completed("agent-config", c["config"]);
    ASSERT_TRUE(got.ok()) << c << got.faults[0].message;
    expect_covers(got.config, c["config"], "");
    if (!c.contains("expect_same")) { // where `expect_same` is missing, the case writes the defaults
      auto plain = completed("agent-config", value::object());
      EXPECT_EQ(got.config, plain.config);
    }
  }
  for (const auto& k : all.back()["keys"]) {
    auto path = k.get<std::string>();
    value x = "text", whole;
    auto pointer = "/" + path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    whole[value::json_pointer(pointer)] = x;
    auto got = check_as("agent-config", to_json(whole), "case", level::sane);
    for (const auto& fault : got.faults)
      EXPECT_EQ(fault.message.find("unknown key"), std::string::npos) << path;
  }
  EXPECT_FALSE(check_as("agent-config", "{master_hots: h}", "case", level::sane).ok());
  EXPECT_FALSE(check_as("agent-config", "{}", "case", level::complete).ok())
    << "master_host is needed to run";
}

} // namespace
} // namespace troupe::config

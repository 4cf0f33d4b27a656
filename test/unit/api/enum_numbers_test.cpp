// Tests that Determined's enums are understood by their numbers.

#include "runtime/api/enum_numbers.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

TEST(EnumNumbers, OfAQueryBecomeNames) {
  struct row {
    const char *path, *key, *text, *name; ///< nullptr as the name: the text is refused
  };
  for (const auto& [path, key, text, name] : {
         row{"/api/v1/experiments", "states", "6", "STATE_COMPLETED"},
         {"/api/v1/experiments", "states", "STATE_COMPLETED", "STATE_COMPLETED"},
         {"/api/v1/experiments/{experimentId}/trials", "states", "6", "STATE_STOPPING_ERROR"},
         {"/api/v1/experiments", "states", "0", "STATE_UNSPECIFIED"},
         {"/api/v1/experiments", "states", "16", "STATE_RUNNING"},
         {"/api/v1/experiments", "states", "17", nullptr},
         {"/api/v1/experiments", "states", "STATE_", nullptr},
         {"/api/v1/experiments", "states", "STATE_ACTIVE PAUSED", nullptr},
         {"/api/v1/experiments", "states", "-1", nullptr},
         {"/api/v1/experiments", "states", "18446744073709551615", nullptr},
         {"/api/v1/experiments", "sortBy", "4", "SORT_BY_START_TIME"},
         {"/api/v1/experiments", "sortBy", "3", nullptr}, // the enum has no number 3
         {"/api/v1/experiments", "sortBy", "SORT_BY_-", nullptr},
         {"/api/v1/models", "sortBy", "4", "SORT_BY_CREATION_TIME"},
         // this value belongs to the enum of another list
         {"/api/v1/models", "sortBy", "SORT_BY_START_TIME", nullptr},
         {"/api/v1/tasks/{taskId}/logs", "levels", "3", "LOG_LEVEL_INFO"},
         {"/api/v1/tasks/{taskId}/logs", "levels", "LOG_LEVEL_NOPE", nullptr},
         {"/api/v1/users", "orderBy", "2", "ORDER_BY_DESC"},
         {"/api/v1/users", "orderBy", "", ""},
         {"/api/v1/users", "limit", "2", "2"},
         // a route of Troupe, whose levels have other names
         {"/troupe/v1/logs/search", "levels", "INFO", "INFO"},
       }) {
    query_list query{{{key, text}}};
    const auto fine = name_enums(query, path);
    EXPECT_EQ(bool(fine), name != nullptr) << path << " " << key << "=" << text;
    if (name)
      EXPECT_EQ(query.first(key), name) << path << " " << key << "=" << text;
    else
      EXPECT_NE(fine.error().what.find(std::string(key) + ": there is no '"), std::string::npos);
  }
}

TEST(EnumNumbers, OfABodyBecomeNamesWhereverTheyStand) {
  struct row {
    const char *takes, *body, *after;
  };
  for (const auto& [takes, body, after] : {
         row{"v1KillExperimentsRequest", R"({"filters": {"states": [1, "STATE_PAUSED", "ERROR"]}})",
             R"({"filters":{"states":["STATE_ACTIVE","STATE_PAUSED","STATE_ERROR"]}})"},
         {"v1Webhook",
          R"({"mode": 1, "webhook_type": 2, "triggers": [{"triggerType": 3}, {"trigger_type":1}]})",
          R"({"mode":"WEBHOOK_MODE_WORKSPACE","triggers":[{"triggerType":"TRIGGER_TYPE_TASK_LOG"},)"
          R"({"trigger_type":"TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE"}],"webhook_type":"WEBHOOK_TYPE_SLACK"})"},
         {"v1TrialEarlyExit", R"({"reason":3})", R"({"reason":"EXITED_REASON_INIT_INVALID_HP"})"},
         {"v1PatchTrialRequest", R"({"state": 8})", R"({"state":"STATE_COMPLETED"})"},
         {"v1PatchTrialRequest", R"({"state": null})", R"({"state": null})"},
         // the handler refuses this value
         {"v1PatchTrialRequest", R"({"state": {"a": 1}})", R"({"state": {"a": 1}})"},
         {"v1PatchTrialRequest", R"({"state" : "STATE_COMPLETED"})", R"({"state" : "STATE_COMPLETED"})"},
         // A body without enums, a body of another type and a body that is not JSON stay as they are, byte by
         // byte.
         {"v1PatchTrialRequest", R"({"trialId" : 7})", R"({"trialId" : 7})"},
         {"v1Experiment", R"({ "state": 8})", R"({ "state": 8})"},
         {"v1PatchTrialRequest", R"({ "state": 8)", R"({ "state": 8)"},
         {"", R"({ "state": 8})", R"({ "state": 8})"},
       }) {
    std::string text = body;
    EXPECT_TRUE(name_enums(text, takes)) << takes << " " << body;
    EXPECT_EQ(text, after) << takes << " " << body;
  }
}

TEST(EnumNumbers, OfABodyThatNameNothingAreRefused) {
  struct row {
    const char *takes, *body, *why;
  };
  for (const auto& [takes, body, why] : {
         row{"v1KillExperimentsRequest", R"({"filters": {"states": [99]}})",
             "filters.states: there is no '99': it is one of STATE_UNSPECIFIED, STATE_ACTIVE"},
         {"v1KillExperimentsRequest", R"({"filters": {"states": ["UP"]}})",
          "filters.states: there is no 'UP'"},
         {"v1PostUserActivityRequest", R"({"activityType": 9})",
          "activityType: there is no '9': it is one of ACTIVITY_TYPE_UNSPECIFIED, ACTIVITY_TYPE_GET"},
         {"v1Webhook", R"({"mode": -1})", "mode: there is no '-1'"},
         {"v1Webhook", R"({"mode": 1.5})", "mode: there is no '1.5'"},
         {"v1PostWebhookEventDataRequest", R"({"data": {"level": "FOO"}})", "data.level: there is no 'FOO'"},
         {"v1TrialEarlyExit", R"({"reason": 2})", "reason: there is no '2'"}, // the enum has no number 2
       }) {
    std::string text = body;
    const auto fine = name_enums(text, takes);
    ASSERT_FALSE(fine) << takes << " " << body;
    EXPECT_TRUE(fine.error().what.starts_with(why)) << fine.error().what;
  }
}

} // namespace
} // namespace troupe::api

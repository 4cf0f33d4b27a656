#include "model/config/secrets.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

value json(const char* text) { return parse_json(text).value(); }

TEST(Secrets, AreMaskedWhereverAConfigurationHasThem) {
  EXPECT_EQ(
    without_secrets(json(
      R"({"name": "a", "checkpoint_storage": {"type": "s3", "bucket": "b", "access_key": "AKIA", "secret_key": "s", "prefix": null},
                                     "environment": {"registry_auth": {"username": "u", "password": "p", "identitytoken": ""}},
                                     "data": {"url": "u", "secrets": {"a": "x", "b": {"c": 7}, "d": ["y"]}}})")),
    json(
      R"({"name": "a", "checkpoint_storage": {"type": "s3", "bucket": "b", "access_key": "********", "secret_key": "********", "prefix": null},
                     "environment": {"registry_auth": {"username": "u", "password": "********", "identitytoken": ""}},
                     "data": {"url": "u", "secrets": {"a": "********", "b": {"c": "********"}, "d": ["********"]}}})"));
  EXPECT_EQ(without_secrets(json(R"({"checkpoint_storage": {"secret_key": null}})")),
            json(R"({"checkpoint_storage": {"secret_key": null}})"));
  // A template may have what its writer forgot a blank or a key for.
  EXPECT_EQ(without_secrets(json(R"({"environment": {"registry_auth": ["u:s", 7]},
                                     "checkpoint_storage": {"secret_key:s": null, "a:b": 1}})")),
            json(R"({"environment": {"registry_auth": ["********", "********"]},
                     "checkpoint_storage": {"secret_key: ********": null, "a:b": 1}})"));
  EXPECT_EQ(without_secrets(json("null")), value());
  EXPECT_EQ(without_secrets(json(R"({"data": 3, "environment": [], "checkpoint_storage": "x"})")),
            json(R"({"data": 3, "environment": [], "checkpoint_storage": "x"})"));
}

TEST(Secrets, OfPoliciesAreMasked) {
  EXPECT_EQ(
    policies_without_secrets(json(
      R"({"invariant_config": {"name": "a", "checkpoint_storage": {"secret_key": "s"}}, "constraints": {"priority_limit": 3}})")),
    json(
      R"({"invariant_config": {"name": "a", "checkpoint_storage": {"secret_key": "********"}}, "constraints": {"priority_limit": 3}})"));
  EXPECT_EQ(policies_without_secrets(json("{}")), json("{}"));
  EXPECT_EQ(policies_without_secrets(nullptr), value());
}

TEST(Secrets, OfATextAreMaskedInItsForm) {
  const std::string text = "name: one # mine\ncheckpoint_storage:\n  type: s3\n  bucket: b\n  access_key: "
                           "'AKIA1234'\n  secret_key: \"topsecret\"\n";
  EXPECT_EQ(text_without_secrets(text), "name: one # mine\ncheckpoint_storage:\n  type: s3\n  bucket: b\n  "
                                        "access_key: '********'\n  secret_key: \"********\"\n");
  EXPECT_EQ(text_without_secrets("data: {secrets: {key: topsecret99, other: 'topsecret99'}}\n"),
            "data: {secrets: {key: '********', other: '********'}}\n");
  EXPECT_EQ(text_without_secrets("name: one\n"), "name: one\n");
  const auto is_masked = [](const std::string& given, const char* secret) {
    const auto shown = text_without_secrets(given);
    EXPECT_EQ(shown.find(secret), shown.npos) << shown;
    EXPECT_NE(shown.find("********"), shown.npos) << shown;
  };
  is_masked("checkpoint_storage: {secret_key: abc}\nname: abcabc2\n",
            "secret_key: abc");                          // the secret is too short to be searched for
  is_masked("data: {secrets: {a: 123456}}\n", "123456"); // the secret is not a text
  is_masked("\"checkpoint\\u005fstorage\": {secret_key: topsecret}\n", "topsecret"); // the key has an escape
  is_masked("checkpoint_storage: {secret_key: \"top\\u0073ecret\"}\n", "ecret\""); // the value has an escape
  is_masked("x: &s topsecret\ncheckpoint_storage: {secret_key: *s}\n", "topsecret"); // the value is an alias
  EXPECT_NE(text_without_secrets("checkpoint_storage: {secret_key: '******'}\n").find("********"),
            std::string::npos)
    << "and it ends";
}

TEST(Secrets, ComeBackWhereTheirMaskIsSubmitted) {
  const auto known = json(
    R"({"name": "a", "checkpoint_storage": {"secret_key": "s", "access_key": "k"}, "data": {"secrets": ["x", "y"]}})");
  auto again = json(
    R"({"name": "********", "checkpoint_storage": {"secret_key": "********", "access_key": "new"}, "data": {"secrets": ["********"]}})");
  restore_secrets(again, known);
  EXPECT_EQ(
    again,
    json(
      R"({"name": "********", "checkpoint_storage": {"secret_key": "s", "access_key": "new"}, "data": {"secrets": ["x"]}})"));
}

TEST(Secrets, OfWhichOnlyTheMaskIsLeftAreFound) {
  const struct {
    const char *config, *place;
  } cases[] = {
    {R"({"name": "********", "checkpoint_storage": {"type": "s3", "secret_key": "s", "bucket": "********"}})",
     ""},
    {R"({"checkpoint_storage": {"access_key": "k", "secret_key": "********"}})",
     "checkpoint_storage.secret_key"},
    {R"({"environment": {"registry_auth": {"password": "********"}}})", "environment.registry_auth.password"},
    {R"({"data": {"secrets": ["x", "********"]}})", "data.secrets[1]"},
  };
  for (const auto& one : cases)
    EXPECT_EQ(masked_secret(json(one.config)), one.place);
}

TEST(Secrets, AnAddressThatLogsInIsOne) {
  const struct {
    const char *given, *without;
  } rows[] = {{"http://a.lab:9000", "http://a.lab:9000"},
              {"https://a.lab/ada/", "https://a.lab/ada/"},
              {"https://a.lab/ada?sv=1&sig=x", "https://a.lab/ada"},
              {"http://u:p@a.lab/b@c", "http://a.lab/b@c"},
              {"http://u:p@w@a.lab", "http://a.lab"},
              // the client of this store adds https://
              {"ada.blob.core.windows.net", "ada.blob.core.windows.net"},
              {"ada.blob.core.windows.net?sig=x", "ada.blob.core.windows.net"},
              {"http://a.lab/b@c", "http://a.lab/b@c"}};
  for (const auto& row : rows) {
    EXPECT_EQ(address_without_login(row.given), row.without);
    const bool secret = std::string(row.given) != row.without;
    for (const char* key : {"endpoint_url", "account_url"}) {
      const value config{{"checkpoint_storage", {{"type", "s3"}, {key, row.given}}}};
      auto shown = without_secrets(config);
      EXPECT_EQ(shown["checkpoint_storage"][key], secret ? secret_mask : row.given);
      restore_secrets(shown, config);
      EXPECT_EQ(shown, config);
    }
  }
}

TEST(Secrets, OfAnotherUserComeBackOnlyWhereEverybodyHasThem) {
  const auto from = json(R"({"checkpoint_storage": {"bucket": "b", "secret_key": "s"}})");
  const auto shown = json(R"({"checkpoint_storage": {"bucket": "b", "secret_key": "********"}})");
  const auto own = json(R"({"checkpoint_storage": {"bucket": "b", "secret_key": "mine"}})");
  const struct {
    value given, anybody;
    bool fine;
    value expected;
  } rows[] = {{shown, value(), false, shown},
              {shown, json(R"({"checkpoint_storage": {"secret_key": "other"}})"), false, shown},
              {shown, from, true, from},
              {own, value(), true, own}};
  for (const auto& row : rows) {
    auto config = row.given;
    EXPECT_EQ(restore_open_secrets(config, from, row.anybody), row.fine) << row.anybody;
    EXPECT_EQ(config, row.expected);
  }
}

} // namespace
} // namespace troupe::config

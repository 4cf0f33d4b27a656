// Tests groups, roles, settings, policies, bindings, webhooks and the message of the cluster, and the
// deletion of experiments and of the projects and workspaces that hold them.

#include "actors/catalogue/house_changes.hpp"
#include "actors/catalogue/last_admin.hpp"
#include "actors/cluster/cluster_machines.hpp"
#include "actors/retention/globs.hpp"
#include "test/unit/actors/show.hpp"

#include <fstream>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace commands;

constexpr time_point t0{1'700'000'000s};

/// Users 1 to 9 and workspaces 1 to 3 exist. A twin sees only the facts, as the journal holds them.
struct house {
  people folk, folk_twin;
  house_rules rules, rules_twin;
  std::int64_t clock = 0;

  template <class Command>
  std::string run(const Command& x) {
    const people::world known{[](user_id id) { return id.value >= 1 && id.value <= 9; },
                              [](workspace_id id) { return id.value >= 1 && id.value <= 3; },
                              [](workspace_id id) {
                                return id.value == 3
                                         ? result<void>(error{errc::invalid, "workspace 'c' is archived"})
                                         : result<void>{};
                              }};
    auto done = decide(folk, rules, known, x, "ada", t0 + std::chrono::seconds(++clock));
    if (!done)
      return std::string(name(done.error().code)) + ": " + done.error().what;
    for (const auto& one : done->facts) {
      const auto read = *decode_as<cluster_fact>(encode_as(one));
      folk_twin.replay(read);
      rules_twin.replay(read);
    }
    EXPECT_EQ(folk_twin.snapshot(), folk.snapshot());
    EXPECT_EQ(rules_twin.snapshot(), rules.snapshot());
    return show(done->facts);
  }
  std::string make(const std::string& text, std::vector<user_id> add = {}) {
    group_create x;
    x.name = text;
    x.add = std::move(add);
    return run(x);
  }
  std::string change(std::uint64_t id, std::vector<user_id> add, std::vector<user_id> remove) {
    group_change x;
    x.id = {id};
    x.add = std::move(add);
    x.remove = std::move(remove);
    return run(x);
  }
  std::string assign(role_assign::one x, bool taken = false) { return run(role_assign{{x}, taken}); }
};

TEST(People, Groups) {
  house h;
  EXPECT_EQ(h.make("team", {{3}, {1}, {3}}), "group(1 team 2)");
  EXPECT_EQ(h.make("TEAM"), "conflict: a group named 'TEAM' exists already");
  EXPECT_EQ(h.make("other", {{10}}), "not_found: user '10' not found");
  EXPECT_TRUE(h.make("  ").starts_with("invalid: the name of a group has 1 to 80 characters"));
  EXPECT_TRUE(h.make(std::string(81, 'x')).starts_with("invalid: "));
  EXPECT_TRUE(h.make("a\nb").starts_with("invalid: "));
  EXPECT_TRUE(h.make("1DeterminedPersonalGroup").ends_with("are reserved"));
  EXPECT_EQ(h.change(1, {{2}}, {{1}}), "group(1 team 2)");
  EXPECT_EQ(h.change(1, {}, {{1}}), "not_found: user '1' is not in group 'team'");
  EXPECT_EQ(h.change(1, {{2}}, {}), "") << "nothing changes";
  EXPECT_EQ(h.change(2, {{2}}, {}), "not_found: group '2' not found");
  h.assign({5, {}, {1}, {2}});
  EXPECT_EQ(h.run(group_remove{{1}}), "role(5 group 1 in 2 deleted) group(1 team 2 deleted)");
  EXPECT_EQ(h.run(group_remove{{1}}), "not_found: group '1' not found");
  EXPECT_EQ(h.make("next"), "group(2 next 0)") << "numbers do not come again";
}

TEST(People, Roles) {
  house h;
  EXPECT_EQ(h.assign({5, {3}, {}, {2}}), "role(5 user 3 in 2)");
  EXPECT_EQ(h.assign({5, {3}, {}, {2}}), "conflict: role 5 is assigned so already");
  EXPECT_EQ(h.assign({5, {3}, {}, {}}), "role(5 user 3)") << "everywhere is another place";
  EXPECT_EQ(h.assign({1, {3}, {}, {2}}), "invalid: role 1 cannot be given for one workspace");
  EXPECT_EQ(h.assign({5, {3}, {}, {9}}), "not_found: workspace '9' not found");
  EXPECT_EQ(h.assign({5, {}, {7}, {}}), "not_found: group '7' not found");
  EXPECT_EQ(h.assign({5, {}, {}, {}}), "invalid: a role is given to a user or to a group");
  EXPECT_EQ(h.run(role_assign{}), "invalid: must provide at least one group or user role assignment");
  EXPECT_EQ(h.run(role_assign{{{4, {1}, {}, {}}, {4, {1}, {}, {}}}, false}),
            "conflict: role 4 is assigned so already")
    << "twice in one order: none is given";
  EXPECT_EQ(h.assign({4, {1}, {}, {}}), "role(4 user 1)");
  EXPECT_EQ(h.assign({5, {3}, {}, {2}}, true), "role(5 user 3 in 2 deleted)");
  EXPECT_EQ(h.assign({5, {3}, {}, {2}}, true), "not_found: role 5 is not assigned so");
}

TEST(People, PermissionsFollowTheRolesOfUsersAndTheirGroups) {
  house h;
  const auto sees = [&](std::uint64_t user, std::uint64_t in) {
    return h.folk.may({user}, authority::permission::view_experiment_metadata, {in});
  };
  h.make("team", {{4}});
  h.assign({4, {3}, {}, {2}});
  h.assign({4, {}, {1}, {1}});
  EXPECT_TRUE(sees(3, 2) && sees(4, 1));
  EXPECT_FALSE(sees(3, 1) || sees(4, 2) || sees(5, 1) || sees(0, 1));
  h.assign({4, {3}, {}, {2}}, true);
  EXPECT_FALSE(sees(3, 2));
}

TEST(People, SettingsAndVisits) {
  house h;
  EXPECT_EQ(h.run(user_set{{2}, {{"theme", "ui", "dark"}, {"width", "ui", "7"}}, false}),
            "setting(2 theme=dark) setting(2 width=7)");
  EXPECT_EQ(h.run(user_set{{2}, {{"theme", "ui", "dark"}, {"none", "ui", ""}}, false}), "");
  EXPECT_EQ(h.run(user_set{{2}, {{"theme", "ui", ""}}, false}), "setting(2 theme=)");
  EXPECT_EQ(h.run(user_set{{3}, {{"theme", "ui", "light"}}, false}), "setting(3 theme=light)");
  EXPECT_EQ(h.run(user_set{{2}, {}, true}), "setting(2 width=)") << "those of another stay";
  EXPECT_TRUE(h.run(user_set{{2}, {{"", "ui", "x"}}, false}).starts_with("invalid: settings: a key"));
  EXPECT_EQ(h.run(project_visit{{2}, {4}}), "visited(4 by 2)");
  EXPECT_EQ(h.run(project_visit{{2}, {4}}), "") << "at most one an hour while it is the last";
  EXPECT_EQ(h.run(project_visit{{2}, {5}}), "visited(5 by 2)");
  EXPECT_EQ(h.run(project_visit{{2}, {4}}), "visited(4 by 2)") << "it is the last again";
}

value json(const char* text) { return parse_json(text).value(); }

TEST(HouseRules, ASecretOfAPolicyStaysWhereItsMaskComesBack) {
  house h;
  const auto set = [&](const std::string& bucket, const char* secret) {
    const value storage{{"type", "s3"}, {"bucket", bucket}, {"access_key", "a"}, {"secret_key", secret}};
    return h.run(policy_set{{2}, "EXPERIMENT", {{"invariant_config", {{"checkpoint_storage", storage}}}}});
  };
  EXPECT_TRUE(set("one", "opensIt").starts_with("policy(2 EXPERIMENT"));
  EXPECT_EQ(set("one", "********"), "");
  EXPECT_TRUE(set("two", "********").starts_with("policy(2 EXPERIMENT"));
  EXPECT_EQ(h.rules.invariant_of({2})["checkpoint_storage"]["bucket"], "two");
  EXPECT_EQ(h.rules.invariant_of({2})["checkpoint_storage"]["secret_key"], "opensIt");
  const value masked{{"checkpoint_storage", {{"type", "s3"}, {"bucket", "b"}, {"secret_key", "********"}}}};
  const auto said = h.run(policy_set{{}, "EXPERIMENT", {{"invariant_config", masked}}});
  EXPECT_TRUE(said.starts_with("invalid: invariant_config.checkpoint_storage.secret_key: '********' stands"))
    << said << ": there is no secret that the mask could stand for";
}

TEST(HouseRules, PoliciesAreCheckedAndLaidOverEachOther) {
  house h;
  const auto set = [&](std::uint64_t workspace, const char* kind, const char* text) {
    return h.run(policy_set{{workspace}, kind, json(text)});
  };
  EXPECT_EQ(set(2, "EXPERIMENT", R"({"invarian_config": {}})"),
            "invalid: invalid experiment config policy: unknown field \"invarian_config\"");
  EXPECT_EQ(set(0, "NTSC", R"({"invariant_config": {"debug": true}})"),
            "invalid: invalid ntsc config policy: invariant_config of NTSC: not supported");
  EXPECT_TRUE(set(0, "EXPERIMENT", R"({"constraints": {"priority_limit": 0}})").starts_with("invalid: "));
  for (const auto& [fixed, place] :
       {std::pair{R"({"workspace": "other"})", "invariant_config.workspace: "},
        {R"({"project": "other"})", "invariant_config.project: "},
        {R"({"resources": {"slots": 1}})", "invariant_config.resources.slots: "},
        {R"({"entrypoint": ""})", "invariant_config.entrypoint: names no program"},
        {R"({"entrypoint": [" ", "a"]})", "invariant_config.entrypoint: names no program"}}) {
    const auto said = set(2, "EXPERIMENT", (std::string(R"({"invariant_config": )") + fixed + "}").c_str());
    EXPECT_TRUE(said.starts_with(std::string("invalid: invalid experiment config policy: ") + place)) << said;
  }
  EXPECT_EQ(
    set(2, "EXPERIMENT",
        R"({"invariant_config": {"searcher": {"source_trial_id": 1, "source_checkpoint_uuid": "x"}}})"),
    "invalid: invalid experiment config policy: invariant_config.searcher: source_trial_id and "
    "source_checkpoint_uuid exclude each other");
  const auto pattern =
    set(2, "EXPERIMENT",
        "{\"invariant_config\": {\"log_policies\": [{\"name\": \"q\", \"pattern\": \"(?=x)\"}]}}");
  EXPECT_TRUE(pattern.starts_with(
    "invalid: invalid experiment config policy: invariant_config.log_policies[0].pattern: "))
    << pattern;
  EXPECT_TRUE(set(9, "EXPERIMENT", "{}").starts_with("not_found: workspace '9'"));
  EXPECT_EQ(set(3, "EXPERIMENT", "{}"), "invalid: workspace 'c' is archived");
  EXPECT_EQ(set(3, "EXPERIMENT", "null"), "") << "taking away is no change of what is in it";
  const auto unknown = set(2, "EXPERIMENT", R"({"invariant_config": {"max_restart": 1}})");
  EXPECT_TRUE(unknown.starts_with("invalid: invalid experiment config policy: invariant_config:1:2: "))
    << unknown;
  EXPECT_NE(unknown.find("max_restarts"), unknown.npos) << "the mend: " << unknown;
  EXPECT_TRUE(
    set(0, "EXPERIMENT", R"({"constraints": {"resources": {"max_slots": 4}, "priority_limit": 10}})")
      .starts_with("policy(0 EXPERIMENT"));
  EXPECT_EQ(
    set(2, "EXPERIMENT", R"({"invariant_config": {"resources": {"max_slots": 5}}})"),
    "invalid: requested resources.max_slots [5] exceeds limit set by admin [4]: submitted workload failed "
    "a resource constraint")
    << "the cluster's limits hold for a workspace's policy";
  set(2, "EXPERIMENT",
      R"({"invariant_config": {"max_restarts": 1, "resources": {"weight": 2}},
          "constraints": {"resources": {"max_slots": 2}}})");
  set(0, "EXPERIMENT",
      R"({"invariant_config": {"resources": {"weight": 3}}, "constraints": {"priority_limit": 10}})");
  EXPECT_EQ(h.rules.invariant_of({2}), json(R"({"max_restarts": 1, "resources": {"weight": 3}})"));
  EXPECT_EQ(h.rules.constraints_of({2}), json(R"({"resources": {"max_slots": 2}, "priority_limit": 10})"));
  set(2, "EXPERIMENT",
      R"({"invariant_config": {"labels": ["of-2"], "environment": {"environment_variables": ["WS=1"]},
          "bind_mounts": [{"host_path": "/var", "container_path": "/ws"}]}})");
  set(0, "EXPERIMENT",
      R"({"invariant_config": {"labels": ["of-all"], "environment": {"environment_variables": ["GL=1"]},
          "bind_mounts": [{"host_path": "/tmp", "container_path": "/gl"}]}})");
  // a list that is appended has the entries of both policies
  const auto both = to_json(h.rules.invariant_of({2}));
  for (const char* one : {"of-2", "of-all", "WS=1", "GL=1", "/ws", "/gl"})
    EXPECT_NE(both.find(one), both.npos) << one << " in " << both;
  set(
    2, "EXPERIMENT",
    R"({"invariant_config": {"max_restarts": 1, "resources": {"weight": 2}}, "constraints": {"resources": {"max_slots": 2}}})");
  set(0, "EXPERIMENT",
      R"({"invariant_config": {"resources": {"weight": 3}}, "constraints": {"priority_limit": 10}})");
  EXPECT_EQ(h.rules.invariant_of({3}), json(R"({"resources": {"weight": 3}})"));
  commands::experiment_set heavier;
  heavier.weight = 3;
  EXPECT_TRUE(h.rules.check_change({2}, heavier)) << "it is so already";
  heavier.weight = 4;
  const auto fixed = h.rules.check_change({2}, heavier);
  ASSERT_FALSE(fixed);
  EXPECT_EQ(fixed.error().what, "weight is set by a config policy: it cannot be changed\nhint: it is 3");
  set(1, "EXPERIMENT", R"({"invariant_config": {"resources": {"priority": 20, "max_slots": 4}}})");
  for (const auto& [priority, most, said] :
       {std::tuple{std::optional<std::int64_t>(21), std::optional<std::int64_t>(),
                   "priority set by invariant config: priority cannot be modified\nhint: it is 20"},
        {std::optional<std::int64_t>(), std::optional<std::int64_t>(5),
         "max slots is already set in an invariant config policy\nhint: it is 4"},
        {std::optional<std::int64_t>(), std::optional<std::int64_t>(-1),
         "max slots is already set in an invariant config policy\nhint: it is 4"}}) {
    commands::experiment_set other;
    other.priority = priority;
    other.max_slots = most;
    const auto no = h.rules.check_change({1}, other);
    ASSERT_FALSE(no) << said;
    EXPECT_EQ(no.error().what, said);
  }
  EXPECT_TRUE(check_constraints(json(R"({"resources": {"slots_per_trial": 2, "priority": 10}})"),
                                h.rules.constraints_of({2})));
  const auto too_many =
    check_constraints(json(R"({"resources": {"slots_per_trial": 3}})"), h.rules.constraints_of({2}));
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().what,
            "requested resources.slots [3] exceeds limit set by admin [2]: submitted workload "
            "failed a resource constraint");
  EXPECT_FALSE(check_constraints(json(R"({"resources": {"slots_per_trial": {"min": 1, "max": 3}}})"),
                                 h.rules.constraints_of({2})))
    << "a gang may grow to its most";
  const auto urgent =
    check_constraints(json(R"({"resources": {"priority": 9}})"), h.rules.constraints_of({2}));
  ASSERT_FALSE(urgent);
  EXPECT_EQ(urgent.error().what,
            "requested priority [9] exceeds limit set by admin [10]: submitted workload failed "
            "priority constraint");
  EXPECT_EQ(h.run(policy_set{{2}, "EXPERIMENT", nullptr}), "policy(2 EXPERIMENT null)");
  EXPECT_EQ(h.run(policy_set{{2}, "EXPERIMENT", nullptr}), "");
  EXPECT_EQ(h.rules.constraints_of({2}), json(R"({"priority_limit": 10})"));
}

TEST(HouseRules, APoolIsBoundToTheWorkspacesThatAreNamed) {
  house h;
  EXPECT_EQ(h.run(pool_bind{"gpu", {}}), "");
  EXPECT_EQ(h.run(pool_bind{"gpu", {{3}, {2}, {3}}}), "bound(gpu 2)");
  EXPECT_EQ(h.run(pool_bind{"gpu", {{9}}}), "not_found: workspace '9' not found");
  EXPECT_EQ(h.rules.bound_to("gpu"), (std::vector<workspace_id>{{2}, {3}}));
  EXPECT_TRUE(h.rules.bound_to("cpu").empty());
  EXPECT_EQ(h.run(pool_bind{"gpu", {}}), "bound(gpu 0)");
  EXPECT_TRUE(h.rules.bound_to("gpu").empty());
}

TEST(HouseRules, BindingsAreAddedAndTakenAwayOneByOne) {
  house h;
  EXPECT_EQ(h.run(pool_bind{"gpu", {{2}}, "add"}), "bound(gpu 1)");
  EXPECT_EQ(h.run(pool_bind{"gpu", {{3}}, "add"}), "bound(gpu 2)");
  EXPECT_EQ(h.run(pool_bind{"gpu", {{3}}, "add"}), "");
  EXPECT_EQ(h.run(pool_bind{"gpu", {{2}}, "remove"}), "bound(gpu 1)");
  EXPECT_EQ(h.run(pool_bind{"gpu", {{2}}, "remove"}), "");
  EXPECT_EQ(h.rules.bound_to("gpu"), (std::vector<workspace_id>{{3}}));
}

TEST(HouseRules, TheMessageOfTheCluster) {
  house h;
  const auto past = to_rfc3339(t0 - 10s), soon = to_rfc3339(t0 + 1h), later = to_rfc3339(t0 + 2h);
  EXPECT_EQ(h.run(cluster_message_set{}), "") << "there was none";
  EXPECT_EQ(h.run(cluster_message_set{"down at noon", soon, later}), "message(down at noon)");
  EXPECT_EQ(h.run(cluster_message_set{"x", later, soon}), "invalid: end time must be after start time");
  EXPECT_EQ(h.run(cluster_message_set{"x", to_rfc3339(t0 - 1h), past}),
            "invalid: end time must be after current time");
  EXPECT_TRUE(h.run(cluster_message_set{"x", "noon", ""}).starts_with("invalid: 'noon' is not a time"));
  std::string long_one;
  for (int i = 0; i < 250; ++i)
    long_one += "\xc3\xa4"; // 250 characters of 2 bytes each
  EXPECT_TRUE(h.run(cluster_message_set{long_one, "", ""}).starts_with("message("));
  EXPECT_TRUE(h.run(cluster_message_set{long_one + "x", "", ""}).starts_with("invalid: "));
  EXPECT_EQ(h.run(cluster_message_set{}), "message()");
}

TEST(AccessTokens, AreCountedAndEndWithTheirUser) {
  catalogue c;
  user_wish wish;
  wish.name = "eve";
  ASSERT_TRUE(c.make_user(wish, "ada", t0));
  const auto until = (t0 + 24h).time_since_epoch().count();
  const auto first = c.make_access_token({{1}, "aaa", "nightly", until}, "eve", t0);
  ASSERT_TRUE(first);
  EXPECT_EQ(std::get<token_changed>(first->front()).number, 1u);
  const auto second = c.make_access_token({{1}, "bbb", "", until}, "eve", t0);
  ASSERT_TRUE(second);
  EXPECT_EQ(std::get<token_changed>(second->front()).number, 2u);
  EXPECT_FALSE(c.make_access_token({{9}, "ccc", "", until}, "eve", t0)) << "no such user";
  EXPECT_FALSE(c.make_access_token({{1}, "ddd", "", t0.time_since_epoch().count()}, "eve", t0))
    << "over at once";
  token_change revoke;
  revoke.number = 1;
  revoke.revoked = true;
  EXPECT_TRUE(c.change_access_token(revoke, "eve", t0));
  EXPECT_EQ(c.change_access_token(revoke, "eve", t0).error().code, errc::invalid) << "it is void";
  revoke.number = 7;
  EXPECT_EQ(c.change_access_token(revoke, "eve", t0).error().what, "Token with id: 7 not found");
  user_wish off;
  off.active = false;
  EXPECT_EQ(show(*c.change_user({1}, off, "ada", t0)),
            "user(1 eve inactive /2 by ada) token(bbb of 1 '' revoked)");
  EXPECT_FALSE(c.make_access_token({{1}, "eee", "", until}, "eve", t0)) << "the user is inactive";
}

TEST(HouseRules, AWebhookGoesToAnAddressOfTheWebThatNamesNobody) {
  house h;
  const auto make = [&](const char* url) {
    webhook_create x;
    x.url = url;
    x.triggers = json(R"([{"type": "EXPERIMENT_STATE_CHANGE", "condition": {"state": "ERROR"}}])");
    return h.run(x).substr(0, 7);
  };
  for (const char* fine :
       {"http://a", "https://a:8080/b?c#d", "https://chat.example/hook/1@2/in", "http://[::1]/", "HTTP://a",
        "https://[fd00::1]:80/x", "http://[::1]:90", "http://h:1/", "http://h:65535/"})
    EXPECT_EQ(make(fine), "webhook") << fine;
  for (const char* bad : {"http://h:80:90/",
                          "http://h:0/",
                          "http://h:65536/",
                          "http://h:",
                          "http://h:/",
                          "http://[::1]:",
                          "http://::1/",
                          "ftp://a",
                          "http://a:99999/",
                          "http://a:0",
                          "https://[::1]:x/y",
                          "//a",
                          "http://",
                          "http:///a",
                          "http://?a",
                          "http://u@a",
                          "http://u:w@a/b",
                          "http://a\\@b/",
                          "http://a b",
                          "http://a/\r\nX: y",
                          "http://[::1",
                          "http://[::1]x",
                          "http://[a]/",
                          "http://a]/",
                          "http://[::1]:1:2/",
                          "http://:80/",
                          "http:/a",
                          "httpx://a",
                          "http://169.254.169.254/latest",
                          "https://[fe80::1]:80/x",
                          "http://0xa9fea9fe/",
                          "http://2852039166:80/",
                          "http://[::ffff:169.254.169.254]/",
                          "http://0.0.0.0:1/",
                          "http://[::]/",
                          "http://192.0.0.192"})
    EXPECT_EQ(make(bad), "invalid") << bad;
  webhook_create x;
  x.url = "http://a";
  ASSERT_TRUE(h.run(webhook_change{{1}, "http://b"}).starts_with("webhook"));
  EXPECT_TRUE(h.run(webhook_change{{1}, "http://169.254.169.254/"}).starts_with("invalid"));
  x.specific = true;
  for (const char* odd :
       {R"({"type": "EXPERIMENT_STATE_CHANGE", "condition": {"state": "ERROR", "x": 1}})",
        R"({"type": "CUSTOM", "condition": {"x": "y"}})", R"({"type": "CUSTOM", "condition": [1]})",
        R"({"type": "TASK_LOG", "condition": {"regex": "a", "x": 1}})"}) {
    x.triggers = value::array({json(odd)});
    EXPECT_TRUE(h.run(x).starts_with("invalid")) << odd;
  }
  x.triggers = json(R"([{"type": "CUSTOM", "condition": {}}, {"type": "CUSTOM"}])");
  EXPECT_TRUE(h.run(x).starts_with("webhook"));
  for (const char* named : {"http://u@a", "http://u:w@a/b", "http://u:p@127.0.0.1:80/"}) {
    webhook_create x;
    x.url = named;
    const auto said = h.run(x);
    EXPECT_NE(said.find("a name or a password before the host cannot be used"), std::string::npos) << said;
    EXPECT_EQ(said.find("p@127"), std::string::npos) << "passwords are not shown";
  }
}

// ---- the last admin

/// User 1 is an admin and has the role ClusterAdmin; users 2 and 3 are not admins; user 2 is in group 1.
struct with_one_admin : house {
  catalogue users;

  with_one_admin() {
    for (const char* name : {"root", "ann", "bob"}) {
      user_wish wish;
      wish.name = name;
      wish.admin = name == std::string_view("root");
      EXPECT_TRUE(users.make_user(wish, "ada", t0));
    }
    EXPECT_EQ(make("ops", {{2}}), "group(1 ops 1)");
    EXPECT_EQ(assign({1, {1}, {}, {}}), "role(1 user 1)");
  }
  template <class Command>
  std::string ask(const Command& x, bool by_roles) {
    auto fine = last_admin(users, folk, by_roles).allows(x);
    if (!fine)
      return std::string(name(fine.error().code)) + ": " + fine.error().what.substr(0, 30);
    if constexpr (std::is_same_v<Command, user_change>)
      EXPECT_TRUE(users.change_user(x.id, x, "ada", t0));
    else
      EXPECT_NE(run(x).substr(0, 7), "invalid");
    return "";
  }
  std::string set(std::uint64_t id, bool by_roles, std::optional<bool> active, std::optional<bool> admin = {},
                  std::optional<bool> remote = {}) {
    user_change x;
    x.id = {id};
    x.active = active;
    x.admin = admin;
    x.remote = remote;
    return ask(x, by_roles);
  }
};
constexpr const char* nobody_left = "invalid: no active admin would be left,";

TEST(LastAdmin, StaysActiveAndAnAdmin) {
  with_one_admin h;
  EXPECT_EQ(h.set(1, false, false), nobody_left);
  EXPECT_EQ(h.set(1, false, {}, false), nobody_left);
  EXPECT_EQ(h.set(1, false, {}, {}, true), nobody_left) << "there is no password to log in with";
  EXPECT_EQ(h.set(1, false, true, true), "") << "nothing is taken";
  EXPECT_EQ(h.set(2, false, false, true), "") << "an admin who is not active counts for nothing";
  EXPECT_EQ(h.set(1, false, false), nobody_left);
  EXPECT_EQ(h.set(2, false, true), "");
  EXPECT_EQ(h.set(1, false, false), "") << "another one is left";
  EXPECT_EQ(h.set(2, false, {}, false), nobody_left);
}

TEST(LastAdmin, IsWhoHasTheRoleWhereRolesDecide) {
  with_one_admin h;
  const role_assign taken{{{1, {1}, {}, {}}}, true};
  EXPECT_EQ(h.ask(taken, false), "") << "where roles decide nothing, they are free";
  EXPECT_EQ(h.assign({1, {1}, {}, {}}), "role(1 user 1)");
  EXPECT_EQ(h.set(1, true, false), nobody_left);
  EXPECT_EQ(h.set(1, true, {}, false), "") << "the flag decides nothing";
  EXPECT_EQ(h.ask(taken, true), nobody_left);
  EXPECT_EQ(h.assign({1, {}, {1}, {}}), "role(1 group 1)");
  EXPECT_EQ(h.ask(taken, true), "") << "a member of the group has it, too";
  group_change leave;
  leave.id = {1};
  leave.remove = {{2}};
  EXPECT_EQ(h.set(2, true, false), nobody_left);
  EXPECT_EQ(h.ask(leave, true), nobody_left);
  EXPECT_EQ(h.ask(group_remove{{1}}, true), nobody_left);
  EXPECT_EQ(h.ask(role_assign{{{1, {}, {1}, {}}}, true}, true), nobody_left);
  leave.add = {{3}};
  EXPECT_EQ(h.ask(leave, true), "") << "another one comes";
}

// ---- deletion

/// The machines of the cluster, and a twin that sees only the facts.
struct machines {
  cluster_machines live = made(), twin = made();

  static cluster_machines made() { return {troupe::cluster({}), members({{}, t0, {}})}; }
  std::string keep(std::vector<cluster_fact> facts) {
    for (const auto& one : facts)
      twin.replay(*decode_as<cluster_fact>(encode_as(one)));
    EXPECT_EQ(twin.snapshot(), live.snapshot());
    return show(facts);
  }
  /// Keeps what `ids` decided and then what the places decide about it, as the shell does.
  std::string keep_with_places(std::vector<cluster_fact> facts) {
    live.pass_on(facts);
    for (auto& one : live.where.settle(t0))
      std::visit([&](auto& f) { facts.emplace_back(std::move(f)); }, one);
    return keep(std::move(facts));
  }
  template <class Command>
  std::string run(const Command& x) {
    auto done = decide(live.where, live.books, x, true, "ada", t0);
    if (!done)
      return std::string(name(done.error().code)) + ": " + done.error().what;
    const auto completed = done->answer.contains("completed") ? " " + done->answer["completed"].dump() : "";
    return keep(std::move(done->facts)) + completed;
  }
  static sight everybody(experiment_id) { return sight::seen; }
  void experiment(std::uint64_t project, const char* key = "") {
    experiment_created wanted;
    wanted.project = {project};
    wanted.key = key;
    keep(live.create(wanted, everybody).facts);
  }
};

TEST(Deletion, IsAStateThatOutlivesARestart) {
  machines m;
  m.experiment(1, "mine");
  EXPECT_EQ(m.keep_with_places(m.live.ids.deleted({1}, {}, t0)), "") << "nobody ordered it";
  EXPECT_EQ(m.keep_with_places(m.live.ids.order_deletion({1}, "ada", t0)), "deleted(1 ordered)");
  EXPECT_EQ(m.keep_with_places(m.live.ids.order_deletion({1}, "bob", t0)), "") << "again is nothing new";
  EXPECT_EQ(m.twin.ids.deleting().at({1}), "ada") << "who begins anew knows what to do";
  EXPECT_EQ(m.keep_with_places(m.live.ids.deletion_failed(experiment_id{1}, "disk", t0)),
            "deleted(1 failed: disk)");
  EXPECT_TRUE(m.live.ids.deleting().empty());
  EXPECT_EQ(m.keep_with_places(m.live.ids.order_deletion({1}, "ada", t0)), "deleted(1 ordered)");
  EXPECT_EQ(m.keep_with_places(m.live.ids.deleted({1}, {{7}}, t0)), "deleted(1 done)");
  EXPECT_FALSE(m.live.ids.unswept({1}));
  experiment_created again;
  again.key = "mine";
  EXPECT_EQ(m.live.create(again, machines::everybody).id, experiment_id{2})
    << "its key is free again, its number is not";
}

TEST(Deletion, OfAWorkspaceTakesAllItHolds) {
  machines m;
  workspace_create w;
  w.name = "v";
  m.run(w);
  project_create p;
  p.workspace = {2};
  p.name = "p";
  m.run(p);
  p.name = "q";
  m.run(p);
  m.experiment(2);
  m.experiment(2);
  EXPECT_EQ(m.run(project_remove{{3}}), "project(3 q) project(3 q deleted) true")
    << "an empty one goes at once";
  EXPECT_EQ(m.run(workspace_remove{{2}}), "workspace(2 v) project(2 p) false");
  p.name = "r";
  EXPECT_EQ(m.run(p), "invalid: workspace 'v' is being deleted");
  EXPECT_EQ(m.live.where.place_of({2}, value::object()).error().what, "project 'p' is being deleted");
  const auto doomed = m.live.where.doomed();
  ASSERT_EQ(doomed.size(), 2u);
  EXPECT_EQ(doomed[0].second, "ada");
  for (std::uint64_t id : {1, 2})
    m.keep_with_places(m.live.ids.order_deletion({id}, "ada", t0));
  EXPECT_TRUE(m.live.where.doomed().empty()) << "all are ordered";
  EXPECT_EQ(m.keep_with_places(m.live.ids.deleted({1}, {}, t0)), "deleted(1 done)");
  EXPECT_EQ(m.keep_with_places(m.live.ids.deletion_failed(experiment_id{2}, "disk", t0)),
            "deleted(2 failed: disk) project(2 p) workspace(2 v)");
  EXPECT_EQ(m.live.where.workspaces().at({2}).error, "project 'p': experiment 2: disk");
  EXPECT_TRUE(m.live.where.doomed().empty()) << "what has failed is not tried again by itself";
  EXPECT_EQ(m.run(workspace_remove{{2}}), "workspace(2 v) project(2 p) false");
  EXPECT_EQ(m.live.where.doomed().size(), 1u) << "asked again, it is";
  m.keep_with_places(m.live.ids.order_deletion({2}, "ada", t0));
  EXPECT_EQ(m.keep_with_places(m.live.ids.deleted({2}, {}, t0)),
            "deleted(2 done) project(2 p deleted) workspace(2 v deleted)");
  EXPECT_FALSE(m.live.where.knows({2}));
}

TEST(Globs, MatchPathsInACheckpoint) {
  std::ifstream in(TROUPE_SOURCE_DIR "/test/data/glob_cases.json");
  const auto cases = parse_json(std::string(std::istreambuf_iterator<char>(in), {}));
  ASSERT_TRUE(cases);
  ASSERT_FALSE(cases->empty());
  for (const auto& one : *cases)
    EXPECT_EQ(matches_glob(one[0].get<std::string>(), one[1].get<std::string>()), one[2].get<bool>()) << one;
  EXPECT_TRUE(matches_glob("?a*", "\xff"
                                  "ab"))
    << "also names that are not UTF-8";
  for (const char* bad : {"", "/etc/*", "../x", "a/../b", "a\\b"})
    EXPECT_FALSE(check_glob(bad)) << bad;
  EXPECT_TRUE(check_glob("**/..x"));
  for (const std::string bad : {"", "/etc/passwd", "..", "../x", "a/../b", "a/..", "a\nb", "a\x7f"})
    EXPECT_FALSE(check_path_of_file(bad)) << bad;
  EXPECT_FALSE(check_path_of_file(std::string("a\0b", 3)));
  for (const std::string good : {"a", "a/", "a/b.pt", "..a", "a/..b", "\u00e9 \\"})
    EXPECT_TRUE(check_path_of_file(good)) << good;
  EXPECT_FALSE(matches_glob("a*a*a*a*a*a*a*a*a*a*b", std::string(2000, 'a'))) << "and takes no time for it";
}

TEST(Globs, TellWhatARemovalLeaves) {
  using files = std::map<std::string, std::int64_t>;
  const files all{{"weights", 5}, {"more/", 0}, {"more/deep/", 0}, {"more/deep/state", 1}, {"more/x", 2}};
  const struct {
    std::vector<std::string> globs;
    files left;
  } cases[] = {
    {{}, {}},
    {{"**/*"}, {}},
    {{"none"}, all},
    {{"more"}, {{"weights", 5}}},
    {{"more/"}, {{"weights", 5}}},
    {{"more/**"}, {{"weights", 5}}},
    {{"more/*"}, {{"weights", 5}, {"more/", 0}}},
    {{"more/deep"}, {{"weights", 5}, {"more/", 0}, {"more/x", 2}}},
    {{"**/state"}, {{"weights", 5}, {"more/", 0}, {"more/deep/", 0}, {"more/x", 2}}},
    {{"weights", "**/state", "more/x"}, {}}, // folders alone are not a checkpoint
  };
  for (const auto& c : cases)
    EXPECT_EQ(left_by(c.globs, all), c.left) << value(c.globs);
}

} // namespace
} // namespace troupe

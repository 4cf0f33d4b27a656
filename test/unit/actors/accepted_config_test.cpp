#include "actors/cluster/accepted_config.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

result<accepted_config> accepted(const std::string& more) {
  return accept_config("entrypoint: x\nhyperparameters: {}\n" + more, "mine.yaml", "/data/checkpoints",
                       nullptr);
}
const std::string single = "searcher: {name: single, metric: loss}\n";

TEST(AcceptConfig, MakesTheCheckpointFolderAbsolute) {
  struct {
    std::string storage, folder;
  } cases[] = {
    {"", "/data/checkpoints"},
    {"checkpoint_storage: {type: directory, container_path: /else}\n", "/else"},
    {"checkpoint_storage: {type: directory, container_path: mine}\n", "/data/mine"},
  };
  for (const auto& c : cases) {
    auto got = accepted(single + c.storage);
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_EQ(got->settings["checkpoint_storage"]["container_path"], c.folder);
    EXPECT_NE(got->source.find("entrypoint: x"), std::string::npos);
  }
}

TEST(AcceptConfig, AMaskIsNamedWithItsLineWhereTheTextHasIt) {
  const auto storage = [](const char* key) {
    return value{{"checkpoint_storage", {{"type", "s3"}, {"bucket", "b"}, {"access_key", key}}}};
  };
  const std::string no = "'********' stands for a secret that nobody is shown";
  const struct {
    value text, settings;
    std::string begin; ///< of the fault; empty: there is none
  } cases[] = {
    {"name: x\ncheckpoint_storage: {access_key: '********'}\n", storage("********"),
     "mine.yaml:2:34: checkpoint_storage.access_key: " + no},
    {"name: x\ncheckpoint_storage: {access_key: k}\n", storage("k"), ""},
    {"name: '********'\n", storage("k"), ""},
    {"name: x\n", storage("********"), "checkpoint_storage.access_key: " + no},
    {storage("********"), storage("********"), "mine.yaml:1:"},
  };
  for (const auto& c : cases) {
    const auto got = check_no_mask(c.settings, c.text, "mine.yaml");
    ASSERT_EQ(bool(got), c.begin.empty()) << c.text;
    EXPECT_EQ(got ? "" : got.error().what.substr(0, c.begin.size()), c.begin);
  }
}

TEST(AcceptConfig, ANameMayBeLongAndIsInOneLine) {
  const auto named = [](const std::string& name) {
    auto got = accepted(single + "name: " + name + "\n");
    return got ? got->settings["name"].get<std::string>() : got.error().what.substr(0, 30);
  };
  EXPECT_EQ(named(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(named("|\n  of a block\n"), "of a block");
  EXPECT_EQ(named("\"a\\ab\\e[31mc\""), "a b [31mc");
  for (const char* none : {"\" \\n\"", "\"\\a\""})
    EXPECT_EQ(named(none), "name: must not be empty or bla") << none;
}

TEST(AcceptConfig, LabelsAreInOneLineAndNoneIsBlank) {
  const std::string text = "labels: [\"a\\nb\", \"a b \", \" \", \"\", \"\\u200b\", \"\\e[31m\", " +
                           std::string(200, 'x') + ", a]\n";
  const value shown = {"a b", "[31m", std::string(200, 'x'), "a"};
  const auto got = accepted(single + text);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->settings["labels"], shown);
  const auto again = continued_config(accepted(single)->settings, text, "/c", {});
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ((*again)["labels"], shown);
}

TEST(AcceptConfig, RefusesAnUnknownPoolWithItsPlace) {
  const value cluster = {{"pools", {{"cpu", {{"default", true}}}}}};
  const auto refused = [&](const std::string& more, const config_layers& layers) {
    const auto got =
      accept_config("entrypoint: x\n" + single + more, "mine.yaml", "/data/checkpoints", cluster, layers);
    return got ? std::string() : got.error().what;
  };
  const auto own = refused("resources: {resource_pool: moon}\n", {});
  EXPECT_TRUE(
    own.starts_with("mine.yaml:3:28: resources.resource_pool: there is no pool 'moon' in this cluster\n"))
    << own;
  EXPECT_NE(own.find("^"), std::string::npos) << own;
  EXPECT_NE(own.find("one of cpu"), std::string::npos) << own;
  config_layers layers;
  layers.template_config = {{"resources", {{"resource_pool", "moon"}}}};
  EXPECT_EQ(refused("", layers).find("mine.yaml:3"), std::string::npos) << "the template names it";
  EXPECT_NE(refused("", layers).find("there is no pool 'moon'"), std::string::npos);
  layers = {};
  layers.invariant = {{"resources", {{"resource_pool", "moon"}}}};
  for (const char* more : {"", "resources: {resource_pool: cpu}\n"})
    EXPECT_TRUE(
      refused(more, layers)
        .starts_with("config policies: resources.resource_pool: there is no pool 'moon' in this cluster\n"))
      << refused(more, layers);
  layers.invariant["resources"]["resource_pool"] = "cpu";
  EXPECT_EQ(refused("", layers), "");
  layers = {};
  layers.only_place = true;
  EXPECT_EQ(refused("resources: {resource_pool: moon}\n", layers), "")
    << "which pools there are depends on it";
}

TEST(AcceptConfig, RefusesAPoolOfOthersAsOneThatDoesNotExist) {
  const value cluster = {{"pools", {{"cpu", {{"default", true}}}, {"hush", value::object()}}}};
  config_layers layers;
  layers.pools = config::pool_choice{{"cpu"}, "lab"};
  const auto refused = [&](const std::string& more) {
    const auto got =
      accept_config("entrypoint: x\n" + single + more, "mine.yaml", "/data/checkpoints", cluster, layers);
    return got ? std::string() : got.error().what;
  };
  for (const std::string pool : {"hush", "moon"}) {
    const auto why = "resources.resource_pool: there is no pool '" + pool +
                     "' that workspace 'lab' may use\nhint: one of cpu";
    EXPECT_TRUE(refused("resources: {resource_pool: " + pool + "}\n")
                  .starts_with("mine.yaml:3:28: " + why.substr(0, why.find('\n'))))
      << refused("resources: {resource_pool: " + pool + "}\n");
    layers.invariant = {{"resources", {{"resource_pool", pool}}}};
    EXPECT_EQ(refused(""), "config policies: " + why);
    layers.invariant = nullptr;
  }
  EXPECT_EQ(refused(""), "");
  layers.pools->names = {"hush"};
  EXPECT_TRUE(refused("").starts_with("mine.yaml: resources.resource_pool: there is no pool 'cpu'"))
    << refused("");
  layers.invariant = {{"resources", {{"resource_pool", "hush"}}}};
  EXPECT_EQ(refused(""), "") << "a policy gives another pool than the default one";
}

TEST(AcceptConfig, RefusesWithThePlaceOfEachFault) {
  auto got = accepted("searcher: {name: singel, metric: loss}\nmax_restart: 1\n");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::invalid);
  EXPECT_NE(got.error().what.find("mine.yaml:3:18"), std::string::npos) << got.error().what;
  EXPECT_NE(got.error().what.find("mine.yaml:4:1"), std::string::npos) << got.error().what;
}

TEST(AcceptConfig, RefusesAnEntrypointThatNamesNoProgram) {
  for (const char* bad : {"''", "' '", "\"\\n\"", "[]", "['']", "[' ', train.py]"}) {
    const auto text = std::string("name: a\nentrypoint: ") + bad + "\n" + single;
    const auto got = accept_config(text, "mine.yaml", "/c", nullptr);
    ASSERT_FALSE(got) << bad;
    EXPECT_TRUE(got.error().what.starts_with("mine.yaml:2:13: entrypoint: names no program"))
      << got.error().what;
  }
  config_layers layers;
  layers.invariant = {{"entrypoint", " "}};
  const auto fixed = accept_config("entrypoint: x\n" + single, "mine.yaml", "/c", nullptr, layers);
  ASSERT_FALSE(fixed);
  EXPECT_TRUE(fixed.error().what.starts_with("config policies: entrypoint: names no program"))
    << fixed.error().what;
  EXPECT_TRUE(accept_config("entrypoint: [a, '']\n" + single, "mine.yaml", "/c", nullptr));
}

TEST(AcceptConfig, RefusesAPatternThatCannotBeLookedFor) {
  EXPECT_TRUE(accepted(single + "log_policies: [{name: a, pattern: \".*CUDA.*\"}]\n"));
  for (const char* bad : {"(", "(?=a)", "(a)\\\\1"}) {
    const auto got =
      accepted(single + "log_policies: [{name: a, pattern: \"x\"}, {name: b, pattern: \"" + bad + "\"}]\n");
    ASSERT_FALSE(got) << bad;
    EXPECT_NE(got.error().what.find("log_policies["), std::string::npos) << got.error().what;
    EXPECT_NE(got.error().what.find("].pattern: "), std::string::npos) << got.error().what;
  }
}

TEST(AcceptConfig, APolicyLiesOverTheTextAndIsCheckedWithIt) {
  config_layers layers;
  layers.invariant = {{"max_restarts", 2}, {"resources", {{"priority", 30}}}};
  const std::string text =
    "entrypoint: x\nhyperparameters: {}\nmax_restarts: 7\nresources: {weight: 2}\n" + single;
  auto got = accept_config(text, "mine.yaml", "/data/checkpoints", nullptr, layers);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->settings["max_restarts"], 2);
  EXPECT_EQ(got->settings["resources"]["priority"], 30);
  EXPECT_EQ(got->settings["resources"]["weight"], 2);
  layers.invariant = {{"max_restart", 2}};
  got = accept_config(text, "mine.yaml", "/data/checkpoints", nullptr, layers);
  ASSERT_FALSE(got) << "a policy that makes no configuration is refused where it is used";
  EXPECT_EQ(got.error().code, errc::invalid);
}

TEST(AcceptConfig, ATemplateLiesOverDefaultsThatNameHalfAStorage) {
  const value cluster = {
    // what the master makes of a master.yaml that has save_* keys
    {"defaults", {{"checkpoint_storage", {{"save_trial_best", 3}}}, {"resources", {{"priority", 7}}}}},
    {"storage", {{"default", {{"type", "shared_fs"}, {"path", "/ck"}}}}}};
  const std::string text = "entrypoint: x\nhyperparameters: {}\n" + single;
  for (const value& of_template :
       {value{{"labels", {"a"}}}, value{{"checkpoint_storage", {{"type", "s3"}, {"bucket", "b"}}}}}) {
    config_layers layers;
    layers.template_config = of_template;
    const auto got = accept_config(text, "mine.yaml", "/data/checkpoints", cluster, layers);
    ASSERT_TRUE(got) << to_json(of_template) << ": " << got.error().what;
    const auto& storage = got->settings["checkpoint_storage"];
    EXPECT_EQ(storage["save_trial_best"], 3) << to_json(storage);
    EXPECT_EQ(storage["type"], of_template.contains("labels") ? "shared_fs" : "s3");
    EXPECT_EQ(got->settings["resources"]["priority"], 7);
  }
  config_layers layers;
  layers.unmanaged = true;
  EXPECT_TRUE(accept_config("name: x\nsearcher: {name: custom, metric: loss}\n", "mine.yaml",
                            "/data/checkpoints", cluster, layers) ||
              accept_config(text, "mine.yaml", "/data/checkpoints", cluster, layers));
}

TEST(AcceptConfig, LayersStandInTheirOrder) {
  const value cluster = {
    {"cluster",
     {{"task_container_defaults",
       {{"environment_variables", {"A=cluster", "B=cluster"}},
        {"preemption_timeout", 100},
        {"shm_size_bytes", 4096}}}}},
    {"defaults", {{"max_restarts", 3}, {"preemption_timeout", 200}}},
    {"storage", {{"default", {{"type", "shared_fs"}, {"path", "/ck"}}}}},
    {"pools",
     {{"a", {{"default", true}, {"task_container_defaults", {{"environment_variables", {"A=pool"}}}}}},
      {"b", {{"task_container_defaults", {{"preemption_timeout", 60}}}}}}}};
  config_layers layers;
  layers.template_config = {{"environment", {{"environment_variables", {"T=template"}}}}};
  layers.workspace_checkpoint_storage = {{"save_trial_best", 4}};
  layers.invariant = {{"max_restarts", 1}};
  const auto of = [&](const std::string& more) {
    auto got = accept_config("entrypoint: x\nhyperparameters: {}\n" + single + more, "mine.yaml",
                             "/data/checkpoints", cluster, layers);
    EXPECT_TRUE(got) << got.error().what;
    return got ? got->settings : value();
  };
  const auto usual = of("environment: {environment_variables: [U=user]}\n");
  EXPECT_EQ(usual["environment"]["environment_variables"]["cpu"],
            value::array({"A=pool", "B=cluster", "T=template", "U=user"}))
    << "the later wins in the task";
  EXPECT_EQ(usual["preemption_timeout"], 200)
    << "defaults, of experiments alone, lie over those of all tasks";
  EXPECT_EQ(usual["resources"]["shm_size"], 4096);
  EXPECT_EQ(usual["checkpoint_storage"]["host_path"], "/ck");
  EXPECT_EQ(usual["checkpoint_storage"]["save_trial_best"], 4);
  EXPECT_EQ(usual["max_restarts"], 1);
  EXPECT_EQ(of("preemption_timeout: 7\n")["preemption_timeout"], 7);
  const auto other = of("resources: {resource_pool: b, shm_size: 8192}\n");
  EXPECT_EQ(other["environment"]["environment_variables"]["cpu"],
            value::array({"A=cluster", "B=cluster", "T=template"}));
  EXPECT_EQ(other["resources"]["shm_size"], 8192);
  layers.template_config["resources"] = {{"resource_pool", "b"}};
  EXPECT_EQ(of("")["environment"]["environment_variables"]["cpu"],
            value::array({"A=cluster", "B=cluster", "T=template"}))
    << "those of the pool that the template names";
}

TEST(AcceptConfig, OnlyTheStorageOfAllLayersTogetherHasToBeComplete) {
  const value azure_of_cluster = {{"storage", {{"default", {{"type", "azure"}, {"bucket", "models"}}}}}};
  const value login = {{"type", "azure"}, {"connection_string", "C"}};
  const value whole = {{"type", "azure"}, {"container", "q"}, {"connection_string", "C"}};
  const value s3 = {{"type", "s3"}, {"bucket", "b"}};
  const std::string no_login = "checkpoint_storage: exactly one of connection_string and account_url must be";
  const std::string no_string = "checkpoint_storage.account_url: a task cannot use account_url";
  const std::string mine = "checkpoint_storage: {type: azure, container: mine}\n";
  const std::string by_url = "checkpoint_storage: {type: azure, container: c, account_url: ";
  const struct {
    value cluster, workspace, policy;
    std::string text;
    std::string shown; ///< container or bucket of the accepted storage, or the start of the fault
  } cases[] = {
    {azure_of_cluster, login, {}, "", "models"},
    {azure_of_cluster, whole, {}, "", "q"},
    {azure_of_cluster, s3, {}, "", "b"},
    {azure_of_cluster, {}, whole, "", "q"},
    {azure_of_cluster, {}, s3, "", "b"},
    {{}, login, {}, mine, "mine"},
    {{}, {}, login, mine, "mine"},
    {{}, whole, s3, mine, "b"},
    {azure_of_cluster, {}, {}, "", "storage of the cluster: " + no_login},
    {{}, {}, {}, mine, "mine.yaml:4:21: " + no_login},
    {azure_of_cluster, {}, {{"type", "azure"}, {"container", "q"}}, "", "config policies: " + no_login},
    {{}, {}, {{"type", "azure"}}, mine, "mine.yaml:4:21: " + no_login},
    {{}, {}, {}, by_url + "'https://a'}\n", "mine.yaml:4:62: " + no_string},
    {{}, whole, {}, by_url + "'https://a'}\n", "mine.yaml:4:62: " + no_string},
    {azure_of_cluster,
     {},
     {{"type", "azure"}, {"account_url", "https://a"}},
     "",
     "config policies: " + no_string},
    {{}, {}, {}, by_url + "'https://a', credential: k}\n", "mine.yaml:4:62: " + no_string},
    {{}, {}, {}, by_url + "'https://a?sig=k'}\n", "mine.yaml:4:62: " + no_string},
    {{},
     s3,
     {},
     "checkpoint_storage: {bucket: 7}\n",
     "mine.yaml:4:30: checkpoint_storage.bucket: expected a string, got an integer, 7\n"
     "  checkpoint_storage: {bucket: 7}\n"},
  };
  for (const auto& c : cases) {
    config_layers layers;
    layers.workspace_checkpoint_storage = c.workspace;
    if (!c.policy.is_null())
      layers.invariant = {{"checkpoint_storage", c.policy}};
    const auto text = "entrypoint: x\nhyperparameters: {}\n" + single + c.text;
    const auto accept = [&] {
      return accept_config(text, "mine.yaml", "/data/checkpoints", c.cluster, layers);
    };
    const auto got = accept();
    const auto storage = got ? got->settings["checkpoint_storage"] : value::object();
    const auto shown = got ? storage.value("container", storage.value("bucket", "")) : got.error().what;
    EXPECT_TRUE(shown.starts_with(c.shown)) << shown << "expected: " << c.shown;
    layers.only_place = true;
    EXPECT_TRUE(accept()) << "the storage is not looked at, " << c.shown;
    layers.only_place = false;
    layers.unmanaged = true;
    if (c.shown.find(no_string) != std::string::npos && c.policy.is_null()) {
      EXPECT_TRUE(accept()) << "no task of ours uses it, " << c.text;
    }
  }
  config_layers layers;
  layers.only_place = true;
  EXPECT_FALSE(accept_config("entrypoint: x\n" + single + "checkpoint_storage: {type: azure, buckt: b}\n",
                             "mine.yaml", "/data/checkpoints", {}, layers))
    << "its own slips are told at once";
}

TEST(AcceptConfig, ATemplateMayHoldWhatIsForOtherTasksAlone) {
  config_layers layers;
  layers.template_config = {{"resources", {{"slots", 2}, {"weight", 3}}}};
  const std::string text = "entrypoint: x\nhyperparameters: {}\n" + single;
  for (const auto& invariant : {value(), value{{"max_restarts", 2}}}) {
    layers.invariant = invariant;
    const auto got = accept_config(text, "mine.yaml", "/data/checkpoints", nullptr, layers);
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_EQ(got->settings["resources"]["weight"], 3);
    EXPECT_FALSE(got->settings["resources"].contains("slots"));
    auto older = got->settings;
    older["resources"]["slots"] = 2; // an earlier build stored the slots under this name
    for (const auto& before : {got->settings, older})
      EXPECT_TRUE(continued_config(before, "max_restarts: 1", "/data/checkpoints", invariant));
    const auto again = accept_config(got->settings, "fork.yaml", "/data/checkpoints", nullptr, layers);
    EXPECT_TRUE(again) << again.error().what;
  }
  EXPECT_FALSE(accepted(single + "resources: {slots: 2}\n"));
}

TEST(AcceptConfig, AContinuationMayRaiseWhatWasSetBelowOneTrial) {
  auto before = accepted(single + "resources: {slots_per_trial: 2}\n")->settings;
  before["resources"]["max_slots"] = 1; // a user set this limit while the experiment ran
  const auto raised = continued_config(before, "resources: {max_slots: 4}", "/c", {});
  ASSERT_TRUE(raised) << raised.error().what;
  EXPECT_EQ((*raised)["resources"]["max_slots"], 4);
  EXPECT_TRUE(continued_config(before, "description: again", "/c", {}));
  EXPECT_FALSE(continued_config(before, "resources: {max_slots: 1}", "/c", {}));
}

TEST(AcceptConfig, AContinuationHasTheVariablesOfAPolicyOnce) {
  config_layers layers;
  layers.invariant = {{"environment", {{"environment_variables", {"PV=1"}}}}};
  const auto before = accept_config("entrypoint: train\n" + single, "a.yaml", "/c", nullptr, layers);
  ASSERT_TRUE(before) << before.error().what;
  const auto again = continued_config(before->settings, "description: again", "/c", layers.invariant);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ((*again)["environment"]["environment_variables"],
            before->settings["environment"]["environment_variables"]);
}

TEST(AcceptConfig, ANameIsNotBlank) {
  for (const auto& fine : {std::string("lr 0.1"), std::string(1000, 'n'), std::string("a\\u202eb")})
    EXPECT_TRUE(accepted(single + "name: \"" + fine + "\"\n")) << fine;
  for (const char* bad : {"", "  ", "\\u200b"}) {
    const auto got = accepted(single + "name: \"" + bad + "\"\n");
    ASSERT_FALSE(got) << bad;
    EXPECT_TRUE(got.error().what.starts_with("name: must not be empty")) << got.error().what;
    const auto text = std::string("name: \"") + bad + "\"";
    EXPECT_FALSE(continued_config(accepted(single)->settings, text, "/c", {})) << bad;
  }
}

TEST(AcceptConfig, AFaultOfATemplateIsShownWithoutItsText) {
  config_layers layers;
  // the template may belong to another user and contain secrets
  layers.template_config = {{"max_restart", 12345}};
  const auto got = accept_config("entrypoint: x\nhyperparameters: {}\n" + single, "mine.yaml",
                                 "/data/checkpoints", nullptr, layers);
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().what.starts_with("template: max_restart: unknown key")) << got.error().what;
  EXPECT_EQ(got.error().what.find("12345"), std::string::npos) << got.error().what;
}

TEST(AcceptConfig, AFaultNamesTheTemplateThatItLiesIn) {
  const value cluster = {{"storage", {{"default", {{"type", "s3"}, {"bucket", "b"}}}}}};
  config_layers layers;
  layers.template_name = "base";
  layers.template_config = {{"checkpoint_storage", {{"secret_key", 12345}}}};
  const auto got =
    accept_config("entrypoint: x\n" + single, "mine.yaml", "/data/checkpoints", cluster, layers);
  ASSERT_FALSE(got);
  EXPECT_TRUE(
    got.error().what.starts_with("template 'base': checkpoint_storage.secret_key: expected a string\n"))
    << got.error().what;
  EXPECT_EQ(got.error().what.find("12345"), std::string::npos) << "it is a secret of another user";
}

TEST(AcceptConfig, AFaultOfATemplateShowsNoValue) {
  for (const value& bad : {value("hush"), value{{"save_trial_best", "hush"}}}) {
    config_layers layers;
    layers.template_config = {{"checkpoint_storage", bad}};
    const auto got =
      accept_config("entrypoint: x\n" + single, "mine.yaml", "/data/checkpoints", nullptr, layers);
    ASSERT_FALSE(got);
    EXPECT_TRUE(got.error().what.starts_with("template: checkpoint_storage")) << got.error().what;
    EXPECT_EQ(got.error().what.find("hush"), std::string::npos) << got.error().what;
  }
}

TEST(AcceptConfig, AFaultNamesTheLayerOfTheKeyThatARuleIsAbout) {
  config_layers layers;
  layers.workspace_checkpoint_storage = {{"type", "shared_fs"}, {"host_path", "/h"}, {"storage_path", "w"}};
  const auto own = accept_config("entrypoint: x\ncheckpoint_storage:\n  storage_path: /etc\n" + single,
                                 "mine.yaml", "/data/checkpoints", nullptr, layers);
  ASSERT_FALSE(own);
  EXPECT_TRUE(own.error().what.starts_with("mine.yaml:3:17: checkpoint_storage: storage_path must"))
    << own.error().what;
  layers.invariant = {{"checkpoint_storage", {{"storage_path", "/etc"}}}};
  const auto policy =
    accept_config("entrypoint: x\n" + single, "mine.yaml", "/data/checkpoints", nullptr, layers);
  ASSERT_FALSE(policy);
  EXPECT_TRUE(policy.error().what.starts_with("config policies: checkpoint_storage: storage_path must"))
    << policy.error().what;
}

TEST(AcceptConfig, AContinuationNamesLinesOfItsOwnText) {
  const auto before = accepted(single + "checkpoint_storage: {type: s3, bucket: b}\n");
  ASSERT_TRUE(before) << before.error().what;
  const auto again =
    continued_config(before->settings, "description: x\ncheckpoint_storage: {bucket: 7}\n", "/c", {});
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().what.starts_with(
    "override config:2:30: checkpoint_storage.bucket: expected a string, got an integer, 7\n"
    "  checkpoint_storage: {bucket: 7}\n"))
    << again.error().what;
}

TEST(AcceptConfig, AWorkspaceSaysThePoolOfWhatNamesNone) {
  const value cluster = {{"pools", {{"cpu", value::object()}, {"gpu", {{"default", true}}}}}};
  config_layers layers;
  layers.compute_pool = "cpu";
  layers.aux_pool = "gone";
  const auto pool = [&](const std::string& more) {
    auto got = accept_config("entrypoint: x\nhyperparameters: {}\n" + single + more, "mine.yaml",
                             "/data/checkpoints", cluster, layers);
    return got ? to_json(got->settings["resources"]["resource_pool"]) : got.error().what;
  };
  EXPECT_EQ(pool(""), "\"cpu\"");
  EXPECT_EQ(pool("resources: {resource_pool: gpu}\n"), "\"gpu\"") << "what it names wins";
  EXPECT_NE(pool("resources: {slots_per_trial: 0}\n"), "\"gone\"") << "a pool that is no more is passed over";
  layers.template_config = {{"resources", {{"resource_pool", "gpu"}}}};
  EXPECT_EQ(pool(""), "\"gpu\"") << "so does a template";
}

} // namespace
} // namespace troupe

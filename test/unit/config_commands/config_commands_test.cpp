// Tests `troupe config ...`: its output, diagnostics and exit codes.

#include "runtime/cli/config_commands/config_commands.hpp"

#include "model/value.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace troupe::cli {
namespace {

struct answer {
  int code = 0;
  std::string out, err;
  value json() const { return parse_json(out).value(); }
};

answer run(const std::vector<std::string>& args, const std::string& in = {}) {
  std::istringstream from(in);
  std::ostringstream out, err;
  int code = config_command(args, from, out, err);
  return {code, out.str(), err.str()};
}

/// A directory that is deleted together with this object.
class directory {
public:
  directory() {
    std::string form = (std::filesystem::temp_directory_path() / "troupe-config-XXXXXX").string();
    path_ = mkdtemp(form.data());
  }
  ~directory() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name, const std::string& text) const {
    auto path = (path_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

private:
  std::filesystem::path path_;
};

constexpr auto good = "entrypoint: x\nsearcher: {name: single, metric: loss}\n";

TEST(ConfigCheck, SaysEveryFaultOfEveryFile) {
  directory dir;
  auto fine = dir.file("good.yaml", good), bad = dir.file("bad.yaml", std::string(good) + "nmae: 3\n");
  auto both = run({"check", fine, bad});
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(both.out, fine + ": ok\n");
  EXPECT_EQ(both.err, bad + ":3:1: nmae: unknown key 'nmae'\n  nmae: 3\n  ^\nhint: did you mean 'name'?\n");
  auto json = run({"check", "-o", "json", fine, bad});
  EXPECT_EQ(json.code, 2);
  EXPECT_EQ(json.json()["ok"], false);
  EXPECT_EQ(json.json()["errors"][0]["file"], bad);
  EXPECT_EQ(json.json()["errors"][0]["line"], 3);
  EXPECT_EQ(run({"check", fine}).code, 0);
  auto warned = dir.file("warned.yaml", std::string(good) + "profiling: {enabled: true}\n");
  EXPECT_EQ(run({"check", warned}).code, 0) << "a warning never fails";
  EXPECT_EQ(run({"check", warned}).err.find(warned + ":3:12: warning: profiling: "), 0u)
    << run({"check", warned}).err;
  EXPECT_EQ(run({"check", "-o", "json", warned}).json()["warnings"][0]["path"], "profiling");
  EXPECT_EQ(run({"check", "-"}, good).out, "<stdin>: ok\n");
  EXPECT_EQ(run({"check", "--level", "sane", "-"}, "name: x").code, 0);
  EXPECT_EQ(run({"check", "-"}, "name: x").code, 2);
}

TEST(ConfigComplete, PrintsTheWholeConfiguration) {
  auto got = run({"complete", "-", "--config", "searcher.metric=accuracy", "--config=max_restarts=1"}, good);
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.json()["searcher"]["metric"], "accuracy");
  EXPECT_EQ(got.json()["max_restarts"], 1);
  EXPECT_EQ(got.json()["resources"]["slots_per_trial"], 1);
  EXPECT_EQ(run({"complete", "-"}, got.out).out, got.out) << "what is complete stays as it is";
  auto sane = run({"complete", "--level", "sane", "-"}, "name: x");
  ASSERT_EQ(sane.code, 0) << sane.err;
  EXPECT_EQ(sane.json()["max_restarts"], 5);
  EXPECT_EQ(sane.json()["searcher"], nullptr);
  auto bad = run({"complete", "-"}, "name: x");
  EXPECT_EQ(bad.code, 2);
  EXPECT_EQ(bad.out, "");
  EXPECT_NE(bad.err.find("<stdin>:1:1: the key 'entrypoint' is missing"), std::string::npos);
}

TEST(ConfigComplete, TakesATemplate) {
  directory dir;
  auto below = dir.file("template.yaml", "max_restarts: 9\nsearcher: {name: single, metric: m}\n");
  auto got = run({"complete", "--template", below, "-"}, "entrypoint: x\n");
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.json()["max_restarts"], 9);
}

TEST(ConfigComplete, LaysAllLayersOverOneAnother) {
  directory dir;
  auto lowest = dir.file("storage.yaml", "type: directory\ncontainer_path: /ckpt\nsave_trial_best: 7\n");
  auto pool = dir.file("pool.yaml", "work_dir: /w\nenvironment_variables: {cpu: [A=pool, B=pool]}\n");
  auto below =
    dir.file("template.yaml", "environment: {environment_variables: [C=template]}\nmax_restarts: 9\n");
  auto got =
    run({"complete", "--template", below, "--task-container-defaults", pool, "--checkpoint-storage", lowest,
         "--config", "max_restarts=3", "-"},
        "entrypoint: x\nsearcher: {name: single, metric: m}\nhyperparameters: {}\n"
        "environment: {environment_variables: [D=file]}\ncheckpoint_storage: {save_trial_best: 2}\n");
  ASSERT_EQ(got.code, 0) << got.err;
  auto all = got.json();
  EXPECT_EQ(all["max_restarts"], 3);
  EXPECT_EQ(all["checkpoint_storage"]["container_path"], "/ckpt");
  EXPECT_EQ(all["checkpoint_storage"]["save_trial_best"], 2);
  EXPECT_EQ(all["environment"]["environment_variables"]["cpu"],
            (value{"A=pool", "B=pool", "C=template", "D=file"}));
  auto bad = run({"complete", "--task-container-defaults", dir.file("bad.yaml", "wrk_dir: 1\n"), "-"},
                 "entrypoint: x\n");
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("bad.yaml:1:1"), std::string::npos) << bad.err;
}

TEST(ConfigSchemaMode, AnswersWithOneObject) {
  auto ok = run({"check", "--schema", "hyperparameter-int", "--level", "sane", "-"},
                R"({"type":"int","minval":1,"maxval":2})");
  EXPECT_EQ(ok.code, 0);
  EXPECT_EQ(ok.json(), (value{{"ok", true},
                              {"errors", value::array()},
                              {"value", {{"type", "int"}, {"minval", 1}, {"maxval", 2}}}}));
  auto bad = run({"check", "--schema", "searcher", "--level", "complete", "-"}, "name: random\nmetrc: x\n");
  EXPECT_EQ(bad.code, 2);
  const auto first = bad.json()["errors"][0];
  EXPECT_EQ(first["path"], "") << "max_trials is missing";
  const auto second = bad.json()["errors"][1];
  EXPECT_EQ(second["path"], "metrc");
  EXPECT_EQ(second["line"], 2);
  EXPECT_EQ(second["column"], 1);
  EXPECT_EQ(bad.json()["errors"].size(), 2u) << "metric is not told to be missing: metrc was meant";
  auto full = run({"complete", "--schema", "bind-mount", "-"}, "{host_path: /a, container_path: b}");
  EXPECT_EQ(
    full.json()["value"],
    (value{{"host_path", "/a"}, {"container_path", "b"}, {"read_only", false}, {"propagation", "rprivate"}}));
  auto lacking = run({"complete", "--schema", "searcher", "--level", "complete", "-"}, "name: random");
  EXPECT_FALSE(lacking.json()["ok"].get<bool>());
  EXPECT_EQ(lacking.json()["errors"].size(), 2u);
  EXPECT_EQ(lacking.json()["value"]["max_concurrent_trials"], 16);
  auto unreadable = run({"check", "--schema", "searcher", "-"}, "{");
  EXPECT_FALSE(unreadable.json()["ok"].get<bool>());
}

TEST(ConfigMerge, PrintsHighOverLow) {
  directory dir;
  auto high = dir.file("high", "name: h\n"), low = dir.file("low", "name: l\nmax_restarts: 2\n");
  auto got = run({"merge", high, low});
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.json()["name"], "h");
  EXPECT_EQ(got.json()["max_restarts"], 2);
  auto one = run({"merge", "--schema", "experiment", high, low});
  EXPECT_EQ(one.json()["value"], got.json());
  EXPECT_EQ(run({"merge", "--schema", "searcher", high, low}).json()["ok"], false);
  EXPECT_EQ(run({"merge", high}).code, 2);
}

TEST(ConfigExplainAndSchema, DescribeTheTable) {
  EXPECT_NE(run({"explain", "searcher.max_trials"}).out.find("at least 1"), std::string::npos);
  EXPECT_NE(run({"explain"}).out.find("searcher"), std::string::npos);
  auto unknown = run({"explain", "sercher"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'searcher'?"), std::string::npos);
  EXPECT_EQ(run({"schema"}).json()["title"], "experiment");
  EXPECT_EQ(run({"schema", "searcher"}).json()["title"], "searcher");
  EXPECT_NE(run({"schema", "-o", "markdown"}).out.find("# Experiment configuration"), std::string::npos);
}

TEST(ConfigCommand, RefusesWhatItDoesNotKnow) {
  const std::vector<std::string> cases[] = {{},
                                            {"chekc", "x"},
                                            {"check"},
                                            {"check", "/no/such/file"},
                                            {"check", "/"},
                                            {"check", "--schema", "nobody", "-"},
                                            {"check", "--level", "half", "-"},
                                            {"check", "--nonsense", "-"},
                                            {"complete", "a", "b"},
                                            {"schema", "nobody"},
                                            {"check", "--level"},
                                            {"check", "-o", "xml", "-"}};
  for (const auto& args : cases) {
    auto got = run(args, good);
    EXPECT_EQ(got.code, 2) << (args.empty() ? "" : args[0]);
    EXPECT_NE(got.err, "") << (args.empty() ? "" : args[0]);
  }
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_EQ(run({"check", "--help"}).code, 0);
}

} // namespace
} // namespace troupe::cli

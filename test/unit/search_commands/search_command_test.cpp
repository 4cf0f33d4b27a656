#include "runtime/cli/search_commands/replay.hpp"
#include "runtime/cli/search_commands/search_command.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace troupe::cli {
namespace {

std::vector<value> replay(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines)
    text += line + "\n";
  std::istringstream in(text);
  std::ostringstream out, err;
  EXPECT_EQ(search_command({"replay", "-"}, in, out, err), 0);
  std::vector<value> answers;
  std::istringstream said(out.str());
  for (std::string line; std::getline(said, line);)
    answers.push_back(parse_json(line).value());
  EXPECT_EQ(answers.size(), lines.size());
  return answers;
}

TEST(SearchReplay, AnswersEachLineAndAnErrorChangesNothing) {
  auto header = R"({"config":{"name":"random","metric":"loss","max_trials":2,"max_concurrent_trials":1},)"
                R"("hyperparameters":{"x":{"type":"double","minval":0,"maxval":1}},"seed":1})";
  auto said = replay(
    {R"({"event":"exited","trial":"1"})", header, R"({"event":"exited","trial":"7"})", "[", "[]", "{}",
     R"({"event":"validation","trial":"1"})", R"({"event":"exited_early","trial":"1","reason":"BORED"})",
     R"({"event":"validation","trial":"1","metrics":{"loss":"NaN"}})", R"({"config":{"name":"random"}})",
     R"({"event":"reload"})", R"({"event":"progress","trial":"1","progress":0.5})",
     R"({"event":"exited","trial":"1"})", R"({"event":"exited_early","trial":"2","reason":"ERRORED"})",
     R"({"event":"exited","trial":"2"})"});
  for (int i : {0, 2, 3, 4, 5, 6, 7, 9})
    EXPECT_TRUE(said[static_cast<std::size_t>(i)].contains("error"))
      << i << " " << to_json(said[static_cast<std::size_t>(i)]);
  EXPECT_EQ(said[1]["actions"][0]["create"], "1");
  EXPECT_EQ(to_json(said[8]), R"({"actions":[],"progress":0.0})");
  EXPECT_GT(said[10]["snapshot_bytes"].get<int>(), 0);
  EXPECT_EQ(said[11]["progress"], 0.25);
  EXPECT_EQ(said[12]["actions"][0]["create"], "2");
  EXPECT_EQ(to_json(said[14]),
            R"({"actions":[{"cancel":false,"failure":false,"shutdown":true}],"progress":1.0})");
}

TEST(SearchReplay, DecidesTheGoldenTranscript) {
  std::ifstream file(TROUPE_SOURCE_DIR "/test/data/searchers/searcher-vectors.json");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto all = parse_json(text).value();
  const auto& golden = all["replay_adaptive_standard_seed7"];
  search_replay session;
  for (const auto& e : golden["events"]) {
    value line = e;
    if (e["event"] == "initial") {
      line = {{"config", golden["config"]}, {"seed", 7}, {"mode", "compat"}};
      line["config"]["name"] = "adaptive_asha";
      line["hyperparameters"] = parse_json(R"({"lr":{"type":"log","base":10,"minval":-5,"maxval":0},
        "dropout":{"type":"double","minval":0,"maxval":0.7},"layers":{"type":"int","minval":1,"maxval":8},
        "opt":{"type":"categorical","vals":["sgd","adam","rmsprop"]},"c":3})")
                                  .value();
    } else if (e["event"] == "validation") {
      line["metrics"] = {{"loss", e["loss"]}, {"batches", e["batches"]}};
    }
    auto said = parse_json(to_json(session.answer(to_json(line)))).value();
    ASSERT_EQ(said["actions"], e["actions"]) << to_json(e);
  }
}

TEST(SearchPreview, ShowsBracketsAndTheTotal) {
  std::istringstream in(
    R"({"searcher":{"name":"adaptive_asha","metric":"loss","time_metric":"batches","max_time":900,
    "divisor":3,"max_rungs":10,"max_trials":10,"max_concurrent_trials":5}})");
  std::ostringstream out, err;
  ASSERT_EQ(search_command({"preview", "-"}, in, out, err), 0) << err.str();
  EXPECT_EQ(out.str(), R"(adaptive_asha: 10 trials, at most 5 at once

      trials  trained for
           5  100 batches
           3  300 batches
           2  900 batches

bracket 1: 7 trials, 3 at once
        100 batches ######################################## 7 to here, 5 end
        300 batches ############                             2 to here, 1 end
        900 batches ######                                   1 to here, 1 end

bracket 2: 3 trials, 2 at once
        300 batches ##################                       3 to here, 2 end
        900 batches ######                                   1 to here, 1 end

total: 3200 batches of training; 9000 without stopping (2.81 times as much)
)");
}

TEST(SearchSimulate, RunsThousandsOfTrialsAndTheSameTwice) {
  auto run = [](const std::vector<std::string>& more) {
    std::istringstream in(
      R"({"searcher":{"name":"adaptive_asha","metric":"loss","time_metric":"epochs","max_time":256,
      "max_trials":2000,"max_concurrent_trials":100},"hyperparameters":{
      "lr":{"type":"log","base":10,"minval":-5,"maxval":0},"wd":{"type":"log","base":10,"minval":-8,"maxval":-1},
      "width":{"type":"double","minval":4,"maxval":11},"dropout":{"type":"double","minval":0,"maxval":0.8}}})");
    std::ostringstream out, err;
    std::vector<std::string> args{"simulate", "-", "--workers", "100", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    EXPECT_EQ(search_command(args, in, out, err), 0) << err.str();
    return parse_json(out.str()).value();
  };
  auto said = run({"--curves", "benign"});
  EXPECT_EQ(said, run({"--curves", "benign"}));
  EXPECT_EQ(said["trials"], 2000);
  EXPECT_LT(said["regret"].get<double>(), 0.02);
  EXPECT_LT(run({"--time", "30"})["trials"].get<int>(), 2000);
}

TEST(SearchCommand, SaysWhatIsWrong) {
  std::istringstream none;
  std::ostringstream out, err;
  for (const auto* verb : {"replay", "preview", "simulate"})
    EXPECT_EQ(search_command({verb, "--help"}, none, out, err), 0) << verb;
  EXPECT_EQ(search_command({"preview", "/nowhere.json"}, none, out, err), 2);
  EXPECT_EQ(search_command({"replay"}, none, out, err), 2);
  EXPECT_EQ(search_command({"simulate", "x.yaml", "--workers", "0"}, none, out, err), 2);
  EXPECT_NE(err.str().find("--workers: an integer"), std::string::npos);
  EXPECT_NE(err.str().find("/nowhere.json: cannot be read"), std::string::npos);
}

} // namespace
} // namespace troupe::cli

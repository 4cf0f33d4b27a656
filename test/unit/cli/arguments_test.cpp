#include "console_for_test.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/cli/words.hpp"

#include <fstream>
#include <gtest/gtest.h>

using namespace troupe;
using namespace troupe::cli;

TEST(Arguments, AreUnderstoodOrRefusedWithTheNearestWord) {
  struct {
    words given;
    int code;
    std::string err;
  } cases[] = {
    {{"exprement", "ls"},
     2,
     "error: unknown command 'exprement'\nhint: did you mean 'experiment'?   troupe experiment\n"},
    {{"experiment", "lst"},
     2,
     "error: unknown command 'experiment lst'\nhint: did you mean 'list'?   troupe experiment list\n"},
    {{"s"}, 2, "error: 's' may mean status, ssh, slot, search, shell\nhint: troupe status\n"},
    {{"xyzzy"}, 2, "error: unknown command 'xyzzy'\nhint: troupe --help\n"},
    {{"experiment", "create"},
     2,
     "error: 'experiment create' needs CONFIG\nhint: troupe experiment create --help\n"},
    {{"experiment", "create", "a", "b", "c"},
     2,
     "error: unexpected argument 'c'\nhint: troupe experiment create --help\n"},
    {{"experiment", "list", "--outptu", "json"},
     2,
     "error: unknown option '--outptu'\nhint: did you mean '--output'?\n"},
    {{"experiment", "list", "-o", "jsn"},
     2,
     "error: --output takes one of table, json, csv, yaml, not 'jsn'\nhint: did you mean 'json'?\n"},
    {{"up", "--slots", "many"},
     2,
     "error: --slots takes a whole number of at least 0, not 'many'\nhint: --slots N\n"},
    {{"up", "--listen", "nowhere"},
     2,
     "error: --listen 'nowhere': expected HOST:PORT, the port from 0 to 65535\nhint: --listen "
     "127.0.0.1:8080\n"},
    {{"up", "--web-host", "http://b"},
     2,
     "error: --web-host: 'http://b' is not the name of a host: it has letters, digits and . _ - @ + alone, "
     "and "
     "neither a scheme nor a port\n"},
    {{"up", "--web-dir", "/nosuch"},
     2,
     "error: --web-dir '/nosuch' has no index.html\nhint: name the folder `dist` of a page that was built\n"},
    {{"agent"}, 2, "error: an agent needs its master's address\nhint: troupe agent --master HOST:PORT\n"},
    {{"tls"}, 2, "error: 'tls' needs a command\nhint: troupe tls --help\n"},
    {{"run"}, 2, "error: 'run' needs CONFIG, or --resume\nhint: troupe run --help\n"},
    {{"run", "x.yaml", "--resume", "3"},
     2,
     "error: --resume uses the configuration that the experiment was created with; leave CONFIG out\n"},
    {{"run", "--resume", "x"},
     2,
     "error: --resume takes an experiment's id, not 'x'\nhint: troupe experiment list\n"},
    {{"e", "ls"}, 6, "error: no cluster is running; start one: troupe up\n"},
    {{"experiment"}, 6, "error: no cluster is running; start one: troupe up\n"},
    {{"agent", "ls"}, 6, "error: no cluster is running; start one: troupe up\n"},
    {{"--master", "h:0", "e", "ls"}, 2, "error: --master 'h:0': the port must be a number from 1 to 65535\n"},
    {{"ev"}, 6, "error: no cluster is running; start one: troupe up\n"},
    {{"workspace", "d"}, 2, "error: 'd' may mean describe, delete\nhint: troupe workspace describe\n"},
    {{"workspace", "sett"},
     2,
     "error: unknown command 'workspace sett'\nhint: did you mean 'set'?   troupe workspace set\n"},
    {{"model", "register", "digits"},
     2,
     "error: 'model register' needs UUID\nhint: troupe model register --help\n"},
    {{"model", "set-version", "digits", "newest"},
     2,
     "error: 'newest' is not the number of a version\nhint: troupe model versions MODEL\n"},
    {{"user", "set", "eve", "--admin", "yes"},
     2,
     "error: --admin takes one of on, off, not 'yes'\nhint: --admin on\n"},
    {{"user", "set", "eve", "--account", "1000:1000"},
     2,
     "error: --account '1000:1000': expected UID:GID:USER:GROUP, all four\nhint: --account "
     "1000:1000:ann:users\n"},
    {{"user", "set", "eve", "--password-file", "/nonexistent"},
     2,
     "error: /nonexistent: cannot be read\nhint: its first line is the password\n"},
    {{"user", "set", "eve", "--activate", "--deactivate"},
     2,
     "error: --activate and --deactivate exclude each other\nhint: give one of them\n"},
    {{"token", "set", "3"}, 2, "error: nothing is set\nhint: --description TEXT\n"},
    {{"webhook", "set", "chat"}, 2, "error: nothing is set\nhint: --url URL\n"},
    {{"group", "set", "vision"}, 2, "error: nothing is set\nhint: --name NAME, --add USER, --remove USER\n"},
    {{"template", "set", "small"},
     2,
     "error: nothing is set\nhint: --name NAME, --config-file FILE, --workspace WORKSPACE\n"},
    {{"project", "set", "7", "--note", "plan"},
     2,
     "error: --note takes NAME=TEXT, not 'plan'\nhint: --note 'plan=more layers'\n"},
    {{"model", "delete", "digits"},
     2,
     "error: deletes a model with its versions; the checkpoints stay\nhint: give --yes\n"},
    {{"experiment", "move", "7"},
     2,
     "error: it is not said where they go\nhint: --project WORKSPACE/NAME, or its number; troupe project "
     "list\n"},
    {{"experiment", "set", "7", "--save-trial-best", "few"},
     2,
     "error: --save-trial-best takes a whole number of at least 0, not 'few'\nhint: --save-trial-best N\n"},
    {{"policy", "set", "p.yaml", "--kind", "JOB"},
     2,
     "error: --kind takes one of EXPERIMENT, NTSC, not 'JOB'\nhint: --kind EXPERIMENT\n"},
    {{"events", "--since", "yesterday"},
     2,
     "error: --since 'yesterday': expected how long ago, as 90s, 30m, 2h or 3d, or a time\nhint: --since 2h, "
     "--since 2026-11-25T08:00:00Z\n"},
    {{"completion", "zsh"},
     2,
     "error: there are completions for bash only, not for 'zsh'\nhint: source <(troupe completion bash)\n"},
    {{"config", "check"}, 1, "error: this program was built without 'config'\n"},
    {{"version"}, 0, ""},
    {{"--version"}, 0, ""},
    {{"help", "exit-codes"}, 0, ""},
    {{}, 0, ""},
    {{"experiment", "create", "--help"}, 0, ""},
    {{"experiment", "--help"}, 0, ""},
    {{"model", "--help"}, 0, ""},
    {{"workspace", "set", "--help"}, 0, ""},
    {{"events", "--help"}, 0, ""},
    {{"--help"}, 0, ""},
  };
  for (const auto& c : cases) {
    auto got = call(c.given);
    std::string line;
    for (const auto& w : c.given)
      line += w + " ";
    EXPECT_EQ(got.code, c.code) << line << got.err;
    EXPECT_EQ(got.err, c.err) << line;
    EXPECT_EQ(got.code == 0, !got.out.empty()) << line;
  }
}

TEST(Arguments, OfTheNodeReachItsHooks) {
  up_options up;
  agent_options agent;
  run_options run;
  words config_words;
  hooks node;
  node.up = [&](const up_options& o) { return up = o, 7; };
  node.agent = [&](const agent_options& o) { return agent = o, 0; };
  node.run = [&](const run_options& o) { return run = o, 0; };
  node.config = [&](const words& w, auto&, auto&, auto&) { return config_words = w, 3; };
  EXPECT_EQ(call({"up", "--data-dir", "/d", "--listen", "127.0.0.1:0", "--slots=4", "-d"}, node).code, 7);
  EXPECT_EQ(up.data_dir, "/d");
  EXPECT_EQ(up.listen, "127.0.0.1:0");
  EXPECT_EQ(up.slots, 4);
  EXPECT_TRUE(up.daemon);
  call({"up"}, node, {{"TROUPE_DATA_DIR", "/e"}, {"TROUPE_LISTEN", "0.0.0.0:9"}});
  EXPECT_EQ(up.data_dir, "/e");
  EXPECT_EQ(up.listen, "0.0.0.0:9");
  EXPECT_EQ(up.slots, std::nullopt);
  EXPECT_FALSE(up.plain_http);
  call({"up", "--plain-http"}, node);
  EXPECT_TRUE(up.plain_http);
  call({"up"}, node, {{"HOME", "/h"}});
  EXPECT_EQ(up.data_dir, "/h/.local/share/troupe");
  call({"agent", "--master", "http://head:8080", "--name", "a1"}, node);
  EXPECT_EQ(agent.master, "head:8080");
  EXPECT_EQ(agent.name, "a1");
  call({"run", "/dev/null", "dir", "--config", "a=1", "--config", "b=2", "--new"}, node);
  EXPECT_EQ(run.config, "/dev/null");
  EXPECT_EQ(run.context, "dir");
  EXPECT_EQ(run.set, (words{"a=1", "b=2"}));
  EXPECT_TRUE(run.fresh);
  EXPECT_FALSE(run.resume);
  call({"run", "--slots", "2", "--config", "c=3", "/dev/null", "dir"}, node);
  EXPECT_EQ(run.config, "/dev/null") << "an option takes one word only";
  EXPECT_EQ(run.context, "dir");
  EXPECT_EQ(run.set, words{"c=3"});
  EXPECT_EQ(run.slots, 2);
  call({"run", "--resume"}, node);
  EXPECT_TRUE(run.resume);
  EXPECT_EQ(run.resume_id, 0);
  call({"run", "--resume", "12"}, node);
  EXPECT_EQ(run.resume_id, 12);
  EXPECT_EQ(call({"config", "check", "--strict", "x.yaml"}, node).code, 3);
  EXPECT_EQ(config_words, (words{"check", "--strict", "x.yaml"}));
}

TEST(Arguments, EveryVerbHasHelpWithAnExampleAndNoTwoOptionsAlike) {
  for (const auto& verb : all_verbs()) {
    if (!verb.act)
      continue;
    EXPECT_FALSE(verb.examples.empty()) << verb.path;
    EXPECT_NE(help_text(verb).find("Usage: troupe " + std::string(verb.path)), std::string::npos);
    std::string seen = ",";
    for (const auto& o : options_of(verb)) {
      std::string names = std::string(o.names) + ",";
      for (std::size_t at = 0; at < names.size();) {
        auto end = names.find(',', at);
        auto name = "," + names.substr(at, end - at) + ",";
        EXPECT_EQ(seen.find(name), std::string::npos) << verb.path << " " << name;
        seen += name.substr(1);
        at = end + 1;
      }
    }
    auto ok = parse_arguments(verb, {"--help"});
    EXPECT_TRUE(ok && ok->has("--help")) << verb.path;
  }
}

TEST(Arguments, WhatMakesOrChangesAThingCanShowIt) {
  for (const auto& verb : all_verbs()) {
    const auto space = verb.path.find(' ');
    const auto noun = verb.path.substr(0, space);
    const auto word = space == verb.path.npos ? std::string_view() : verb.path.substr(space + 1);
    for (const char* of :
         {"workspace", "project", "model", "template", "user", "token", "group", "role", "policy", "webhook"})
      EXPECT_TRUE(noun != of || verb.reads) << verb.path;
    for (const char* does : {"archive", "unarchive", "delete", "move", "continue", "label", "set"})
      EXPECT_TRUE(noun != "experiment" || word != does || verb.reads) << verb.path;
  }
}

TEST(Arguments, TheManualIsCurrent) {
  std::ifstream in(TROUPE_SOURCE_DIR "/docs/cli.md");
  std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(text == manual_markdown()) << "make it again: troupe help markdown > docs/cli.md";
}

TEST(Words, AreMeasuredAndShortened) {
  EXPECT_EQ(distance("list", "list"), 0);
  EXPECT_EQ(distance("exprement", "experiment"), 2);
  EXPECT_EQ(distance("tiral", "trial"), 1); // two neighbouring letters are swapped
  EXPECT_EQ(distance("", "abc"), 3);
  EXPECT_EQ(nearest("lsit", {"list", "wait"}), "list");
  EXPECT_EQ(nearest("xyzzy", {"list", "wait"}), std::nullopt);
  EXPECT_EQ(nearest(std::string(1 << 20, 'a'), {"list"}), std::nullopt);
  EXPECT_EQ(expand("e", {"experiment", "exit"}), (words{"experiment", "exit"}));
  EXPECT_EQ(expand("exit", {"exit-codes", "exit"}), words{"exit"});
  EXPECT_EQ(expand("e", {"experiment", "explain", "events"}), words{"experiment"});
}

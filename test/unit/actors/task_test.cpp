#include "actors/task/task.hpp"

#include "actors/cluster/accepted_task.hpp"
#include "actors/task/task_settings.hpp"
#include "test/unit/actors/show.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
const run_id r1{1}, r2{2};
const task_id a_command = task_id::of(task_kind::command, 1, 2),
              a_notebook = task_id::of(task_kind::notebook, 3, 4),
              generic = task_id::of(task_kind::generic, 5, 6),
              collects = task_id::of(task_kind::checkpoint_gc, 7, 8);

std::string show(const task_created&) { return "created"; }
std::string show(const task_ready& x) {
  return "ready(" + text(x.run) + (x.runs_as.empty() ? "" : " " + x.runs_as[0].user) + ")";
}
std::string show(const task_active&) { return "active"; }
std::string show(const task_paused& x) { return x.paused ? "paused" : "unpaused"; }
std::string show(const task_stop_ordered& x) { return "stopping(" + x.why + said_by(x.by) + ")"; }
std::string show(const task_prioritized& x) { return "priority(" + text(x.priority) + ")"; }
std::string show(const task_ended& x) {
  return "done(" + text(name(x.state)) + " " + text(x.exit_code) + (x.why.empty() ? "" : ": " + x.why) + ")";
}
std::string show(const start_task_run& x) { return "start(" + text(x.run) + ")"; }
std::string show(const stop_task_run& x) {
  return "stop(" + text(x.run) + " " + x.reason + text(x.kill, "kill") + ")";
}
std::string show(const tell_task_job& x) { return "tell(" + text(x.job.priority) + ")"; }
std::string show(const say_task_ready&) { return "say_ready"; }
std::string show(const report_task_end&) { return "report"; }

std::string shown(const task_step& s) {
  std::string out;
  const auto add = [&](const auto& one) { out += (out.empty() || out.back() == ' ' ? "" : " ") + show(one); };
  for (const auto& fact : s.facts)
    std::visit(add, fact);
  out += " |";
  for (const auto& action : s.actions)
    std::visit([&](const auto& one) { out += " " + show(one); }, action);
  return out;
}

struct row {
  task_event event;
  std::chrono::seconds at;
  std::string step;
};

/// Creates a task and plays `rows`. After each step a twin that replays the encoded facts has the same bytes.
task play(const task_spec& spec, const std::vector<row>& rows) {
  task t(spec), twin(spec);
  task_created made;
  made.at = t0;
  made.id = spec.id;
  for (const auto& fact : task::birth(made)) {
    t.replay(fact);
    twin.replay(*decode_as<task_fact>(encode_as(fact)));
  }
  EXPECT_EQ(shown({{}, t.resume(t0)}), " | start(1)");
  for (const auto& r : rows) {
    auto s = t.apply(r.event, t0 + r.at);
    EXPECT_EQ(shown(s), r.step) << "at " << r.at.count() << " s";
    for (const auto& fact : s.facts)
      twin.replay(*decode_as<task_fact>(encode_as(fact)));
    EXPECT_EQ(twin.snapshot(), t.snapshot()) << "at " << r.at.count() << " s";
  }
  return t;
}

allocation_ended over(run_id run, end why, int code = 0, const std::string& detail = {},
                      bool finished = false) {
  return {run, why, detail, finished, code};
}

TEST(Task, IsTriedAsOftenAsItsSettingsSay) {
  const run_id r3{3};
  play(
    {.id = collects, .tries = 3},
    {{over(r1, end::failed, 1, "exit code 1"), 1s, "ended(1 failed) started(2@0) | start(2)"},
     {over(r2, end::lost, -1, "agent a1: silent"), 2s, "ended(2 lost) started(3@0) | start(3)"},
     {over(r3, end::failed, 1, "exit code 1"), 3s, "ended(3 failed) done(ERROR 1: exit code 1) | report"}});
  play({.id = collects, .tries = 2},
       {{over(r1, end::stopped), 1s, "ended(1 stopped) started(2@0) | start(2)"},
        {over(r2, end::completed), 2s, "ended(2 completed) done(COMPLETED 0) | report"}});
  play({.id = collects, .tries = 2},
       {{task_kill_wanted{"killed by eve"}, 1s, "stopping(killed by eve) | stop(1 killed by eve kill)"},
        {over(r1, end::failed, 137), 2s, "ended(1 failed) done(CANCELED 137: killed by eve) | report"}});
}

TEST(Task, EndsWithItsProgramAndIsNotBegunAgain) {
  play({.id = a_command}, {{over(r1, end::completed), 1s, "ended(1 completed) done(COMPLETED 0) | report"},
                           {over(r1, end::failed), 2s, " |"}, // the message is late
                           {task_kill_wanted{"killed by eve"}, 3s, " | report"}});
  play({.id = a_command}, {{over(r1, end::failed, 3, "exit code 3"), 1s,
                            "ended(1 failed) done(ERROR 3: exit code 3) | report"}});
  play({.id = a_command}, {{over(r1, end::lost, -1, "agent a1: silent"), 1s,
                            "ended(1 lost) done(ERROR -1: the cluster lost it: agent a1: silent) | report"}});
  // The task ran on an agent that was disabled.
  play({.id = a_command}, {{over(r1, end::stopped), 1s,
                            "ended(1 stopped) done(ERROR -1: its agent had to end it) | say(end/1) report"}});
  play({.id = a_command},
       {{over(r1, end::stopped, -1, "agent a1 was disabled by eve"), 1s,
         "ended(1 stopped) done(ERROR -1: agent a1 was disabled by eve) | say(end/1) report"}});
}

TEST(Task, BeginsAnewWhereNoPartOfItsGangHadBegun) {
  auto lost = over(r1, end::lost, -1, "the start order to agent a1 was lost");
  lost.unbegun = true;
  play({.id = a_command}, {{lost, 1s, "ended(1 lost) started(2@0) | start(2)"},
                           {over(r2, end::completed), 2s, "ended(2 completed) done(COMPLETED 0) | report"}});
  const task_spec spec{.id = generic, .preemptible = true};
  play(spec, {{task_pause_wanted{"eve"}, 1s, "paused | stop(1 pause)"},
              {lost, 2s, "ended(1 lost) |"},
              {task_unpause_wanted{"eve"}, 3s, "unpaused started(2@0) | start(2)"}});
  play(spec, {{task_kill_wanted{"killed by eve", "eve"}, 1s,
               "stopping(killed by eve by eve) | stop(1 killed by eve kill)"},
              {lost, 2s, "ended(1 lost) done(CANCELED -1: killed by eve) | report"}});
}

TEST(Task, IsKilledOnce) {
  play({.id = a_command},
       {{task_kill_wanted{"killed by eve"}, 1s, "stopping(killed by eve) | stop(1 killed by eve kill)"},
        {task_kill_wanted{"killed by bob"}, 2s, " |"},
        {over(r1, end::stopped, 137), 3s, "ended(1 stopped) done(CANCELED 137: killed by eve) | report"}});
}

TEST(Task, OfAGenericKindIsPausedAndGoesOnAsANewRun) {
  const task_spec spec{.id = generic, .preemptible = true};
  auto t = play(spec, {{task_pause_wanted{"eve"}, 1s, "paused | stop(1 pause)"},
                       {task_pause_wanted{"eve"}, 2s, " |"},
                       {over(r1, end::completed), 3s, "ended(1 stopped) |"},
                       {task_unpause_wanted{"eve"}, 4s, "unpaused started(2@0) | start(2)"},
                       {over(r2, end::completed), 5s, "ended(2 completed) done(COMPLETED 0) | report"}});
  EXPECT_TRUE(t.refuses(task_pause_wanted{"eve"}));
  EXPECT_TRUE(t.refuses(task_unpause_wanted{"eve"}));
  // The task is unpaused while its run is still stopping: the next run begins when that one has ended.
  play(spec, {{task_pause_wanted{"eve"}, 1s, "paused | stop(1 pause)"},
              {task_unpause_wanted{"eve"}, 2s, "unpaused |"},
              {over(r1, end::stopped), 3s, "ended(1 stopped) started(2@0) | start(2)"}});
  // A task that had done all its work before it heard of the pause has ended.
  play(spec, {{task_pause_wanted{"eve"}, 1s, "paused | stop(1 pause)"},
              {over(r1, end::completed, 0, "", true), 3s, "ended(1 completed) done(COMPLETED 0) | report"}});
  // The task is killed while it is paused, and none of its processes runs.
  play(spec, {{task_pause_wanted{"eve"}, 1s, "paused | stop(1 pause)"},
              {over(r1, end::stopped), 2s, "ended(1 stopped) |"},
              {task_kill_wanted{"killed by eve"}, 3s,
               "stopping(killed by eve) done(CANCELED -1: killed by eve) | report"}});
  // The pool took the slots from the task, so the task waits for others.
  play(spec, {{over(r1, end::stopped), 3s, "ended(1 stopped) started(2@0) | start(2)"}});
  EXPECT_TRUE(task({.id = a_command}).refuses(task_pause_wanted{"eve"}));
}

TEST(Task, EndsWhenNobodyUsesItForLongEnough) {
  const task_spec spec{.id = a_notebook, .idle_limit = 300s};
  auto t =
    play(spec, {{time_passed{}, 4000s, " |"}, // the service of the task has never answered
                {task_service_answers{r1, {{1000, 1000, "ann", "users"}}}, 4000s, "ready(1 ann) | say_ready"},
                {task_service_answers{r1}, 4001s, " |"},
                {time_passed{}, 4299s, " |"},
                {task_used{}, 4030s, " |"}, // use is noted at most once a minute
                {time_passed{}, 4310s, " |"},
                {task_used{}, 4320s, "active |"},
                {time_passed{}, 4619s, " |"},
                {time_passed{}, 4620s,
                 "stopping(idle for more than 5m0s: service is inactive) | stop(1 idle for more than 5m0s: "
                 "service is inactive kill)"}});
  EXPECT_FALSE(t.deadline());
}

TEST(Task, TakesNoAccountThatCouldStandInNoList) {
  const task t({.id = a_notebook});
  EXPECT_FALSE(t.refuses(task_service_answers{r1, {{65534, 65534, "nobody", "nogroup"}}}));
  EXPECT_TRUE(t.refuses(task_service_answers{r1, {{65534, 65534, "-oProxyCommand=x", "nogroup"}}}));
  EXPECT_TRUE(t.refuses(task_service_answers{r1, {{-1, 65534, "nobody", "nogroup"}}}));
}

TEST(Task, OfARestartedMasterKeepsItsIdleTimeAndIsGivenTimeToSpeak) {
  const task_spec spec{.id = a_notebook, .idle_limit = 3600s};
  task t(spec);
  task_created made;
  made.at = t0;
  for (const auto& fact : task::birth(made))
    t.replay(fact);
  t.replay(task_ready{t0, r1});
  t.replay(task_active{t0 + 600s});
  static_cast<void>(t.resume(t0 + 1000s));
  EXPECT_EQ(t.deadline(), t0 + 4260s) << "it may have been used until a minute after the last fact of it";
  static_cast<void>(t.resume(t0 + 9000s)); // The master was away, so nobody could report a use.
  EXPECT_EQ(t.deadline(), t0 + 9120s);
}

TEST(Task, OfAShortIdleTimeEndsAsSoonAsItSays) {
  task t({.id = a_notebook, .idle_limit = 5s});
  task_created made;
  made.at = t0;
  for (const auto& fact : task::birth(made))
    t.replay(fact);
  static_cast<void>(t.resume(t0)); // the actor of the task begins
  EXPECT_FALSE(t.deadline());
  static_cast<void>(t.apply(task_service_answers{r1}, t0 + 2s));
  EXPECT_EQ(t.deadline(), t0 + 7s);
}

TEST(Task, TellsItsPoolAnotherPriority) {
  play({.id = a_command}, {{task_priority_wanted{"eve", 7}, 1s, "priority(7) | tell(7)"},
                           {task_priority_wanted{"eve", 7}, 2s, " |"}});
}

TEST(Task, AvoidsTheAgentsThatItsLogPoliciesExclude) {
  const log_matched broken_host{r1, "a1", "ecc", "ECC", "an ECC fault", true, false},
    named{r1, "a1", "greeting", "hello", "hello", false, false};
  auto t = play({.id = generic, .preemptible = true},
                {{named, 1s, "matched(greeting) |"},
                 {named, 1s, " |"}, // the same match is noted once
                 {broken_host, 2s, "matched(ecc not on a1) | say(log_policy/2)"},
                 {broken_host, 3s, " |"},
                 {over(r1, end::stopped), 4s, "ended(1 stopped) started(2@0) | start(2)"}});
  EXPECT_EQ(std::get<start_task_run>(t.resume(t0).front()).not_agents, std::vector<std::string>{"a1"});
  // A command is started only once, so it has no retry to lose.
  play({.id = a_command},
       {{log_matched{r1, "a1", "oom", "memory", "no memory", false, true}, 1s, "matched(oom no retry) |"},
        {over(r1, end::failed, 3, "exit code 3"), 2s, "ended(1 failed) done(ERROR 3: exit code 3) | report"},
        {named, 3s, " |"}}); // the task has ended
}

TEST(Task, SaysWhyItAvoidsAnAgentInDeterminedsWords) {
  matched_policies policies;
  const auto fact = policies.news({r1, "a1", "ecc", "E.C", "an ECC fault", true, false}, t0);
  ASSERT_TRUE(fact);
  policies.replay(*fact);
  EXPECT_EQ(policies.exclusion(*fact)->text,
            "(log '\"an ECC fault\"' matched regex E.C) therefore will not schedule on a1");
  EXPECT_FALSE(policies.news({r2, "a1", "ecc", "E.C", "another", true, false}, t0)) << "once on each agent";
  EXPECT_TRUE(policies.news({r2, "a2", "ecc", "E.C", "another", true, false}, t0));
  policies.forget_matches();
  EXPECT_TRUE(policies.not_agents().empty()) << "a continuation is another task";
  EXPECT_TRUE(policies.news({r2, "a1", "ecc", "E.C", "another", true, false}, t0));
}

// ---- configurations

value config_of(task_id id, const value& text, const task_surface& below = {}) {
  auto got = accept_task(id, text, "t.yaml", below);
  EXPECT_TRUE(got) << got.error().what;
  return got ? got->config : value();
}
std::string fault_of(task_id id, const value& text, const task_surface& below = {}) {
  auto got = accept_task(id, text, "t.yaml", below);
  return got ? "accepted" : got.error().what;
}

TEST(AcceptedTask, HasTheScriptOfItsKindAndTheUsersWords) {
  const auto config = config_of(a_command, "entrypoint: [echo, hi]\nresources: {slots: 0}\n");
  EXPECT_EQ(config["entrypoint"], value::array({"/run/determined/command-entrypoint.sh", "echo", "hi"}));
  EXPECT_EQ(config["resources"]["slots"], 0);
  EXPECT_TRUE(config["description"].get<std::string>().starts_with("Command ("));
  task_created made;
  made.id = a_command;
  made.config = config;
  auto settings = task_settings_of(made, "");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->launch.entrypoint, (std::vector<std::string>{"echo", "hi"}));
  EXPECT_EQ(settings->spec.slots, 0);
  EXPECT_FALSE(settings->spec.preemptible);
  made.config["entrypoint"] = value::array({"/run/determined/command-entrypoint.sh", "echo $HOME"});
  EXPECT_EQ(task_settings_of(made, "")->launch.entrypoint,
            (std::vector<std::string>{"/bin/sh", "-c", "echo $HOME"}));
}

TEST(AcceptedTask, LiesOverItsTemplateWhoseResourcesDoNotCount) {
  task_surface below;
  below.template_config = {{"resources", {{"slots", 4}}},
                           {"environment", {{"environment_variables", value::array({"A=1"})}}}};
  const auto config = config_of(a_notebook, {{"resources", {{"priority", 7}}}}, below);
  EXPECT_EQ(config["resources"]["slots"], 1);
  EXPECT_EQ(config["resources"]["priority"], 7);
  EXPECT_NE(to_json(config["environment"]).find("A=1"), std::string::npos);
  EXPECT_EQ(config_of(a_notebook, value(), below)["resources"]["slots"], 1);
  EXPECT_EQ(config_of(generic, "entrypoint: [a]\n", below)["resources"]["slots"], 4);
}

TEST(AcceptedTask, HasTheDefaultsOfAllTasksOfItsPool) {
  task_surface below;
  below.cluster = {
    {"cluster",
     {{"task_container_defaults",
       {{"environment_variables", {"A=cluster"}},
        {"shm_size_bytes", 4096},
        {"preemption_timeout", 60},
        {"log_policies",
         value::array({{{"name", "oom"}, {"pattern", "x"}, {"action", "cancel_retries"}}})}}}}},
    {"pools",
     {{"a",
       {{"default", true},
        {"task_container_defaults", {{"environment_variables", {"B=pool"}}}},
        {"defaults", {{"environment", {{"environment_variables", {"D=defaults"}}}}}}}}}}};
  const auto shell =
    config_of(task_id::of(task_kind::shell, 3, 4), "environment: {environment_variables: [U=user]}\n", below);
  EXPECT_EQ(shell["environment"]["environment_variables"]["cpu"],
            value::array({"A=cluster", "B=pool", "D=defaults", "U=user"}));
  EXPECT_EQ(shell["resources"]["shm_size"], 4096);
  EXPECT_NE(to_json(shell["log_policies"]).find("\"oom\""), std::string::npos)
    << to_json(shell["log_policies"]);
  EXPECT_EQ(config_of(generic, "entrypoint: [a]\n", below)["preemption_timeout"], 60);
}

TEST(AcceptedTask, HasTheLogPoliciesOfItsPoolBelowItsOwn) {
  task_surface below;
  const value low = value::array({{{"name", "low"}, {"pattern", "a"}}});
  below.cluster = {{"defaults", {{"log_policies", low}}}};
  for (const auto id : {a_command, a_notebook, generic}) {
    const auto all = config_of(
      id, "entrypoint: [a]\nlog_policies: [{name: high, pattern: b, action: {type: exclude_node}}]\n",
      below)["log_policies"];
    std::map<std::string, value> by_name;
    for (const auto& one : all)
      by_name[one.value("name", "")] = one;
    EXPECT_EQ(by_name["low"]["pattern"], "a");
    EXPECT_EQ(by_name["high"]["action"], "exclude_node");
    EXPECT_TRUE(by_name.contains("CUDA OOM")) << "as of experiments";
  }
}

TEST(AcceptedTask, RefusesWithThePlaceOfTheKey) {
  const task_id board = task_id::of(task_kind::tensorboard, 7, 8);
  struct {
    task_id id;
    value text;
    std::string says;
  } cases[] = {
    {a_command, "entrypoint: [a]\nwrong: 1\n", "wrong"},
    {a_command, "{}", "entrypoint"},
    {a_command, "entrypoint: []\n", "entrypoint"},
    {a_command, "entrypoint: [' ']\n", "entrypoint"},
    {a_command, "entrypoint: ['', a]\n", "entrypoint"},
    {generic, "entrypoint: ' '\n", "entrypoint"},
    {a_command, "entrypoint: [a]\nresources: {slots: -1}\n", "slots"},
    {a_notebook, "notebook_idle_type: sometimes\n", "notebook_idle_type"},
    {a_notebook, "idle_timeout: soon\n", "idle_timeout"},
    {a_notebook, "resources: {is_single_node: true}\n", "cannot be set for NTSCs"},
    {a_command, "entrypoint: [a]\nenvironment: {proxy_ports: [{proxy_port: 70000}]}\n", "proxy_port"},
    {a_command, "entrypoint: [a]\nenvironment: {proxy_ports: [{proxy_port: 80}, {proxy_port: 80}]}\n",
     "proxy_port"},
    {a_command, "entrypoint: [a]\nlog_policies: [{name: x, pattern: '('}]\n", "log_policies["},
    {generic, "entrypoint: [a]\nlog_policies: [{name: x, pattern: '(a)\\1'}]\n", "log_policies["},
    {a_command, "entrypoint: [a]\nlog_policies: [{pattern: a, action: explode}]\n", "log_policies"},
    {generic, "wrong: 1\n", "wrong"},
  };
  for (const auto& one : cases) {
    const auto why = fault_of(one.id, one.text);
    EXPECT_NE(why.find(one.says), std::string::npos) << to_json(one.text) << ": " << why;
    EXPECT_NE(why, "accepted");
  }
  EXPECT_EQ(config_of(board, "resources: {slots: 5}\n")["resources"]["slots"], 0);
  EXPECT_EQ(config_of(board, value())["idle_timeout"], "5m");
  EXPECT_TRUE(config_of(a_notebook, value())["idle_timeout"].is_null());
}

TEST(AcceptedTask, OfAForkHasTheOthersKeysUnlessTheyAreGiven) {
  task_created from;
  from.id = generic;
  from.source = "entrypoint: [a]\nresources: {slots: 2}\n";
  auto forked = forked_config(from, "entrypoint: [b]\n");
  ASSERT_TRUE(forked);
  EXPECT_EQ((*forked)["entrypoint"], value::array({"b"}));
  EXPECT_EQ((*forked)["resources"]["slots"], 2);
  EXPECT_FALSE(forked_config(from, "nothing_known: 1\n"));
}

} // namespace
} // namespace troupe

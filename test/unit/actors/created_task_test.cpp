// Tests what the cluster makes of a request for a task that is not a trial.

#include "actors/cluster/created_task.hpp"
#include "actors/task/task_settings.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};
const task_id known_id = task_id::of(task_kind::generic, 7, 8);

class CreatedTask : public ::testing::Test {
protected:
  CreatedTask() {
    lab.id = {1};
    small.name = "small";
    small.config = {{"environment", {{"environment_variables", value::array({"A=1"})}}}};
    before.id = known_id;
    before.context = "blob of the other";
    before.source = "entrypoint: [other]\nresources: {slots: 0}\n";
    world.now = t0;
    world.fresh_id = [](task_kind kind) { return task_id::of(kind, 1, 2); };
    world.workspace = [this](workspace_id id) { return id == lab.id ? &lab : nullptr; };
    world.template_named = [this](const std::string& name) { return name == "small" ? &small : nullptr; };
    world.task = [this](const std::string& id) {
      return id == to_string(known_id) ? result<task_created>(before)
                                       : result<task_created>(error{errc::not_found, "task not found"});
    };
    world.invariant = world.constraints = [](workspace_id) { return value(); };
    world.pools = [this](workspace_id) { return config::all_pools(world.cluster); };
    world.account = [](const task_created&) { return std::optional<task_account>(); };
  }
  static commands::task_create wish(const std::string& kind, value config = "entrypoint: [a]\n") {
    commands::task_create x;
    x.kind = kind;
    x.config = std::move(config);
    return x;
  }
  std::string fault(const commands::task_create& x) const {
    auto got = to_create(x, "ada", world);
    return got ? "created" : got.error().what;
  }

  workspace_changed lab;
  template_changed small;
  task_created before;
  task_world world;
};

TEST_F(CreatedTask, IsItsFirstFactAndAnAnswer) {
  auto x = wish("command", "entrypoint: [echo]\nresources: {slots: 3}\n");
  x.context_blob = "blob";
  x.no_pause = false;
  x.workspace = {};
  const auto got = to_create(x, "ada", world);
  ASSERT_TRUE(got) << got.error().what;
  const auto& made = got->made;
  EXPECT_EQ(made.at, t0);
  EXPECT_EQ(made.id, task_id::of(task_kind::command, 1, 2));
  EXPECT_EQ(made.owner, "ada");
  EXPECT_EQ(made.workspace, workspace_id{1}) << "where none is named";
  EXPECT_EQ(made.context, "blob");
  EXPECT_EQ(made.no_pause, 0);
  EXPECT_EQ(made.config["resources"]["slots"], 3);
  EXPECT_FALSE(made.parent);
  EXPECT_EQ(got->answer["id"], to_string(made.id));
  EXPECT_EQ(got->answer["config"], made.config);
  EXPECT_EQ(got->answer["pool"], made.pool);
  EXPECT_EQ(got->answer["warnings"], value::array());
}

TEST_F(CreatedTask, IsRefusedWhereNoAgentCouldHoldIt) {
  const auto refused = [&](const char* kind, const char* config, int largest) {
    const auto got = to_create(wish(kind, config), "ada", world);
    EXPECT_TRUE(got);
    pool_capacity pool;
    pool.largest = largest;
    const auto no = got ? unfulfillable(got->made, pool) : std::nullopt;
    return no && no->what.find("request unfulfillable") != std::string::npos;
  };
  const char* const three = "entrypoint: [a]\nresources: {slots: 3}\n";
  EXPECT_TRUE(refused("command", three, 2));
  EXPECT_TRUE(refused("generic", three, 2));
  EXPECT_FALSE(refused("command", three, 3));
  EXPECT_FALSE(refused("command", three, -1)) << "the agents are not known";
  EXPECT_FALSE(refused("command", "entrypoint: [a]\nresources: {slots: 0}\n", 0));
  EXPECT_FALSE(refused("generic", "entrypoint: [a]\nresources: {slots: 3, is_single_node: false}\n", 2));
}

TEST_F(CreatedTask, IsWarnedWhereItsPoolCannotHoldIt) {
  const auto warned = [&](const char* config, const pool_capacity& pool) {
    const auto got = to_create(wish("command", config), "ada", world);
    EXPECT_TRUE(got);
    return got ? launch_warnings(got->made, pool) : value();
  };
  const auto exceeds = value::array({"LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"});
  pool_capacity pool;
  pool.agents = {{2, 2}};
  EXPECT_EQ(warned("entrypoint: [echo]\nresources: {slots: 2}\n", pool), value::array());
  EXPECT_EQ(warned("entrypoint: [echo]\nresources: {slots: 3}\n", pool), exceeds) << "it is on one agent";
  EXPECT_EQ(warned("entrypoint: [echo]\nresources: {slots: 0}\n", {}), value::array());
  pool = {};
  pool.instance_slots = 2;
  pool.max_instances = 2;
  EXPECT_EQ(warned("entrypoint: [echo]\nresources: {slots: 4}\n", pool), exceeds)
    << "the code that Determined's client knows";
}

TEST_F(CreatedTask, RefusesWhatIsNotThere) {
  struct {
    const char* what;
    std::function<void(commands::task_create&)> change;
    std::string says;
  } cases[] = {
    {"a kind", [](auto& x) { x.kind = "trial"; }, "'trial' is not a kind of task"},
    {"a workspace", [](auto& x) { x.workspace = {9}; }, "workspace '9' not found"},
    {"a template", [](auto& x) { x.template_name = "none"; }, "template 'none' not found"},
    {"a parent", [](auto& x) { x.parent = "none"; }, "task not found"},
    {"a fork", [](auto& x) { x.forked_from = "none"; }, "task not found"},
    {"files of a parent that is not named", [](auto& x) { x.inherit_context = true; },
     "inheritContext needs parentId"},
    {"a configuration", [](auto& x) { x.config = ""; }, "No config file nor forked task provided"},
  };
  for (const auto& one : cases) {
    auto x = wish("generic");
    one.change(x);
    EXPECT_EQ(fault(x), one.says) << one.what;
  }
  world.cluster = {{"pools", {{"hush", value::object()}, {"main", {{"default", true}}}}}};
  world.pools = [](workspace_id) { return config::pool_choice{{"main"}, "lab"}; };
  for (const std::string pool : {"hush", "moon"})
    EXPECT_NE(fault(wish("command", "entrypoint: [a]\nresources: {resource_pool: " + pool + "}\n"))
                .find("there is no pool '" + pool + "' that workspace 'lab' may use\nhint: one of main"),
              std::string::npos)
      << pool;
}

TEST_F(CreatedTask, TakesFilesFromWhereItIsSaid) {
  struct {
    const char* what;
    bool parent, inherits, forks;
    std::string own, context;
  } cases[] = {
    {"none", false, false, false, "", ""},
    {"its own", true, true, true, "own", "own"},
    {"the parent's", true, true, false, "", "blob of the other"},
    {"a parent alone gives none", true, false, false, "", ""},
    {"the fork's", false, false, true, "", "blob of the other"},
    {"its own before the fork's", false, false, true, "own", "own"},
  };
  for (const auto& one : cases) {
    auto x = wish("generic");
    x.context_blob = one.own;
    x.inherit_context = one.inherits;
    if (one.parent)
      x.parent = to_string(known_id);
    if (one.forks)
      x.forked_from = to_string(known_id);
    const auto got = to_create(x, "ada", world);
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_EQ(got->made.context, one.context) << one.what;
    EXPECT_EQ(bool(got->made.parent), one.parent);
    EXPECT_EQ(bool(got->made.forked_from), one.forks);
  }
  auto forked = wish("generic", nullptr);
  forked.forked_from = to_string(known_id);
  const auto got = to_create(forked, "ada", world);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->made.config["entrypoint"], value::array({"other"})) << "the configuration as well";
}

TEST_F(CreatedTask, ObeysPoliciesUnlessItIsGeneric) {
  world.constraints = [](workspace_id) { return value{{"resources", {{"max_slots", 1}}}}; };
  const std::string two = "entrypoint: [a]\nresources: {slots: 2}\n";
  EXPECT_NE(fault(wish("command", two)), "created");
  EXPECT_EQ(fault(wish("generic", two)), "created");
  world.constraints = [](workspace_id) { return value(); };
  world.invariant = [](workspace_id) { return value{{"resources", {{"priority", 7}}}}; };
  EXPECT_EQ(to_create(wish("command"), "ada", world)->made.config["resources"]["priority"], 7);
  EXPECT_TRUE(to_create(wish("generic"), "ada", world)->made.config["resources"]["priority"].is_null());
}

TEST_F(CreatedTask, RemovesCheckpointsWhateverPoliciesAndPoolsSay) {
  world.constraints = [](workspace_id) { return value{{"resources", {{"max_slots", 0}}}}; };
  world.pools = [](workspace_id) { return config::pool_choice{{}, "lab"}; };
  auto x =
    wish("checkpoint_gc", {{"description", "Checkpoint GC (Experiment 7)"}, {"resources", {{"slots", 0}}}});
  x.details = {{"experiment", 7}, {"checkpoints", {"u1"}}};
  const auto got = to_create(x, "ada", world);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->made.name, "Checkpoint GC (Experiment 7)");
  EXPECT_EQ(got->made.details, x.details);
  EXPECT_TRUE(collects_on_agent(got->made));
  const auto settings = task_settings_of(got->made, "");
  ASSERT_TRUE(settings) << settings.error().what;
  EXPECT_EQ(settings->spec.slots, 0);
  EXPECT_EQ(settings->spec.tries, 3);
  EXPECT_TRUE(settings->launch.services.empty());
  EXPECT_EQ(settings->launch.entrypoint,
            (std::vector<std::string>{"python3", "-m", "troupe.services.checkpoint_gc"}));
  EXPECT_EQ(service_config(got->made, {{}, "", "C"}),
            (value{{"experiment", 7}, {"checkpoints", {"u1"}}, {"cluster", "C"}}));
}

TEST_F(CreatedTask, LiesOverItsTemplateAndOfAShellTellsTheAccount) {
  auto x = wish("shell", nullptr);
  x.template_name = "small";
  world.account = [](const task_created& made) {
    EXPECT_FALSE(made.pool.empty());
    task_account as;
    as.user = "ann";
    as.uid = 1001;
    return std::optional{as};
  };
  const auto got = to_create(x, "ada", world);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_NE(to_json(got->made.config["environment"]).find("A=1"), std::string::npos);
  EXPECT_EQ(got->made.details["account"]["user"], "ann");
  EXPECT_FALSE(to_create(wish("command"), "ada", world)->made.details.contains("account"));
}

} // namespace
} // namespace troupe

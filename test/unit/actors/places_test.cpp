// Tests workspaces, projects, and which project holds an experiment.

#include "actors/catalogue/place_changes.hpp"
#include "actors/catalogue/pool_bindings.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace commands;

struct world {
  places where;
  registry books;
  std::vector<cluster_fact> facts;
  std::int64_t clock = 0;
  std::set<experiment_id> live;

  /// Returns "id N", "ok", or the refusal.
  template <class Command>
  std::string run(const Command& x, const std::string& by = "ada") {
    bool ended = true;
    if constexpr (std::is_same_v<Command, experiment_describe>)
      ended = !live.contains(x.id);
    auto done = decide(where, books, x, ended, by, time_point{duration{++clock}});
    if (!done)
      return std::string(name(done.error().code)) + ": " + done.error().what;
    const auto many = done->facts.size();
    for (auto& one : done->facts)
      facts.push_back(std::move(one));
    return done->answer.contains("id") ? "id " + done->answer["id"].dump() : many ? "ok" : "nothing new";
  }
  void experiment(std::uint64_t id, const char* config = "{}", std::uint64_t project = 1) {
    experiment_created made;
    made.id = {id};
    made.name = "one";
    made.owner = "ada";
    made.config = parse_json(config).value();
    made.project = {project};
    facts.emplace_back(made);
    where.replay(facts.back());
  }
  std::string make_workspace(const std::string& text, const std::string& by = "ada") {
    workspace_create x;
    x.name = text;
    return run(x, by);
  }
  std::string make_project(std::uint64_t in, const std::string& text, const std::string& key = "") {
    project_create x;
    x.workspace = {in};
    x.name = text;
    if (!key.empty())
      x.key = key;
    return run(x);
  }
  std::string archive_workspace(std::uint64_t id, bool on) {
    workspace_change x;
    x.id = {id};
    x.archived = on;
    return run(x);
  }
  std::string archive_project(std::uint64_t id, bool on) {
    project_change x;
    x.id = {id};
    x.archived = on;
    return run(x);
  }
  std::string archive_experiment(std::uint64_t id, bool on) {
    experiment_describe x;
    x.id = {id};
    x.archived = on;
    return run(x);
  }
  std::string place(const char* config, std::uint64_t asked = 0) const {
    auto got = where.place_of({asked}, parse_json(config).value());
    return got ? to_string(*got) : got.error().what;
  }
};

TEST(Places, NamesOfWorkspacesDifferInAnyCase) {
  world w;
  EXPECT_EQ(w.make_workspace("Vision"), "id 2");
  EXPECT_EQ(w.make_workspace("vision"), "conflict: avoid names equal to other workspaces (case-insensitive)");
  EXPECT_EQ(w.make_workspace("uncategorized"),
            "conflict: avoid names equal to other workspaces (case-insensitive)");
  for (const auto& bad : {std::string(), std::string("  "), std::string(81, 'a'), std::string("a\nb")})
    EXPECT_TRUE(w.make_workspace(bad).starts_with("invalid: ")) << bad;
  EXPECT_EQ(w.make_project(2, "Cats"), "id 2");
  EXPECT_TRUE(w.make_project(2, "cats").starts_with("conflict: "));
  EXPECT_EQ(w.make_workspace(std::string(80, 'a')), "id 3");
  EXPECT_EQ(w.where.workspaces().at({2}).pinned_by, std::vector<std::string>{"ada"})
    << "who made it has it pinned";
}

TEST(Places, TheFirstOnesAreNeverChangedButForPins) {
  world w;
  EXPECT_EQ(w.archive_workspace(1, true), "invalid: cannot change immutable workspace 'Uncategorized'");
  EXPECT_EQ(w.archive_project(1, true), "invalid: cannot change immutable project 'Uncategorized'");
  EXPECT_EQ(w.run(workspace_remove{{1}}), "invalid: cannot delete immutable workspace 'Uncategorized'");
  EXPECT_EQ(w.run(project_remove{{1}}), "invalid: cannot delete immutable project 'Uncategorized'");
  EXPECT_EQ(w.make_project(1, "mine"),
            "invalid: cannot add a project to immutable workspace 'Uncategorized'");
  EXPECT_EQ(w.run(workspace_pin{{1}, true}), "ok");
  EXPECT_EQ(w.run(workspace_pin{{1}, true}), "nothing new");
  EXPECT_EQ(w.run(workspace_pin{{1}, false}), "ok");
}

TEST(Places, KeysOfProjectsAreMadeAndUnique) {
  world w;
  w.make_workspace("v");
  EXPECT_EQ(w.make_project(2, "cats and dogs"), "id 2");
  EXPECT_EQ(w.where.projects().at({2}).key, "CAT");
  EXPECT_EQ(w.make_project(2, "catalogue"), "id 3");
  const auto made = w.where.projects().at({3}).key;
  EXPECT_TRUE(made.starts_with("CAT") && made.size() == 5) << made;
  EXPECT_EQ(w.make_project(2, "birds", "cat"), "conflict: the key 'CAT' is another project's");
  EXPECT_EQ(w.make_project(2, "birds", "toolong"),
            "invalid: a project's key has 1 to 5 letters and digits, not 'toolong'");
  EXPECT_EQ(w.make_project(2, "birds", "a-b"),
            "invalid: a project's key has 1 to 5 letters and digits, not 'a-b'");
  EXPECT_EQ(w.make_project(2, "cats and dogs"),
            "conflict: a project named 'cats and dogs' is in this workspace already");
  EXPECT_EQ(w.make_project(9, "x"), "not_found: workspace '9' not found");
  EXPECT_EQ(w.make_project(2, "\xF0\x9F\x90\xB1"), "id 4") << "a name without letters has a key, too";
  EXPECT_FALSE(w.where.projects().at({4}).key.empty());
}

TEST(Places, AKeyThatAProjectHadStaysItsOwn) {
  world w;
  w.make_workspace("v");
  w.make_project(2, "cats");
  w.make_project(2, "dogs");
  const auto change = [&](std::uint64_t id, const char* key) {
    project_change x;
    x.id = {id};
    x.key = key;
    return w.run(x);
  };
  EXPECT_EQ(change(2, "felis"), "ok");
  EXPECT_EQ(w.where.projects().at({2}).key, "FELIS");
  EXPECT_EQ(change(3, "cat"),
            "conflict: the key 'CAT' was another project's: names of its runs still lead there");
  EXPECT_EQ(w.make_project(2, "birds", "cat"),
            "conflict: the key 'CAT' was another project's: names of its runs still lead there");
  EXPECT_EQ(w.make_project(2, "catalogue"), "id 4");
  EXPECT_NE(w.where.projects().at({4}).key, "CAT") << "a key that is made is none of them either";
  EXPECT_EQ(change(3, "uncat"), "conflict: the key 'UNCAT' is another project's");
  EXPECT_EQ(change(2, "cat"), "ok") << "it may have its own again";
  EXPECT_EQ(change(2, "felis"), "ok");
  EXPECT_EQ(w.run(project_remove{{2}}), "ok");
  EXPECT_EQ(change(3, "cat"), "ok") << "a deleted project leaves its keys";
  EXPECT_EQ(change(3, "felis"), "ok");
}

TEST(Places, NothingInWhatIsArchivedIsChanged) {
  world w;
  w.make_workspace("v");
  w.make_project(2, "p");
  EXPECT_EQ(w.archive_workspace(2, true), "ok");
  EXPECT_EQ(w.archive_workspace(2, true), "nothing new");
  EXPECT_EQ(w.make_project(2, "q"), "invalid: cannot add a project to archived workspace 'v'");
  EXPECT_TRUE(
    w.archive_project(2, true).starts_with("invalid: This project belongs to an archived workspace"));
  workspace_change rename;
  rename.id = {2};
  rename.name = "other";
  EXPECT_EQ(w.run(rename), "invalid: cannot change archived workspace 'v'");
  EXPECT_EQ(w.archive_workspace(2, false), "ok");
  EXPECT_EQ(w.archive_project(2, true), "ok");
  project_change describe;
  describe.id = {2};
  describe.description = "x";
  EXPECT_EQ(w.run(describe), "invalid: cannot change archived project 'p'");
}

TEST(Places, AnExperimentGoesWhereItsConfigurationOrItsSubmitterSays) {
  world w;
  w.make_workspace("v");
  w.make_project(2, "p");
  EXPECT_EQ(w.place("{}"), "1");
  EXPECT_EQ(w.place(R"({"workspace": "v", "project": "p"})"), "2");
  EXPECT_EQ(w.place(R"({"workspace": "v", "project": "p"})", 1), "1") << "who submits it wins";
  EXPECT_EQ(w.place(R"({"workspace": "v"})"), "workspace and project: a configuration names both or neither");
  EXPECT_EQ(w.place(R"({"workspace": "v", "project": "q"})"), "workspace 'v' or project 'q' not found");
  EXPECT_EQ(w.place("{}", 9), "project '9' not found");
  w.archive_project(2, true);
  EXPECT_EQ(w.place("{}", 2), "project 'p' is archived: it takes no experiments");
}

TEST(Places, ExperimentsMoveAndAreDescribed) {
  world w;
  w.make_workspace("v");
  w.make_project(2, "p");
  w.experiment(7, R"({"description": "d", "labels": ["a", "b"]})");
  w.live = {{7}};
  EXPECT_EQ(w.where.workspace_of({7}), "Uncategorized");
  EXPECT_EQ(w.run(experiment_move{{7}, {2}}), "ok");
  EXPECT_EQ(w.where.workspace_of({7}), "v");
  EXPECT_EQ(w.run(experiment_move{{7}, {2}}), "nothing new");
  EXPECT_EQ(w.run(experiment_move{{7}, {9}}), "not_found: project '9' not found");
  EXPECT_EQ(w.run(experiment_move{{8}, {2}}), "not_found: experiment '8' not found");
  experiment_describe x;
  x.id = {7};
  x.labels = {"b", "c", "b"};
  EXPECT_EQ(w.run(x), "ok");
  const auto& said = std::get<experiment_described>(w.facts.back());
  EXPECT_EQ(said.labels, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(said.name + said.description, "oned") << "what is not named stays";
  experiment_describe one; // Two users may add labels at once without knowing of each other.
  one.id = {7};
  one.add_labels = {"d"};
  EXPECT_EQ(w.run(one), "ok");
  EXPECT_EQ(w.run(one), "nothing new");
  one.add_labels = {"e"};
  one.remove_labels = {"b"};
  EXPECT_EQ(w.run(one), "ok");
  EXPECT_EQ(std::get<experiment_described>(w.facts.back()).labels, (std::vector<std::string>{"c", "d", "e"}));
  one.add_labels = {" "};
  EXPECT_TRUE(w.run(one).starts_with("invalid: a label"));
  project_change notes;
  notes.id = {2};
  notes.add_notes = std::vector<note>{{"first", "a"}};
  EXPECT_EQ(w.run(notes), "ok");
  notes.add_notes = std::vector<note>{{"second", "b"}};
  EXPECT_EQ(w.run(notes), "ok");
  EXPECT_EQ(w.where.projects().at({2}).notes.size(), 2u);
  x.name = " ";
  EXPECT_TRUE(w.run(x).starts_with("invalid: `name`"));
  EXPECT_EQ(w.archive_experiment(7, true), "invalid: Experiment is not in terminal state.");
  w.live.clear();
  EXPECT_EQ(w.archive_experiment(7, true), "ok");
  EXPECT_EQ(w.run(experiment_move{{7}, {1}}), "invalid: experiment 7 is archived: it cannot be moved");
  EXPECT_EQ(w.archive_experiment(7, false), "ok");
  w.archive_project(2, true);
  EXPECT_EQ(w.run(experiment_move{{7}, {1}}),
            "invalid: experiment 7 cannot be moved: its project is archived, or is being deleted");
  w.archive_project(2, false);
  EXPECT_EQ(w.run(experiment_move{{7}, {1}}), "ok");
  EXPECT_EQ(w.run(workspace_remove{{2}}), "ok");
  EXPECT_EQ(w.make_workspace("again"), "id 3") << "numbers do not come again";
}

TEST(Places, WhatPeopleSayOfAnExperimentIsChecked) {
  world w;
  w.experiment(7);
  const auto say = [&](auto set) {
    experiment_describe x;
    x.id = {7};
    set(x);
    return w.run(x);
  };
  EXPECT_EQ(say([](auto& x) { x.name = " "; }), "invalid: `name` must not be an empty or whitespace string.");
  EXPECT_TRUE(say([](auto& x) { x.name = std::string(81, 'a'); }).starts_with("invalid: `name` has 1 to 80"));
  EXPECT_TRUE(say([](auto& x) { x.labels = {{"a\tb"}}; }).starts_with("invalid: a label has 1 to 80"));
  EXPECT_EQ(say([](auto& x) { x.save_trial_best = 3; }), "ok");
  EXPECT_EQ(say([](auto& x) { x.save_trial_best = 3; }), "nothing new");
  const auto& said = std::get<experiment_described>(w.facts.back());
  EXPECT_EQ(said.save_trial_best, 3);
  EXPECT_EQ(said.save_trial_latest, -1) << "as the configuration says";
}

TEST(Places, AContinuationSaysAnewWhatItsConfigurationSaysOtherwise) {
  world w;
  w.experiment(7, R"({"name": "one", "description": "d0", "labels": ["l0"]})");
  const auto say = [&](auto set) {
    experiment_describe x;
    x.id = {7};
    set(x);
    EXPECT_EQ(w.run(x), "ok");
    return std::get<experiment_described>(w.facts.back());
  };
  /// Returns the number of facts that follow from a continuation with this configuration.
  const auto continued = [&](const char* config) {
    experiment_continued again;
    again.id = {7};
    again.by = "bob";
    again.config = parse_json(config).value();
    w.facts.emplace_back(again);
    w.where.replay(w.facts.back());
    const auto more = w.where.say_anew(again);
    for (const auto& one : more)
      w.facts.emplace_back(std::get<experiment_described>(one));
    return more.size();
  };
  EXPECT_EQ(continued(R"({"name": "n1", "description": "d1", "labels": ["l1", "l0"]})"), 0u)
    << "the configuration says it";
  auto said = say([](auto& x) { x.notes = "x"; });
  EXPECT_EQ(said.name + " " + said.description, "n1 d1");
  EXPECT_EQ(said.labels, (std::vector<std::string>{"l1", "l0"}));

  said = say([](auto& x) {
    x.name = "patched";
    x.save_trial_best = 3;
  });
  EXPECT_EQ(continued("null"), 0u);
  EXPECT_EQ(w.where.said_of({7})->name, "patched") << "nothing is configured anew";
  EXPECT_EQ(w.where.said_of({7})->save_trial_best, 3);
  EXPECT_EQ(continued(R"({"name": "n1", "description": "d1", "labels": ["l1", "l0"]})"), 1u)
    << "the earlier name is given again, which no difference of the configurations tells";
  EXPECT_EQ(std::get<experiment_described>(w.facts.back()).by, "bob");
  said = say([](auto& x) { x.archived = true; });
  EXPECT_EQ(said.name, "n1");
  EXPECT_EQ(said.save_trial_best, -1) << "the configuration has the newest number";
  EXPECT_EQ(said.notes, "x");

  places after;
  for (const auto& fact : w.facts)
    after.replay(*decode_as<cluster_fact>(encode_as(fact)));
  EXPECT_EQ(after.snapshot(), w.where.snapshot());
}

TEST(Places, AWorkspaceThatIsArchivedTakesNothing) {
  world w;
  w.make_workspace("old");
  EXPECT_EQ(w.archive_workspace(2, true), "ok");
  model_create model;
  model.name = "m";
  model.workspace = workspace_id{2};
  EXPECT_EQ(w.run(model), "invalid: workspace 'old' is archived: it takes nothing new");
  template_put text;
  text.name = "t";
  text.workspace = workspace_id{2};
  EXPECT_EQ(w.run(text), "invalid: workspace 'old' is archived: it takes nothing new");
}

TEST(Places, StorageAndAccountOfAWorkspaceAreWhole) {
  world w;
  workspace_create x;
  x.name = "a";
  x.checkpoint_storage = parse_json(R"({"type": "s3", "bucked": "b"})").value();
  EXPECT_NE(w.run(x).find("bucked"), std::string::npos);
  for (const auto* no_place :
       {R"({"type": "gcs", "bucket": ""})", R"({"type": "s3", "bucket": ""})",
        R"({"type": "azure", "container": "", "connection_string": "c"})",
        R"({"type": "shared_fs", "host_path": "/tmp/x\u0000y"})", R"({"type": "shared_fs", "host_path": ""})",
        R"({"type": "directory", "container_path": "/a\u0000"})"}) {
    x.checkpoint_storage = parse_json(no_place).value();
    EXPECT_NE(w.run(x).find("expected a "), std::string::npos) << no_place;
  }
  x.checkpoint_storage = parse_json(R"({"type": "directory", "container_path": "/tmp/c"})").value();
  x.runs_as = host_account{-1, 8, "u", "g"};
  EXPECT_EQ(w.run(x), "invalid: agentUserGroup: agentUid: -1 is the number of no account: 0 to 4294967293");
  x.runs_as = host_account{7, 8, "u", ""};
  EXPECT_TRUE(w.run(x).starts_with("invalid: agentUserGroup: agentGroup has 1 to 256"));
  for (const char* odd : {"a b;c", "a:b", "-a", "a,b", "a/b"}) {
    x.runs_as = host_account{7, 8, odd, "g"};
    EXPECT_TRUE(w.run(x).starts_with("invalid: agentUserGroup: agentUser: '" + std::string(odd) +
                                     "' is the name of no account"));
  }
  x.runs_as = host_account{7, 8, "u", "g"};
  EXPECT_EQ(w.run(x), "id 2");
}

TEST(Places, ASecretThatIsShownMaskedStaysAsItWas) {
  world w;
  workspace_create x;
  x.name = "a";
  x.checkpoint_storage =
    parse_json(R"({"type": "s3", "bucket": "b", "access_key": "k", "secret_key": "s"})").value();
  ASSERT_EQ(w.run(x), "id 2");
  workspace_change again;
  again.id = {2};
  again.checkpoint_storage =
    parse_json(R"({"type": "s3", "bucket": "c", "access_key": "new", "secret_key": "********"})").value();
  EXPECT_EQ(w.run(again), "ok");
  EXPECT_EQ(w.where.workspaces().at({2}).checkpoint_storage,
            parse_json(R"({"type": "s3", "bucket": "c", "access_key": "new", "secret_key": "s"})").value());
  template_put text;
  text.name = "t";
  text.config = parse_json(R"({"data": {"secrets": {"a": "x"}}})").value();
  EXPECT_EQ(w.run(text), "ok");
  text.config = parse_json(R"({"debug": true, "data": {"secrets": {"a": "********"}}})").value();
  EXPECT_EQ(w.run(text), "ok");
  EXPECT_EQ(w.books.find_template("t")->config,
            parse_json(R"({"debug": true, "data": {"secrets": {"a": "x"}}})").value());
}

TEST(Places, AMaskThatStandsForNoSecretIsRefused) {
  world w;
  const auto masked = parse_json(R"({"type": "s3", "bucket": "b", "secret_key": "********"})").value();
  const auto said = "invalid: checkpoint_storage.secret_key: '********' stands for a secret that nobody is "
                    "shown\nhint: give the secret itself";
  workspace_create x;
  x.name = "a";
  x.checkpoint_storage = masked;
  EXPECT_EQ(w.run(x), said);
  x.checkpoint_storage.reset();
  ASSERT_EQ(w.run(x), "id 2");
  workspace_change change;
  change.id = {2};
  change.checkpoint_storage = masked;
  EXPECT_EQ(w.run(change), said);
  template_put text;
  text.name = "t";
  text.config = {{"checkpoint_storage", masked}};
  EXPECT_EQ(w.run(text), said);
}

TEST(Registry, NamesOfTemplates) {
  world w;
  const auto put = [&](const std::string& text, bool fresh = true) {
    template_put x;
    x.name = text;
    x.fresh = fresh;
    return w.run(x);
  };
  EXPECT_EQ(put("base"), "ok");
  EXPECT_EQ(put("base"), "conflict: failed to create template base");
  EXPECT_EQ(put("BASE"), "conflict: failed to create template BASE") << "not how the other one is spelled";
  EXPECT_TRUE(put("").starts_with("invalid: the name of a template has 1 to 80"));
  EXPECT_TRUE(put(std::string(81, 'a')).starts_with("invalid: "));
  template_rename to;
  to.name = "base";
  to.to = "Base";
  EXPECT_EQ(w.run(to), "ok") << "its own name in another case";
  EXPECT_EQ(put("other"), "ok");
  EXPECT_EQ(w.run(template_rename{"other", "bAsE"}), "conflict: failed to create template bAsE");
}

TEST(Registry, NamesOfModels) {
  world w;
  const auto make = [&](const std::string& text) {
    model_create x;
    x.name = text;
    return w.run(x);
  };
  EXPECT_EQ(make("resnet"), "id 1");
  EXPECT_EQ(make("resnet"), "conflict: avoid names equal to other models (case-insensitive)");
  EXPECT_EQ(make(" "), "invalid: model names cannot be blank");
  EXPECT_EQ(make("a  b"), "invalid: model names cannot have excessive spacing");
  EXPECT_EQ(make("a/b"), "invalid: model names cannot have slashes");
  EXPECT_EQ(make("a\\b"), "invalid: model names cannot have slashes");
  EXPECT_EQ(make("7"), "invalid: model names cannot be only numbers");
  EXPECT_EQ(make(".."), "invalid: model names cannot be . or ..");
  EXPECT_EQ(make("a b"), "id 2");
  EXPECT_EQ(make("ResNet"), "conflict: avoid names equal to other models (case-insensitive)");
  EXPECT_TRUE(make(std::string(81, 'a')).starts_with("invalid: "));
}

TEST(Registry, VersionsCountFromTheHighestThereIs) {
  world w;
  model_create made;
  made.name = "m";
  w.run(made);
  version_create next;
  next.model = {1};
  next.checkpoint = "u";
  const auto number = [&] { return std::get<model_version_changed>(w.facts.back()).version; };
  for (std::uint64_t wanted : {1, 2, 3}) {
    EXPECT_EQ(w.run(next), "ok");
    EXPECT_EQ(number(), wanted);
  }
  EXPECT_EQ(w.run(version_remove{{1}, 2}), "ok");
  EXPECT_EQ(w.run(version_remove{{1}, 2}), "not_found: version 2 not found");
  w.run(next);
  EXPECT_EQ(number(), 4u);
  w.run(version_remove{{1}, 4});
  w.run(next);
  EXPECT_EQ(number(), 4u) << "the last one's number comes again";
  for (const auto& bad : {std::string("  "), std::string(81, 'a'), std::string("a\ab")}) {
    version_create named = next;
    named.name = bad;
    EXPECT_TRUE(w.run(named).starts_with("invalid: the name of a version")) << bad;
  }
  model_change archived;
  archived.id = {1};
  archived.archived = true;
  EXPECT_EQ(w.run(archived), "ok");
  EXPECT_EQ(w.run(next), "invalid: model 'm' is archived and cannot be changed");
  EXPECT_EQ(w.run(version_remove{{1}, 1}), "invalid: model 'm' is archived and cannot be changed");
  EXPECT_EQ(w.run(model_remove{{1}}), "ok");
  EXPECT_EQ(w.run(next), "not_found: model '1' not found");
}

TEST(Registry, ARefusalNamesOnlyModelsThatAreSeen) {
  world w;
  for (const char* name : {"one", "two"}) {
    model_create made;
    made.name = name;
    w.run(made);
  }
  const auto add = [&](std::uint64_t model, const char* checkpoint) {
    version_create next;
    next.model = {model};
    next.checkpoint = checkpoint;
    EXPECT_EQ(w.run(next), "ok");
  };
  add(1, "u"), add(1, "u"), add(2, "u"), add(2, "v");
  const auto held = [&](const std::vector<std::string>& checkpoints, const std::vector<model_id>& seen) {
    const auto fine = w.books.check_unregistered(checkpoints, seen, "deleted");
    return fine ? "fine" : std::string(name(fine.error().code)) + ": " + fine.error().what;
  };
  const std::string said =
    "invalid: this subset of checkpoints provided are in the model registry and cannot be deleted: ";
  EXPECT_EQ(held({"w"}, {{1}, {2}}), "fine");
  EXPECT_EQ(held({"u", "v", "w"}, {}), said + "u; v");
  EXPECT_EQ(held({"u", "v", "w"}, {{1}}), said + "u, registered to one (model #1), version 2; v");
  EXPECT_EQ(held({"u"}, {{1}, {2}}), said + "u, registered to two (model #2), version 1");
  EXPECT_EQ(w.books.registered(), (std::vector<std::string>{"u", "v"}));
  w.run(model_remove{{2}});
  EXPECT_EQ(held({"u"}, {{1}, {2}}), said + "u, registered to one (model #1), version 2");
  EXPECT_EQ(held({"v"}, {{1}, {2}}), "fine");
  w.run(version_remove{{1}, 1});
  EXPECT_TRUE(w.books.is_registered("u")) << "the other version has it as well";
  w.run(version_remove{{1}, 2});
  EXPECT_FALSE(w.books.is_registered("u"));
  EXPECT_TRUE(w.books.registered().empty());
}

TEST(Registry, Templates) {
  world w;
  template_put x;
  x.name = "t";
  x.config = {{"max_restarts", 1}};
  x.known = true;
  EXPECT_EQ(w.run(x), "not_found: template 't' not found");
  x.known = false;
  x.fresh = true;
  EXPECT_EQ(w.run(x), "ok");
  EXPECT_EQ(w.run(x), "conflict: failed to create template t");
  x.fresh = false;
  EXPECT_EQ(w.run(x), "nothing new");
  EXPECT_EQ(w.run(template_rename{"t", "u"}), "ok");
  EXPECT_EQ(w.run(template_rename{"t", "u"}), "not_found: template 't' not found");
  EXPECT_EQ(w.books.find_template("u")->config["max_restarts"], 1);
  x.workspace = {9};
  EXPECT_EQ(w.run(x), "not_found: workspace '9' not found");
  EXPECT_EQ(w.run(template_remove{"u"}), "ok");
  EXPECT_EQ(w.run(template_remove{"u"}), "not_found: template 'u' not found");
}

TEST(Registry, AWorkspaceThatOwnsModelsStays) {
  world w;
  w.make_workspace("v");
  model_create made;
  made.name = "m";
  made.workspace = {2};
  w.run(made);
  template_put t;
  t.name = "t";
  t.workspace = {2};
  w.run(t);
  EXPECT_TRUE(w.run(workspace_remove{{2}}).starts_with("conflict: workspace 2 owns models"));
  made.name = "n";
  made.workspace = {1};
  w.run(made);
  EXPECT_EQ(w.run(workspace_remove{{1}}), "invalid: cannot delete immutable workspace 'Uncategorized'");
  w.run(model_remove{{1}});
  EXPECT_EQ(w.run(workspace_remove{{2}}), "ok");
  EXPECT_EQ(w.books.find_template("t"), nullptr) << "its templates go with it";
}

TEST(Places, AReplayGivesTheSameMachines) {
  world w;
  w.make_workspace("v");
  w.make_project(2, "p");
  w.experiment(7);
  w.run(experiment_move{{7}, {2}});
  w.archive_experiment(7, true);
  model_create made;
  made.name = "m";
  w.run(made);
  places where;
  registry books;
  for (const auto& one : w.facts) {
    auto again = decode_as<cluster_fact>(encode_as(one));
    ASSERT_TRUE(again) << again.error().what;
    where.replay(*again);
    books.replay(*again);
  }
  EXPECT_EQ(where.snapshot(), w.where.snapshot());
  EXPECT_EQ(books.snapshot(), w.books.snapshot());
}

TEST(PoolBindings, OfTheFileAndOfTheApiAddUp) {
  world w;
  ASSERT_EQ(w.make_workspace("vision"), "id 2");
  ASSERT_EQ(w.make_workspace("speech"), "id 3");
  house_rules rules;
  const auto pool = [](value names) { return value{{"workspaces", std::move(names)}}; };
  std::map<user_id, user_changed> users;
  users[{3}].name = "Ada";
  const value cluster{{"users", {{{"name", "eve"}}}},
                      {"pools",
                       {{"all", value::object()},
                        {"gpu", pool(value::array({"vision", "nobody"}))},
                        {"empty", pool(value::array())},
                        {"limited",
                         {{"quotas",
                           {{{"user", "ada"}, {"workspace", nullptr}, {"max_slots", 1}},
                            {{"user", nullptr}, {"workspace", "Vision"}, {"max_slots", 1}},
                            {{"user", "*"}, {"workspace", nullptr}, {"max_slots", 1}},
                            {{"user", "Eve"}, {"workspace", nullptr}, {"max_slots", 1}},
                            {{"user", "bob"}, {"workspace", nullptr}, {"max_slots", 1}},
                            {{"user", nullptr}, {"workspace", "Nobody"}, {"max_slots", 1}}}}}},
                        {"later", pool(value::array({"nobody"}))}}}};
  const auto who = [&](const std::string& name) {
    std::string out;
    for (std::uint64_t id = 1; id <= 3; ++id)
      if (pools_of(rules, w.where, cluster, {id}).check(name))
        out += std::to_string(id);
    return out;
  };
  EXPECT_EQ(who("all"), "123");
  EXPECT_EQ(who("empty"), "123") << "no names, no binding";
  EXPECT_EQ(who("gpu"), "2");
  EXPECT_EQ(who("later"), "") << "a pool whose workspaces are not there yet is nobody's";
  const auto why = [&](const std::string& name) {
    return pools_of(rules, w.where, cluster, {3}).check(name).error().what;
  };
  EXPECT_EQ(why("gpu"),
            "there is no pool 'gpu' that workspace 'speech' may use\nhint: one of all, empty, limited");
  EXPECT_EQ(why("moon"),
            "there is no pool 'moon' that workspace 'speech' may use\nhint: one of all, empty, limited")
    << "a pool that may not be used is told as one that does not exist";
  EXPECT_TRUE(pools_of_new(rules, w.where, cluster, "Nobody").check("later"));
  EXPECT_FALSE(pools_of_new(rules, w.where, cluster, "else").check("gpu"));
  EXPECT_EQ(unknown_names(cluster, w.where, users),
            (std::vector<std::string>{
              "pools.gpu.workspaces: there is no workspace 'nobody' yet; it may use the "
              "pool once somebody makes it",
              "pools.later.workspaces: there is no workspace 'nobody' yet; it may use the "
              "pool once somebody makes it",
              "pools.limited.quotas: there is no user 'bob' yet; its quota limits nobody until "
              "somebody makes it",
              "pools.limited.quotas: there is no workspace 'Nobody' yet; its quota limits "
              "nobody until somebody makes it"}));
  users[{7}].name = "Bob";
  for (const char* bound : {"gpu", "all"})
    ASSERT_TRUE(rules.bind(pool_bind{bound, {{3}}}, "ada", time_point{1s}));
  EXPECT_EQ(who("gpu"), "23");
  EXPECT_EQ(who("all"), "3");
  ASSERT_EQ(w.run(workspace_remove{{3}}), "ok");
  EXPECT_EQ(who("gpu"), "2");
  EXPECT_EQ(who("all"), "123") << "a deleted workspace binds no pool";
  ASSERT_EQ(w.make_workspace("nobody"), "id 4");
  EXPECT_TRUE(pools_of(rules, w.where, cluster, {4}).check("later"));
  EXPECT_TRUE(unknown_names(cluster, w.where, users).empty());
}

} // namespace
} // namespace troupe

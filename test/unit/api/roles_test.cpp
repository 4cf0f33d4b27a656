// Tests what one viewer sees and may do where roles decide, over a journal in memory.

#include "fakes.hpp"

#include "runtime/api/guard.hpp"
#include "runtime/api/live_stream.hpp"
#include "runtime/api/service.hpp"
#include "runtime/api/streams.hpp"
#include "runtime/api/veil.hpp"

#include <cstring>

namespace troupe::api {
namespace {

const user_id admin{1}, ann{7}, vic{8}, zoe{9};
const workspace_id vision{2};
const project_id cats{2};
const experiment_id seen{1}, other{2}; ///< `seen` is in the project `cats`, `other` in the first workspace
const trial_id its_trial{1};
const task_id its_task = task_id::of(task_kind::generic, 1, 2); ///< this task is in the first workspace

struct house {
  std::unique_ptr<storage::journal> journal = storage::make_memory_journal();
  std::shared_ptr<storage::reader> all = journal->reads();
  std::shared_ptr<role_book> book = std::make_shared<role_book>(all);
  std::map<std::string, std::uint64_t> next;

  house() {
    workspace_changed place;
    place.at = t0, place.id = vision, place.name = "vision", place.owner = "wes";
    note(place);
    project_changed project;
    project.at = t0, project.id = cats, project.workspace = vision, project.name = "cats";
    note(project);
    for (const auto& [id, in] : {std::pair{seen, cats}, {other, project_id{1}}}) {
      experiment_created made;
      made.at = t0, made.id = id, made.config = value::object(), made.name = "e", made.owner = "ann";
      made.project = in;
      note(made);
    }
    search_stepped step;
    step.at = t0;
    step.created.push_back({its_trial, "0", value::object(), 1, {}, 0});
    note(step, entity(seen));
    task_created task;
    task.at = t0, task.id = its_task, task.owner = "admin", task.config = value::object();
    note(task, entity(its_task));
    give(5, ann, vision);
    give(4, vic, vision);
  }
  template <class F>
  void note(const F& x, const std::string& where = cluster_entity) {
    ASSERT_TRUE(journal->append({where, next[where]++, {encode(fact{x})}}));
    ASSERT_TRUE(journal->commit());
  }
  void give(int role, user_id to, workspace_id in = {}, bool taken = false) {
    note(roles_changed{t0, "admin", role, to, {}, in, taken});
  }
  /// Saves checkpoint `uuid` of experiment `other`, which is in the first workspace, and registers it as a
  /// version of a model in the workspace `vision`.
  void register_hidden(const std::string& uuid) {
    search_stepped step;
    step.at = t0;
    step.created.push_back({trial_id{2}, "0", value{{"lr", 0.5}}, 1, {}, 0});
    note(step, entity(other));
    note(checkpoint_recorded{t0, {1}, {uuid, 3, {{"w.pt", 5}}, value::object(), "/c/" + uuid}},
         entity(trial_id{2}));
    place_model(vision);
    version.at = t0, version.model = {1}, version.version = 1, version.checkpoint = uuid;
    version.metadata = value::object();
    note(version);
  }
  void place_model(workspace_id in) {
    model_changed model;
    model.at = t0, model.id = {1}, model.name = "m", model.owner = "admin", model.workspace = in;
    model.metadata = value::object();
    note(model);
  }
  model_version_changed version; ///< the version that register_hidden made

  viewer as(user_id who) const { return {book, who, {}, {}}; }
  std::shared_ptr<storage::reader> seen_by(user_id who) const { return veiled(all, as(who)); }

  /// Returns "fine", or how the command is refused.
  std::string ask(user_id who, const std::string& command, const value& fields) {
    const auto wanted = demands_of(as(who), *all, command, fields);
    if (!wanted)
      return wanted.error().code == errc::not_found ? "not found" : wanted.error().what;
    for (const auto& one : *wanted)
      if (!as(who).may(one.what, one.in))
        return authority::permissions()[static_cast<std::size_t>(one.what)].name;
    return "fine";
  }
};

TEST(Veil, HidesWhatIsInOtherWorkspaces) {
  house h;
  const auto by_vic = h.seen_by(vic), by_zoe = h.seen_by(zoe), by_admin = h.seen_by(admin);
  EXPECT_TRUE(by_vic->experiment(seen));
  EXPECT_EQ(by_vic->experiment(other).error().code, errc::not_found);
  EXPECT_EQ(by_vic->experiments()->size(), 1u);
  EXPECT_EQ(by_vic->experiment_standings()->size(), 1u);
  const auto shows = [](const auto& by, experiment_id id) {
    return dynamic_cast<const screen&>(*by).shows(id, id == seen ? cats : project_id{1});
  };
  EXPECT_TRUE(shows(by_vic, seen) && !shows(by_vic, other) && !shows(by_zoe, seen) && shows(by_admin, other));
  EXPECT_TRUE(by_vic->trial(its_trial));
  EXPECT_EQ(by_vic->workspaces()->size(), 1u);
  EXPECT_EQ(by_zoe->experiments()->size(), 0u);
  EXPECT_EQ(by_zoe->trial(its_trial).error().code, errc::not_found);
  EXPECT_EQ(by_zoe->workspaces()->size(), 0u);
  EXPECT_EQ(by_zoe->projects()->size(), 0u);
  EXPECT_EQ(h.seen_by({})->experiments()->size(), 0u); // a task whose owner no longer exists
  // no user has the role of an admin, so the first admin has it
  EXPECT_EQ(by_admin->experiments()->size(), 2u);
}

TEST(Veil, TellsTheMembersOfAGroupWhatItsRolesAre) {
  house h;
  const group_id team{3};
  group_changed group;
  group.at = t0, group.by = "admin", group.id = team, group.name = "team", group.members = {zoe};
  h.note(group);
  h.note(roles_changed{t0, "admin", 4, {}, team, {}, false}); // the role holds in every workspace
  const auto told = [&](user_id who) {
    const auto roles = storage::records_of<roles_changed>(*h.seen_by(who));
    return std::any_of(roles->begin(), roles->end(), [&](const auto& one) { return one.group == team; });
  };
  EXPECT_TRUE(told(zoe) && told(admin));
  EXPECT_FALSE(told(vic));
}

TEST(Veil, ShowsWhichTrialsUseACheckpointToWhoSeesThem) {
  house h;
  trial_source_declared source;
  source.at = t0, source.by = "ann", source.trial = its_trial, source.checkpoint = "c",
  source.kind = "INFERENCE";
  h.note(source);
  for (const auto& [who, may] : {std::pair{ann, true}, {vic, true}, {zoe, false}, {admin, true}})
    EXPECT_EQ(storage::records_of<trial_source_declared>(*h.seen_by(who), "c")->size(), may ? 1u : 0u)
      << who.value;
}

TEST(RoleBook, KnowsWorkspacesUntilTheyAreDeleted) {
  house h;
  EXPECT_TRUE(h.book->knows(workspace_id{1}) && h.book->knows(vision));
  workspace_changed gone;
  gone.at = t0, gone.id = vision, gone.name = "vision", gone.owner = "wes", gone.deleted = true;
  h.note(gone);
  EXPECT_FALSE(h.book->knows(vision));
}

TEST(Veil, ShowsACollectionToWhoSeesItsExperimentAndThenToWhoSeesTheWorkspace) {
  house h;
  const auto id = task_id::of(task_kind::checkpoint_gc, 7, 8);
  checkpoint_files_removed order;
  order.at = t0, order.by = "ann", order.id = id, order.experiment = seen, order.cause = "experiment";
  order.workspace = vision;
  h.note(order, entity(id));
  const auto check = [&](const char* when) {
    for (const auto& [who, may] : {std::pair{ann, true}, {vic, true}, {zoe, false}, {admin, true}}) {
      const auto by = h.seen_by(who);
      EXPECT_EQ(bool(by->task(id)), may) << who.value << " " << when;
      EXPECT_EQ(bool(by->other_task(id)), may) << who.value << " " << when;
      EXPECT_EQ(bool(by->runs(id)), may) << who.value << " " << when;
      EXPECT_EQ(by->facts_of(entity(id))->empty(), !may) << who.value << " " << when;
      const auto open = by->open_tasks();
      const bool listed =
        std::any_of(open->begin(), open->end(), [&](const auto& one) { return one.id == id; });
      EXPECT_EQ(listed, may) << who.value << " " << when;
    }
  };
  check("while the experiment is there");
  h.note(experiment_deleted{t0, "ann", seen, deletion_step::done, "", {its_trial}});
  check("after its deletion");
}

TEST(Veil, ShowsATensorBoardToWhoSeesAllItsExperiments) {
  house h;
  const auto board = [&](std::uint64_t low, std::initializer_list<experiment_id> shown) {
    task_created made;
    made.at = t0, made.id = task_id::of(task_kind::tensorboard, 5, low), made.owner = "wes";
    made.workspace = vision, made.config = value::object(), made.details = value::object();
    for (const auto id : shown)
      made.details["sources"].push_back({{"experiment", id.value}, {"trial", value()}, {"place", "/x"}});
    h.note(made, entity(made.id));
    return made.id;
  };
  const auto own = board(1, {seen}), both = board(2, {seen, other});
  const auto by_vic = h.seen_by(vic), by_admin = h.seen_by(admin);
  EXPECT_TRUE(by_vic->other_task(own) && by_vic->task(own));
  EXPECT_EQ(by_vic->other_task(both).error().code, errc::not_found);
  EXPECT_EQ(by_vic->task(both).error().code, errc::not_found);
  EXPECT_EQ(by_vic->other_tasks(task_kind::tensorboard, {})->size(), 1u);
  EXPECT_EQ(by_admin->other_tasks(task_kind::tensorboard, {})->size(), 2u);
  h.note(experiment_deleted{t0, "ann", other, deletion_step::done, "", {}});
  EXPECT_TRUE(by_vic->other_task(both));
}

TEST(Veil, TellsOfADeletionWhoSawTheThing) {
  house h;
  h.place_model(vision);
  h.version.at = t0, h.version.model = {1}, h.version.version = 1, h.version.checkpoint = "c";
  h.version.metadata = value::object();
  h.note(h.version);
  model_changed model;
  model.at = t0, model.id = {1}, model.name = "m", model.owner = "admin", model.workspace = vision;
  model.metadata = value::object(), model.deleted = true;
  h.note(model);
  for (const auto id : {seen, other})
    h.note(experiment_deleted{t0, "ann", id, deletion_step::done, "", {}});
  const auto told = [&](user_id who) {
    std::string out;
    const auto facts = h.seen_by(who)->facts_after(0, 1000);
    for (const auto& one : *facts) {
      const auto known = decode(one.bytes);
      if (const auto* gone = std::get_if<experiment_deleted>(&*known))
        out += to_string(gone->id) + " ";
      if (std::holds_alternative<model_version_changed>(*known))
        out += "version ";
    }
    return out;
  };
  for (const char* after : {"the deletions", "a start"}) {
    EXPECT_EQ(told(vic), "version 1 ") << after;
    EXPECT_EQ(told(zoe), "") << after;
    EXPECT_EQ(told(admin), "version 1 2 ") << after;
    EXPECT_FALSE(h.seen_by(vic)->facts_of(entity(seen))->empty()) << after;
    EXPECT_FALSE(h.seen_by(vic)->experiment(seen)) << after;
    h.book = std::make_shared<role_book>(h.all);
  }
  h.give(4, vic, vision, true);
  EXPECT_EQ(told(vic), "");
  h.give(4, vic, vision);
  project_changed project;
  project.at = t0, project.id = cats, project.workspace = vision, project.name = "cats",
  project.deleted = true;
  h.note(project);
  EXPECT_EQ(told(vic), "version 1 ") << "its project is deleted too";
  workspace_changed place;
  place.at = t0, place.id = vision, place.name = "vision", place.owner = "wes", place.deleted = true;
  h.note(place);
  EXPECT_EQ(told(vic), "") << "its workspace is deleted too";
}

TEST(Veil, ShowsACheckpointThatIsAVersionOfAModelThatIsSeen) {
  house h;
  h.register_hidden("c-1");
  const auto by_vic = h.seen_by(vic), by_zoe = h.seen_by(zoe);
  EXPECT_TRUE(by_vic->checkpoint("c-1"));
  EXPECT_EQ(by_zoe->checkpoint("c-1").error().code, errc::not_found);
  EXPECT_FALSE(by_vic->experiment(other)) << "the version does not show the experiment";
  EXPECT_TRUE(by_vic->checkpoints({2})->empty());
  const value one = {{"uuid", "c-1"}, {"metadata", value::object()}};
  const auto these = parse_json(R"({"uuids": ["c-1"]})").value(),
             patch = parse_json(R"({"checkpoints": [{"uuid": "c-1"}]})").value();
  const value start = {{"config", "searcher: {source_checkpoint_uuid: c-1}"}, {"project", 2}};
  const struct {
    const char* command;
    const value& fields;
    const char *to_ann, *to_vic;
  } rows[] = {
    {"checkpoint.describe", one, "UPDATE_EXPERIMENT", "UPDATE_EXPERIMENT"},
    {"checkpoint.patch", patch, "UPDATE_EXPERIMENT", "UPDATE_EXPERIMENT"},
    {"checkpoint.remove", these, "DELETE_EXPERIMENT", "DELETE_EXPERIMENT"},
    {"experiment.create", start, "fine", "CREATE_EXPERIMENT"},
  };
  for (const auto& [command, fields, to_ann, to_vic] : rows) {
    EXPECT_EQ(h.ask(ann, command, fields), to_ann) << command;
    EXPECT_EQ(h.ask(vic, command, fields), to_vic) << command;
    EXPECT_EQ(h.ask(zoe, command, fields), "not found") << command;
    EXPECT_EQ(h.ask(admin, command, fields), "fine") << command;
  }
  h.place_model({1});
  EXPECT_FALSE(by_vic->checkpoint("c-1")) << "the model went to another workspace";
  h.place_model(vision);
  EXPECT_TRUE(by_vic->checkpoint("c-1"));
  h.version.deleted = true;
  h.note(h.version);
  EXPECT_FALSE(by_vic->checkpoint("c-1")) << "the version was deleted";
}

/// The house with the route table in front.
struct served : house {
  fake_gate cluster;
  std::shared_ptr<accounts> users = std::move(*accounts::open({}, t0));
  service api{with_roles()};

  served() {
    for (const auto& [id, name] : {std::pair{vic, "vic"}, {zoe, "zoe"}}) {
      user_changed x;
      x.at = t0, x.by = "admin", x.id = id, x.name = name;
      users->take(x);
    }
  }
  services with_roles() {
    services parts{cluster, all, users, {"c", "m", "", "0"}, [] { return t0 + 60s; }};
    parts.roles = book;
    return parts;
  }
  std::pair<unsigned, std::string> get(const char* who, const std::string& target) {
    return ask(who, "GET", target, "");
  }
  std::pair<unsigned, std::string> ask(const char* who, const std::string& method, const std::string& target,
                                       const std::string& body) {
    request_headers headers;
    headers.authorization = "Bearer " + users->log_in(who, "", true, t0 + 59s)->token;
    auto let_in = api.admit({method, target, std::move(headers)});
    if (auto* refused = std::get_if<response>(&let_in))
      return {refused->status, refused->body};
    response got;
    api.run(std::move(std::get<admission>(let_in)), body, reply{[&](response x) { got = std::move(x); }});
    while (got.stream) { // reads a stream that does not follow
      auto piece = got.stream->next(t0 + 60s);
      EXPECT_TRUE(piece);
      got.body += piece->bytes;
      if (piece->last)
        got.stream.reset();
    }
    return {got.status, got.body};
  }
};

/// The live stream of `vic`, and how many of its next events are `gone`, or tell of other rights.
struct watched : served {
  std::shared_ptr<services> parts = std::make_shared<services>(with_roles());
  std::unique_ptr<body_stream> stream;

  void open(std::uint64_t after) {
    parts->storage = seen_by(vic);
    stream = live_stream(parts, {.user = "vic", .admin = false, .allocation = {}}, vic.value,
                         *live_topics::read("experiments,experiment/1,logs/1"), after);
  }
  std::string heard(std::chrono::seconds at) {
    auto piece = stream->next(t0 + at);
    EXPECT_TRUE(piece);
    const auto count = [&](std::string_view what) {
      int times = 0;
      for (auto next = piece->bytes.find(what); next != std::string::npos;
           next = piece->bytes.find(what, next + 1))
        ++times;
      return std::to_string(times);
    };
    return count("event: gone\ndata: {\"experiment\":1}") + " gone, " + count("\"topic\":\"experiments\"") +
           " rights";
  }
};

TEST(Live, TellsWhatMayNotBeSeenAnyMore) {
  watched h;
  h.open(0);
  EXPECT_EQ(h.heard(1s), "0 gone, 0 rights");
  h.give(4, vic, vision, true);
  EXPECT_EQ(h.heard(2s), "1 gone, 1 rights");
  EXPECT_EQ(h.heard(3s), "0 gone, 0 rights");
  h.give(4, vic, vision);
  EXPECT_EQ(h.heard(4s), "0 gone, 0 rights") << "that is told at most every 5 s";
  EXPECT_EQ(h.heard(8s), "0 gone, 1 rights");
  h.give(4, zoe, vision);
  EXPECT_EQ(h.heard(20s), "0 gone, 0 rights") << "the rights of somebody else";
  h.open(h.all->sequence());
  EXPECT_EQ(h.heard(21s), "0 gone, 0 rights");
  h.note(experiment_moved{t0, "admin", seen, project_id{1}});
  EXPECT_EQ(h.heard(22s), "1 gone, 1 rights") << "it went to a workspace that is hidden";
  h.open(h.all->sequence());
  EXPECT_EQ(h.heard(23s), "1 gone, 0 rights") << "who comes again was not there when it happened";
}

TEST(Live, TellsOfADeletionWhoSawTheExperiment) {
  watched h;
  h.open(0);
  EXPECT_EQ(h.heard(1s), "0 gone, 0 rights");
  h.note(experiment_deleted{t0, "ann", seen, deletion_step::done, "", {its_trial}});
  EXPECT_EQ(h.heard(2s), "1 gone, 0 rights");
}

TEST(Service, CountsTheLastLinesOfTheMastersLogAsTheyAreSeen) {
  served h;
  const auto newest = h.all->sequence();
  const auto lines = [&](const std::string& query) {
    const auto [status, body] = h.get("admin", "/api/v1/master/logs?" + query);
    EXPECT_EQ(status, 200u) << body;
    std::vector<std::uint64_t> ids;
    for (std::size_t at = 0, end = 0; (end = body.find('\n', at)) != body.npos; at = end + 1)
      ids.push_back(
        parse_json(body.substr(at, end - at)).value()["result"]["logEntry"]["id"].get<std::uint64_t>());
    return ids;
  };
  const auto all = lines("");
  ASSERT_GT(all.size(), 5u);
  EXPECT_EQ(all.back(), newest);
  // Settings of another user are not shown to anyone, so these facts make no lines.
  for (int i = 0; i < 1200; ++i)
    h.note(user_setting_changed{t0, "zoe", zoe, "key", "", std::to_string(i)});
  ASSERT_EQ(lines(""), all);
  for (const std::size_t last : {std::size_t{1}, std::size_t{3}, all.size() - 1, all.size()})
    EXPECT_EQ(lines("offset=-" + std::to_string(last)), std::vector(all.end() - last, all.end())) << last;
  EXPECT_EQ(lines("offset=-100000"), all);
  EXPECT_EQ(lines("offset=-3&limit=2"), std::vector(all.end() - 3, all.end() - 1));
  EXPECT_EQ(lines("offset=" + std::to_string(newest - 2)), std::vector(all.end() - 2, all.end()));
}

TEST(Service, CountsOfAllWorkOnlyWhatTheCallerSees) {
  served h;
  h.note(run_started{t0, {1}, {}, 0}, entity(its_trial));
  const value pool{{"name", "default"}, {"waiting", 7}, {"experiments", 8}};
  h.cluster.answers["status"] = [](const auto&) { return value{{"waiting", 7}, {"experiments_active", 8}}; };
  h.cluster.answers["pool.list"] = [pool](const auto&) { return value{{"pools", value::array({pool})}}; };
  h.cluster.answers["pool.details"] = [pool](const auto&) { return pool; };
  h.cluster.answers["queue.list"] = [](const auto&) {
    const value its{{"allocation", to_string(allocation_id{its_trial, {1}})},
                    {"experiment", seen.value},
                    {"pool", "default"},
                    {"slots", 1}};
    return value{{"waiting", value::array({its})}};
  };
  const auto told = [&](const char* who) {
    const auto ask = [&](const char* target) { return parse_json(h.get(who, target).second).value(); };
    const auto of_all = ask("/troupe/v1/status");
    const auto list = ask("/troupe/v1/pools").at("pools").at(0), one = ask("/troupe/v1/pools/default");
    return value::array({of_all.at("waiting"), of_all.at("experimentsActive"), list.at("waiting"),
                         list.at("experiments"), one.at("waiting"), one.at("experiments")});
  };
  EXPECT_EQ(told("zoe"), value::array({0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(told("vic"), value::array({1, 1, 1, 1, 1, 1}));
}

TEST(Service, ShowsTheWholeCheckpointOfAVersionWhoseExperimentIsHidden) {
  served h;
  h.register_hidden("c-1");
  const auto ask = [&](const char* who, const std::string& target) {
    const auto [status, body] = h.get(who, target);
    return std::pair{status, parse_json(body).value()};
  };
  const auto [status, versions] = ask("vic", "/api/v1/models/m/versions");
  ASSERT_EQ(status, 200u) << to_json(versions);
  const auto [found, alone] = ask("vic", "/api/v1/checkpoints/c-1");
  ASSERT_EQ(found, 200u) << to_json(alone);
  for (const auto& shown : {versions["modelVersions"][0]["checkpoint"], alone["checkpoint"]}) {
    EXPECT_EQ(shown["uuid"], "c-1");
    EXPECT_EQ(shown["training"]["hparams"], (value{{"lr", 0.5}})) << to_json(shown);
    EXPECT_TRUE(shown["training"]["experimentConfig"].is_object()) << to_json(shown);
  }
  EXPECT_EQ(ask("vic", "/api/v1/experiments/2/checkpoints").first, 404u);
  EXPECT_EQ(ask("vic", "/api/v1/trials/2/checkpoints").first, 404u);
  EXPECT_EQ(ask("zoe", "/api/v1/checkpoints/c-1").first, 404u);
  EXPECT_EQ(ask("zoe", "/api/v1/models/m/versions").first, 404u);
}

TEST(Events, EndWithTheRightToWhatTheyAreAbout) {
  house h;
  event_filter of_experiment, of_trial;
  of_experiment.experiment = seen;
  of_trial.entity = entity(its_trial);
  std::vector<std::unique_ptr<body_stream>> streams;
  for (const auto& what : {of_experiment, of_trial, event_filter{}})
    streams.push_back(event_stream(h.seen_by(vic), 0, what));
  const auto ended = [&](std::chrono::seconds at) {
    std::string out;
    for (auto& one : streams) {
      auto piece = one->next(t0 + at);
      EXPECT_TRUE(piece);
      out += piece->last ? "ended " : "open ";
    }
    return out;
  };
  EXPECT_EQ(ended(1s), "open open open ");
  h.give(4, zoe, vision);
  EXPECT_EQ(ended(2s), "open open open ") << "the rights of somebody else";
  h.give(4, vic, vision, true);
  EXPECT_EQ(ended(3s), "ended ended open ");
}

TEST(Veil, PassesOverFactsThatMayNotBeSeen) {
  house h;
  const auto by_zoe = h.seen_by(zoe), by_vic = h.seen_by(vic);
  EXPECT_TRUE(by_zoe->facts_after(0, 100)->empty());
  EXPECT_TRUE(by_zoe->facts_after(0, 100)->empty()); // facts that were passed over are not read again
  const auto few = by_vic->facts_after(0, 2);
  ASSERT_EQ(few->size(), 2u);
  const auto rest = by_vic->facts_after(few->back().sequence, 100);
  for (const auto* part : {&*few, &*rest})
    for (const auto& one : *part)
      EXPECT_NE(one.entity, entity(other));
  h.give(4, zoe, vision);
  EXPECT_FALSE(by_zoe->facts_after(0, 100)->empty());
}

TEST(Veil, FollowsAChangeOfRolesAtOnce) {
  house h;
  const auto by_vic = h.seen_by(vic);
  EXPECT_TRUE(by_vic->experiment(seen));
  h.give(4, vic, vision, true);
  EXPECT_FALSE(by_vic->experiment(seen));
  EXPECT_TRUE(by_vic->facts_of(entity(seen))->empty());
  h.note(experiment_moved{t0, "admin", other, cats});
  h.give(4, vic, vision);
  EXPECT_TRUE(by_vic->experiment(other));
}

TEST(Veil, LeavesATaskItsOwnExperiment) {
  house h;
  const auto own = veiled(h.all, {h.book, zoe, seen, task_id{its_trial}});
  EXPECT_TRUE(own->experiment(seen));
  EXPECT_TRUE(own->trial(its_trial));
  EXPECT_FALSE(own->experiment(other));
}

TEST(Guard, AsksForThePermissionWhereTheThingIs) {
  house h;
  h.note(checkpoint_recorded{t0, {1}, {"x", 3, {{"w.pt", 5}}, value::object(), "/c/x"}}, entity(its_trial));
  struct row {
    const char* command;
    value fields;
    const char *to_ann, *to_vic, *to_zoe;
  };
  const auto one = [](const char* key, std::uint64_t id) { return value{{key, id}}; };
  const row rows[] = {
    {"experiment.kill", one("id", 1), "fine", "UPDATE_EXPERIMENT", "not found"},
    {"experiment.pause", one("id", 1), "fine", "UPDATE_EXPERIMENT", "not found"},
    {"experiment.kill", one("id", 2), "not found", "not found", "not found"},
    {"experiment.delete", one("id", 1), "fine", "DELETE_EXPERIMENT", "not found"},
    {"experiment.move", {{"id", 1}, {"project", 1}}, "not found", "not found", "not found"},
    {"experiment.set", {{"id", 1}, {"priority", 3}}, "fine", "UPDATE_EXPERIMENT", "not found"},
    {"experiment.create",
     {{"config", "workspace: vision\nproject: cats\n"}},
     "fine",
     "CREATE_EXPERIMENT",
     "not found"},
    {"experiment.create", {{"config", "name: x\n"}}, "not found", "not found", "not found"},
    {"experiment.create", {{"config", "x"}, {"project", 2}}, "fine", "CREATE_EXPERIMENT", "not found"},
    {"experiment.create",
     {{"config", "x"}, {"project", 2}, {"parent", 2}},
     "not found",
     "not found",
     "not found"},
    {"experiment.create",
     {{"config", "searcher: {source_trial_id: 1}"}, {"project", 2}},
     "fine",
     "CREATE_EXPERIMENT",
     "not found"},
    {"trial.kill", one("id", 1), "fine", "UPDATE_EXPERIMENT", "not found"},
    {"trial.delete", one("id", 1), "fine", "DELETE_EXPERIMENT", "not found"},
    {"trial.archive", one("id", 1), "fine", "UPDATE_EXPERIMENT", "not found"},
    {"trial.metadata", one("id", 1), "fine", "fine", "not found"},
    {"trial.explain", one("id", 1), "fine", "fine", "not found"},
    {"allocation.explain", {{"id", "1.1"}}, "fine", "fine", "not found"},
    {"workspace.create", {{"name", "x"}}, "CREATE_WORKSPACE", "CREATE_WORKSPACE", "CREATE_WORKSPACE"},
    {"workspace.change", {{"id", 2}, {"name", "x"}}, "UPDATE_WORKSPACE", "UPDATE_WORKSPACE", "not found"},
    {"project.create", {{"workspace", 2}, {"name", "x"}}, "fine", "CREATE_PROJECT", "not found"},
    {"project.remove", one("id", 2), "DELETE_PROJECT", "DELETE_PROJECT", "not found"},
    {"task.create", {{"kind", "command"}, {"workspace", 2}}, "fine", "CREATE_NSC", "not found"},
    {"task.create",
     {{"kind", "generic"}, {"workspace", 2}, {"forked_from", to_string(its_task)}},
     "not found",
     "not found",
     "not found"},
    {"trial.declare_source", {{"trial", 1}, {"checkpoint", "x"}}, "fine", "UPDATE_EXPERIMENT", "not found"},
    {"task.create", {{"kind", "command"}}, "not found", "not found", "not found"},
    {"template.put",
     {{"name", "x"}, {"workspace", 2}, {"config", value::object()}},
     "fine",
     "CREATE_TEMPLATES",
     "not found"},
    {"model.create", {{"name", "x"}, {"workspace", 2}}, "fine", "CREATE_MODEL_REGISTRY", "not found"},
    {"webhook.create", {{"url", "http://x"}, {"workspace", 2}}, "fine", "EDIT_WEBHOOKS", "EDIT_WEBHOOKS"},
    {"webhook.create", {{"url", "http://x"}}, "EDIT_WEBHOOKS", "EDIT_WEBHOOKS", "EDIT_WEBHOOKS"},
    {"policy.set",
     {{"workspace", 2}, {"kind", "NTSC"}},
     "MODIFY_WORKSPACE_CONFIG_POLICIES",
     "MODIFY_WORKSPACE_CONFIG_POLICIES",
     "MODIFY_WORKSPACE_CONFIG_POLICIES"},
    {"policy.set",
     {{"kind", "NTSC"}},
     "MODIFY_GLOBAL_CONFIG_POLICIES",
     "MODIFY_GLOBAL_CONFIG_POLICIES",
     "MODIFY_GLOBAL_CONFIG_POLICIES"},
    {"role.assign",
     {{"roles", {{{"role", 4}, {"user", 9}, {"workspace", 2}}}}},
     "ASSIGN_ROLES",
     "ASSIGN_ROLES",
     "ASSIGN_ROLES"},
    {"user.create", {{"name", "x"}}, "ADMINISTRATE_USER", "ADMINISTRATE_USER", "ADMINISTRATE_USER"},
    {"agent.drain", {{"agent", "a1"}}, "UPDATE_AGENTS", "UPDATE_AGENTS", "UPDATE_AGENTS"},
    {"node.shutdown", value::object(), "UPDATE_MASTER_CONFIG", "UPDATE_MASTER_CONFIG",
     "UPDATE_MASTER_CONFIG"},
    {"shell.ps", value::object(), "VIEW_MASTER_LOGS", "VIEW_MASTER_LOGS", "VIEW_MASTER_LOGS"},
    {"queue.list", value::object(), "fine", "fine", "fine"},
  };
  for (const auto& [command, fields, to_ann, to_vic, to_zoe] : rows) {
    const auto what = std::string(command) + " " + to_json(fields);
    EXPECT_EQ(h.ask(ann, command, fields), to_ann) << what;
    EXPECT_EQ(h.ask(vic, command, fields), to_vic) << what;
    EXPECT_EQ(h.ask(zoe, command, fields), to_zoe) << what;
    EXPECT_EQ(h.ask(admin, command, fields), "fine") << what;
  }
}

TEST(Guard, TakesWhatNamesNoWorkspaceForTheFirstOne) {
  house h;
  const std::pair<const char*, value> rows[] = {
    {"experiment.create", {{"config", "name: x"}}},
    {"task.create", {{"kind", "notebook"}}},
    {"template.put", {{"name", "x"}, {"config", value::object()}}},
    {"model.create", {{"name", "x"}}},
  };
  for (const auto& [command, fields] : rows) {
    const auto wanted = demands_of(h.as(vic), *h.all, command, fields);
    ASSERT_FALSE(wanted) << command;
    EXPECT_EQ(wanted.error().what, "workspace '1' not found") << command;
  }
  h.give(4, vic, {1});
  for (const auto& [command, fields] : rows)
    EXPECT_TRUE(h.ask(vic, command, fields).starts_with("CREATE_")) << command; // seen, and not allowed
}

TEST(Guard, KeepsATemplateThatMayNotBeSeenFromUseAndFromBeingTaken) {
  house h;
  h.note(template_changed{t0, "ann", "ours", vision, {{"description", "x"}}});
  h.note(template_changed{t0, "admin", "secret", workspace_id{1}, {{"description", "x"}}});
  const auto put = [](const char* name, int workspace) {
    return value{{"name", name}, {"workspace", workspace}, {"config", value::object()}};
  };
  const auto submitted = [](const char* below) {
    return value{{"config", "name: x"}, {"project", 2}, {"template", below}};
  };
  const auto launched = [](const char* below) {
    return value{{"kind", "command"}, {"workspace", 2}, {"template", below}};
  };
  const auto patch = [](const char* name) {
    return value{{"name", name}, {"config", value::object()}, {"known", true}};
  };
  const struct {
    const char* command;
    value fields;
    const char *to_ann, *to_vic, *to_zoe, *to_admin;
  } rows[] = {
    {"experiment.create", submitted("ours"), "fine", "CREATE_EXPERIMENT", "not found", "fine"},
    {"experiment.create", submitted("secret"), "not found", "not found", "not found", "fine"},
    {"experiment.create", submitted("none"), "not found", "not found", "not found", "not found"},
    {"task.create", launched("ours"), "fine", "CREATE_NSC", "not found", "fine"},
    {"task.create", launched("secret"), "not found", "not found", "not found", "fine"},
    {"template.put", put("ours", 2), "fine", "UPDATE_TEMPLATES", "not found", "fine"},
    {"template.put", put("ours", 1), "not found", "not found", "not found", "fine"},
    {"template.put", put("secret", 2), "failed to create template secret", "CREATE_TEMPLATES", "not found",
     "fine"},
    {"template.put", patch("secret"), "not found", "not found", "not found", "fine"},
    {"template.put", patch("none"), "not found", "not found", "not found", "not found"},
  };
  for (const auto& [command, fields, to_ann, to_vic, to_zoe, to_admin] : rows) {
    const auto what = std::string(command) + " " + to_json(fields);
    EXPECT_EQ(h.ask(ann, command, fields), to_ann) << what;
    EXPECT_EQ(h.ask(vic, command, fields), to_vic) << what;
    EXPECT_EQ(h.ask(zoe, command, fields), to_zoe) << what;
    EXPECT_EQ(h.ask(admin, command, fields), to_admin) << what;
  }
  const value warm = {{"config", "searcher: {source_checkpoint_uuid: x}"}, {"project", 2}};
  // the answer is that for an experiment that may not be seen
  EXPECT_EQ(h.ask(ann, "experiment.create", warm), "not found");
}

TEST(Guard, SaysTheSameOfAPlaceThatMayNotBeSeenAndOfOneThatDoesNotExist) {
  house h;
  const auto place = [&](workspace_id id, const char* name, bool deleted) {
    workspace_changed x;
    x.at = t0, x.id = id, x.name = name, x.owner = "wes", x.deleted = deleted;
    h.note(x);
  };
  place({3}, "secret", false);
  project_changed dogs;
  dogs.at = t0, dogs.id = {3}, dogs.workspace = {3}, dogs.name = "dogs";
  h.note(dogs);
  place({4}, "gone", false);
  h.give(5, ann, {4});
  h.give(4, vic, {4});
  place({4}, "gone", true);
  for (const char* name : {"secret", "gone", "nowhere"})
    h.note(template_changed{
      t0, "ann", std::string("in ") + name, vision, {{"workspace", name}, {"project", "dogs"}}});
  const struct {
    const char *command, *fields, *said;
  } rows[] = {
    {"experiment.create", R"({"config": "workspace: NAME\nproject: dogs"})",
     "workspace 'NAME' or project 'dogs' not found"},
    {"experiment.create", R"({"config": "workspace: NAME\nproject: dogs\nsearcher: {name: none}\nno: 1"})",
     "workspace 'NAME' or project 'dogs' not found"},
    {"experiment.create", R"({"config": "workspace: NAME"})", "workspace 'NAME' or project '' not found"},
    {"experiment.create", R"({"config": "name: x", "template": "in NAME"})",
     "workspace 'NAME' or project 'dogs' not found"},
    {"experiment.create", R"({"config": "searcher: 7", "project": ID})", "project 'ID' not found"},
    {"experiment.validate", R"({"config": "workspace: NAME\nproject: dogs\nsearcher: 7"})",
     "workspace 'NAME' or project 'dogs' not found"},
    {"experiment.validate", R"({"config": "searcher: 7", "project": ID})", "project 'ID' not found"},
    {"experiment.move", R"({"id": 1, "project": ID})", "project 'ID' not found"},
    {"project.change", R"({"id": ID, "key": "no key"})", "project 'ID' not found"},
    {"project.change", R"({"id": 2, "workspace": ID})", "workspace 'ID' not found"},
    {"project.remove", R"({"id": ID})", "project 'ID' not found"},
    {"project.create", R"({"workspace": ID, "name": ""})", "workspace 'ID' not found"},
    {"task.create", R"({"kind": "command", "workspace": ID, "config": "no: 1"})", "workspace 'ID' not found"},
    {"template.put", R"({"name": "x", "workspace": ID, "config": {}})", "workspace 'ID' not found"},
    {"model.create", R"({"name": "", "workspace": ID})", "workspace 'ID' not found"},
  };
  const auto filled = [](std::string text, const char* id, const char* name) {
    for (const auto& [key, by] : {std::pair{"ID", id}, {"NAME", name}})
      if (const auto at = text.find(key); at != text.npos)
        text.replace(at, std::strlen(key), by);
    return text;
  };
  for (const auto& [command, fields, said] : rows)
    for (const auto& [id, name] : {std::pair{"3", "secret"}, {"4", "gone"}, {"99", "nowhere"}})
      for (const auto who : {ann, vic}) {
        const auto with = filled(fields, id, name);
        const auto wanted = demands_of(h.as(who), *h.all, command, parse_json(with).value());
        ASSERT_FALSE(wanted) << command << " " << with;
        EXPECT_EQ(wanted.error().code, errc::not_found) << command << " " << with;
        EXPECT_EQ(wanted.error().what, filled(said, id, name)) << command << " " << with;
      }
}

TEST(Guard, SaysTheSameOfAThingThatMayNotBeSeenAndOfOneThatDoesNotExist) {
  house h;
  search_stepped step;
  step.at = t0;
  step.created.push_back({trial_id{2}, "0", value::object(), 1, {}, 0});
  h.note(step, entity(other));
  h.note(checkpoint_recorded{t0, {1}, {"hidden", 3, {{"w.pt", 5}}, value::object(), "/c/hidden"}},
         entity(trial_id{2}));
  h.place_model(vision);
  webhook_changed hook;
  hook.at = t0, hook.id = {5}, hook.workspace = {1}, hook.url = "http://x", hook.triggers = value::array();
  h.note(hook);
  const struct {
    const char *command, *fields;
  } rows[] = {
    {"checkpoint.remove", R"({"uuids": ["UUID"]})"},
    {"checkpoint.patch", R"({"checkpoints": [{"uuid": "UUID", "resources": 7}]})"},
    {"checkpoint.describe", R"({"uuid": "UUID", "metadata": 7})"},
    {"trial.declare_source", R"({"trial": 1, "checkpoint": "UUID"})"},
    {"model.version.create", R"({"model": 1, "checkpoint": "UUID", "name": 7})"},
    {"webhook.change", R"({"id": ID, "url": "no url"})"},
    {"webhook.remove", R"({"id": ID})"},
    {"webhook.test", R"({"id": ID})"},
  };
  for (const auto& [command, fields] : rows)
    for (const auto& [uuid, id] : {std::pair{"hidden", "5"}, {"none", "99"}}) {
      std::string with = fields;
      for (const auto& [key, by] : {std::pair{"UUID", uuid}, {"ID", id}})
        if (const auto at = with.find(key); at != with.npos)
          with.replace(at, std::strlen(key), by);
      const auto wanted = demands_of(h.as(ann), *h.all, command, parse_json(with).value());
      ASSERT_FALSE(wanted) << with;
      EXPECT_EQ(wanted.error().code, errc::not_found) << command << " " << with;
      EXPECT_EQ(wanted.error().what, with.find(uuid) != with.npos
                                       ? "checkpoint '" + std::string(uuid) + "' not found"
                                       : "webhook '" + std::string(id) + "' not found")
        << command << " " << with;
    }
}

TEST(Guard, LooksAtEveryCommandThatAUserCanGive) {
  house h;
  for (const auto& row : commands::table()) {
    const auto wanted = authority::needed(row.is.right);
    if (row.is.right.on == thing::token)
      continue; // the owner of the token decides, and is known before the command is made
    if (!wanted || authority::permissions()[static_cast<std::size_t>(*wanted)].of_workspaces)
      continue;
    const auto said = h.ask(zoe, row.is.name, value::object());
    EXPECT_NE(said, "fine") << row.is.name;
  }
}

TEST(Guard, IsAskedBeforeABulkActionTellsOfAState) {
  served h;
  const struct {
    const char *method, *target, *body, *state;
  } cases[] = {
    {"POST", "/api/v1/runs/pause", R"({"projectId":2,"runIds":[1]})",
     "Cannot pause/unpause run '1' (part of multi-trial)."},
    {"POST", "/api/v1/runs/delete", R"({"projectId":2,"runIds":[1]})", ""},
    {"POST", "/api/v1/runs/move", R"({"sourceProjectId":2,"destinationProjectId":2,"runIds":[1]})", ""},
    {"POST", "/api/v1/runs/kill", R"({"projectId":2,"runIds":[1]})", ""},
    {"POST", "/api/v1/projects/2/experiments/unarchive", R"({"experimentIds":[1]})",
     "Experiment is not archived."},
    {"POST", "/api/v1/projects/2/experiments/kill", R"({"experimentIds":[1]})", ""},
  };
  for (const auto& one : cases) {
    const auto error_for = [&](const char* who) {
      const auto [status, body] = h.ask(who, one.method, one.target, one.body);
      EXPECT_EQ(status, 200u) << one.target << " " << body;
      const auto said = parse_json(body);
      const auto results = said ? said->value("results", value::array()) : value::array();
      return results.size() == 1 ? results[0].value("error", std::string("none")) : body;
    };
    EXPECT_TRUE(error_for("vic").starts_with("access denied")) << one.target << ": " << error_for("vic");
    EXPECT_EQ(error_for("admin"), one.state) << one.target;
  }
}

TEST(Guard, LeavesOutOfTheQueueWhatMayNotBeSeen) {
  house h;
  fake_gate cluster;
  cluster.answers["queue.list"] = [](const auto&) {
    return value{{"waiting",
                  {{{"position", 1}, {"experiment", 2}, {"allocation", "9.1"}},
                   {{"position", 2}, {"experiment", 1}, {"allocation", "1.1"}}}}};
  };
  guard by_vic(cluster, h.all, h.as(vic), false);
  value got;
  by_vic.order({.user = "vic"}, commands::queue_list{}, [&](result<value> x) { got = *x; });
  ASSERT_EQ(got["waiting"].size(), 1u) << to_json(got);
  EXPECT_EQ(got["waiting"][0]["experiment"], 1);
}

TEST(Guard, HidesWhoHoldsASlotFromWhoMayNotSeeIt) {
  house h;
  fake_gate cluster;
  cluster.answers["agent.list"] = [](const auto&) {
    const auto own = to_string(its_task) + ".1";
    return value{{"agents",
                  {{{"name", "a"},
                    {"slots",
                     {{{"id", 0}, {"allocation", "1.1"}},
                      {{"id", 1}, {"allocation", own}},
                      {{"id", 2}, {"allocation", ""}}}},
                    {"aux", {{{"allocation", own}}, {{"allocation", "1.2"}}}}}}}};
  };
  const auto held = [&](user_id who) {
    guard by(cluster, h.all, h.as(who), false);
    std::string out;
    by.order({.user = "x"}, commands::agent_list{}, [&](result<value> x) {
      for (const char* key : {"slots", "aux"})
        for (const auto& one : (*x)["agents"][0][key])
          out += one["allocation"].get<std::string>() + " ";
    });
    return out;
  };
  const auto own = to_string(its_task) + ".1";
  EXPECT_EQ(held(vic), "1.1 hidden-1  hidden-aux-0 1.2 ");
  EXPECT_EQ(held(zoe), "hidden-0 hidden-1  hidden-aux-0 hidden-aux-1 ");
  EXPECT_EQ(held(admin), "1.1 " + own + "  " + own + " 1.2 ");
}

TEST(Guard, LeavesOutAgentsOfPoolsThatMayNotBeSeen) {
  house h;
  h.note(pool_bound{t0, "admin", "gpu", {vision}});
  fake_gate cluster;
  cluster.answers["agent.list"] = [](const auto&) {
    return value{{"agents", {{{"name", "a"}, {"pool", "main"}}, {{"name", "b"}, {"pool", "gpu"}}}}};
  };
  const auto listed = [&](user_id who) {
    guard by(cluster, h.all, h.as(who), false);
    std::string out;
    by.order({.user = "x"}, commands::agent_list{}, [&](result<value> x) {
      for (const auto& agent : (*x)["agents"])
        out += agent["name"].get<std::string>();
    });
    return out;
  };
  EXPECT_EQ(listed(vic), "ab");
  EXPECT_EQ(listed(zoe), "a");
  EXPECT_EQ(listed(admin), "ab");
}

TEST(Guard, MakesWhoCreatesAWorkspaceItsAdmin) {
  house h;
  h.give(3, zoe);
  fake_gate cluster;
  cluster.answers["workspace.create"] = [](const auto&) { return value{{"id", 4}}; };
  guard by_zoe(cluster, h.all, h.as(zoe), false);
  bool done = false;
  by_zoe.order({.user = "zoe"}, commands::workspace_create{}, [&](result<value> x) { done = bool(x); });
  ASSERT_TRUE(done);
  ASSERT_EQ(cluster.all().size(), 2u);
  EXPECT_EQ(cluster.all()[1].command, "role.assign");
  EXPECT_EQ(cluster.all()[1].fields["roles"][0]["role"], authority::workspace_admin);
  EXPECT_EQ(cluster.all()[1].fields["roles"][0]["workspace"], 4);
}

TEST(Guard, KeepsTheQueueForAdminsWhereItIsStrict) {
  house h;
  fake_gate cluster;
  const auto code = [&](guard by, bool is_admin) {
    std::optional<errc> out;
    by.order({.user = "x", .admin = is_admin}, commands::experiment_set{seen},
             [&](result<value> x) { out = x ? std::nullopt : std::optional(x.error().code); });
    return out;
  };
  EXPECT_EQ(code({cluster, h.all, h.as(ann), true}, true), errc::denied);
  EXPECT_EQ(code({cluster, h.all, h.as(admin), true}, false), std::nullopt);
  EXPECT_EQ(code({cluster, h.all, {nullptr, ann, {}, {}}, true}, false), errc::denied);
  EXPECT_EQ(code({cluster, h.all, {nullptr, ann, {}, {}}, true}, true), std::nullopt);
}

} // namespace
} // namespace troupe::api

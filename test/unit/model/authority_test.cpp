#include "model/authority/authority.hpp"

#include <gtest/gtest.h>
#include <set>

namespace troupe::authority {
namespace {

using enum action;
using enum thing;

const principal nobody, ada{"ada", false, "2", "", "", ""}, admin{"admin", true, "1", "", "", ""},
  of_7{"ada", false, "2", "7", "12", "12.2"};

std::string answer(const principal& who, action what, const resource& on) {
  auto ok = may(who, what, on);
  return ok ? "yes" : troupe::name(ok.error().code);
}

TEST(Authority, WhoMayWhatIsDelicate) {
  struct {
    action what;
    resource on;
    std::string nobody, task, user, admin;
  } const rows[] = {
    // Commands that end or remove something.
    {kill, {experiment, "7"}, "unauthorized", "denied", "yes", "yes"},
    {kill, {trial, "12"}, "unauthorized", "denied", "yes", "yes"},
    {kill, {actor, ""}, "unauthorized", "denied", "denied", "yes"},
    {kill, {cluster, ""}, "unauthorized", "denied", "denied", "yes"},
    {remove, {experiment, "7"}, "unauthorized", "denied", "denied", "yes"},
    {remove, {experiment, "7", "ada"}, "unauthorized", "denied", "yes", "yes"},
    {remove, {trial, "12"}, "unauthorized", "denied", "denied", "yes"},
    {remove, {trial, "12", "ada"}, "unauthorized", "denied", "yes", "yes"},
    {remove, {checkpoint, "7"}, "unauthorized", "denied", "yes", "yes"},
    {remove, {log, ""}, "unauthorized", "denied", "denied", "yes"},
    // Users, their tokens and their sessions.
    {view, {user, ""}, "unauthorized", "yes", "yes", "yes"},
    {create, {user, ""}, "unauthorized", "denied", "denied", "yes"},
    {change, {user, "2"}, "unauthorized", "denied", "denied", "yes"},
    {change, {self, "2"}, "unauthorized", "denied", "yes", "yes"},
    {change, {self, "3"}, "unauthorized", "denied", "denied", "yes"},
    {create, {token, "2"}, "unauthorized", "denied", "yes", "yes"},
    {create, {token, "3"}, "unauthorized", "denied", "denied", "yes"},
    {remove, {token, "3"}, "unauthorized", "denied", "denied", "yes"},
    {create, {session, ""}, "yes", "yes", "yes", "yes"},
    // The cluster, its agents and its actors.
    {change, {configuration, ""}, "unauthorized", "denied", "denied", "yes"},
    {change, {agent, "a"}, "unauthorized", "denied", "denied", "yes"},
    {create, {fault, ""}, "unauthorized", "denied", "denied", "yes"},
    {change, {actor, ""}, "unauthorized", "denied", "denied", "yes"},
    {view, {actor, ""}, "unauthorized", "yes", "yes", "yes"},
    // Things that may belong to others.
    {view, {log, "12"}, "unauthorized", "yes", "yes", "yes"},
    {view, {log, "13"}, "unauthorized", "yes", "yes", "yes"},
    {view, {trial, "13"}, "unauthorized", "yes", "yes", "yes"},
    {view, {experiment, "8"}, "unauthorized", "yes", "yes", "yes"},
    {change, {trial, "13"}, "unauthorized", "denied", "yes", "yes"},
    {change, {checkpoint, "8"}, "unauthorized", "denied", "yes", "yes"},
    {change, {checkpoint, "7"}, "unauthorized", "yes", "yes", "yes"},
    {view, {checkpoint, "8"}, "unauthorized", "yes", "yes", "yes"},
    {view, {files, "7"}, "unauthorized", "yes", "yes", "yes"},
    // What only the owner and admins may do.
    {move, {experiment, "7", "ada"}, "unauthorized", "denied", "yes", "yes"},
    {move, {experiment, "7", "bob"}, "unauthorized", "denied", "denied", "yes"},
    {move, {experiment, "7", ""}, "unauthorized", "denied", "denied", "yes"},
    {change, {workspace, "2", "ada"}, "unauthorized", "denied", "yes", "yes"},
    {change, {workspace, "2", "bob"}, "unauthorized", "denied", "denied", "yes"},
    {remove, {project, "2", "bob"}, "unauthorized", "denied", "denied", "yes"},
    {remove, {model, "2", "bob"}, "unauthorized", "denied", "denied", "yes"},
    {change, {model, "2", "bob"}, "unauthorized", "denied", "yes", "yes"},
    {change, {config_template, "t", ""}, "unauthorized", "denied", "yes", "yes"},
    // A secret opens a task, and whoever is inside acts as the owner of the task.
    {view, {secret, "12", "ada"}, "unauthorized", "yes", "yes", "yes"},
    {view, {secret, "13", "bob"}, "unauthorized", "denied", "denied", "yes"},
    {view, {secret, "13", ""}, "unauthorized", "denied", "denied", "yes"},
    // What a task may report about itself, and what every user may change.
    {change, {allocation, "12.2"}, "unauthorized", "yes", "yes", "yes"},
    {change, {allocation, "12.1"}, "unauthorized", "denied", "yes", "yes"},
    // What only a task may report, and only about itself.
    {report, {allocation, "12.2"}, "unauthorized", "yes", "denied", "denied"},
    {report, {allocation, "12.1"}, "unauthorized", "denied", "denied", "denied"},
    {report, {trial, "12"}, "unauthorized", "yes", "denied", "denied"},
    {report, {trial, "13"}, "unauthorized", "denied", "denied", "denied"},
    {report, {trial, ""}, "unauthorized", "denied", "denied", "denied"},
    {report, {trial, "13", "", true}, "unauthorized", "denied", "yes", "yes"}, // the trial is unmanaged
    {report, {log, "13", "", true}, "unauthorized", "yes", "yes", "yes"},
    {report, {log, "13"}, "unauthorized", "yes", "denied", "denied"},
    {create, {trial, ""}, "unauthorized", "denied", "yes", "yes"},
    // What no rule names is denied to all.
    {remove, {cluster, ""}, "unauthorized", "denied", "denied", "denied"},
    {create, {agent, ""}, "unauthorized", "denied", "denied", "denied"},
  };
  for (const auto& r : rows) {
    const auto at = std::string(name(r.what)) + " " + name(r.on.kind) + " " + r.on.id;
    EXPECT_EQ(answer(nobody, r.what, r.on), r.nobody) << at;
    EXPECT_EQ(answer(of_7, r.what, r.on), r.task) << at;
    EXPECT_EQ(answer(ada, r.what, r.on), r.user) << at;
    EXPECT_EQ(answer(admin, r.what, r.on), r.admin) << at;
  }
}

TEST(Authority, BeforeTheThingIsKnownOnlyThoseGoOnWhoMayDoItToSome) {
  EXPECT_TRUE(may_any(of_7, {change, checkpoint}));
  EXPECT_TRUE(may_any(ada, {change, self}));
  EXPECT_FALSE(may_any(of_7, {change, self}));
  EXPECT_FALSE(may_any(ada, {change, user}));
  EXPECT_FALSE(may_any(ada, {report, allocation}));
  EXPECT_TRUE(may_any(ada, {report, trial})); // the trial may be unmanaged
  EXPECT_FALSE(may_any(nobody, {view, checkpoint}));
}

TEST(Authority, EachPairStandsInTheTableOnce) {
  std::set<std::pair<int, int>> seen;
  for (const auto& rule : rules()) {
    EXPECT_TRUE(seen.insert({static_cast<int>(rule.on.what), static_cast<int>(rule.on.on)}).second)
      << name(rule.on.what) << " " << name(rule.on.on);
    EXPECT_TRUE(rule.open || rule.of_users != users::nobody || rule.of_tasks != tasks::none);
  }
}

TEST(Authority, ATaskOfNobodyLooksAtItsOwnThingsAlone) {
  auto orphan = of_7;
  orphan.id.clear(); // the account of the owner does not exist, or is not active
  EXPECT_EQ(answer(orphan, view, {trial, "12"}), "yes");
  EXPECT_EQ(answer(orphan, view, {trial, "13"}), "denied");
  EXPECT_EQ(answer(orphan, view, {files, "7"}), "denied");
  EXPECT_EQ(answer(orphan, report, {trial, "12"}), "yes");
}

TEST(Authority, ATaskNeverHasTheRightsOfAnAdmin) {
  auto of_admin = of_7;
  of_admin.admin = true; // the owner of the task is an admin
  for (const auto& rule : rules())
    if (rule.of_tasks == tasks::none && !rule.open &&
        !(rule.on.what == view && rule.of_users == users::all)) {
      EXPECT_EQ(answer(of_admin, rule.on.what, {rule.on.on, "1"}), "denied")
        << name(rule.on.what) << " " << name(rule.on.on);
    }
}

} // namespace
} // namespace troupe::authority

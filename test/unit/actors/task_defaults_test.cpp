// Tests the account under which a task runs: that of its workspace before that of its owner.

#include "actors/catalogue/task_defaults.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

const unix_account of_ada{1001, 1001, "ada", "people"}, of_lab{2001, 2002, "lab", "lab-group"};

struct house {
  catalogue records;
  places where;

  void user(std::uint64_t id, const std::string& name, std::vector<unix_account> runs_as) {
    user_changed x{time_point{duration{1}}, "admin", {id}, name};
    x.runs_as = std::move(runs_as);
    records.replay(cluster_fact{x});
  }
  void workspace(std::uint64_t id, const std::string& name, std::vector<unix_account> runs_as) {
    workspace_changed x{time_point{duration{1}}, "admin", {id}, name, "admin"};
    x.runs_as = std::move(runs_as);
    where.replay(cluster_fact{x});
  }
  /// Returns "uid:gid user:group" of the account, or "-" if there is none.
  std::string account(std::uint64_t workspace, const std::string& owner) const {
    const auto got = task_defaults(records, where, "default", {workspace}, owner).account;
    return got
             ? std::to_string(got->uid) + ":" + std::to_string(got->gid) + " " + got->user + ":" + got->group
             : "-";
  }
};

TEST(TaskDefaults, TheAccountOfTheWorkspaceComesBeforeThatOfTheUser) {
  house h;
  h.user(7, "ada", {of_ada});
  h.user(8, "bob", {});
  h.workspace(2, "lab", {of_lab});
  h.workspace(3, "hall", {});
  EXPECT_EQ(h.account(2, "ada"), "2001:2002 lab:lab-group");
  EXPECT_EQ(h.account(3, "ada"), "1001:1001 ada:people");
  EXPECT_EQ(h.account(9, "ada"), "1001:1001 ada:people") << "a workspace that is gone has no account";
  EXPECT_EQ(h.account(2, "bob"), "2001:2002 lab:lab-group");
  EXPECT_EQ(h.account(3, "bob"), "-");
  EXPECT_EQ(h.account(3, "nobody-of-that-name"), "-");
  h.workspace(2, "lab", {});
  EXPECT_EQ(h.account(2, "ada"), "1001:1001 ada:people");
}

TEST(TaskDefaults, TheAccountOfARenamedUserIsThatOfWhatWasMadeBefore) {
  house h;
  h.user(7, "ada", {of_ada});
  user_wish to;
  to.name = "countess";
  ASSERT_TRUE(h.records.change_user({7}, to, "admin", time_point{duration{2}}));
  EXPECT_EQ(h.account(3, "ada"), "1001:1001 ada:people");
  EXPECT_EQ(h.account(3, "countess"), "1001:1001 ada:people");
}

} // namespace
} // namespace troupe

// Tests what a new directory begins with.

#include "runtime/node/first_facts.hpp"

#include "model/authority/roles.hpp"

#include <gtest/gtest.h>

namespace troupe::node {
namespace {

/// Opens the accounts over a journal in memory as a start does. Returns how many roles are given then, each
/// of which has to be that of the user `admin`.
std::size_t roles_after_start(storage::journal& journal) {
  api::accounts::options how;
  how.loopback = true;
  const auto opened = open_accounts(journal, {}, how, time_point{});
  EXPECT_TRUE(opened) << opened.error().what;
  const auto roles = storage::records_of<roles_changed>(*journal.reads());
  EXPECT_TRUE(roles);
  for (const auto& one : *roles) {
    EXPECT_EQ(one.role, authority::cluster_admin);
    EXPECT_EQ(one.user, user_id{1});
    EXPECT_FALSE(one.workspace);
  }
  return roles->size();
}

TEST(FirstFacts, TheAdminOfANewDirectoryIsClusterAdmin) {
  const auto journal = storage::make_memory_journal();
  EXPECT_EQ(roles_after_start(*journal), 1u);
  EXPECT_EQ(roles_after_start(*journal), 1u) << "the next start adds nothing";
}

TEST(FirstFacts, AnOlderDirectoryGivesNoRole) {
  const auto journal = storage::make_memory_journal();
  ASSERT_TRUE(journal->append({cluster_entity, 0, {encode(setting_changed{time_point{}, "ann", "a", 1})}}));
  ASSERT_TRUE(journal->commit());
  EXPECT_EQ(roles_after_start(*journal), 0u);
}

} // namespace
} // namespace troupe::node

#include "storage/audit_log.hpp"

#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace troupe::storage {
namespace {

class AuditLog : public testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/audit-XXXXXX";
    folder_ = ::mkdtemp(name);
    file_ = folder_ / "audit";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_, file_;
};

TEST_F(AuditLog, KeepsItsRowsOverAReopen) {
  {
    auto log = audit_log::open(file_);
    ASSERT_TRUE(log);
    ASSERT_TRUE((*log)->append({{"what", "kill trial/7"}, {"user", "ada"}}));
    ASSERT_TRUE((*log)->append({{"what", "a line\nof two"}}));
  }
  auto log = audit_log::open(file_);
  ASSERT_TRUE(log);
  ASSERT_EQ((*log)->rows().size(), 2u);
  EXPECT_EQ((*log)->rows()[0]["user"], "ada");
  EXPECT_EQ((*log)->rows()[1]["what"], "a line\nof two");
  EXPECT_EQ(std::filesystem::status(file_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(AuditLog, ALineThatWasCutOffSpoilsNoOther) {
  std::ofstream(file_) << "{\"what\":\"first\"}\n{\"what\":\"seco";
  auto log = audit_log::open(file_);
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->append({{"what", "third"}}));
  std::vector<std::string> seen;
  ASSERT_TRUE(audit_log::replay(file_, [&](const value& row) { seen.push_back(row["what"]); }));
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "third"}));
}

TEST_F(AuditLog, WhatDoesNotFitLeavesNothingBehind) {
  auto log = audit_log::open(file_);
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->append({{"what", "first"}}));
  const auto size = std::filesystem::file_size(file_);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto old = ::signal(SIGXFSZ, SIG_IGN);
  rlimit tight{size + 10, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &tight);
  const auto refused = (*log)->append({{"what", std::string(100, 'x')}});
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old);
  EXPECT_FALSE(refused);
  EXPECT_EQ(std::filesystem::file_size(file_), size);
  EXPECT_EQ((*log)->rows().size(), 1u);
}

TEST_F(AuditLog, AFolderThatIsNotThereIsAnError) {
  auto log = audit_log::open(folder_ / "no" / "audit");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, errc::io);
  EXPECT_NE(log.error().what.find("audit"), std::string::npos);
}

} // namespace
} // namespace troupe::storage

#include "workers/port_claims.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe::workers {
namespace {

/// Listens on a port.
struct listening {
  explicit listening(int port) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    EXPECT_EQ(::listen(fd.get(), 1), 0);
  }
  owned_fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

TEST(PortClaims, NoPortHasTwoOwners) {
  port_claims ours, of_another_agent;
  const auto a = ours.claim("a", {23'000, 23'000}).value();
  EXPECT_LT(a[0], a[1]);
  for (const auto& others : {ours.claim("b", {23'000}), of_another_agent.claim("c", {23'000})}) {
    ASSERT_TRUE(others) << others.error().what;
    EXPECT_GT(others->at(0), a[1]);
  }
}

TEST(PortClaims, WhatIsGivenBackIsClaimedAgainUnlessSomebodyListens) {
  port_claims claims;
  const auto first = claims.claim("a", {25'000}).value();
  claims.release("a");
  EXPECT_EQ(claims.claim("b", {25'000}).value(), first);
  claims.release("b");
  const listening there(first[0]);
  EXPECT_GT(claims.claim("c", {25'000}).value()[0], first[0]);
}

TEST(PortClaims, OfAnAdoptedTaskAreItsOwn) {
  port_claims ours, of_another_agent;
  const auto theirs = of_another_agent.claim("x", {24'000}).value();
  ours.restore("a", {theirs[0], 24'500});
  EXPECT_GT(ours.claim("b", {24'500}).value()[0], 24'500);
  ours.release("a");
  EXPECT_EQ(ours.claim("c", {24'500}).value()[0], 24'500);
  EXPECT_GT(ours.claim("d", {24'000}).value()[0], theirs[0]) << "it was never ours";
}

} // namespace
} // namespace troupe::workers

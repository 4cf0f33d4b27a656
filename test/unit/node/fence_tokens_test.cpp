// Tests that the token of an agent is the HMAC-SHA256 of its name with the secret of the data directory as
// key. So an agent keeps its token across builds of the master.

#include "runtime/node/fence_tokens.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe::node {
namespace {

TEST(FenceTokens, AreThoseOfTheStoredSecretInEveryBuild) {
  const auto file = std::filesystem::temp_directory_path() / ("fence-" + std::to_string(getpid()));
  std::ofstream(file) << "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  const auto tokens = fence_tokens::open(file);
  ASSERT_TRUE(tokens) << tokens.error().what;
  // Python's hmac module made this value.
  EXPECT_EQ(tokens->of("agent-1"), "054601e3261d922c9e01fe3477760d60a644193892c1a14cef83cb439d3777b4");
  EXPECT_NE(tokens->of("agent-2"), tokens->of("agent-1"));
  std::filesystem::remove(file);
  const auto made = fence_tokens::open(file);
  const auto again = fence_tokens::open(file);
  ASSERT_TRUE(made && again);
  EXPECT_EQ(made->of("a"), again->of("a")) << "the secret that was made is kept";
  EXPECT_NE(made->of("agent-1"), tokens->of("agent-1"));
  std::filesystem::remove(file);
}

} // namespace
} // namespace troupe::node

// Tests what a master may say to an agent that brings it a connection to a service, with answers that are
// changed at random. The agent has to continue after each. test/fuzz/opener.cpp does the same with libFuzzer.
// TROUPE_OPENER_ANSWERS sets how many answers are tried (default: 1000), TROUPE_OPENER_SEED the first seed.

#include "opener_stage.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

namespace troupe {
namespace {

const std::string answers[] = {
  "\x04HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: troupe-connection\r\n\r\nhello",
  "\x0eHTTP/1.1 101 S\r\nContent-Length: 5\r\n\r\nhello\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  "\x01HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
  "\x06HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  "\x08HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 S\r\n\r\nlate",
};

std::string mended(std::mt19937& random) {
  auto text = answers[random() % std::size(answers)];
  for (auto times = random() % 6; times > 0; --times) {
    const auto at = random() % text.size(), length = 1 + random() % 12;
    switch (random() % 5) {
    case 0:
      text[at] = static_cast<char>(random());
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(random() % text.size(), length));
      break;
    case 3:
      text.insert(at, std::string(random() % 5000, "\r\n\0x:"[random() % 5]));
      break;
    default:
      text.resize(at + 1);
    }
    if (text.empty())
      text = "a";
  }
  return text;
}

TEST(ServiceOpener, TakesNoHarmFromWhatAMasterSays) {
  const auto number = [](const char* name, unsigned otherwise) {
    const char* text = std::getenv(name);
    return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
  };
  std::mt19937 random(number("TROUPE_OPENER_SEED", 1));
  opener_stage on;
  for (const auto& one : answers)
    ASSERT_NO_THROW(play(on, one)) << one;
  for (auto left = number("TROUPE_OPENER_ANSWERS", 1000); left > 0; --left) {
    const auto input = mended(random);
    ASSERT_NO_THROW(play(on, input)) << testing::PrintToString(input) << " with " << left << " left";
  }
}

} // namespace
} // namespace troupe

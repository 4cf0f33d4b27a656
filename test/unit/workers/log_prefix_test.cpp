#include "workers/log_prefix.hpp"

#include <gtest/gtest.h>
#include <string>

namespace troupe::workers {
namespace {

TEST(LogPrefix, RankAndLevelAreTakenOffALineAndNothingElseIs) {
  for (const auto& [line, expected] : {
         std::pair{"plain", "-||plain"},
         {"[rank=1] text", "1||text"},
         {"INFO: [12] root: text", "-|INFO|[12] root: text"},
         {"[rank=12] WARNING: text", "12|WARNING|text"},
         {"[rank=0] ", "0||"},
         {"CRITICAL: ", "-|CRITICAL|"},
         {"", "-||"},
         {"[rank=] x", "-||[rank=] x"},
         {"[rank=1]x", "-||[rank=1]x"},
         {"[rank=-1] x", "-||[rank=-1] x"},
         {"[rank=99999999999] x", "-||[rank=99999999999] x"},
         {" [rank=1] x", "-|| [rank=1] x"},
         {"INFO:root:text", "-||INFO:root:text"}, // the format of Python's logging stays as it is
         {"INFORMATION: x", "-||INFORMATION: x"},
         {"INFO: [rank=1] x", "-|INFO|[rank=1] x"},
         {"[rank=1] [rank=2] x", "1||[rank=2] x"},
       }) {
    auto got = read_log_prefix(line);
    EXPECT_EQ((got.rank ? std::to_string(*got.rank) : "-") + "|" + std::string(got.level) + "|" +
                std::string(got.rest),
              expected)
      << line;
  }
}

} // namespace
} // namespace troupe::workers

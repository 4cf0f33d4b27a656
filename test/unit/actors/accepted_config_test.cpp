#include "actors/cluster/accepted_config.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

result<accepted_config> accepted(const std::string& more) {
  return accept_config("entrypoint: x\nhyperparameters: {}\n" + more, "mine.yaml", "/data/checkpoints",
                       nullptr);
}
const std::string single = "searcher: {name: single, metric: loss}\n";

TEST(AcceptConfig, MakesTheCheckpointFolderAbsolute) {
  struct {
    std::string storage, folder;
  } cases[] = {
    {"", "/data/checkpoints"},
    {"checkpoint_storage: {type: directory, container_path: /else}\n", "/else"},
    {"checkpoint_storage: {type: directory, container_path: mine}\n", "/data/mine"},
  };
  for (const auto& c : cases) {
    auto got = accepted(single + c.storage);
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_EQ(got->settings["checkpoint_storage"]["container_path"], c.folder);
    EXPECT_NE(got->source.find("entrypoint: x"), std::string::npos);
  }
}

TEST(AcceptConfig, RefusesWithThePlaceOfEachFault) {
  auto got = accepted("searcher: {name: singel, metric: loss}\nmax_restart: 1\n");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::invalid);
  EXPECT_NE(got.error().what.find("mine.yaml:3:18"), std::string::npos) << got.error().what;
  EXPECT_NE(got.error().what.find("mine.yaml:4:1"), std::string::npos) << got.error().what;
}

} // namespace
} // namespace troupe

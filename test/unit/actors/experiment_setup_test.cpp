// Where an experiment's checkpoints go, by its configuration, as Determined reads it.

#include "actors/experiment/experiment_setup.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ExperimentSetup, TheCheckpointFolderIsAsDeterminedReadsIt) {
  struct {
    const char* storage;
    const char* folder;
  } cases[] = {
    {R"({"type": "shared_fs", "host_path": "/mnt/all"})", "/mnt/all"},
    {R"({"type": "shared_fs", "host_path": "/mnt/all", "storage_path": "mine"})", "/mnt/all/mine"},
    {R"({"type": "shared_fs", "host_path": "/mnt/all", "storage_path": "a/b", "propagation": "rslave"})",
     "/mnt/all/a/b"},
    {R"({"type": "shared_fs", "host_path": "/mnt/all", "storage_path": "/mnt/all/deep"})", "/mnt/all/deep"},
    {R"({"type": "shared_fs", "host_path": "/mnt/all", "container_path": "/of/older/versions"})", "/mnt/all"},
    {R"({"type": "directory", "container_path": "/mnt/here"})", "/mnt/here"},
    {R"({"type": "directory", "container_path": "mine"})", "/data/mine"},
    {"{}", "/data/checkpoints"},
  };
  for (const auto& c : cases) {
    value config = {{"entrypoint", "x"}, {"checkpoint_storage", parse_json(c.storage).value()}};
    EXPECT_EQ(launch_of({7}, config, "", "/data/checkpoints", {})["checkpoint_dir"], c.folder) << c.storage;
  }
}

} // namespace
} // namespace troupe

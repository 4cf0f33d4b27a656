// Event files of a trial over several runs and several lives of its agent, read back record by record.

#include "actors/harness/event_writer_part.hpp"

#include "actors/allocation/task_launch.hpp"
#include "actors/host/task_files_part.hpp"
#include "workers/event_files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <msgpack.hpp>
#include <sstream>

namespace troupe {
namespace {

namespace fs = std::filesystem;

class EventWriter : public testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe-events-XXXXXX";
    folder = ::mkdtemp(pattern);
    fs::create_directories(folder / "checkpoints");
  }
  void TearDown() override { fs::remove_all(folder); }

  allocation_id run(std::uint64_t number, std::int64_t from_steps) const {
    const allocation_id id{{12}, {number}};
    task_launch x;
    x.experiment = {7};
    x.cluster_id = "c";
    x.checkpoint_dir = (folder / "checkpoints").string();
    x.resume_steps = from_steps;
    fs::create_directories(folder / "tasks" / to_string(id));
    std::ofstream(folder / "tasks" / to_string(id) / launch_file, std::ios::binary) << encode(x);
    return id;
  }

  /// Plays one life of the agent. What it was told is on disk when the life ends.
  void live(allocation_id of, const std::vector<std::int64_t>& steps) {
    event_writer writer(folder / "tasks", [](const std::string& why) { ADD_FAILURE() << why; });
    std::vector<storage::report_batch::report> reports;
    for (const auto step : steps) {
      msgpack::sbuffer metrics;
      msgpack::packer<msgpack::sbuffer> pack(metrics);
      pack.pack_map(1);
      pack.pack("loss");
      pack.pack(0.5);
      reports.push_back({"training", step, at, {metrics.data(), metrics.size()}, {}});
    }
    writer.add(of, std::move(reports));
  }

  /// The files of a run, each as the number of its records after the header. "START 3, " stands before that
  /// where the file makes its readers forget points from step 3 on.
  std::vector<std::string> files_of(int number) const {
    std::vector<std::string> all;
    for (const auto& one : fs::recursive_directory_iterator(folder / "checkpoints"))
      if (one.path().native().ends_with("." + std::to_string(number) + ".troupe"))
        all.push_back(shown(one.path()));
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string shown(const fs::path& path) const {
    std::ostringstream whole;
    whole << std::ifstream(path, std::ios::binary).rdbuf();
    const auto bytes = whole.str();
    std::vector<std::string> records;
    for (std::size_t begin = 0; begin + 12 <= bytes.size();) {
      std::uint64_t size = 0;
      std::memcpy(&size, bytes.data() + begin, sizeof size);
      records.push_back(bytes.substr(begin, size + 16));
      begin += size + 16;
    }
    EXPECT_FALSE(records.empty());
    std::string said;
    for (std::int64_t step = 0; step < 20 && records.size() > 1; ++step)
      if (is_restart(records[1], step))
        said = "START " + std::to_string(step) + ", ";
    return said + std::to_string(records.size() - 1 - (said.empty() ? 0 : 1));
  }
  /// Whether the record is a START of this step. Its time, when the file was made, and its checksum are not
  /// compared.
  static bool is_restart(const std::string& record, std::int64_t step) {
    const auto like = workers::event_restart(at, step);
    constexpr std::size_t time_end = 8 + 4 + 1 + 8;
    return record.size() == like.size() && record.substr(time_end, record.size() - time_end - 4) ==
                                             like.substr(time_end, like.size() - time_end - 4);
  }

  static constexpr time_point at{std::chrono::microseconds(1'700'000'000'500'000)};
  fs::path folder;
};

// TensorBoard takes the first START of a trial for its beginning, and forgets points at the others.
TEST_F(EventWriter, ARunThatBeginsFromACheckpointMakesTensorBoardForgetWhatIsBeyondIt) {
  live(run(1, 0), {1, 2, 3, 4});
  live(run(2, 2), {4, 5}); // the first report is not of the first step that the run repeats
  live(run(3, 0), {0, 1}); // no checkpoint was left to begin from
  EXPECT_EQ(files_of(1), std::vector<std::string>{"START 0, 4"});
  EXPECT_EQ(files_of(2), std::vector<std::string>{"START 3, 2"});
  EXPECT_EQ(files_of(3), std::vector<std::string>{"START 0, 2"});
}

TEST_F(EventWriter, ARunThatGoesOnUnderAnotherAgentLosesNothing) {
  const auto id = run(2, 2);
  live(id, {3, 4});
  // Renames the file to a name that this process does not give, so that it counts as another process's.
  const auto here = folder / "checkpoints/c/tensorboard/experiment/7/trial/12";
  for (const auto& one : fs::directory_iterator(here))
    fs::rename(one.path(), here / "events.out.tfevents.1700000000.host.1.2.troupe");
  live(id, {4, 5, 6});
  EXPECT_EQ(files_of(2), (std::vector<std::string>{"3", "START 3, 2"}));
}

} // namespace
} // namespace troupe

// The actor that removes the files that retention has decided on: it reports the outcome of each piece,
// whatever happens to the others.

#include "actors/retention/remover_actor.hpp"

#include "stage.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe {
namespace {

namespace fs = std::filesystem;

class RemoverActor : public Stage {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe-remover-XXXXXX";
    folder = ::mkdtemp(pattern);
    store = "directory:" + folder.string();
    for (const auto& key : {first, second})
      for (const auto* file : {"weights", "code/model.py"}) {
        fs::create_directories((folder / key / file).parent_path());
        std::ofstream(folder / key / file) << "x";
      }
    remover = on_stage(spawn_remover(*system_, 2));
  }
  void TearDown() override {
    Stage::TearDown();
    remover = nullptr;
    fs::remove_all(folder);
  }
  /// Removes the pieces and returns the outcome of each.
  std::vector<removal> remove(std::vector<removal_piece> pieces, std::vector<removal> done = {}) {
    auto work = std::make_shared<removal_work>(removal_work{std::move(pieces), std::move(done)});
    caf::scoped_actor self{*system_};
    auto answer = self->request(remover, std::chrono::seconds(1), remove_stored{work});
    run();
    answer.receive([&](const stored_removed& x) { EXPECT_EQ(x.work, work); },
                   [](const caf::error& why) { ADD_FAILURE() << from_caf(why).what; });
    return work->done;
  }

  const std::string first = "0189c0de-0000-7000-8000-000000000001",
                    second = "0189c0de-0000-7000-8000-000000000002";
  fs::path folder;
  std::string store;
  remover_actor remover;
};

TEST_F(RemoverActor, RemovesEachPieceAndTellsHowManyFilesItHad) {
  const auto done = remove({{"a", store, first}, {"b", store, second, {"weights"}}});
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].checkpoint, "a");
  EXPECT_EQ(done[0].files, 2u);
  EXPECT_EQ(done[0].why, "");
  EXPECT_EQ(done[1].checkpoint, "b");
  EXPECT_EQ(done[1].files, 1u);
  EXPECT_FALSE(fs::exists(folder / first));
  EXPECT_FALSE(fs::exists(folder / second / "weights"));
  EXPECT_TRUE(fs::exists(folder / second / "code/model.py"));
}

TEST_F(RemoverActor, APieceThatCannotBeRemovedDoesNotKeepTheOthers) {
  const auto done = remove({{"a", "no store", first}, {"b", store, second}});
  ASSERT_EQ(done.size(), 2u);
  EXPECT_NE(done[0].why, "");
  EXPECT_EQ(done[0].files, 0u);
  EXPECT_EQ(done[1].why, "");
  EXPECT_FALSE(fs::exists(folder / second));
}

TEST_F(RemoverActor, WhatIsGoneAlreadyIsNotAFault) {
  static_cast<void>(remove({{"a", store, first}}));
  const auto again = remove({{"a", store, first}});
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].files, 0u);
  EXPECT_EQ(again[0].why, "");
}

TEST_F(RemoverActor, WorkThatAnotherBeganIsDoneFromItsBeginning) {
  const auto done = remove({{"a", store, first}}, {{"a", 1, "its remover died"}});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].files, 2u);
  EXPECT_EQ(done[0].why, "");
}

TEST_F(RemoverActor, IsKnownByItsNumber) {
  run();
  EXPECT_TRUE(config_.probes->find("remover/2"));
}

} // namespace
} // namespace troupe

// Tests that stored lists of trials say what a list says that is made anew.

#include "runtime/api/shapes.hpp"
#include "runtime/api/trial_texts.hpp"
#include "storage/trial_watch.hpp"
#include "test/unit/api/fakes.hpp"

#include <random>
#include <set>

namespace troupe::api {
namespace {

struct watched_reader : fake_reader, storage::trial_watch {
  storage::trial_changes trials_since(std::uint64_t version) const override {
    storage::trial_changes out{changes.size() + 1, version == 0 || forgetful, {}};
    std::set<trial_id> some;
    for (auto i = version ? version - 1 : 0; i < changes.size(); ++i)
      some.insert(changes[i]);
    if (!out.all)
      out.changed.assign(some.begin(), some.end());
    return out;
  }
  storage::trial_changes reports_since(std::uint64_t) const override { return {}; }
  result<std::map<trial_id, std::int64_t>> reported_steps(const std::vector<trial_id>& of) const override {
    std::map<trial_id, std::int64_t> out;
    for (const auto id : of)
      if (const auto found = trial_rows.find(id.value);
          found != trial_rows.end() && found->second.reported_steps > 0)
        out[id] = found->second.reported_steps;
    return out;
  }
  result<trial_row> trial(trial_id id) const override {
    ++read;
    return fake_reader::trial(id);
  }
  result<std::vector<trial_row>> trials(experiment_id id) const override {
    ++listed;
    return fake_reader::trials(id);
  }
  void change(trial_id id) { changes.push_back(id); }
  std::vector<trial_id> changes;
  bool forgetful = false;
  mutable std::size_t read = 0, listed = 0;
};

std::string anew(const fake_reader& reader, experiment_id of) {
  std::string out;
  const auto rows = *reader.fake_reader::trials(of);
  for (const auto& row : rows)
    out += (out.empty() ? "" : ",") + to_json(trial_progress_shape(row));
  return out;
}

std::string kept(trial_texts& texts, const storage::reader& reader, experiment_id of) {
  std::string out;
  EXPECT_TRUE(texts.write(of, reader, out));
  return out;
}

TEST(TrialTexts, FollowWhatChangesAsIfAllWereReadAgain) {
  watched_reader reader;
  trial_texts texts;
  std::mt19937 random(11);
  for (int step = 0; step < 2000; ++step) {
    for (auto changes = random() % 6; changes > 0; --changes) {
      const trial_id id{1 + random() % 60};
      reader.change(id);
      if (random() % 8 == 0) {
        reader.trial_rows.erase(id.value); // the trial is deleted
        continue;
      }
      auto& row = reader.trial_rows[id.value];
      row.id = id;
      row.experiment = {1 + id.value % 3};
      row.restarts = static_cast<int>(random() % 9);
      row.why = "step " + std::to_string(step) + " \"totalBatches\":9";
      row.hparams = {{"totalBatches", step}, {"zz", {{"totalBatches", 1}}}};
      row.latest.steps = static_cast<std::int64_t>(random() % 5);
    }
    // A report changes the steps of its trial, and no change of the row is told.
    if (auto some = reader.trial_rows.find(1 + random() % 60); some != reader.trial_rows.end())
      some->second.reported_steps = static_cast<std::int64_t>(random() % 100);
    reader.forgetful = random() % 50 == 0;
    const experiment_id asked{1 + random() % 4}; // experiment 4 has no trial
    EXPECT_EQ(kept(texts, reader, asked), anew(reader, asked)) << step;
  }
  EXPECT_LT(reader.listed, 100u);
}

TEST(TrialTexts, AListAfterOneChangeReadsOneTrial) {
  watched_reader reader;
  trial_texts texts;
  for (std::uint64_t id = 1; id <= 500; ++id) {
    auto& row = reader.trial_rows[id];
    row.id = {id};
    row.experiment = {7};
    reader.change({id});
  }
  EXPECT_EQ(kept(texts, reader, {7}), anew(reader, {7}));
  EXPECT_EQ(reader.listed, 1u);
  reader.trial_rows[250].restarts = 3;
  reader.change({250});
  EXPECT_EQ(kept(texts, reader, {7}), anew(reader, {7}));
  EXPECT_EQ(kept(texts, reader, {7}), anew(reader, {7}));
  EXPECT_EQ(reader.read, 1u);
  EXPECT_EQ(reader.listed, 1u);
}

TEST(TrialTexts, AReaderWithoutVersionsIsReadEachTime) {
  fake_reader reader;
  trial_texts texts;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    reader.trial_rows[id].id = {id};
    reader.trial_rows[id].experiment = {7};
    reader.trial_rows[id].reported_steps = 40;
    EXPECT_EQ(kept(texts, reader, {7}), anew(reader, {7}));
  }
}

TEST(TrialTexts, ListsThatAreTooLargeAreForgottenAndMadeAgain) {
  watched_reader reader;
  trial_texts texts(4000);
  for (std::uint64_t id = 1; id <= 6; ++id) {
    auto& row = reader.trial_rows[id];
    row.id = {id};
    row.experiment = {id};
    row.why = std::string(1000, 'x');
  }
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t id = 1; id <= 6; ++id)
      EXPECT_TRUE(kept(texts, reader, {id}) == anew(reader, {id}));
  EXPECT_EQ(reader.listed, 12u) << "each is the longest unasked before its turn comes again";
}

} // namespace
} // namespace troupe::api

// Tests the list of experiments, which is made of stored texts: it has to say what the rows say after every
// kind of change.

#include "table.hpp"

#include "storage/standing_watch.hpp"

#include <random>

namespace troupe::api {
namespace {

value listed(table& t, const std::string& query = {}) {
  auto got = t.ask("GET", "/api/v1/experiments" + query, t.user());
  EXPECT_EQ(got.status, 200u) << got.body;
  return parse_json(got.body).value()["experiments"];
}

value shaped(table& t) {
  value all = value::array();
  const auto places = place_book::read(*t.reader);
  for (const auto& [id, row] : t.reader->experiment_rows)
    all.push_back(experiment_shape(row, *t.users, *places));
  return all;
}

TEST(ExperimentTexts, SayWhatTheRowsSayAfterEveryChange) {
  table t;
  auto& rows = t.reader->experiment_rows;
  for (std::uint64_t id : {3, 9}) {
    rows[id] = rows[7];
    rows[id].id = {id};
    rows[id].name = "number " + std::to_string(id);
  }
  struct {
    const char* what;
    std::function<void()> change;
  } changes[] = {
    {"as they are", [] {}},
    {"a state", [&] { rows[7].state = experiment_state::paused; }},
    {"an end",
     [&] {
       rows[7].state = experiment_state::completed, rows[7].ended = t0 + std::chrono::seconds{90},
       rows[7].progress = 1;
     }},
    {"a best trial", [&] { rows[3].best_trial = {12}, rows[3].best_metric = 0.25, rows[3].num_trials = 4; }},
    {"a best metric alone", [&] { rows[3].best_metric = 0.125; }},
    {"a new experiment", [&] { rows[11] = rows[9], rows[11].id = {11}; }},
    {"a name of the owner",
     [&] {
       user_changed x{t0, "admin", {2}, "determined", "Dora"};
       t.users->take(x);
     }},
  };
  for (const auto& [what, change] : changes) {
    change();
    t.reader->add("trial/12", trial_activated{t0}); // a commit, so that no stored answer is used
    EXPECT_EQ(listed(t), shaped(t)) << what;
    EXPECT_EQ(parse_json(t.ask("GET", "/api/v1/experiments?pretty", t.user()).body).value()["experiments"],
              shaped(t))
      << what;
  }
  EXPECT_EQ(listed(t, "?name=NUMBER&orderBy=ORDER_BY_DESC&limit=2").size(), 2u);
  EXPECT_EQ(listed(t, "?states=STATE_COMPLETED")[0]["id"], 7);
  rows[9].checkpoint_count = 5;
  t.reader->add("trial/12", trial_activated{t0});
  const auto ids = [&](const std::string& query) {
    std::vector<std::uint64_t> out;
    for (const auto& one : listed(t, query))
      out.push_back(one["id"].get<std::uint64_t>());
    return out;
  };
  using these = std::vector<std::uint64_t>;
  EXPECT_EQ(ids("?sortBy=SORT_BY_CHECKPOINT_COUNT"), (these{3, 7, 8, 11, 9}));
  EXPECT_EQ(ids("?sortBy=SORT_BY_CHECKPOINT_COUNT&orderBy=ORDER_BY_DESC&limit=2"), (these{9, 11}));
  EXPECT_EQ(ids("?sortBy=SORT_BY_CHECKPOINT_COUNT&orderBy=ORDER_BY_DESC&offset=2&limit=1"), these{8});
  EXPECT_EQ(ids("?sortBy=SORT_BY_END_TIME&orderBy=ORDER_BY_DESC"), (these{7, 3, 8, 9, 11}))
    << "unset ones last";
  EXPECT_EQ(ids("?experimentIdFilter.gt=3&experimentIdFilter.notIn=9"), (these{7, 8, 11}));
  const std::string same(16, 'n');
  for (const auto& [id, name] : {std::pair{3, same + "b"},
                                 {7, same},
                                 {8, std::string("n\xc3\xa4")},
                                 {9, same + "a"},
                                 {11, std::string()}})
    rows[id].name = name, ++rows[id].edits;
  t.reader->add("trial/12", trial_activated{t0});
  EXPECT_EQ(ids("?sortBy=SORT_BY_NAME"), (these{11, 7, 9, 3, 8}));
  EXPECT_EQ(ids("?sortBy=SORT_BY_NAME&orderBy=ORDER_BY_DESC&limit=3"), (these{8, 3, 9}));
}

TEST(ExperimentTexts, ForgetTheTextsWhenTheyAreTooMany) {
  table t;
  auto& rows = t.reader->experiment_rows;
  const auto one = rows[7];
  rows.clear();
  constexpr std::size_t each = 4u << 20, count = 2 * experiment_texts::most_bytes / each;
  for (std::uint64_t id = 1; id <= count; ++id) {
    rows[id] = one;
    rows[id].id = {id};
    rows[id].source = std::string(each, 'x');
  }
  experiment_texts texts;
  auto all = texts.all(*t.reader);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), count);
  const auto places = place_book::read(*t.reader);
  ASSERT_TRUE(places);
  for (int round = 0; round < 2; ++round)
    for (std::size_t i : {std::size_t{0}, count / 2, count - 1}) {
      std::string text;
      ASSERT_TRUE(texts.write((*all)[i], *t.reader, *t.users, *places, text));
      EXPECT_EQ(parse_json(text).value(), experiment_shape(rows[i + 1], *t.users, *places));
    }
}

/// Tells what has changed since any earlier answer. It keeps all answers for that.
struct watched_reader : fake_reader, storage::standing_watch {
  result<storage::standing_changes> standings_since(std::uint64_t version) const override {
    std::map<experiment_id, experiment_standing> now;
    const auto rows = *experiment_standings();
    for (const auto& one : rows)
      now[one.id] = one;
    auto changed = now;
    for (const auto& [id, one] : version == 0 ? decltype(now){} : told[version - 1]) {
      if (!now.contains(id))
        changed[id].id = id, changed[id].project = {};
      else if (now[id] == one)
        changed.erase(id);
    }
    told.push_back(now);
    storage::standing_changes out{told.size(), {}};
    for (const auto& [id, one] : changed)
      out.changed.push_back(one);
    return out;
  }
  mutable std::vector<std::map<experiment_id, experiment_standing>> told;
};

TEST(ExperimentTexts, FollowWhatChangesAsIfAllWereReadAgain) {
  watched_reader reader;
  experiment_texts texts;
  std::mt19937 random(7);
  using texts_by = experiment_texts::text;
  // lists that a reader still uses
  std::vector<std::shared_ptr<const std::vector<experiment_texts::entry>>> others;
  for (int step = 0; step < 400; ++step) {
    for (int changes = static_cast<int>(random() % 4); changes > 0; --changes) {
      const std::uint64_t id = 1 + random() % 40;
      auto& row = reader.experiment_rows[id];
      if (random() % 5 == 0) {
        reader.experiment_rows.erase(id);
      } else if (random() % 3 == 0) {
        row.name = "name " + std::to_string(random() % 9); // several experiments have the same name
        ++row.edits;
      } else {
        row.progress = 1.0 / (step + 1);
      }
      if (auto at = reader.experiment_rows.find(id); at != reader.experiment_rows.end())
        at->second.id = {id};
    }
    // Only every other list is sorted by name. Changes in between have to count as well.
    const auto kept = texts.kept(reader, step % 2 ? std::optional(texts_by::name) : std::nullopt);
    const auto all = texts.all(reader);
    ASSERT_TRUE(kept && all);
    ASSERT_EQ(kept->rows->size(), all->size()) << step;
    for (std::size_t i = 0; i < all->size(); ++i) {
      EXPECT_EQ((*kept->rows)[i].now, (*all)[i].now) << step;
      EXPECT_EQ((*kept->rows)[i].lasting->name, (*all)[i].lasting->name) << step;
      const auto lesser = std::count_if(
        all->begin(), all->end(), [&](const auto& x) { return x.lasting->name < (*all)[i].lasting->name; });
      EXPECT_TRUE(!kept->ranks || (*kept->ranks)[i] == lesser) << step;
    }
    EXPECT_EQ(bool(kept->ranks), step % 2 == 1);
    others.push_back(kept->rows);
    const auto before = others.front()->size();
    if (random() % 3 == 0)
      others.clear();
    else
      EXPECT_EQ(others.front()->size(), before) << "who has one keeps it as it was";
  }
}

TEST(TextOrder, CostsWhatHasChanged) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i)
    texts.push_back("text " + std::to_string(i * 7 % 1000));
  std::size_t looks = 0;
  text_order order;
  const auto ranks = [&] {
    looks = 0;
    return *order.of(texts.size(),
                     [&](std::size_t row) -> const std::string& { return ++looks, texts[row]; });
  };
  const auto fine = [&] {
    const auto found = ranks();
    for (std::size_t i = 0; i < texts.size(); i += 37)
      EXPECT_EQ(found[i],
                std::count_if(texts.begin(), texts.end(), [&](const auto& x) { return x < texts[i]; }));
    return looks;
  };
  EXPECT_GT(fine(), 5000u);
  EXPECT_EQ(fine(), 0u);
  texts[500] = texts[37];
  order.changed(500);
  texts.push_back("text");
  const auto of_two = fine();
  EXPECT_GT(of_two, 0u);
  EXPECT_LT(of_two, 100u);
  texts.resize(texts.size() - 1);
  order.forget();
  EXPECT_GT(fine(), 5000u);
  for (std::size_t i = 0; i < 600; ++i) { // many texts change at once
    texts[i] = "other " + std::to_string(i % 17);
    order.changed(i);
  }
  EXPECT_GT(fine(), 5000u);
}

} // namespace
} // namespace troupe::api

// One suite for every searcher: budget, slots, snapshots, late and repeated events, every way to end, storms.

#include "model/rng.hpp"
#include "searchers/searcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace troupe::searchers {
namespace {

struct subject {
  std::string name;
  value config;
  search_mode mode = search_mode::native;
  bool conserves = true; ///< the search always has as many live trials as slots and budget allow
  int storm_events = 3000;
  friend std::ostream& operator<<(std::ostream& out, const subject& s) { return out << s.name; }
};

/// A space with enough points for a grid of a hundred thousand trials.
const value wide_space = parse_json(R"({
  "lr": {"type": "log", "base": 10, "minval": -5, "maxval": 0, "count": 50},
  "width": {"type": "int", "minval": 1, "maxval": 64, "count": 64},
  "net": {"act": {"type": "categorical", "vals": ["relu", "tanh", {"name": "x"}]},
          "dropout": {"type": "double", "minval": 0, "maxval": 0.7, "count": 12}, "empty": {}},
  "fixed": [1, 2]})")
                           .value();

const value mixed_space = parse_json(R"({
  "lr": {"type": "log", "base": 10, "minval": -5, "maxval": 0, "count": 4},
  "width": {"type": "int", "minval": 1, "maxval": 64, "count": 4},
  "net": {"act": {"type": "categorical", "vals": ["relu", "tanh", {"name": "x"}]},
          "dropout": {"type": "double", "minval": 0, "maxval": 0.7, "count": 3}, "empty": {}},
  "fixed": [1, 2]})")
                            .value();

value section_for(const std::string& name, int trials, int slots) {
  value c{{"name", name}, {"metric", "loss"}, {"max_trials", trials}, {"max_concurrent_trials", slots}};
  if (name != "random" && name != "grid" && name != "single") {
    c["time_metric"] = "epochs";
    c["max_time"] = 64;
  }
  if (name == "async_halving")
    c["num_rungs"] = 4;
  return c;
}

std::vector<subject> subjects() {
  std::vector<subject> all;
  for (auto name : {"random", "grid", "async_halving", "adaptive_asha", "asha_promotion", "sync_halving",
                    "hyperband", "pbt", "tpe", "median", "cma_es", "bohb", "nsga2"})
    all.push_back({name, section_for(name, 60, 5)});
  all.push_back({"gp", section_for("gp", 24, 4), search_mode::native, true, 300});
  auto with_policies = section_for("tpe", 60, 5);
  with_policies["early_stopping"] = {{"patience", {{"reports", 2}}},
                                     {"threshold", {{"upper", 50}}},
                                     {"median", {{"min_trials", 3}}},
                                     {"max_time", 16}};
  all.push_back({"tpe_with_policies", with_policies});
  all.push_back({"single", section_for("single", 1, 1)});
  for (auto name : {"random", "grid", "async_halving", "adaptive_asha"})
    all.push_back({std::string("compat_") + name, section_for(name, 60, 5), search_mode::compat, false});
  return all;
}

std::unique_ptr<searcher> start(const subject& s, std::uint64_t seed, const value& domain) {
  auto made = make_searcher(s.config, domain, seed, s.mode);
  EXPECT_TRUE(made) << made.error().what;
  return std::move(made).value();
}

std::string show(const search_action& action) {
  if (auto* x = std::get_if<create_trial>(&action))
    return "create " + x->trial + " " + to_json(x->hparams) + " " + std::to_string(x->trial_seed) +
           x->source_checkpoint;
  if (auto* x = std::get_if<stop_trial>(&action))
    return "stop " + x->trial + " (" + x->why + ")";
  if (auto* x = std::get_if<pause_trial>(&action))
    return "pause " + x->trial;
  if (auto* x = std::get_if<resume_trial>(&action))
    return "resume " + x->trial + " " + std::to_string(x->until);
  if (auto* x = std::get_if<perturb_trial>(&action))
    return "perturb " + x->trial + " from " + x->source + "@" + x->checkpoint + " " + to_json(x->hparams);
  auto& x = std::get<shut_down>(action);
  return "shutdown " + std::to_string(x.cancel) + std::to_string(x.failure);
}

/// A simulated cluster that does what the search orders. It counts and checks trials, slots and budget.
class cluster {
public:
  cluster(subject s, std::uint64_t seed, const value& domain = mixed_space)
      : s_(std::move(s)), seed_(seed), domain_(domain), search_(start(s_, seed, domain_)) {}

  void apply(const search_event& event) {
    auto got = search_->apply(event);
    ASSERT_TRUE(got) << got.error().what;
    for (const auto& action : *got)
      take(action);
    if (snapshots)
      reload();
    ASSERT_LE(running.size(), slots()) << said.back();
    if (s_.conserves && !over) {
      ASSERT_GE(running.size(), std::min(slots(), budget() + invalid_replaced() - created))
        << "after " << said.size() << " actions";
    }
    ASSERT_GE(search_->progress(), 0.0);
    ASSERT_LE(search_->progress(), 1.0);
  }

  void reload() {
    auto bytes = search_->snapshot();
    auto again = load_searcher(s_.config, domain_, seed_, s_.mode, bytes);
    ASSERT_TRUE(again) << again.error().what;
    ASSERT_EQ((*again)->snapshot(), bytes);
    search_ = std::move(*again);
  }

  void validate(const std::string& trial, double step, value metric) {
    steps[trial] = step;
    apply(trial_validated{trial, {{"loss", std::move(metric)}, {"epochs", step}}});
  }
  void exit(std::string trial) {
    running.erase(trial);
    leaving.erase(trial);
    paused.erase(trial);
    exited.insert(trial);
    apply(trial_exited{trial});
  }
  void exit_early(std::string trial, exit_reason reason) {
    if (running.erase(trial) || paused.erase(trial))
      leaving.insert(trial);
    if (reason == exit_reason::invalid_hp || reason == exit_reason::init_invalid_hp)
      ++invalid;
    apply(trial_exited_early{trial, reason});
  }

  std::size_t slots() const {
    return s_.config["name"] == "single" ? 1 : s_.config["max_concurrent_trials"].get<std::size_t>();
  }
  std::size_t budget() const { return static_cast<std::size_t>(search_->max_trials()); }
  bool replaces() const { return s_.config["name"] != "grid" && s_.config["name"] != "single"; }
  std::size_t invalid_replaced() const { return replaces() ? invalid : 0; }

  std::set<std::string> running, leaving, paused, exited;
  std::vector<std::string> order, said;
  std::map<std::string, double> steps;
  std::map<std::string, value> hparams;
  std::size_t created = 0, invalid = 0;
  bool over = false, failed = false, snapshots = false;
  bool keeps_log = true; ///< whether `said` holds all actions

private:
  void take(const search_action& action) {
    if (keeps_log || said.empty())
      said.push_back(show(action));
    ASSERT_FALSE(over) << "an action after the shutdown: " << said.back();
    if (auto* x = std::get_if<create_trial>(&action)) {
      ASSERT_TRUE(hparams.emplace(x->trial, x->hparams).second) << "created twice: " << x->trial;
      running.insert(x->trial);
      order.push_back(x->trial);
      ASSERT_LE(++created, budget() + invalid_replaced());
    } else if (auto* y = std::get_if<stop_trial>(&action)) {
      if (running.erase(y->trial))
        leaving.insert(y->trial);
      else if (paused.erase(y->trial))
        exited.insert(y->trial);
      else
        ASSERT_EQ(s_.mode, search_mode::compat) << "stopped twice: " << y->trial;
      ASSERT_FALSE(y->why.empty());
    } else if (auto* z = std::get_if<pause_trial>(&action)) {
      ASSERT_TRUE(running.erase(z->trial)) << said.back();
      paused.insert(z->trial);
    } else if (auto* w = std::get_if<resume_trial>(&action)) {
      ASSERT_TRUE(paused.erase(w->trial)) << said.back();
      running.insert(w->trial);
      ASSERT_GT(w->until, 0);
    } else if (auto* v = std::get_if<perturb_trial>(&action)) {
      ASSERT_TRUE(running.contains(v->trial)) << said.back();
      ASSERT_FALSE(v->checkpoint.empty());
      hparams[v->trial] = v->hparams;
    } else if (auto* u = std::get_if<shut_down>(&action)) {
      over = true;
      failed = u->failure;
    }
  }

  subject s_;
  std::uint64_t seed_;
  const value& domain_;
  std::unique_ptr<searcher> search_;
};

double loss_of(const value& hparams, double step) {
  if (!hparams.contains("lr"))
    return 1 / step;
  double lr = std::log10(hparams["lr"].get<double>()) + 2.5;
  return lr * lr + hparams["net"]["dropout"].get<double>() + 1 / step;
}

/// Trains in an order drawn from `seed`, with a report at each power of four, until the search is over.
void run(cluster& c, std::uint64_t seed) {
  rng random(seed);
  c.apply(search_started{});
  for (int turns = 0; !c.over && turns < 100000 && !::testing::Test::HasFatalFailure(); ++turns) {
    std::vector<std::string> can(c.running.begin(), c.running.end());
    can.insert(can.end(), c.leaving.begin(), c.leaving.end());
    ASSERT_FALSE(can.empty()) << "nothing runs and the search is not over";
    auto trial = can[random.below(can.size())];
    if (c.leaving.contains(trial) || c.steps[trial] >= 64) {
      c.exit(trial);
    } else {
      double step = c.steps[trial] == 0 ? 1 : c.steps[trial] * 4;
      c.apply(trial_checkpointed{trial, step, "checkpoint-" + trial + "-" + std::to_string(step)});
      c.validate(trial, step, loss_of(c.hparams[trial], step));
    }
  }
  ASSERT_TRUE(c.over);
}

class SearcherContract : public ::testing::TestWithParam<subject> {};

TEST_P(SearcherContract, RunsItsBudgetAndShutsDownWithoutFailure) {
  cluster c(GetParam(), 1);
  run(c, 5);
  EXPECT_FALSE(c.failed);
  EXPECT_EQ(c.created, c.budget());
}

TEST_P(SearcherContract, GoesOnIdenticallyFromASnapshotAtEveryEvent) {
  cluster plain(GetParam(), 2), reloaded(GetParam(), 2);
  reloaded.snapshots = true;
  run(plain, 9);
  run(reloaded, 9);
  EXPECT_EQ(plain.said, reloaded.said);
}

TEST_P(SearcherContract, IsAFunctionOfItsSeed) {
  cluster a(GetParam(), 3), b(GetParam(), 3), c(GetParam(), 4);
  run(a, 1);
  run(b, 1);
  run(c, 1);
  EXPECT_EQ(a.said, b.said);
  if (GetParam().config["name"] != "grid") {
    EXPECT_NE(a.said, c.said);
  }
}

TEST_P(SearcherContract, KeepsItsBudgetInEveryOrderOfArrival) {
  for (std::uint64_t order = 0; order < 20; ++order) {
    cluster c(GetParam(), 1);
    run(c, order);
    EXPECT_EQ(c.created, c.budget()) << "order " << order;
  }
}

/// Model-based searchers get a history of that size: at least 99,500 of its trials are drawn at random.
TEST_P(SearcherContract, RunsAHundredThousandTrials) {
  auto big = GetParam();
  const auto name = big.config["name"].get<std::string>();
  if (name == "single")
    GTEST_SKIP() << "has one trial";
  if (big.mode == search_mode::compat && name.starts_with("a"))
    GTEST_SKIP() << "Determined replaces no trial that ends by itself, as some do here";
  big.config["max_concurrent_trials"] = 500;
  if (name == "pbt")
    big.config["population_size"] = 500;
  if (name != "grid")
    big.config["max_trials"] = 100'000;
  if (name == "gp" || name == "tpe" || name == "bohb")
    big.config["startup_trials"] = name == "gp" ? 99'999 : 99'500;
  cluster c(big, 1, wide_space);
  c.keeps_log = false;
  c.apply(search_started{});
  std::size_t events = 0;
  for (; !c.over && events < 2'000'000 && !HasFatalFailure(); ++events) {
    if (events == 120'000 || events == 240'000)
      c.reload();
    bool leaving = !c.leaving.empty();
    ASSERT_TRUE(leaving || !c.running.empty()) << "nothing runs and the search is not over";
    auto trial = leaving ? *c.leaving.begin() : *c.running.begin();
    auto& step = c.steps[trial];
    if (leaving || step >= (events % 64 == 0 ? 1 : 4))
      c.exit(trial);
    else
      c.validate(trial, step == 0 ? 1 : step * 4, loss_of(c.hparams[trial], step + 1));
  }
  EXPECT_TRUE(c.over) << "after " << events << " events";
  EXPECT_EQ(c.created, c.budget());
}

TEST_P(SearcherContract, FailsOnlyWhereEveryTrialFails) {
  cluster c(GetParam(), 1);
  c.apply(search_started{});
  for (std::size_t i = 0; i < c.order.size() && !HasFatalFailure(); ++i) {
    auto trial = c.order[i];
    c.exit_early(trial, exit_reason::errored);
    if (!c.over)
      c.exit(trial);
  }
  EXPECT_TRUE(c.over);
  EXPECT_TRUE(c.failed);
  EXPECT_EQ(c.created, c.budget());
}

TEST_P(SearcherContract, IgnoresLateAndRepeatedEvents) {
  if (GetParam().mode == search_mode::compat)
    GTEST_SKIP() << "compat keeps Determined's answers to late events";
  cluster c(GetParam(), 1);
  c.apply(search_started{});
  auto trial = c.order[0];
  auto apply_again = [&](const search_event& event) {
    auto before = c.said.size();
    c.apply(event);
    EXPECT_EQ(c.said.size(), before) << (before < c.said.size() ? c.said[before] : "");
  };
  c.validate(trial, 4, 0.5);
  apply_again(trial_validated{trial, {{"loss", 0.1}, {"epochs", 4}}}); // the same step is reported again
  // a report from before a restart arrives late
  apply_again(trial_validated{trial, {{"loss", 0.1}, {"epochs", 1}}});
  apply_again(search_started{});
  c.exit_early(trial, exit_reason::user_requested_stop);
  apply_again(trial_exited_early{trial, exit_reason::errored});
  apply_again(trial_validated{trial, {{"loss", 0.1}, {"epochs", 64}}});
  if (c.over)
    return;
  c.exit(trial);
  apply_again(trial_exited{trial});
  apply_again(trial_exited_early{trial, exit_reason::invalid_hp});
  apply_again(trial_validated{trial, {{"loss", 0.1}, {"epochs", 65}}});
  apply_again(trial_progressed{trial, 0.5});
}

TEST_P(SearcherContract, BoundsInvalidHyperparameters) {
  cluster c(GetParam(), 1);
  c.apply(search_started{});
  for (std::size_t i = 0; i < c.order.size() && i < 5000 && !c.over && !HasFatalFailure(); ++i) {
    auto trial = c.order[i];
    c.exit_early(trial, exit_reason::invalid_hp);
    if (!c.over)
      c.exit(trial);
  }
  EXPECT_TRUE(c.over);
  EXPECT_LE(c.created, c.replaces() ? 700u : c.budget());
}

TEST_P(SearcherContract, RanksOddMetricsLastAndGoesOn) {
  const value odd[] = {"NaN",   "Infinity", "-Infinity",    "text",
                       nullptr, true,       value::array(), std::numeric_limits<double>::quiet_NaN(),
                       1e308,   -0.0,       5e-324};
  cluster c(GetParam(), 1);
  c.apply(search_started{});
  for (int i = 0; !c.over && i < 100000 && !HasFatalFailure(); ++i) {
    if (!c.leaving.empty()) {
      c.exit(*c.leaving.begin());
      continue;
    }
    ASSERT_FALSE(c.running.empty());
    auto trial = *c.running.begin();
    auto step = c.steps[trial] + 1;
    if (step > 64)
      c.exit(trial);
    else if (i % 17 == 16)
      c.apply(trial_validated{trial, value::array()});
    else if (i % 13 == 12)
      c.apply(trial_validated{trial, {{"loss", 1}}});
    else
      c.validate(trial, step, odd[static_cast<std::size_t>(i) % std::size(odd)]);
    c.steps[trial] = std::max(c.steps[trial], step);
  }
  EXPECT_TRUE(c.over);
}

/// Sends any event at any time. The cluster checks budget, slots and sense after every event.
TEST_P(SearcherContract, SurvivesStormsOfEvents) {
  const exit_reason reasons[] = {exit_reason::errored, exit_reason::user_requested_stop,
                                 exit_reason::user_canceled, exit_reason::invalid_hp,
                                 exit_reason::init_invalid_hp};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    rng random(seed);
    cluster c(GetParam(), seed);
    c.snapshots = seed == 0;
    c.apply(search_started{});
    for (int i = 0; i < GetParam().storm_events && !c.over && !HasFatalFailure(); ++i) {
      // In the compat mode the search gets only events that a real cluster sends. In the native mode it gets
      // events of any trial that ever existed.
      std::vector<std::string> from(c.order);
      if (GetParam().mode == search_mode::compat || random.chance(0.7))
        from.assign(c.running.begin(), c.running.end());
      if (random.chance(0.3))
        from.assign(c.leaving.begin(), c.leaving.end());
      if (from.empty())
        continue;
      auto trial = from[random.below(from.size())];
      bool live = c.running.contains(trial);
      auto dice = random.below(100);
      if (dice < 60 && (live || GetParam().mode == search_mode::native))
        c.validate(trial, c.steps[trial] + static_cast<double>(random.below(20)) - 2, random.unit());
      else if (dice < 70)
        c.apply(trial_progressed{trial, random.unit()});
      else if (dice < 80)
        c.apply(trial_checkpointed{trial, c.steps[trial], "uuid"});
      else if (dice < 90 && (live || c.paused.contains(trial)))
        c.exit_early(trial, reasons[random.below(5)]);
      else if (!c.exited.contains(trial) && (live || !c.running.contains(trial)))
        c.exit(trial);
    }
  }
}

TEST_P(SearcherContract, RefusesBytesThatAreNotItsSnapshot) {
  auto s = start(GetParam(), 1, mixed_space);
  ASSERT_TRUE(s->apply(search_started{}));
  auto bytes = s->snapshot();
  rng random(3);
  for (int i = 0; i < 300; ++i) {
    auto bad = bytes;
    if (i % 2)
      bad.resize(random.below(bad.size()));
    else
      bad[random.below(bad.size())] ^= static_cast<char>(1 + random.below(255));
    EXPECT_FALSE(load_searcher(GetParam().config, mixed_space, 1, GetParam().mode, bad));
  }
  EXPECT_FALSE(
    load_searcher({{"name", "random"}, {"metric", "loss"}, {"max_trials", 3}}, value::object(), 1,
                  GetParam().mode == search_mode::native ? search_mode::compat : search_mode::native, bytes));
}

INSTANTIATE_TEST_SUITE_P(Every, SearcherContract, ::testing::ValuesIn(subjects()),
                         [](const auto& each) { return each.param.name; });

} // namespace
} // namespace troupe::searchers

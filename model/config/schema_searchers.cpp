// Searchers: those of Determined, those that it can only read, and ours.

#include "model/config/shapes.hpp"

namespace troupe::config {
namespace {

bool is_given(const node& x, std::string_view name) {
  const auto* found = x.find(name);
  return found && !found->is(kind::null);
}

/// Synchronous halving needs no budget as we run it; as Determined reads it, it needs one.
bool is_ours(const node& x) {
  return is_given(x, "max_trials") && is_given(x, "time_metric") && is_given(x, "max_time");
}
bool has_budget(const node& x) { return is_given(x, "budget") || is_ours(x); }
bool has_rungs(const node& x) { return is_given(x, "num_rungs") || is_ours(x); }

struct searcher_keys {
  schema_table& t;

  key metric() const {
    return to_run(unset("metric", text(t), "The validation metric that the search compares trials by."));
  }
  key smaller() const {
    return given("smaller_is_better", boolean(t), true, "Whether a smaller metric is the better one.");
  }
  key source_trial() const {
    return unset("source_trial_id", integer(t),
                 "Every trial begins with the latest checkpoint of this trial.");
  }
  key source_checkpoint() const {
    return unset("source_checkpoint_uuid", text(t), "Every trial begins with this checkpoint.");
  }
  key length() const {
    return unset(
      "max_length", t.at("searcher-length"),
      "Key of older versions; accepted and ignored. The training code decides how long it trains.");
  }
  key map_length() const {
    return unset(
      "max_length", t.at("check-positive-length"),
      "Key of older versions; accepted and ignored. The training code decides how long it trains.");
  }
  key trials(std::optional<double> most = {}) const {
    return to_run(unset("max_trials", integer(t, {.least = 1, .most = most}),
                        "Number of trials that the search creates in all.", "trials"));
  }
  key concurrent() const {
    return given("max_concurrent_trials", integer(t, {.least = 0}), 16,
                 "Number of trials that run at once, at most; 0: no limit.", "trials");
  }
  key divisor() const {
    return given("divisor", number(t, {.above = 1}), 4,
                 "Divisor: one of this many trials continues beyond each rung.");
  }
  key mode() const {
    return given("mode", one_of(t, {"aggressive", "standard", "conservative"}), "standard",
                 "Earliness of stopping: aggressive stops the most trials.");
  }
  key rungs() const {
    return given("max_rungs", integer(t, {.least = 1}), 5, "Largest number of rungs of a bracket.", "rungs");
  }
  key bracket_rungs() const {
    return given("bracket_rungs", list_of(t, integer(t)), value::array(),
                 "The rungs of each bracket; replaces mode where it is not empty.", "rungs");
  }
  key time_metric() const {
    return unset("time_metric", text(t),
                 "The metric that tells how far a trial is, as batches or epochs; reported with the metric.");
  }
  key time() const {
    return unset("max_time", integer(t), "Length that a trial trains, at most.", "of time_metric");
  }
  key stop_once() const {
    return unset("stop_once", boolean(t), "Key of older versions; accepted and ignored.");
  }
  key num_rungs() const {
    return to_run(unset("num_rungs", integer(t, {.least = 1}), "Number of rungs of the search.", "rungs"));
  }
  key stragglers() const {
    return given("train_stragglers", boolean(t), true, "Key of a searcher that can only be read.");
  }
  key budget(shape_ref length) const {
    return to_run(unset("budget", length, "Total length of training; for a searcher that can only be read."));
  }

  key early_stopping() const {
    return native(unset("early_stopping", t.at("early-stopping"), t.at("early-stopping")->doc));
  }

  shape& searcher(const std::string& schema, const std::string& name, std::string doc,
                  std::vector<key> keys) const {
    auto& s = t.make("searcher-" + schema);
    s.kinds = map_bit;
    s.doc = std::move(doc);
    s.keys.push_back(required("name", one_of(t, {name}), "Name of the searcher."));
    for (auto& k : keys)
      s.keys.push_back(std::move(k));
    for (auto k : {metric(), smaller(), source_trial(), source_checkpoint(), early_stopping()})
      s.keys.push_back(std::move(k));
    return s;
  }
};

/// The keys that searchers share which Determined never had.
shape& add_native(const searcher_keys& k, const std::string& name, std::string doc, std::vector<key> more) {
  auto trials = k.trials();
  trials.needed = name == "pbt" ? need::no : need::to_run; // a population has its own size
  std::vector<key> keys{std::move(trials), k.concurrent(), k.time_metric(), k.time()};
  for (auto& one : more)
    keys.push_back(std::move(one));
  std::string schema = name;
  for (char& c : schema)
    if (c == '_')
      c = '-';
  auto& made = k.searcher(schema, name, std::move(doc), std::move(keys));
  bool has_rungs = name == "asha_promotion" || name == "hyperband" || name == "bohb" || name == "pbt";
  for (auto& one : made.keys)
    if (one.name == "max_time" && !has_rungs)
      one.doc = "Length that a trial trains, for progress and simulation; early_stopping.max_time stops a "
                "trial there.";
  return made;
}

key setting(std::string name, shape_ref what, std::string doc, std::string unit = {}) {
  return native(unset(std::move(name), what, std::move(doc), std::move(unit)));
}

void add_natives(schema_table& t, const searcher_keys& k) {
  auto count = integer(t, {.least = 1});
  auto generation = integer(t, {.least = 2, .most = 100'000});
  add_native(
    k, "tpe", "Tree-structured Parzen estimator.",
    {setting("startup_trials", integer(t, {.least = 0}), "Number of random trials before the model is used.",
             "trials"),
     setting("candidates", integer(t, {.least = 1, .most = 100'000}),
             "Number of points drawn for each decision.", "points"),
     setting("gamma", number(t, {.least = 1e-6, .most = 1}), "The share of trials that counts as good."),
     setting("moved_dimensions", number(t, {.least = 1e-3}),
             "Number of parameters that a proposal moves, on average."),
     setting("multivariate", boolean(t), "Whether parameters are modelled together."),
     setting("constant_liar", boolean(t), "Whether running trials count as bad ones.")});
  add_native(k, "gp", "Gaussian process with expected improvement.",
             {setting("startup_trials", integer(t, {.least = 0}),
                      "Number of random trials before the model is used.", "trials"),
              setting("candidates", integer(t, {.least = 8, .most = 100'000}),
                      "Number of points drawn for each decision.", "points")});
  add_native(
    k, "cma_es", "Covariance matrix adaptation.",
    {setting("population_size", generation, "Number of trials of a generation.", "trials"),
     setting("sigma", number(t, {.least = 1e-6, .most = 10}), "The first step, as a share of the range.")});
  add_native(
    k, "asha_promotion", "Asynchronous halving that pauses trials and promotes the best.",
    {k.divisor(), k.rungs(),
     setting("num_rungs", integer(t, {.least = 1, .most = 60}), "Number of rungs of the search.", "rungs")});
  add_native(k, "hyperband", "Hyperband: brackets of synchronous halving.", {k.divisor(), k.rungs()});
  add_native(
    k, "bohb", "Hyperband whose trials a density model proposes.",
    {k.divisor(), k.rungs(),
     setting("startup_trials", integer(t, {.least = 0}), "Number of random trials before the model is used.",
             "trials"),
     setting("candidates", integer(t, {.least = 1, .most = 100'000}),
             "Number of points drawn for each decision.", "points"),
     setting("bandwidth_factor", number(t, {.least = 1e-3}), "Spread of proposals around a good trial."),
     setting("random_fraction", number(t, {.least = 0, .most = 1}), "The share of random proposals.")});
  add_native(
    k, "pbt", "Population based training.",
    {setting("population_size", integer(t, {.least = 2, .most = 1'000'000}),
             "Number of trials that live at once.", "trials"),
     setting("num_rounds", count,
             "Number of comparisons of the population; without `interval`, a round is `max_time` / "
             "`num_rounds` long.",
             "rounds"),
     setting("interval", number(t, {.above = 0}), "Length of a round.", "of time_metric"),
     setting("burn_in", number(t, {.least = 0}), "Length during which no trial is replaced.",
             "of time_metric"),
     setting("length_per_round", t.at("length"), "Length of a round."),
     setting("truncate_fraction", number(t, {.least = 0, .most = 0.5}),
             "The share of the worst that continues from the best."),
     setting("resample_probability", number(t, {.least = 0, .most = 1}),
             "Probability that a parameter is drawn anew."),
     setting("perturb_factor", number(t, {.least = 0, .most = 1}), "Share by which a parameter is moved."),
     setting("replace_function", any_map(t), "{truncate_fraction}, as Determined once wrote it."),
     setting("explore_function", any_map(t),
             "{resample_probability, perturb_factor}, as Determined once wrote it.")});
  auto& several =
    add_native(k, "nsga2", "NSGA-II: several metrics at once.",
               {setting("population_size", generation, "Number of trials of a generation.", "trials"),
                setting("metrics", list_of(t, text(t)), "Metrics, instead of metric."),
                setting("smaller_is_better_each", list_of(t, boolean(t)),
                        "Whether smaller is better, for each of metrics.")});
  for (auto& one : several.keys)
    if (one.name == "metric") {
      one.needed = need::no;
      one.what = either(t, {text(t), list_of(t, text(t))});
      one.doc = "List of metrics; no order of trials is made of them, and there is no best trial.";
    } else if (one.name == "smaller_is_better") {
      one.what = either(t, {boolean(t), list_of(t, boolean(t))});
      one.doc = "Whether smaller is better: of all metrics, or of each.";
    }
  add_native(
    k, "median", "Random search that stops trials below the median.",
    {setting("warmup", number(t, {.least = 0}), "Length during which no trial is stopped.", "of time_metric"),
     setting("min_trials", count,
             "Number of trials that must have reached the same point before one is stopped.", "trials"),
     setting("interval", number(t, {.least = 1e-9}), "Length between two comparisons of trials.",
             "of time_metric")});
}

} // namespace

void add_searchers(schema_table& t) {
  searcher_keys k{t};
  k.searcher("single", "single", "One trial.", {k.length()});
  k.searcher("random", "random", "Trials with random hyperparameters.",
             {k.concurrent(), k.trials(), k.length()});
  k.searcher("grid", "grid", "Every combination of the hyperparameters.", {k.concurrent(), k.length()});
  k.searcher("async-halving", "async_halving",
             "Asynchronous halving: trials behind the others are stopped at rungs.",
             {k.num_rungs(), k.map_length(), k.trials(), k.divisor(), k.concurrent(), k.stop_once(),
              k.time_metric(), k.time()});
  k.searcher("adaptive-asha", "adaptive_asha",
             "Several asynchronous halvings with different numbers of rungs; a good first choice.",
             {k.bracket_rungs(), k.trials(), k.time_metric(), k.time(), k.mode(), k.divisor(), k.rungs(),
              k.concurrent(), k.length(), k.stop_once()});
  auto& custom =
    k.searcher("custom", "custom", "A search that a process outside drives.",
               {unset("unit", one_of(t, {"batches", "records", "epochs"}), "The unit of lengths.")});
  custom.open = true;
  std::erase_if(custom.keys, [](const key& one) { return one.name.starts_with("source_"); });
  k.searcher("adaptive", "adaptive", "Searcher of older versions: can be read, not run.",
             {k.budget(t.at("length")), k.bracket_rungs(), k.mode(), k.divisor(), k.rungs(), k.map_length(),
              k.stragglers()});
  k.searcher("adaptive-simple", "adaptive_simple", "Searcher of older versions: can be read, not run.",
             {k.trials(2000), k.mode(), k.divisor(), k.rungs(), k.map_length()});
  auto at_will = [](key one) {
    one.needed = need::no;
    return one;
  };
  auto& halving = k.searcher(
    "sync-halving", "sync_halving",
    "Synchronous halving: give max_trials, time_metric and max_time. Determined only reads it, with "
    "budget and num_rungs.",
    {at_will(k.budget(t.at("check-positive-length"))), at_will(k.num_rungs()), k.map_length(), k.divisor(),
     k.stragglers(), native(at_will(k.trials())), native(at_will(k.concurrent())),
     native(at_will(k.time_metric())), native(at_will(k.time())), native(at_will(k.rungs()))});
  auto lacks = [&](const char* message, bool (*holds)(const node&)) {
    halving.rules.push_back({message, holds, "", need::to_run, nullptr,
                             "add max_trials: 16, time_metric: batches, max_time: 1000"});
  };
  lacks("the key 'budget' is missing, or max_trials, time_metric and max_time", has_budget);
  lacks("the key 'num_rungs' is missing, or max_trials, time_metric and max_time", has_rungs);
  add_natives(t, k);

  auto& all = t.make("searcher");
  all.kinds = map_bit;
  all.doc = "Search: the choice of hyperparameters, and of trials that are stopped.";
  all.discriminator = "name";
  all.merge = merging::of_one_kind;
  auto add = [&](const char* name, const char* schema, bool legacy, const char* since) {
    all.members.push_back({name, t.at(std::string("searcher-") + schema), legacy, since});
  };
  add("single", "single", false, "determined");
  add("random", "random", false, "determined");
  add("grid", "grid", false, "determined");
  add("adaptive_asha", "adaptive-asha", false, "determined");
  add("async_halving", "async-halving", false, "determined");
  add("custom", "custom", false, "determined");
  add("adaptive", "adaptive", true, "determined");
  add("adaptive_simple", "adaptive-simple", true, "determined");
  add("sync_halving", "sync-halving", false, "determined");
  add("tpe", "tpe", false, "troupe");
  add("gp", "gp", false, "troupe");
  add("cma_es", "cma-es", false, "troupe");
  add("asha_promotion", "asha-promotion", false, "troupe");
  add("hyperband", "hyperband", false, "troupe");
  add("bohb", "bohb", false, "troupe");
  add("pbt", "pbt", false, "troupe");
  add("nsga2", "nsga2", false, "troupe");
  add("median", "median", false, "troupe");
  auto name = to_run(unset("name", text(t), "Name of the searcher; see the kinds."));
  name.nullable = false;
  all.keys.push_back(std::move(name));
  for (auto one : {k.metric(), k.smaller(), k.source_trial(), k.source_checkpoint(), k.early_stopping()})
    all.keys.push_back(std::move(one));
  for (auto loose :
       {"bracket_rungs", "divisor", "max_concurrent_trials", "max_length", "max_rungs", "max_time",
        "time_metric", "max_trials", "mode", "num_rungs", "stop_once", "budget", "train_stragglers", "unit"})
    all.keys.push_back(
      quiet(unset(loose, anything(t), "Key of some searchers; checked once name is known.")));
}

} // namespace troupe::config

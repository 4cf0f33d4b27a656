// Hyperparameters: const, categorical, int, double, log, and nested maps of them.

#include "model/config/shapes.hpp"

#include <cmath>

namespace troupe::config {
namespace {

bool min_below_max(const node& x) {
  const auto *low = x.find("minval"), *high = x.find("maxval");
  auto is_number = [](const node* n) { return n && (n->is(kind::integer) || n->is(kind::number)); };
  if (!is_number(low) || !is_number(high))
    return true; // the types report it
  if (low->is(kind::integer) && high->is(kind::integer))
    return low->whole < high->whole;
  auto a = low->as_double(), b = high->as_double();
  return std::isnan(a) || std::isnan(b) || a < b; // NaN has a fault of its own
}

shape& kind_of_hyperparameter(schema_table& t, const std::string& type, const std::string& doc) {
  auto& s = t.make("hyperparameter-" + type);
  s.kinds = map_bit;
  s.doc = doc;
  s.keys.push_back(
    required("type", one_of(t, {type}), "Says that this is a hyperparameter of kind " + type + "."));
  return s;
}

void add_range(shape& s, shape_ref bound, const std::string& of) {
  s.keys.push_back(required("minval", bound, "The least " + of + "."));
  s.keys.push_back(required("maxval", bound, "The greatest " + of + "; more than minval."));
  s.rules.push_back({"minval must be less than maxval", min_below_max, "minval", need::always, nullptr,
                     "swap them, or widen the range"});
}

void add_count(schema_table& t, shape& s) {
  s.keys.push_back(quiet(unset("count", integer(t, {.least = 1}),
                               "Number of points into which a grid search divides the range.", "points")));
}

} // namespace

void add_hyperparameters(schema_table& t) {
  auto& whole =
    kind_of_hyperparameter(t, "int", "An integer, uniform between minval and maxval, both included.");
  add_range(whole, integer(t), "value");
  add_count(t, whole);

  auto& real = kind_of_hyperparameter(t, "double", "A number, uniform between minval and maxval.");
  add_range(real, number(t), "value");
  add_count(t, real);

  auto& log = kind_of_hyperparameter(t, "log", "base to the power of a number between minval and maxval.");
  add_range(log, number(t), "exponent");
  log.keys.push_back(required("base", number(t, {.above = 0}), "The base of the power, as 10."));
  add_count(t, log);

  auto& constant = kind_of_hyperparameter(t, "const", "One value for all trials.");
  auto val = required("val", anything(t), "The value: any JSON.");
  val.nullable = true;
  constant.keys.push_back(std::move(val));

  auto& choice = kind_of_hyperparameter(t, "categorical", "One value of a list.");
  choice.keys.push_back(required("vals", list_of(t, anything(t)), "The values to choose from: any JSON."));

  auto& one = t.make("hyperparameter");
  auto& map = t.make();
  one.doc =
    "A hyperparameter of one of the kinds above, a map of hyperparameters (without the key `type`), or any "
    "other value, which stands for itself.";
  one.merge = map.merge = merging::hyperparameter;
  map.kinds = map_bit;
  map.discriminator = "type";
  for (auto type : {"int", "double", "log", "const", "categorical"})
    map.members.push_back({type, t.at(std::string("hyperparameter-") + type)});
  map.values = &one;
  map.null_values = true;
  one.alternatives = {&map, anything(t)};

  t.make("check-grid-hyperparameter").doc = "A hyperparameter that a grid search can divide; see check_grid.";

  auto& all = t.make("hyperparameters");
  all.kinds = map_bit;
  all.values = &one;
  all.null_values = true;
  all.doc = "Hyperparameters that a search may vary, by name; maps nest to any depth.";
  all.merge = merging::hyperparameter;
}

} // namespace troupe::config

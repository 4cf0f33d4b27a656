// Reads the configuration and builds a search from settings, space, method, sampler, policies and core.

#include "searchers/bohb.hpp"
#include "searchers/cma_es.hpp"
#include "searchers/compat/compat_search.hpp"
#include "searchers/custom.hpp"
#include "searchers/gp.hpp"
#include "searchers/halving.hpp"
#include "searchers/nsga2.hpp"
#include "searchers/pbt.hpp"
#include "searchers/search_core.hpp"
#include "searchers/tpe.hpp"

#include <set>

namespace troupe::searchers {
namespace {

struct assembly {
  settings common;
  std::shared_ptr<const space> domain;
  section& in;
  std::vector<std::string>& faults;
  core_limits limits;
  std::unique_ptr<early_stopping> policies;
};

/// The number of points; 0, with a fault, where the space has no grid.
std::uint64_t grid_points(assembly& a) {
  for (const auto& d : a.domain->dimensions())
    if (d.grid_count() == 0)
      a.faults.push_back("hyperparameters." + d.name() +
                         ": a grid needs `count`, the number of points on this axis");
  if (!a.faults.empty())
    return 0;
  auto points = a.domain->grid_size();
  if (points == 0)
    a.faults.push_back("hyperparameters: the grid has more than 2^63 points; lower a `count`");
  return points;
}

halving_plan halving_plan_of(assembly& a, rung_count how) {
  halving_plan plan;
  auto h = read_halving(a.in, a.common);
  if (!a.faults.empty())
    return plan;
  const auto& name = a.common.name;
  plan.brackets = name == "async_halving"    ? single_bracket(a.common, h)
                  : name == "adaptive_asha"  ? adaptive_brackets(a.common, h, how)
                  : name == "asha_promotion" ? promotion_bracket(a.common, h)
                  : name == "sync_halving"   ? sync_round(a.common, h)
                                             : hyperband_round(a.common, h);
  plan.divisor = h.divisor;
  plan.time_metric = a.common.time_metric;
  plan.sign = a.common.sign();
  return plan;
}

std::unique_ptr<method> stopping_method(assembly& a) {
  auto plan = halving_plan_of(a, rung_count::exact);
  if (a.common.max_concurrent == 0) {
    a.limits.max_concurrent = 0;
    for (const auto& b : plan.brackets)
      a.limits.max_concurrent += static_cast<std::uint64_t>(b.max_concurrent);
  }
  return make_asha_stopping(std::move(plan), a.domain, make_uniform(a.domain, a.common.seed));
}

std::unique_ptr<method> pausing_method(assembly& a) {
  auto plan = halving_plan_of(a, rung_count::exact);
  if (!a.faults.empty())
    return nullptr;
  auto source = make_uniform(a.domain, a.common.seed);
  if (a.common.name == "bohb") {
    std::set<std::int64_t> budgets;
    for (const auto& b : plan.brackets)
      budgets.insert(b.units.begin(), b.units.end());
    source = make_bohb(read_bohb(a.in, a.common), {budgets.begin(), budgets.end()}, a.domain);
  }
  if (a.common.name == "asha_promotion")
    return make_asha_promotion(std::move(plan), a.domain, std::move(source));
  return make_sync_halving(std::move(plan), a.common.max_trials, a.domain, std::move(source));
}

std::unique_ptr<method> pbt_method(assembly& a) {
  auto s = read_pbt(a.in, a.common);
  if (!a.in.has("max_trials"))
    a.limits.max_trials = static_cast<std::uint64_t>(s.population);
  auto slots = static_cast<std::uint64_t>(s.population);
  a.limits.max_concurrent = a.limits.max_concurrent == 0 ? slots : std::min(slots, a.limits.max_concurrent);
  return make_pbt(std::move(s), a.domain, make_uniform(a.domain, a.common.seed));
}

std::string names() {
  return "single, random, grid, async_halving, adaptive_asha, asha_promotion, sync_halving, hyperband, bohb, "
         "pbt, "
         "tpe, gp, cma_es, nsga2, median, custom";
}

std::unique_ptr<method> make_method(assembly& a) {
  const auto& name = a.common.name;
  if (name == "single") {
    a.limits.max_trials = 1;
    a.limits.replaces_invalid = false;
    return make_plain(a.domain, make_uniform(a.domain, a.common.seed));
  }
  if (name == "random")
    return make_plain(a.domain, make_uniform(a.domain, a.common.seed));
  if (name == "grid") {
    a.limits.replaces_invalid = false;
    a.limits.max_trials = grid_points(a);
    return make_grid(a.domain);
  }
  if (name == "async_halving" || name == "adaptive_asha")
    return stopping_method(a);
  if (name == "asha_promotion" || name == "sync_halving" || name == "hyperband" || name == "bohb")
    return pausing_method(a);
  if (name == "pbt")
    return pbt_method(a);
  if (name == "median") {
    a.policies = make_median_stopping(a.in.number("warmup", 0, 0), a.in.integer("min_trials", 5, 1),
                                      a.in.number("interval", 1, 1e-9));
    return make_plain(a.domain, make_uniform(a.domain, a.common.seed));
  }
  if (name == "cma_es")
    return make_plain(a.domain, make_cma_es(read_cma(a.in, a.common), a.domain));
  if (name == "nsga2")
    return make_plain(a.domain, make_nsga2(read_nsga2(a.in, a.common), a.domain));
  if (name == "gp")
    return make_plain(a.domain, make_gp(read_gp(a.in, a.common), a.domain));
  if (name == "tpe")
    return make_plain(a.domain, make_tpe(read_tpe(a.in, a.common), a.domain));
  a.in.fault("name", name.empty() ? "is needed; one of " + names()
                                  : "`" + name + "` is not a searcher; one of " + names());
  return nullptr;
}

error all_of(const std::vector<std::string>& faults) {
  std::string text;
  for (const auto& f : faults)
    text += (text.empty() ? "" : "; ") + f;
  return {errc::invalid, text};
}

std::unique_ptr<compat_method> make_compat_method(assembly& a) {
  const auto& name = a.common.name;
  auto concurrent = static_cast<std::uint64_t>(a.common.max_concurrent);
  if (name == "single")
    return make_compat_random({1, 1, false, false});
  if (name == "random")
    return make_compat_random({static_cast<std::uint64_t>(a.common.max_trials), concurrent, true, false});
  if (name == "grid") {
    auto points = grid_points(a);
    a.common.max_trials = static_cast<std::int64_t>(points);
    return make_compat_random({points, concurrent, false, true});
  }
  if (name == "async_halving" || name == "adaptive_asha")
    return make_compat_halving(halving_plan_of(a, rung_count::as_determined));
  a.in.fault("name",
             "`" + name + "` has no compat mode; one of single, random, grid, async_halving, adaptive_asha");
  return nullptr;
}

struct parts {
  settings common;
  std::shared_ptr<const space> domain;
  core_limits limits;
  std::unique_ptr<method> native;
  std::unique_ptr<early_stopping> policies;
  std::unique_ptr<compat_method> compat;
  bool custom = false;
};

result<parts> assemble(const value& config, const value& hyperparameters, std::uint64_t seed,
                       search_mode mode) {
  std::vector<std::string> faults;
  section in(config, "searcher", faults);
  auto common = read_settings(in, seed);
  auto domain = std::make_shared<const space>(space::parse(hyperparameters, faults));
  assembly a{common, domain, in, faults, {}, nullptr};
  a.limits = {common.name,
              common.metric,
              common.time_metric,
              common.sign(),
              static_cast<std::uint64_t>(common.max_trials),
              static_cast<std::uint64_t>(common.max_concurrent),
              true,
              seed,
              domain->size()};
  parts made;
  made.custom = common.name == "custom" && mode == search_mode::native;
  if (made.custom && in.has("early_stopping"))
    in.fault("early_stopping", "a custom search stops its trials itself");
  if (mode == search_mode::compat)
    made.compat = make_compat_method(a);
  else if (!made.custom)
    made.native = make_method(a);
  section stopping(in.member("early_stopping"), "searcher.early_stopping", faults);
  if (auto policies = make_early_stopping(stopping, common))
    a.policies = std::move(policies);
  if (a.policies && mode == search_mode::compat)
    in.fault("early_stopping", "compat mode has Determined's rules only; use native mode");
  constexpr std::uint64_t most_at_once = 1'000'000;
  auto limit = a.limits.max_concurrent;
  auto at_once = limit == 0 ? a.limits.max_trials : std::min<std::uint64_t>(a.limits.max_trials, limit);
  if (faults.empty() && !made.custom && at_once > most_at_once)
    in.fault("max_concurrent_trials", std::to_string(limit) + " would start " + std::to_string(at_once) +
                                        " trials at once; " + std::to_string(most_at_once) + " are the most");
  if (!faults.empty())
    return all_of(faults);
  made.common = std::move(a.common);
  made.domain = std::move(domain);
  made.limits = std::move(a.limits);
  made.policies = std::move(a.policies);
  return made;
}

/// Builds the search; `prepare` may restore a snapshot before anyone sees it.
template <class Prepare>
result<std::unique_ptr<searcher>> build(result<parts> made, Prepare&& prepare) {
  if (!made)
    return made.error();
  auto finish = [&](auto search) -> result<std::unique_ptr<searcher>> {
    if (result<void> ready = prepare(*search); !ready)
      return ready.error();
    return std::unique_ptr<searcher>(std::move(search));
  };
  if (made->compat)
    return finish(std::make_unique<compat_search>(made->common, made->domain, std::move(made->compat)));
  if (made->custom)
    return finish(std::make_unique<custom_search>(made->common));
  return finish(std::make_unique<search_core>(std::move(made->limits), std::move(made->native),
                                              std::move(made->policies)));
}

} // namespace

result<std::unique_ptr<searcher>> make_searcher(const value& config, const value& hyperparameters,
                                                std::uint64_t seed, search_mode mode) {
  return build(assemble(config, hyperparameters, seed, mode), [](auto&) { return result<void>{}; });
}

result<std::unique_ptr<searcher>> load_searcher(const value& config, const value& hyperparameters,
                                                std::uint64_t seed, search_mode mode,
                                                std::string_view snapshot) {
  return build(assemble(config, hyperparameters, seed, mode),
               [&](auto& search) { return search.restore(snapshot); });
}

} // namespace troupe::searchers

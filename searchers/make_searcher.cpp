// Reads the configuration and puts a search together: settings, space, method, sampler, policies, core.

#include "searchers/halving.hpp"
#include "searchers/search_core.hpp"

namespace troupe::searchers {
namespace {

struct assembly {
  settings common;
  std::shared_ptr<const space> domain;
  section& in;
  std::vector<std::string>& faults;
  core_limits limits;
};

std::unique_ptr<method> grid_method(assembly& a) {
  a.limits.replaces_invalid = false;
  for (const auto& d : a.domain->dimensions())
    if (d.grid_count() == 0)
      a.faults.push_back("hyperparameters." + d.name() + ": a grid needs `count`, the number of points on this axis");
  if (!a.faults.empty())
    return nullptr;
  a.limits.max_trials = a.domain->grid_size();
  if (a.limits.max_trials == 0)
    a.faults.push_back("hyperparameters: the grid has more than 2^63 points; lower a `count`");
  return make_grid(a.domain);
}

std::unique_ptr<method> stopping_method(assembly& a) {
  auto h = read_halving(a.in, a.common);
  if (!a.faults.empty())
    return nullptr;
  halving_plan plan;
  plan.brackets = a.common.name == "async_halving" ? single_bracket(a.common, h)
                                                   : adaptive_brackets(a.common, h, rung_count::exact);
  plan.divisor = h.divisor;
  plan.time_metric = a.common.time_metric;
  plan.sign = a.common.sign();
  if (a.common.max_concurrent == 0) {
    a.limits.max_concurrent = 0;
    for (const auto& b : plan.brackets)
      a.limits.max_concurrent += static_cast<std::uint64_t>(b.max_concurrent);
  }
  return make_asha_stopping(std::move(plan), a.domain, make_uniform(a.domain, a.common.seed));
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
  if (name == "grid")
    return grid_method(a);
  if (name == "async_halving" || name == "adaptive_asha")
    return stopping_method(a);
  a.in.fault("name", name.empty() ? "is needed" : "`" + name + "` is no searcher; one of single, random, grid, "
                                                              "async_halving, adaptive_asha");
  return nullptr;
}

error all_of(const std::vector<std::string>& faults) {
  std::string text;
  for (const auto& f : faults)
    text += (text.empty() ? "" : "; ") + f;
  return {errc::invalid, text};
}

result<std::unique_ptr<search_core>> assemble(const value& config, const value& hyperparameters, std::uint64_t seed) {
  std::vector<std::string> faults;
  section in(config, "searcher", faults);
  auto common = read_settings(in, seed);
  auto domain = std::make_shared<const space>(space::parse(hyperparameters, faults));
  assembly a{common, domain, in, faults, {}};
  a.limits = {common.name, common.metric, common.time_metric, common.sign(),
              static_cast<std::uint64_t>(common.max_trials), static_cast<std::uint64_t>(common.max_concurrent),
              true, seed, domain->size()};
  auto method = make_method(a);
  constexpr std::uint64_t most_at_once = 10'000'000;
  if (faults.empty() && a.limits.max_concurrent == 0 && a.limits.max_trials > most_at_once)
    in.fault("max_concurrent_trials", "0 would start " + std::to_string(a.limits.max_trials) +
                                        " trials at once; give a limit");
  if (!faults.empty())
    return all_of(faults);
  return std::make_unique<search_core>(std::move(a.limits), std::move(method), nullptr);
}

} // namespace

result<std::unique_ptr<searcher>> make_searcher(const value& config, const value& hyperparameters, std::uint64_t seed,
                                                search_mode) {
  auto made = assemble(config, hyperparameters, seed);
  if (!made)
    return made.error();
  return std::unique_ptr<searcher>(std::move(*made));
}

result<std::unique_ptr<searcher>> load_searcher(const value& config, const value& hyperparameters, std::uint64_t seed,
                                                search_mode, std::string_view snapshot) {
  auto made = assemble(config, hyperparameters, seed);
  if (!made)
    return made.error();
  if (auto restored = (*made)->restore(snapshot); !restored)
    return restored.error();
  return std::unique_ptr<searcher>(std::move(*made));
}

} // namespace troupe::searchers

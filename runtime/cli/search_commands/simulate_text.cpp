#include "runtime/cli/search_commands/simulate_text.hpp"

#include "runtime/cli/exit_codes.hpp"
#include "searchers/simulation.hpp"

#include <fmt/format.h>

#include <charconv>
#include <istream>
#include <ostream>

namespace troupe::cli {
namespace {

struct request {
  std::string path;
  searchers::simulation_options options;
  bool json = false;
};

template <class T>
bool read_number(const std::string& text, T& into) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), into);
  return fault == std::errc{} && end == text.data() + text.size();
}

/// Returns the fault as text; empty where the arguments are good.
std::string read_arguments(const std::vector<std::string>& args, request& r) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto& arg = args[i];
    if (arg == "--json") {
      r.json = true;
      continue;
    }
    if (arg.size() < 2 || arg.substr(0, 2) != "--") {
      if (!r.path.empty())
        return "one configuration at a time; `" + arg + "` is one too many";
      r.path = arg;
      continue;
    }
    if (i + 1 == args.size())
      return arg + ": its value is missing";
    const auto& text = args[++i];
    if (arg == "--curves") {
      if (text != "benign" && text != "crossing" && text != "lc-1" && text != "lc-2")
        return "--curves: `" + text + "` is neither benign nor crossing";
      r.options.family = text == "benign" || text == "lc-1" ? searchers::curve_family::benign
                                                            : searchers::curve_family::crossing;
    } else if (arg == "--workers") {
      if (!read_number(text, r.options.workers) || r.options.workers == 0 || r.options.workers > 1'000'000)
        return "--workers: an integer, 1 to 1000000, not `" + text + "`";
    } else if (arg == "--seed") {
      if (!read_number(text, r.options.seed))
        return "--seed: a whole number, not `" + text + "`";
    } else if (arg == "--time") {
      if (!read_number(text, r.options.horizon) || !(r.options.horizon > 0))
        return "--time: a number above 0, not `" + text + "`";
    } else {
      return "unknown option " + arg;
    }
  }
  return r.path.empty() ? "give a configuration" : "";
}

std::string told(const request& r, const searchers::simulation_result& s, const std::string& unit) {
  std::string text = fmt::format(
    "{} workers, {} curves, seed {}\n\n"
    "  trials        {}\n  reports       {}\n  stopped       {}\n  paused        {}\n  full length   {}\n"
    "  virtual time  {:.6g} (1 is an epoch of a middling trial)\n  workers busy  {:.1f} %\n"
    "  best loss     {:.6f} (regret {:.6f})\n\n",
    r.options.workers, r.options.family == searchers::curve_family::benign ? "benign" : "crossing",
    r.options.seed, s.trials, s.reports, s.stopped, s.pauses, s.full_length, s.time, 100 * s.busy,
    s.best_loss, s.regret);
  std::uint64_t most = 1;
  for (auto n : s.ended_at)
    most = std::max(most, n);
  for (std::size_t k = 0; k < s.rungs.size(); ++k) {
    auto width = (s.ended_at[k] * 40 + most - 1) / most;
    text += fmt::format("  {:>8.10g} {} {:<40} {} ended\n", s.rungs[k], unit, std::string(width, '#'),
                        s.ended_at[k]);
  }
  return text;
}

} // namespace

int simulate_search(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
                    std::ostream& err) {
  request r;
  if (auto fault = read_arguments(args, r); !fault.empty()) {
    err << "troupe search simulate: " << fault << "\nusage:\n" << simulate_usage;
    return exit_usage;
  }
  auto config = read_search_config(r.path, in, err);
  if (!config)
    return exit_usage;
  auto& section = config->searcher;
  auto text = [&](const char* key, const char* fallback) {
    return section.contains(key) && section[key].is_string() ? section[key].get<std::string>()
                                                             : std::string(fallback);
  };
  if (section.contains("max_time") && section["max_time"].is_number())
    r.options.full_length = section["max_time"].get<double>();
  auto slots =
    section.contains("max_concurrent_trials") && section["max_concurrent_trials"].is_number_integer()
      ? section["max_concurrent_trials"].get<std::int64_t>()
      : 16;
  if (static_cast<std::int64_t>(r.options.workers) > slots && slots > 0)
    err << fmt::format("note: max_concurrent_trials {} keeps {} of the {} workers idle\n", slots,
                       static_cast<std::int64_t>(r.options.workers) - slots, r.options.workers);
  auto search = searchers::make_searcher(section, config->hyperparameters, r.options.seed);
  if (!search) {
    err << r.path << ": " << search.error().what << '\n';
    return exit_usage;
  }
  bool smaller = !section.contains("smaller_is_better") || section["smaller_is_better"] != false;
  auto coordinates = searchers::coordinates_of(config->hyperparameters);
  auto s = searchers::simulate(**search, r.options, text("metric", "loss"), text("time_metric", "epochs"),
                               smaller ? 1 : -1, coordinates);
  if (!r.json) {
    out << told(r, s, text("time_metric", "epochs"));
    return exit_done;
  }
  value rungs = value::array();
  for (std::size_t k = 0; k < s.rungs.size(); ++k)
    rungs.push_back({{"units", s.rungs[k]}, {"ended", s.ended_at[k]}});
  out << to_json({{"trials", s.trials},
                  {"reports", s.reports},
                  {"stopped", s.stopped},
                  {"paused", s.pauses},
                  {"full_length", s.full_length},
                  {"time", s.time},
                  {"busy", s.busy},
                  {"best_loss", s.best_loss},
                  {"regret", s.regret},
                  {"rungs", rungs}},
                 2)
      << '\n';
  return exit_done;
}

} // namespace troupe::cli

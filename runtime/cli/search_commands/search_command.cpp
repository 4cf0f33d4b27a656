#include "runtime/cli/search_commands/search_command.hpp"

#include "runtime/cli/exit_codes.hpp"
#include "runtime/cli/search_commands/config_file.hpp"
#include "runtime/cli/search_commands/preview_text.hpp"
#include "runtime/cli/search_commands/replay.hpp"
#include "runtime/cli/search_commands/simulate_text.hpp"

#include <algorithm>
#include <ostream>

namespace troupe::cli {
namespace {

constexpr const char* usage = R"(usage:
  troupe search replay -                 drive one searcher by hand: JSON lines in, one JSON line out for each
  troupe search preview CONFIG [--json]  what a search would run: trials, lengths, brackets, total
)";

int preview(const std::vector<std::string>& args, std::istream& in, std::ostream& out, std::ostream& err) {
  bool json = std::find(args.begin(), args.end(), "--json") != args.end();
  if (args.size() != (json ? 3u : 2u) || (json && args[1] == "--json")) {
    err << usage;
    return exit_usage;
  }
  auto config = read_search_config(args[1], in, err);
  if (!config)
    return exit_usage;
  auto plan = searchers::preview_search(config->searcher, config->hyperparameters);
  if (!plan) {
    err << args[1] << ": " << plan.error().what << '\n';
    return exit_usage;
  }
  auto divisor = config->searcher.contains("divisor") && config->searcher["divisor"].is_number()
                   ? config->searcher["divisor"].get<double>()
                   : 4.0;
  out << (json ? to_json(searchers::to_determined(*plan), 2) + "\n" : preview_text(*plan, divisor));
  return exit_done;
}

} // namespace

int search_command(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
                   std::ostream& err) {
  const auto wants_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  const bool asked =
    (!args.empty() && args[0] == "help") || std::any_of(args.begin(), args.end(), wants_help);
  if (asked) {
    out << usage << simulate_usage;
    return exit_done;
  }
  if (args.size() == 2 && args[0] == "replay" && args[1] == "-")
    return replay_search(in, out);
  if (!args.empty() && args[0] == "preview")
    return preview(args, in, out, err);
  if (!args.empty() && args[0] == "simulate")
    return simulate_search({args.begin() + 1, args.end()}, in, out, err);
  err << usage << simulate_usage;
  return exit_usage;
}

} // namespace troupe::cli

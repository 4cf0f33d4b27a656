// Only `troupe search ...`: quality.py runs it, so that measuring searchers needs no whole build.

#include "runtime/cli/search_commands/search_command.hpp"

#include <iostream>

int main(int count, char** words) {
  std::vector<std::string> args(words + 1, words + count);
  if (!args.empty() && args[0] == "search")
    args.erase(args.begin());
  return troupe::cli::search_command(args, std::cin, std::cout, std::cerr);
}

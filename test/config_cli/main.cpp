// `troupe-config ARGS` is `troupe config ARGS`, without the rest of Troupe. `troupe-config --lines` answers
// many questions in one process, for test/differential: each line of input is {"args": [...], "text": "..."},
// each line of output what the command prints, or null where it prints nothing.

#include "runtime/cli/config_commands/config_commands.hpp"

#include "model/value.hpp"

#include <iostream>
#include <sstream>

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args != std::vector<std::string>{"--lines"})
    return troupe::cli::config_command(args, std::cin, std::cout, std::cerr);
  for (std::string line; std::getline(std::cin, line);) {
    auto question = troupe::parse_json(line);
    if (!question)
      return 2;
    std::istringstream in((*question)["text"].get<std::string>());
    std::ostringstream out, err;
    troupe::cli::config_command((*question)["args"].get<std::vector<std::string>>(), in, out, err);
    auto answer = out.str();
    std::cout << (answer.empty() ? "null\n" : answer) << std::flush;
  }
}

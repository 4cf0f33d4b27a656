// `troupe-config ARGS` is `troupe config ARGS`, without the rest of Troupe.

#include "runtime/cli/config_commands/config_commands.hpp"

#include <iostream>

int main(int argc, char** argv) {
  return troupe::cli::config_command({argv + 1, argv + argc}, std::cin, std::cout, std::cerr);
}

// The one binary.

#include "runtime/cli/config_commands/config_commands.hpp"
#include "runtime/cli/run.hpp"
#include "runtime/cli/search_commands/search_command.hpp"
#include "runtime/launch/fence_call.hpp"
#include "runtime/launch/host_check.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/pool_replay/pool_replay.hpp"
#include "runtime/shell/shell.hpp"

#include <string_view>

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view("--fence")) // how sandboxes call it; no verb of people
    return troupe::launch::fence_call();
  troupe::cli::hooks node;
  const auto version = node.version;
  node.up = [&](const auto& o) { return troupe::launch::up(o, version); };
  node.master = [&](const auto& o) { return troupe::launch::master(o, version); };
  node.agent = [&](const auto& o) { return troupe::launch::agent(o, version); };
  node.run = [&](const auto& o) { return troupe::launch::run(o, version); };
  node.open_here = [&](const auto& dir) { return troupe::launch::open_here(dir, version); };
  node.tls_init = troupe::launch::tls_init;
  node.check_hosts = troupe::launch::check_hosts;
  node.config = troupe::cli::config_command;
  node.search = troupe::cli::search_command;
  node.pool_replay = troupe::replay::replay_pool;
  node.shell = [&](const auto& o) { return troupe::shell::run(o, node); };
  return troupe::cli::run(argc, argv, node);
}

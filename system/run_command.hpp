#pragma once
// Runs a command of the user, reads its output and, where it takes too long, kills it with all that it
// started.

#include "model/result.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace troupe {

struct command_output {
  int exit_code = -1;    ///< -1: a signal ended it
  std::string out;       ///< what it printed; at most 1 MiB
  std::string last_line; ///< the last line of its standard error that is not empty, at most 500 bytes
};

/// Waits until the command ends, at most `limit`. `words` are the program, found in PATH, and its arguments;
/// `added` is put into its environment. Fails with errc::timeout where it takes longer, errc::io where it
/// could not be started or prints too much, errc::unreachable once `stop` is true; its process group is then
/// dead. Processes that it leaves in the background do not keep the caller waiting. Where this process is
/// killed meanwhile, the command itself is ended 2 s after its limit.
result<command_output> run_command(const std::vector<std::string>& words,
                                   const std::map<std::string, std::string>& added,
                                   std::chrono::milliseconds limit, const std::atomic<bool>* stop = nullptr);

/// Starts a process that outlives this one, in its own session, with its output appended to `log`. Returns
/// its pid. The caller need not reap it.
result<int> start_detached(const std::vector<std::string>& words, const std::string& log);

} // namespace troupe

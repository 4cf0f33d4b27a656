#pragma once
// A command of the user's: started, heard and, where it takes too long, killed with all that it started.

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
  std::string last_line; ///< of its standard error that is not empty, in at most 500 bytes
};

/// Waits for its end, at most `limit`. `words`: the program, found in PATH, and its arguments; `added` is put
/// into its environment. errc::timeout where it takes longer, errc::io where it could not be started or
/// prints too much, errc::unreachable once `stop` is true: its process group is dead then. What it leaves in
/// the background does not keep the caller waiting.
result<command_output> run_command(const std::vector<std::string>& words,
                                   const std::map<std::string, std::string>& added,
                                   std::chrono::milliseconds limit, const std::atomic<bool>* stop = nullptr);

/// Starts a process that outlives this one, in a session of its own, with its output appended to `log`.
/// Answers its pid. The caller reaps nothing.
result<int> start_detached(const std::vector<std::string>& words, const std::string& log);

} // namespace troupe

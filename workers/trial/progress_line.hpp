#pragma once
// What a trial that runs by hand shows on the terminal: one line that is written anew, or a line a second in
// a file.

#include "workers/trial/troupe/trial.hpp"

#include <chrono>

namespace troupe::trial {

class progress_line {
public:
  /// Quiet: only what is said reaches the log.
  progress_line(bool quiet, bool terminal) : quiet_(quiet), terminal_(terminal) {}

  void begin(std::int64_t done, std::int64_t batches);
  void stepped(std::int64_t step, const metrics& m);
  void validated(std::int64_t step, const metrics& m);
  void say(const std::string& text); ///< a line that stays
  void end();

private:
  void show(std::int64_t step, const metrics& m);

  bool quiet_, terminal_;
  bool open_ = false; // the cursor stands behind the line
  std::int64_t first_ = 0, batches_ = 0;
  std::chrono::steady_clock::time_point began_, shown_;
};

} // namespace troupe::trial

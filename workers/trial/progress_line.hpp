#pragma once
// What a trial that runs by hand shows: on a terminal one line that is overwritten, in a file a line a
// second.

#include "workers/trial/troupe/trial.hpp"

#include <chrono>

namespace troupe::trial {

class progress_line {
public:
  /// With `quiet` only `say` writes.
  progress_line(bool quiet, bool terminal) : quiet_(quiet), terminal_(terminal) {}

  void begin(std::int64_t done, std::int64_t batches);
  void stepped(std::int64_t step, const metrics& m);
  void validated(std::int64_t step, const metrics& m);
  void say(const std::string& text); ///< writes a line that stays
  void end();

private:
  void show(std::int64_t step, const metrics& m);

  bool quiet_, terminal_;
  bool open_ = false; // whether the cursor stands behind the progress line
  std::int64_t first_ = 0, batches_ = 0;
  std::chrono::steady_clock::time_point began_, shown_;
};

} // namespace troupe::trial

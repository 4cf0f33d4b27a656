#pragma once
// The loop around progress_view: reads the live facts of an experiment and draws until it ends.

#include "runtime/cli/progress_view.hpp"
#include "runtime/client/server.hpp"

#include <atomic>
#include <functional>
#include <iosfwd>

namespace troupe::cli {

struct session;

/// Where a display is drawn.
struct canvas {
  std::ostream& out;
  terminal screen;
  int fd = -1; ///< terminal whose size may change; -1: none
  std::function<time_point()> now;
};
/// The standard output of this process, by NO_COLOR and the locale; `color` is "auto", "always" or "never".
canvas standard_canvas(const std::string& color = "auto");

struct followed {
  enum class by { end, interrupt, fault };
  by why = by::end;
  std::string state; ///< the last known state of the experiment
  error fault;       ///< set for by::fault
};

/// Draws experiment `id` until it has ended, then the final report. Once `interrupt` is set it returns, and
/// the experiment goes on. A lost connection is reported and dialled again for as long as it takes. On a
/// terminal running trials are bars that are drawn again; in a pipe there are only lines.
followed follow(client::server& cluster, experiment_id id, const canvas& on,
                const std::atomic<bool>& interrupt);

struct paused {
  enum class by { done, ended, timeout, interrupt, fault };
  by why = by::done;
  std::vector<trial_id> waiting; ///< trials that have not stopped yet
  std::string state;
  error fault;
};
/// To be called after a pause was ordered: waits, at most `limit`, until no trial of the experiment runs, and
/// shows which trials it waits for.
paused follow_pause(client::server& cluster, experiment_id id, const canvas& on, std::chrono::seconds limit,
                    const std::atomic<bool>& interrupt);

/// Runs `follow`, where Ctrl-C leaves the experiment running, and returns the exit code. With a
/// machine-readable -o only the end is shown.
int follow_to_exit(session& s, client::server& cluster, experiment_id id);

} // namespace troupe::cli

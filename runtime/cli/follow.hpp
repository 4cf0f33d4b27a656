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
/// Standard output of this process, with NO_COLOR and the locale looked at; `color` is "auto", "always" or
/// "never".
canvas standard_canvas(const std::string& color = "auto");

struct followed {
  enum class by { end, interrupt, fault };
  by why = by::end;
  std::string state; ///< the experiment's last known
  error fault;       ///< the fault, for by::fault
};

/// Draws experiment `id` until it has ended, then the final report; or until `interrupt` is set, leaving the
/// experiment as it is. A lost connection is dialled again for as long as it takes, and said. On a terminal
/// running trials are bars that are drawn again; in a pipe there are lines only.
followed follow(client::server& cluster, experiment_id id, const canvas& on,
                const std::atomic<bool>& interrupt);

struct paused {
  enum class by { done, ended, timeout, interrupt, fault };
  by why = by::done;
  std::vector<trial_id> waiting; ///< trials that had not stopped yet
  std::string state;
  error fault;
};
/// After a pause was ordered: waits until no trial of the experiment runs, at most `limit`, showing for whom.
paused follow_pause(client::server& cluster, experiment_id id, const canvas& on, std::chrono::seconds limit,
                    const std::atomic<bool>& interrupt);

/// `follow` with Ctrl-C as "leave it running"; the exit code. With a machine-readable -o nothing but the end
/// counts.
int follow_to_exit(session& s, client::server& cluster, experiment_id id);

} // namespace troupe::cli

#pragma once
// The gateway between the tasks of one host and the cluster. It knows who may report, which reports are not
// yet durable, and what each task has been told. Pure. It holds no durable facts: after a restart, the tasks
// send again what was not acknowledged. The shell is harness_actor.cpp, which owns the socket of
// workers/harness_link.hpp. docs/task-link.md describes the frames.

#include "actors/machine.hpp"
#include "storage/journal.hpp"
#include "workers/harness_frames.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace troupe {

struct harness_limits {
  std::uint64_t window_bytes = 1 << 20;    ///< limit of unacknowledged reports of each process
  std::size_t batch_bytes = 256 << 10;     ///< limit of metrics in one append; a larger report goes alone
  std::size_t in_flight_bytes = 768 << 10; ///< limit of all appends together; a larger append goes alone
  /// Limit of the processes of one allocation; processes that were silent for `forget_after` do not count.
  std::size_t processes = 1024;
  duration forget_after = 10s;
  duration decision_wait = 100ms; ///< how long the acknowledgement of a validation waits for the decision
  duration checkpoint_repeat = 2s;
  duration progress_every = 1s;
};

/// One library instance in a task: it numbers its reports from 1.
struct task_stream {
  allocation_id allocation;
  std::int32_t rank = 0;
  std::string process;
  friend auto operator<=>(const task_stream&, const task_stream&) = default;
};

// Events.
/// A task of this allocation starts or was adopted. A repeat replaces what differs.
struct task_expected {
  allocation_id allocation;
  std::string token;
  std::string checkpoint_dir; ///< absolute, as this host sees it
  /// Whether none of the task's processes can have reported anything yet.
  bool begins = false;
};
/// The task's processes are dead. Their reports still go to the journal; `reports_drained` tells when all are
/// there.
struct task_gone {
  allocation_id allocation;
};
struct frames_received {
  std::vector<workers::task_message> messages;
};
/// The journal's answer to `append_task_reports` number `number`: the reports up to `up_to` are durable, or
/// `failed` says why not. `conflict` and `gap` close the stream for good, `invalid` refuses this append only;
/// with every other code (no answer in time is `timeout`) the append is sent again.
struct reports_answered {
  std::uint64_t number = 0;
  std::uint64_t up_to = 0;
  std::optional<error> failed;
};
/// The searcher's decision on a validation; it may arrive at any time.
struct validation_decided {
  task_stream stream;
  std::uint64_t sequence = 0;
  bool stop = false;
  std::string reason;
};
struct checkpoint_answered {
  allocation_id allocation;
  std::string uuid;
  std::string refused; ///< why the checkpoint was refused; empty: it is durable
};
/// Asks the scripts of this allocation to save and end, with the reason: "pause", "pruned", "canceled" or
/// "preempted".
struct task_stop_asked {
  allocation_id allocation;
  std::string reason;
};
/// From the stand-in of a worker: an order for the worker, or why it is refused.
struct worker_answered {
  task_stream worker;
  std::uint64_t protocol = 0;
  std::string order, refused;
};
/// The master is reachable over a new connection: what waits for an answer or for another try is sent again,
/// because the journal recognises repeats.
struct master_reachable {};
using harness_event =
  std::variant<task_expected, task_gone, frames_received, reports_answered, validation_decided,
               checkpoint_answered, task_stop_asked, master_reachable, time_passed, worker_answered>;

// Actions.
struct send_frame {
  std::string peer;
  workers::agent_frame frame;
};
/// To the journal, which answers with `reports_answered{number, ...}`. A report with an empty group was
/// refused here: its number is used up, and no row is stored.
struct append_task_reports {
  std::uint64_t number = 0;
  storage::report_batch batch;
};
/// To the trial; repeated until `checkpoint_answered`.
struct forward_checkpoint {
  task_stream stream;
  checkpoint saved;
};
/// To the trial, at most once in `progress_every`, and only if the progress has grown by one percent or more.
struct forward_progress {
  allocation_id allocation;
  double done = 0; ///< 0..1
};
/// To the stand-in of the worker. The word is not kept here: a worker repeats it.
struct forward_worker {
  task_stream worker;
  std::uint64_t protocol = 0;
  std::string word;
};
/// To the link: so many bytes of received frames are held no longer.
struct release_credit {
  std::size_t bytes = 0;
};
/// Nothing of this allocation is held any longer. Sent once after each `task_gone`.
struct reports_drained {
  allocation_id allocation;
  bool silent = false; ///< whether none of the task's processes has ever said hello since they started
};
using harness_action = std::variant<send_frame, append_task_reports, forward_checkpoint, forward_progress,
                                    release_credit, reports_drained, forward_worker>;

/// Not thread-safe: one actor owns it.
///
/// A report's way: row of its stream -> in flight (one append of a stream at a time, so that the journal sees
/// no gap)
/// -> durable -> for a validation: decided, or `decision_wait` is over -> acknowledged.
class harness {
public:
  explicit harness(harness_limits limits = {});

  [[nodiscard]] std::vector<harness_action> apply(const harness_event& ev, time_point now);
  std::optional<time_point> deadline() const; ///< when `time_passed` can next matter, if at all

  std::size_t held_bytes() const { return held_; } ///< weight of the reports that are not durable
  std::size_t streams() const { return streams_.size(); }
  value describe() const; ///< the state, for people

private:
  using out = std::vector<harness_action>;
  struct task {
    std::string token, checkpoint_dir;
    std::string stop;  ///< reason to stop that the task's processes get; empty: none
    std::string asked; ///< the stop that was last sent to all processes
    bool gone = false;
    bool silent = false; ///< value of `silent` in reports_drained
  };
  struct flight {
    task_stream stream;
    std::uint64_t last = 0;
    std::size_t bytes = 0;
  };
  struct waiting_checkpoint {
    std::uint64_t sequence = 0;
    checkpoint saved;
    time_point forwarded;
  };
  struct answered_checkpoint {
    std::uint64_t sequence = 0;
    std::string uuid, refused;
  };
  struct stream_state {
    std::string peer;                     ///< connection of the process; empty: not connected
    std::uint64_t committed = 0;          ///< number up to which the reports are durable or refused
    std::uint64_t told = 0;               ///< number up to which the reports are acknowledged
    std::deque<workers::report_row> rows; ///< rows from committed + 1 on
    std::size_t metrics_bytes = 0;        ///< bytes of the metrics in `rows`
    std::uint64_t in_flight = 0;          ///< number of the append that waits for an answer; 0: none
    bool ready = false;                   ///< whether the stream stands in ready_
    int failures = 0;                     ///< failures in a row
    std::optional<time_point> retry_at;
    time_point heard;
    std::string closed; ///< why the journal takes no more of this stream; empty: it does
    /// Decisions that have arrived and are not yet sent.
    std::map<std::uint64_t, workers::decision> decisions;
    /// Durable validations, and the time until which each waits for its decision.
    std::deque<std::pair<std::uint64_t, time_point>> undecided;
    /// The newest few refusals, for a process that reconnects.
    std::deque<std::pair<std::uint64_t, std::string>> refusals;
    std::deque<waiting_checkpoint> checkpoints;
    std::deque<answered_checkpoint> answered; ///< the newest few answers, kept for repeats
    double progress = 0;                      ///< the latest progress that was passed on
    /// Time of the latest progress that was passed on; before the first one, the time at which the process
    /// connected.
    time_point progress_at;

    std::uint64_t received() const { return committed + rows.size(); }
    std::uint64_t acknowledgeable() const {
      return undecided.empty() ? committed : undecided.front().first - 1;
    }
    bool idle() const { return rows.empty() && undecided.empty() && checkpoints.empty(); }
  };
  using entry = std::map<task_stream, stream_state>::value_type;

  void on(out& o, const task_expected& ev, time_point now);
  void on(out& o, const task_gone& ev, time_point now);
  void on(out& o, const frames_received& ev, time_point now);
  void on(out& o, const reports_answered& ev, time_point now);
  void on(out& o, const validation_decided& ev, time_point now);
  void on(out& o, const checkpoint_answered& ev, time_point now);
  void on(out& o, const task_stop_asked& ev, time_point now);
  void on(out& o, const master_reachable& ev, time_point now);
  void on(out& o, const time_passed& ev, time_point now);
  void on(out& o, const worker_answered& ev, time_point now);

  void take(out& o, const std::string& peer, const workers::hello& x, time_point now);
  void take(out& o, const std::string& peer, const workers::reports& x, time_point now);
  void take(out& o, const std::string& peer, const workers::task_checkpoint& x, time_point now);
  void take(out& o, const std::string& peer, const workers::task_progress& x, time_point now);
  void take(out& o, const std::string& peer, const workers::ping& x, time_point now);
  void take(out& o, const std::string& peer, const workers::worker_mail& x, time_point now);
  void take(out& o, const std::string& peer, const workers::malformed& x, time_point now);
  void take(out& o, const std::string& peer, const workers::peer_gone& x, time_point now);

  entry* find(const std::string& peer);
  entry* enter(const workers::hello& x, time_point now);
  void reject(out& o, const std::string& peer, const char* code, std::string why);
  void tell(out& o, const stream_state& s, workers::agent_frame frame) const;
  void refuse(out& o, stream_state& s, std::uint64_t sequence, std::string why);
  void acknowledge(out& o, stream_state& s);
  void commit_to(out& o, entry& e, std::uint64_t up_to, const std::string& refusal, time_point now);
  void make_ready(entry& e);
  void append_ready(out& o, time_point now);
  storage::report_batch batch_of(const task_stream& id, const stream_state& s, std::size_t& bytes) const;
  void forward(out& o, const task_stream& id, waiting_checkpoint& x, time_point now) const;
  void drain(out& o, allocation_id allocation);

  harness_limits limits_;
  std::map<allocation_id, task> tasks_;
  std::map<task_stream, stream_state> streams_;
  std::unordered_map<std::string, task_stream> peers_;
  /// Streams that have rows to append and none in flight; some may have to wait for their retry_at.
  std::deque<task_stream> ready_;
  std::map<std::uint64_t, flight> flights_;
  std::size_t flight_bytes_ = 0;
  std::uint64_t next_number_ = 1;
  std::size_t held_ = 0;
  std::size_t released_ = 0; ///< bytes that the current `apply` has released
};

} // namespace troupe

#pragma once
// The frames of the task link (docs/task-link.md) as values: frames from a task are decoded and checked,
// frames to a task are encoded. Pure.

#include "model/ids.hpp"
#include "model/result.hpp"
#include "model/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::workers {

constexpr std::uint64_t task_link_version = 1;
constexpr std::size_t max_frame_bytes = 2 << 20;
constexpr std::size_t max_report_bytes = 1 << 20; ///< limit of one metrics map as msgpack
constexpr int max_report_levels = 64;             ///< counts the map itself
constexpr int max_report_keys = 1000;             ///< limit of the keys in all maps of one report together
constexpr std::size_t max_name_bytes = 10'240;
constexpr std::size_t max_worker_mail_bytes = 64 << 10;

// From a task.

struct hello {
  std::uint64_t version = 0;
  std::string token;
  allocation_id allocation; ///< empty where the text was not an allocation's id
  std::int32_t rank = 0;
  std::string process; ///< 1 to 64 bytes, random per library instance
  std::uint64_t acked = 0;
  friend bool operator==(const hello&, const hello&) = default;
};

struct report_row {
  bool validation = false; ///< true: validation metrics; false: training metrics
  std::int64_t steps = 0;
  time_point at;       ///< the task's clock
  std::string metrics; ///< a msgpack map within the limits; empty where `refusal` is not
  std::string refusal; ///< why this report is bad, for its author; its number is used up anyway
  friend bool operator==(const report_row&, const report_row&) = default;
};

/// Consecutive reports, the first of them numbered `first` (from 1).
struct reports {
  std::uint64_t first = 0;
  std::vector<report_row> rows;
  friend bool operator==(const reports&, const reports&) = default;
};

struct task_checkpoint {
  std::uint64_t sequence = 0; ///< counts checkpoints of one process from 1
  std::string uuid;           ///< 36 bytes of hex digits and dashes
  std::int64_t steps = 0;
  std::vector<std::pair<std::string, std::uint64_t>> files; ///< relative path, bytes
  std::string metadata;                                     ///< a msgpack map within the limits of a report
  friend bool operator==(const task_checkpoint&, const task_checkpoint&) = default;
};

struct task_progress {
  double done = 0; ///< 0..1
  friend bool operator==(const task_progress&, const task_progress&) = default;
};

/// An order or a word of workers/worker_messages.hpp, for a trial in C++; goes both ways.
struct worker_mail {
  std::uint64_t protocol = 0;
  std::string body;
  friend bool operator==(const worker_mail&, const worker_mail&) = default;
};

struct ping {
  friend bool operator==(const ping&, const ping&) = default;
};

/// A body that is not a frame; its author is told `why`.
struct malformed {
  std::string why;
  friend bool operator==(const malformed&, const malformed&) = default;
};

/// Not a frame: the socket's owner says that the connection is gone, or that its task does not read.
struct peer_gone {
  friend bool operator==(const peer_gone&, const peer_gone&) = default;
};

using task_frame =
  std::variant<hello, reports, task_checkpoint, task_progress, ping, malformed, peer_gone, worker_mail>;

/// Never fails: a body that is not a frame becomes `malformed`, a bad report becomes a row with a refusal.
task_frame decode_task_frame(std::string_view body);

struct task_message {
  std::string peer; ///< the connection to answer on; each reconnection gets another name
  task_frame frame;
};

/// Bytes that a row and a frame count against the bounds on memory; a frame counts more than its rows.
inline std::size_t weight(const report_row& row) { return 96 + row.metrics.size() + row.refusal.size(); }
inline std::size_t weight(const task_frame& frame) {
  std::size_t sum = 96;
  if (auto* x = std::get_if<reports>(&frame))
    for (const auto& row : x->rows)
      sum += weight(row);
  if (auto* x = std::get_if<worker_mail>(&frame))
    sum += x->body.size();
  if (auto* x = std::get_if<task_checkpoint>(&frame)) {
    sum += x->metadata.size();
    for (const auto& [path, bytes] : x->files)
      sum += 96 + path.size();
  }
  return sum;
}

// To a task.

struct welcome {
  std::uint64_t acked = 0;
  std::string stop; ///< empty: the task goes on
  std::uint64_t window_bytes = 0;
  friend bool operator==(const welcome&, const welcome&) = default;
};
struct ack {
  std::uint64_t up_to = 0;
  friend bool operator==(const ack&, const ack&) = default;
};
struct decision {
  std::uint64_t sequence = 0;
  bool stop = false;
  std::string reason;
  friend bool operator==(const decision&, const decision&) = default;
};
struct refused {
  std::uint64_t sequence = 0;
  std::string why;
  friend bool operator==(const refused&, const refused&) = default;
};
struct saved {
  std::uint64_t sequence = 0;
  friend bool operator==(const saved&, const saved&) = default;
};
struct unsaved {
  std::uint64_t sequence = 0;
  std::string why;
  friend bool operator==(const unsaved&, const unsaved&) = default;
};
struct stop {
  std::string reason;
  friend bool operator==(const stop&, const stop&) = default;
};
struct pong {
  std::uint64_t acked = 0;
  std::string stop;
  friend bool operator==(const pong&, const pong&) = default;
};
struct again {
  friend bool operator==(const again&, const again&) = default;
};
struct link_error {
  std::string code; ///< version, token, malformed, window, worker (final), unknown (ask again)
  std::string why;
  friend bool operator==(const link_error&, const link_error&) = default;
};

using agent_frame =
  std::variant<welcome, ack, decision, refused, saved, unsaved, stop, pong, again, link_error, worker_mail>;

std::string encode(const agent_frame& frame);

} // namespace troupe::workers

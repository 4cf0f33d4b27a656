#pragma once
// The agent's socket of the task link: one thread owns a ROUTER, decodes what tasks send and hands it on in
// batches; any thread may send. It knows no allocation and decides nothing.
//
// Bounded everywhere: what the owner has not released counts against a credit, and where that is used up the
// socket is not read, so that tasks wait in their libraries. A message over `max_frame_bytes` or bytes that
// are not ZeroMQ's end that connection alone.

#include "workers/harness_frames.hpp"

#include <functional>
#include <memory>

namespace troupe::workers {

struct harness_link_options {
  std::string endpoint = "tcp://127.0.0.1:*"; ///< loopback TCP or ipc; `*` takes any free port
  std::size_t credit_bytes = 64 << 20;        ///< limit of the messages handed over and not yet released
  std::size_t outgoing_frames = 1 << 16;      ///< queued by `send` and not yet given to the socket
};

class harness_link {
public:
  /// Called on the link's own thread, never twice at once; must not block. Hands over weight(frame) bytes
  /// each.
  using sink = std::function<void(std::vector<task_message>)>;

  virtual ~harness_link() = default;               ///< closes the socket; the sink is not called afterwards
  virtual const std::string& endpoint() const = 0; ///< endpoint with the port that was taken
  /// From any thread; never blocks. False where the queue is full: the frame is lost, as it may be on the way
  /// too. A peer that is gone or does not read comes back as `peer_gone`.
  virtual bool send(std::string peer, const agent_frame& frame) = 0;
  /// From any thread: so many bytes (see `weight`) of what was handed over are no longer held.
  virtual void release(std::size_t bytes) = 0;
};

/// `errc::conflict` where the port is taken, `errc::invalid` for an address that is malformed or not on this
/// host.
result<std::unique_ptr<harness_link>> open_harness_link(const harness_link_options& options,
                                                        harness_link::sink sink);

} // namespace troupe::workers

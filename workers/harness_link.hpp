#pragma once
// The agent's socket of the task link. One thread owns a ROUTER, decodes what tasks send and hands it on in
// batches; any thread may send. The link knows no allocation and decides nothing.
//
// Everything is bounded: what the owner has not released counts against a credit. Where that is used up, the
// socket is not read, so that tasks wait in their libraries. A message over `max_frame_bytes`, or bytes that
// are not ZeroMQ's, end only their own connection.

#include "workers/harness_frames.hpp"

#include <functional>
#include <memory>

namespace troupe::workers {

struct harness_link_options {
  std::string endpoint = "tcp://127.0.0.1:*"; ///< loopback TCP or ipc; `*` takes any free port
  std::size_t credit_bytes = 64 << 20;   ///< limit of the messages that are handed over and not yet released
  std::size_t outgoing_frames = 1 << 16; ///< limit of frames queued by `send` for the socket
};

class harness_link {
public:
  /// Called on the link's own thread, never twice at once; must not block. Counts weight(frame) bytes for
  /// each frame.
  using sink = std::function<void(std::vector<task_message>)>;

  virtual ~harness_link() = default;               ///< closes the socket; the sink is not called afterwards
  virtual const std::string& endpoint() const = 0; ///< with the port that was taken
  /// May be called from any thread; never blocks. False where the queue is full: the frame is lost, as any
  /// frame may be on the way. A peer that is gone or does not read comes back as `peer_gone`.
  virtual bool send(std::string peer, const agent_frame& frame) = 0;
  /// May be called from any thread: the owner no longer holds this many bytes (see `weight`) of what was
  /// handed over.
  virtual void release(std::size_t bytes) = 0;
};

/// Fails with `errc::conflict` where the port is taken, with `errc::invalid` for an address that is malformed
/// or not on this host.
result<std::unique_ptr<harness_link>> open_harness_link(const harness_link_options& options,
                                                        harness_link::sink sink);

} // namespace troupe::workers

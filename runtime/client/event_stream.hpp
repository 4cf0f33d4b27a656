#pragma once
// The live facts of an experiment, or of the cluster: one stream that outlives connections and restarts of
// the server.

#include "runtime/client/server.hpp"
#include "runtime/client/sse.hpp"

namespace troupe::client {

class event_stream {
public:
  using clock = std::chrono::steady_clock;

  /// Facts after `after`, of `experiment` where it is not 0, and as the query `filter` says; nothing is asked
  /// for before the first `poll`.
  event_stream(server& from, experiment_id experiment, std::uint64_t after, query filter = {});

  struct step {
    enum class link { same, lost, back };
    std::vector<value> events; ///< events as in docs/api.md, oldest first, each once
    link change = link::same;  ///< lost: said once, at the first failure; back: the server answers again
    std::string why;           ///< reason, for lost
  };
  /// Waits at most `wait`. A lost connection is dialled again, every 0.2 s at first, every 2 s later, for as
  /// long as the caller polls. Fails only where asking again is useless: denied, unauthorized, not_found.
  result<step> poll(std::chrono::milliseconds wait);

  std::uint64_t last() const { return after_; }
  bool connected() const { return connected_; }

private:
  result<step> fail(error why);
  result<step> wait_for_retry(std::chrono::milliseconds wait);

  server& from_;
  experiment_id experiment_;
  std::uint64_t after_;
  query filter_;
  std::unique_ptr<http_stream> stream_;
  sse_parser parser_;
  bool connected_ = false, said_lost_ = false;
  int failures_ = 0;
  clock::time_point retry_at_{};
};

} // namespace troupe::client

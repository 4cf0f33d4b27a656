#pragma once
// The master's table of connections to services: those that an agent was ordered to bring, those that are
// joined, and those that wait for the next request. Bounds them all. Thread-safe; of sockets it knows the
// number.

#include "runtime/http/byte_link.hpp"
#include "workers/owned_fd.hpp"

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <set>

namespace troupe::proxy {

using link_ptr = std::shared_ptr<http::byte_link>;

/// A connection to a service, on its way to who uses it.
struct service_end {
  service_end(link_ptr x) : link(std::move(x)) {}
  explicit service_end(workers::owned_fd x) : socket(std::move(x)) {}
  link_ptr link;            ///< one that stays where it was made; or, null,
  workers::owned_fd socket; ///< the connected socket itself, which its user puts on an executor of his own
};
using steady_time = std::chrono::steady_clock::time_point;

struct junction_limits {
  std::size_t of_service = 256, all = 4096;
  std::size_t idle_of_service = 16; ///< connections kept for the next request
  std::chrono::seconds kept{15};    ///< so long
};

struct service_use {
  std::size_t connections = 0;                ///< that are open now, or on their way
  std::chrono::system_clock::time_point last; ///< when one was asked for last; 0: never
};

class junctions {
public:
  explicit junctions(junction_limits limits = {}) : limits_(limits) {}

  /// Counts as one connection until it goes.
  using place = std::shared_ptr<void>;
  using arrival = std::function<void(result<service_end>)>;
  struct ticket {
    std::string connection, secret;
    place held;
  };

  /// Waits for a connection to `service`, at most `most` of which may be open (0: as of every service).
  /// `arrived` is called once, from any thread: with the connection, with the fault that the agent told, or
  /// with errc::timeout by `give_up`. errc::busy where there are too many already.
  result<ticket> expect(const std::string& service, arrival arrived, std::size_t most = 0);
  void give_up(const std::string& connection, error why);

  /// An agent brings it, or says why it cannot. False where the secret is not this connection's, or was shown
  /// before: then nothing has happened.
  bool is_expected(const std::string& connection, const std::string& secret) const;
  bool bring(const std::string& connection, const std::string& secret, result<service_end> what);

  /// For the next request to the same service; it goes after a while, and where too many wait already.
  struct kept {
    service_end end;
    place held;
  };
  void keep(const std::string& service, kept one);
  std::optional<kept> take(const std::string& service);

  /// Ends what has waited for too long, and joined connections on which nothing passed for `idle`. To be
  /// called now and then while `busy`. Returns when the next joined connection is over, if no byte passes.
  steady_time sweep(steady_time now);
  bool busy() const;

  /// Of a joined connection, for `sweep`: its last byte, and how it is ended. `last_byte` is called with the
  /// table locked.
  struct watched {
    virtual ~watched() = default;
    virtual steady_time last_byte() const = 0;
    virtual void end_idle() = 0;
  };
  void watch(const std::shared_ptr<watched>& one);
  /// No sweep looks at it any more, once this returns. Where it is not called, the next sweep sees that it
  /// has gone.
  void unwatch(const watched& one);

  service_use use_of(const std::string& service) const;
  /// Ends the kept connections of services of this task: it is over, or the right to it.
  void forget(const std::string& service);

  static constexpr std::chrono::seconds arrival_time{10}; ///< for an agent to bring one
  static constexpr std::chrono::hours idle{1};

private:
  struct waiting {
    std::string service, secret;
    arrival arrived;
  };
  struct resting {
    kept what;
    steady_time since;
  };
  void left(const std::string& service);

  const junction_limits limits_;
  mutable std::mutex mutex_;
  std::map<std::string, waiting> expected_;
  std::map<std::string, std::list<resting>> resting_;
  std::map<std::string, std::size_t> open_;
  std::map<std::string, std::chrono::system_clock::time_point> last_;
  std::size_t all_ = 0;
  std::map<const watched*, std::weak_ptr<watched>> watched_;
  std::shared_ptr<junctions*> self_ = std::make_shared<junctions*>(this); ///< places may outlive the table
  std::shared_ptr<std::mutex> self_mutex_ = std::make_shared<std::mutex>();

public:
  ~junctions();
};

} // namespace troupe::proxy

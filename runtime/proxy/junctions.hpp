#pragma once
// The master's table of connections to services: connections that an agent was ordered to bring, joined ones,
// and those that wait for the next request. It limits the number of all of them. Thread-safe. Of sockets it
// knows only the number.

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

/// A connection to a service, on its way to its user.
struct service_end {
  service_end(link_ptr x) : link(std::move(x)) {}
  explicit service_end(workers::owned_fd x) : socket(std::move(x)) {}
  link_ptr link; ///< a connection that stays on its executor; null: `socket` is set
  /// The connected socket itself, which its user puts on an executor of his own.
  workers::owned_fd socket;
};
using steady_time = std::chrono::steady_clock::time_point;

struct junction_limits {
  std::size_t of_service = 256, all = 4096;
  std::size_t idle_of_service = 16; ///< connections kept for the next request
  std::chrono::seconds kept{15};    ///< time for which such a connection is kept
};

struct service_use {
  std::size_t connections = 0; ///< number of connections that are open or on their way
  /// When a connection was last asked for; 0: never.
  std::chrono::system_clock::time_point last;
};

class junctions {
public:
  explicit junctions(junction_limits limits = {}) : limits_(limits) {}

  /// Counts as one connection until it is released.
  using place = std::shared_ptr<void>;
  using arrival = std::function<void(result<service_end>)>;
  struct ticket {
    std::string connection, secret;
    place held;
  };

  /// Waits for a connection to `service`. At most `most` connections to it may be open (0: the limit of every
  /// service). `arrived` is called once, on any thread: with the connection, with the fault that the agent
  /// reported, or with the error that `give_up` got. errc::busy if there are too many already.
  result<ticket> expect(const std::string& service, arrival arrived, std::size_t most = 0);
  void give_up(const std::string& connection, error why);

  /// An agent brings a connection, or says why it cannot. False if the secret is not the one of this
  /// connection, or was shown before: then nothing has happened.
  bool is_expected(const std::string& connection, const std::string& secret) const;
  bool bring(const std::string& connection, const std::string& secret, result<service_end> what);

  /// A connection for the next request to the same service. It is closed after a while, and at once if too
  /// many wait already.
  struct kept {
    service_end end;
    place held;
  };
  void keep(const std::string& service, kept one);
  std::optional<kept> take(const std::string& service);

  /// Ends connections that have waited for too long, and joined connections on which nothing passed for
  /// `idle`. To be called from time to time while `busy`. Returns the time at which the next joined
  /// connection will be ended if no byte passes.
  steady_time sweep(steady_time now);
  bool busy() const;

  /// A joined connection as `sweep` sees it: when its last byte passed, and how to end it. `last_byte` is
  /// called with the table locked.
  struct watched {
    virtual ~watched() = default;
    virtual steady_time last_byte() const = 0;
    virtual void end_idle() = 0;
  };
  void watch(const std::shared_ptr<watched>& one);
  /// Once this returns, no sweep looks at the connection any more. If it is not called, the next sweep
  /// notices that the connection no longer exists.
  void unwatch(const watched& one);

  service_use use_of(const std::string& service) const;
  /// Ends the kept connections of a task's services: the task has ended, or the right to it was lost.
  void forget(const std::string& service);

  /// Limit of the time in which an agent brings a connection.
  static constexpr std::chrono::seconds arrival_time{10};
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
  /// Places may live longer than the table.
  std::shared_ptr<junctions*> self_ = std::make_shared<junctions*>(this);
  std::shared_ptr<std::mutex> self_mutex_ = std::make_shared<std::mutex>();

public:
  ~junctions();
};

} // namespace troupe::proxy

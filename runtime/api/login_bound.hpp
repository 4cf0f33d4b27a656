#pragma once
// How often one may try a password. Failures count, logins do not: scripts that log in all day are never held
// back. Pure but for its lock.

#include "model/result.hpp"
#include "model/time.hpp"

#include <map>
#include <mutex>
#include <string>

namespace troupe::api {

/// Thread-safe. Three buckets of tries are asked: of an account from one address, of the address, and of the
/// account from anywhere, which is so large that nobody can lock another one out easily.
class login_bound {
public:
  struct bucket {
    double most;       ///< tries at once
    double per_second; ///< how fast they come back
  };
  static constexpr bucket of_pair{10, 0.2}, of_address{100, 1}, of_account{1000, 1};
  static constexpr std::size_t most_kept = 30'000; ///< buckets that are not full; beyond it the fullest go

  /// errc::busy where a try is not free, with the seconds until one is.
  result<void> check(const std::string& account, const std::string& address, time_point now);
  /// A name or a password was wrong.
  void failed(const std::string& account, const std::string& address, time_point now);

private:
  struct level {
    double left = 0;
    time_point at;
  };
  double left_of(const std::string& key, bucket size, time_point now) const;
  void drop_full(time_point now);

  std::mutex mutex_;
  std::map<std::string, level>
    levels_; ///< by "p", "a" or "u" and what it is of; one that is not there is full
};

} // namespace troupe::api

#pragma once
// Limits how often somebody may try a password. Only failures count, so that scripts that log in all day are
// never held back. Pure, except for its lock.

#include "model/result.hpp"
#include "model/time.hpp"

#include <map>
#include <mutex>
#include <string>

namespace troupe::api {

/// Thread-safe. A try has to be free in three buckets: of the account from one address, of the address, and
/// of the account from any address. The last is so large that nobody can easily lock out another user.
class login_bound {
public:
  struct bucket {
    double most;       ///< tries that a full bucket allows at once
    double per_second; ///< tries that come back per second
  };
  static constexpr bucket of_pair{10, 0.2}, of_address{100, 1}, of_account{1000, 1};
  /// Limit of buckets that are not full; beyond it the fullest are dropped.
  static constexpr std::size_t most_kept = 30'000;

  /// Fails with errc::busy where no try is free, and says in how many seconds one will be.
  result<void> check(const std::string& account, const std::string& address, time_point now);
  /// Counts a wrong name or a wrong password.
  void failed(const std::string& account, const std::string& address, time_point now);

private:
  struct level {
    double left = 0;
    time_point at;
  };
  double left_of(const std::string& key, bucket size, time_point now) const;
  void drop_full(time_point now);

  std::mutex mutex_;
  /// By a letter, "p" for a pair, "a" for an address, "u" for an account, and the name of that. A bucket that
  /// is missing is full.
  std::map<std::string, level> levels_;
};

} // namespace troupe::api

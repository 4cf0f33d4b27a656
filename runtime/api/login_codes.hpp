#pragma once
// Codes that let a user in once: `troupe web` puts one into a link. Kept in memory alone; a new start forgets
// them.

#include "model/time.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::api {

/// Thread-safe.
class login_codes {
public:
  static constexpr duration life = std::chrono::minutes{10};
  static constexpr std::size_t most = 1024; ///< beyond that the oldest goes

  /// A new code of this user.
  std::string make(std::uint64_t user_id, time_point now);
  /// The user of a code that was made less than `life` ago and never taken; nullopt of any other.
  std::optional<std::uint64_t> take(const std::string& code, time_point now);

private:
  struct entry {
    std::uint64_t user_id = 0;
    time_point until;
  };
  std::mutex mutex_;
  std::map<std::string, entry> codes_;
};

} // namespace troupe::api

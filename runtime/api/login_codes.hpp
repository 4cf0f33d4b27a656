#pragma once
// Codes that let a user log in once: `troupe web` puts one into a link. They are kept in memory only, so that
// a restart forgets them.

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
  static constexpr std::size_t most = 1024; ///< limit of codes; beyond it the oldest is dropped

  /// Makes a code for this user.
  std::string make(std::uint64_t user_id, time_point now);
  /// The user of a code that was made less than `life` ago and has not been taken before; nullopt for any
  /// other.
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

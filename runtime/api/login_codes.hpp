#pragma once
// Codes that let a user sign in once: `troupe web` puts one into a link. The codes are in memory alone, and a
// restart of the master ends them.

#include "model/time.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::api {

/// Who a code signs in.
struct login_code {
  std::uint64_t user_id = 0;
  std::uint64_t generation = 0; ///< `user::generation` when the code was made; each new password changes it
  std::string token;            ///< token of the session that asked for the code; empty: the master made it
};

/// Thread-safe.
class login_codes {
public:
  static constexpr duration life = std::chrono::minutes{10};
  static constexpr std::size_t most = 1024;    ///< limit of codes; beyond it the oldest is dropped
  static constexpr std::size_t most_each = 16; ///< limit of the codes of one user

  std::string make(login_code of, time_point now);
  /// What a code stands for that was made less than `life` ago and has not been taken before; nullopt for any
  /// other code.
  std::optional<login_code> take(const std::string& code, time_point now);

private:
  struct entry {
    login_code of;
    time_point until;
  };
  std::mutex mutex_;
  std::map<std::string, entry> codes_;
};

} // namespace troupe::api

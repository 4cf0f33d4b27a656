#include "runtime/api/login_codes.hpp"

#include "system/random.hpp"

#include <algorithm>

namespace troupe::api {

std::string login_codes::make(std::uint64_t user_id, time_point now) {
  auto code = random_hex(20);
  std::lock_guard lock{mutex_};
  std::erase_if(codes_, [&](const auto& one) { return one.second.until <= now; });
  if (codes_.size() >= most)
    codes_.erase(std::min_element(codes_.begin(), codes_.end(), [](const auto& a, const auto& b) {
      return a.second.until < b.second.until;
    }));
  codes_[code] = {user_id, now + life};
  return code;
}

std::optional<std::uint64_t> login_codes::take(const std::string& code, time_point now) {
  std::lock_guard lock{mutex_};
  auto found = codes_.find(code);
  if (found == codes_.end())
    return std::nullopt;
  const auto one = found->second;
  codes_.erase(found);
  return one.until > now ? std::optional{one.user_id} : std::nullopt;
}

} // namespace troupe::api

#include "runtime/api/login_codes.hpp"

#include "system/random.hpp"

#include <algorithm>

namespace troupe::api {

std::string login_codes::make(login_code of, time_point now) {
  auto code = random_hex(20);
  std::lock_guard lock{mutex_};
  std::erase_if(codes_, [&](const auto& one) { return one.second.until <= now; });
  const auto drop_oldest = [&](auto&& counts, std::size_t limit) {
    if (static_cast<std::size_t>(std::count_if(codes_.begin(), codes_.end(), counts)) < limit)
      return;
    codes_.erase(std::min_element(codes_.begin(), codes_.end(), [&](const auto& a, const auto& b) {
      return std::pair(!counts(a), a.second.until) < std::pair(!counts(b), b.second.until);
    }));
  };
  drop_oldest([&](const auto& one) { return one.second.of.user_id == of.user_id; }, most_each);
  drop_oldest([](const auto&) { return true; }, most);
  codes_[code] = {std::move(of), now + life};
  return code;
}

std::optional<login_code> login_codes::take(const std::string& code, time_point now) {
  std::lock_guard lock{mutex_};
  auto found = codes_.find(code);
  if (found == codes_.end())
    return std::nullopt;
  auto one = std::move(found->second);
  codes_.erase(found);
  return one.until > now ? std::optional{std::move(one.of)} : std::nullopt;
}

} // namespace troupe::api

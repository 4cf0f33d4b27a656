#include "runtime/api/login_bound.hpp"

#include "model/chosen_name.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace troupe::api {
namespace {

struct asked {
  std::string key;
  login_bound::bucket size;
};

/// The buckets of a try. The case of an account's name does not matter, and its length is bounded because
/// anybody may send it.
std::array<asked, 3> buckets_of(std::string account, const std::string& address) {
  account = case_folded(account.substr(0, 64));
  return {asked{"p" + address + " " + account, login_bound::of_pair},
          {"a" + address, login_bound::of_address},
          {"u" + account, login_bound::of_account}};
}

login_bound::bucket size_of(char kind) {
  return kind == 'p' ? login_bound::of_pair : kind == 'a' ? login_bound::of_address : login_bound::of_account;
}

double seconds(duration d) { return std::chrono::duration<double>(d).count(); }

} // namespace

double login_bound::left_of(const std::string& key, bucket size, time_point now) const {
  const auto at = levels_.find(key);
  if (at == levels_.end())
    return size.most;
  // A clock that was set back gives no tries back.
  const auto passed = std::max(0.0, seconds(now - at->second.at));
  return std::min(size.most, at->second.left + passed * size.per_second);
}

result<void> login_bound::check(const std::string& account, const std::string& address, time_point now) {
  std::lock_guard lock{mutex_};
  double wait = 0;
  for (const auto& one : buckets_of(account, address))
    if (const auto left = left_of(one.key, one.size, now); left < 1)
      wait = std::max(wait, (1 - left) / one.size.per_second);
  if (wait == 0)
    return {};
  return error{errc::busy, "too many wrong passwords\nhint: try again in " +
                             std::to_string(static_cast<int>(std::ceil(wait))) + " s"};
}

void login_bound::failed(const std::string& account, const std::string& address, time_point now) {
  std::lock_guard lock{mutex_};
  for (const auto& one : buckets_of(account, address))
    levels_[one.key] = {std::max(0.0, left_of(one.key, one.size, now) - 1), now};
  if (levels_.size() > most_kept)
    drop_full(now);
}

/// Drops buckets that are full again, because a missing bucket counts as full. Where that is not enough,
/// drops half of all, the fullest first.
void login_bound::drop_full(time_point now) {
  std::vector<std::pair<double, std::string>> missing;
  for (const auto& [key, level] : levels_) {
    const auto size = size_of(key.front());
    missing.emplace_back((size.most - left_of(key, size, now)) / size.most, key);
  }
  std::sort(missing.begin(), missing.end());
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (missing[i].first <= 0 || i < missing.size() / 2)
      levels_.erase(missing[i].second);
}

} // namespace troupe::api

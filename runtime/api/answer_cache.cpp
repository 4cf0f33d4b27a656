#include "runtime/api/answer_cache.hpp"

namespace troupe::api {

std::optional<std::string> answer_cache::find(const std::string& target, moment at) const {
  std::lock_guard lock{mutex_};
  auto one = at_ == at ? kept_.find(target) : kept_.end();
  return one == kept_.end() ? std::nullopt : std::optional{one->second};
}

void answer_cache::keep(const std::string& target, moment at, const std::string& body) {
  const auto bytes = target.size() + body.size();
  std::lock_guard lock{mutex_};
  if (at.facts < at_.facts || at.users < at_.users || bytes > most_bytes / 4)
    return;
  if (at_ != at || bytes_ + bytes > most_bytes) {
    kept_.clear();
    bytes_ = 0;
  }
  at_ = at;
  if (kept_.emplace(target, body).second)
    bytes_ += bytes;
}

} // namespace troupe::api

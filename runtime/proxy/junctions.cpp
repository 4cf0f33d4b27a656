#include "runtime/proxy/junctions.hpp"

#include "system/random.hpp"

#include <algorithm>

#include <openssl/crypto.h>

namespace troupe::proxy {
namespace {

constexpr std::size_t most_remembered = 4096;

bool same(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace

junctions::~junctions() {
  std::lock_guard lock(*self_mutex_);
  *self_ = nullptr;
}

result<junctions::ticket> junctions::expect(const std::string& service, arrival arrived, std::size_t most) {
  const auto limit = most ? std::min(most, limits_.of_service) : limits_.of_service;
  std::list<resting> dropped; // their places are released outside of the lock
  {
    std::lock_guard lock(mutex_);
    auto it = resting_.find(service);
    const auto resting = it == resting_.end() ? 0 : it->second.size();
    if (open_[service] >= limit && resting > 0) {
      dropped = std::move(it->second);
      resting_.erase(it);
    }
  }
  dropped.clear();
  std::lock_guard lock(mutex_);
  auto& open = open_[service];
  if (open >= limit || all_ >= limits_.all) {
    if (open == 0)
      open_.erase(service);
    return error{errc::busy, "the service " + service + " has " + std::to_string(limit) +
                               " connections, or all have " + std::to_string(limits_.all) +
                               ": more are not opened"};
  }
  ++open;
  ++all_;
  if (last_.size() >= most_remembered)
    last_.clear();
  last_[service] = std::chrono::system_clock::now();
  ticket out;
  out.connection = random_hex(12);
  out.secret = random_hex(24);
  out.held = place(nullptr, [at = self_, guard = self_mutex_, service](void*) {
    std::lock_guard alive(*guard);
    if (*at)
      (*at)->left(service);
  });
  expected_[out.connection] = {service, out.secret, std::move(arrived)};
  return out;
}

void junctions::left(const std::string& service) {
  std::lock_guard lock(mutex_);
  --all_;
  if (auto it = open_.find(service); it != open_.end() && --it->second == 0)
    open_.erase(it);
}

void junctions::give_up(const std::string& connection, error why) {
  arrival tell;
  {
    std::lock_guard lock(mutex_);
    auto it = expected_.find(connection);
    if (it == expected_.end())
      return;
    tell = std::move(it->second.arrived);
    expected_.erase(it);
  }
  tell(std::move(why));
}

bool junctions::is_expected(const std::string& connection, const std::string& secret) const {
  std::lock_guard lock(mutex_);
  auto it = expected_.find(connection);
  return it != expected_.end() && same(it->second.secret, secret);
}

bool junctions::bring(const std::string& connection, const std::string& secret, result<service_end> what) {
  arrival tell;
  {
    std::lock_guard lock(mutex_);
    auto it = expected_.find(connection);
    if (it == expected_.end() || !same(it->second.secret, secret))
      return false;
    tell = std::move(it->second.arrived);
    expected_.erase(it);
  }
  tell(std::move(what));
  return true;
}

void junctions::keep(const std::string& service, kept one) {
  std::lock_guard lock(mutex_);
  auto& all = resting_[service];
  if (all.size() < limits_.idle_of_service)
    all.push_back({std::move(one), std::chrono::steady_clock::now()});
  // otherwise the connection ends with `one`, which the caller destroys after the lock
}

std::optional<junctions::kept> junctions::take(const std::string& service) {
  std::lock_guard lock(mutex_);
  auto it = resting_.find(service);
  if (it == resting_.end() || it->second.empty())
    return std::nullopt;
  // The newest is taken, so that the others may time out.
  auto out = std::move(it->second.back().what);
  it->second.pop_back();
  if (it->second.empty())
    resting_.erase(it);
  last_[service] = std::chrono::system_clock::now();
  return out;
}

steady_time junctions::sweep(steady_time now) {
  auto next = steady_time::max();
  std::list<resting> dropped;
  std::vector<std::shared_ptr<watched>> over;
  {
    std::lock_guard lock(mutex_);
    for (auto it = resting_.begin(); it != resting_.end();) {
      auto& all = it->second;
      while (!all.empty() && now - all.front().since > limits_.kept)
        dropped.splice(dropped.end(), all, all.begin());
      it = all.empty() ? resting_.erase(it) : std::next(it);
    }
    for (auto it = watched_.begin(); it != watched_.end();) {
      auto one = it->second.lock();
      const auto ends = one ? one->last_byte() + idle : now;
      if (now < ends) {
        next = std::min(next, ends);
        ++it;
        continue;
      }
      if (one)
        over.push_back(std::move(one));
      it = watched_.erase(it);
    }
  }
  for (const auto& one : over)
    one->end_idle();
  return next;
}

bool junctions::busy() const {
  std::lock_guard lock(mutex_);
  return all_ > 0 || !watched_.empty();
}

void junctions::watch(const std::shared_ptr<watched>& one) {
  std::lock_guard lock(mutex_);
  watched_[one.get()] = one;
}

void junctions::unwatch(const watched& one) {
  std::lock_guard lock(mutex_);
  watched_.erase(&one);
}

service_use junctions::use_of(const std::string& service) const {
  std::lock_guard lock(mutex_);
  service_use out;
  if (auto it = open_.find(service); it != open_.end())
    out.connections = it->second;
  if (auto it = last_.find(service); it != last_.end())
    out.last = it->second;
  return out;
}

void junctions::forget(const std::string& service) {
  std::list<resting> dropped;
  std::lock_guard lock(mutex_);
  if (auto it = resting_.find(service); it != resting_.end()) {
    dropped = std::move(it->second);
    resting_.erase(it);
  }
}

} // namespace troupe::proxy

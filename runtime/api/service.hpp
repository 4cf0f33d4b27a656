#pragma once
// The way of a request from its head to its handler: find the route, learn who calls, check their right, run.

#include "runtime/api/answer_cache.hpp"
#include "runtime/api/router.hpp"

#include <map>
#include <mutex>

namespace troupe::api {

struct request_head {
  std::string method, target;
  request_headers headers;
};

/// A request that was let in: what `run` needs, and how long its body may be.
struct admission {
  const route* at = nullptr;
  std::shared_ptr<call> with;
  std::size_t body_bytes() const { return at->body_bytes; }
  /// Whether the answer takes long; `at` asks for the past, which has to be folded first.
  bool slow() const { return at->slow || with->query.has("at"); }
  std::chrono::seconds patience() const { return at->patience; }
};

/// The identity behind this token now. Fails with errc::unauthorized where the token is not valid, or not any
/// more.
result<identity> bearer_of(const services& parts, std::string_view token, time_point now);

/// Thread-safe.
class service {
public:
  explicit service(services parts, std::vector<route> more = {}); ///< `more`: routes beside all_routes()

  /// Decides on the head alone, before any body is read. A request that is not let in gets the response.
  /// `known` is the caller where that is certain without a token (the process that holds the node); the
  /// request's tokens are then not read.
  std::variant<admission, response> admit(request_head head, const identity* known = nullptr) const;

  /// Runs the handler, which answers through `back`, on any thread, now or later. Never throws.
  void run(admission let_in, std::string body, const reply& back) const;

  /// Whether the caller would be let in now as well: a long answer ends when the login or the right ends.
  bool still_lets_in(const admission& before) const;

  /// The caller who may look at the services of a task with this token: a user, a task, or the holder of a
  /// view of the task.
  result<identity> who_views(std::string_view token, task_id task, time_point now) const;
  const services& parts() const { return *parts_; }
  const std::vector<route>& table() const { return router_.table(); }

private:
  std::shared_ptr<const services> seen_by(const identity& by) const;
  void run_kept(const admission& let_in, const reply& back) const;

  std::shared_ptr<const services> parts_;
  router router_;
  static constexpr std::size_t most_seen = 1024;
  mutable std::mutex seen_mutex_;
  /// Services as each user sees them, by the user's number and whether roles decide.
  mutable std::map<std::pair<std::uint64_t, bool>, std::shared_ptr<const services>> seen_;
  const std::shared_ptr<answer_cache> kept_ = std::make_shared<answer_cache>();
};

} // namespace troupe::api

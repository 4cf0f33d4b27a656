#pragma once
// A request's way from its head to its handler: find the route, learn who speaks, check that they may, run.

#include "runtime/api/answer_cache.hpp"
#include "runtime/api/router.hpp"

#include <map>
#include <mutex>

namespace troupe::api {

struct request_head {
  std::string method, target;
  request_headers headers;
};

/// Let in: what `run` needs, and how much body may follow.
struct admission {
  const route* at = nullptr;
  std::shared_ptr<call> with;
  std::size_t body_bytes() const { return at->body_bytes; }
  bool slow() const { return at->slow || with->query.has("at"); } ///< `at`: the past is folded
  std::chrono::seconds patience() const { return at->patience; }
};

/// Who shows this token now. errc::unauthorized: nobody does any more, or never did.
result<identity> bearer_of(const services& parts, std::string_view token, time_point now);

/// Thread-safe.
class service {
public:
  explicit service(services parts, std::vector<route> more = {}); ///< beside all_routes()

  /// Decides on the head alone, before any body is read; the answer for those who are not let in is the
  /// error. `known`: who speaks, where that is certain without a token (the process that holds the node);
  /// their tokens are not read.
  std::variant<admission, response> admit(request_head head, const identity* known = nullptr) const;

  /// Answers through `back`, from any thread, now or later. Never throws.
  void run(admission let_in, std::string body, const reply& back) const;

  /// Whether who was let in would be let in now, too: an answer that goes on for long ends with the login,
  /// and with the right.
  bool still_lets_in(const admission& before) const;

  /// Who may look at the services of a task with this token: a user, a task, or the bearer of a view of it.
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
  mutable std::map<std::pair<std::uint64_t, bool>, std::shared_ptr<const services>> seen_; ///< by user
  const std::shared_ptr<answer_cache> kept_ = std::make_shared<answer_cache>();
};

} // namespace troupe::api

#pragma once
// Answers that depend on facts only, kept until the next fact. Clients poll, and most of their reads find
// nothing new. Thread-safe.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::api {

class answer_cache {
public:
  /// The state that an answer was made from: the newest fact, and the version of the users.
  struct moment {
    std::uint64_t facts = 0, users = 0;
    friend bool operator==(const moment&, const moment&) = default;
  };
  std::optional<std::string> find(const std::string& target, moment at) const;
  void keep(const std::string& target, moment at, const std::string& body);

  /// Limit of all bodies; beyond it everything is forgotten.
  static constexpr std::size_t most_bytes = 4u << 20;

private:
  mutable std::mutex mutex_;
  moment at_; ///< moment of all answers in `kept_`
  std::size_t bytes_ = 0;
  std::map<std::string, std::string> kept_;
};

} // namespace troupe::api

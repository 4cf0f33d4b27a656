#pragma once
// Answers that are made of facts alone, kept until the next fact. Clients poll: most of their reads find
// nothing new. Thread-safe.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::api {

class answer_cache {
public:
  /// The state that an answer was made from.
  struct moment {
    std::uint64_t facts = 0, users = 0;
    friend bool operator==(const moment&, const moment&) = default;
  };
  std::optional<std::string> find(const std::string& target, moment at) const;
  void keep(const std::string& target, moment at, const std::string& body);

  static constexpr std::size_t most_bytes = 4u
                                            << 20; ///< limit of all bodies; beyond it everything is forgotten

private:
  mutable std::mutex mutex_;
  moment at_; ///< moment of all that is kept
  std::size_t bytes_ = 0;
  std::map<std::string, std::string> kept_;
};

} // namespace troupe::api

#pragma once
// Sends events to the receivers of webhooks: signed, over http or https, to addresses that are allowed. One
// thread, which begins with the first event, holds every connection, so that a receiver that hangs delays no
// other one.

#include "actors/catalogue/deliveries.hpp"
#include "actors/catalogue/webhook_targets.hpp"
#include "actors/messages.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::node {

class webhook_courier {
public:
  struct settings {
    webhook_targets targets;
    std::string key; ///< key of the signature
  };
  explicit webhook_courier(settings how);
  ~webhook_courier(); ///< gives up the deliveries that are under way
  webhook_courier(const webhook_courier&) = delete;

  /// Delivers events. `done` is called once for each, on the courier's thread and together with others that
  /// end at the same time; not after the courier's end. Thread-safe.
  void send(std::vector<webhook_delivery> what, webhook_ear done);

  static constexpr std::chrono::milliseconds time_limit{5000};
  static constexpr std::size_t most_answer_bytes = 64 << 10;

private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

/// Hexadecimal HMAC-SHA256 of "TIMESTAMP,BODY", as Determined's receivers check it.
std::string webhook_signature(const std::string& key, const std::string& timestamp, const std::string& body);

} // namespace troupe::node

#pragma once
// Sends events to the receivers of webhooks: signed, over http or https, to addresses that it may reach. One
// thread, which begins with the first event and holds every connection: a receiver that hangs costs nobody
// but itself.

#include "actors/catalogue/deliveries.hpp"
#include "actors/messages.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::node {

/// Which addresses may be dialled: looked at when a name has been resolved, and of what is dialled then.
/// 169.254.0.0/16 and fe80::/10, where clouds keep their secrets, are never.
struct webhook_targets {
  bool local = false; ///< loopback and private ones, too
  std::vector<std::string>
    allow; ///< names of hosts, addresses and ranges (10.1.0.0/16) that may be dialled as well

  /// `host` as the address of the webhook names it, `address` what it was resolved to. Empty, or why not.
  std::string refuses(const std::string& host, const std::string& address) const;
};

class webhook_courier {
public:
  struct settings {
    webhook_targets targets;
    std::string key; ///< of the signature
  };
  explicit webhook_courier(settings how);
  ~webhook_courier(); ///< what is under way is given up
  webhook_courier(const webhook_courier&) = delete;

  /// Tells `done` of each once, from the courier's thread and together with others that end at that moment;
  /// not after the courier's end. Thread-safe.
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

// Tests which addresses a webhook may call, and how its events are signed.

#include "runtime/node/webhook_courier.hpp"

#include <gtest/gtest.h>

namespace troupe::node {
namespace {

TEST(WebhookTargets, AreNoKeyToTheNetwork) {
  const webhook_targets from_outside{false, {"chat.lab", "10.1.0.0/16", "fd00:1::/32"}},
    on_loopback{true, {}};
  struct {
    const char *host, *address;
    bool outside, loopback;
  } cases[] = {
    {"a.org", "93.184.216.34", true, true},
    {"a.org", "2606:2800:220:1::1", true, true},
    {"a.org", "127.0.0.1", false, true},
    {"a.org", "127.8.9.1", false, true},
    {"a.org", "::1", false, true},
    {"a.org", "::ffff:127.0.0.1", false, true},
    {"a.org", "10.0.0.1", false, true},
    {"a.org", "10.1.2.3", true, true}, // the address is in a range that is allowed
    {"chat.lab", "10.0.0.1", true, true},
    {"chat.lab", "127.0.0.1", true, true},
    {"a.org", "172.16.0.1", false, true},
    {"a.org", "172.32.0.1", true, true},
    {"a.org", "192.168.1.1", false, true},
    {"a.org", "100.64.0.1", false, true},
    {"a.org", "fd00:2::1", false, true},
    {"a.org", "fd00:1::1", true, true},
    {"a.org", "64:ff9b::7f00:1", false, true}, // 127.0.0.1 behind NAT64
    {"a.org", "2002:a00:1::", false, true},    // 10.0.0.1 through 6to4
    {"a.org", "2001:20::1", true, true},
    {"a.org", "2001:4:112::1", true, true},
    {"a.org", "192.0.1.1", true, true},
    {"a.org", "198.17.0.1", true, true},
    {"a.org", "198.20.0.1", true, true},
    // The registries of special addresses name these as those of no host of the Internet.
    {"a.org", "192.0.2.1", false, false},
    {"a.org", "198.18.0.1", false, false},
    {"a.org", "198.19.255.1", false, false},
    {"a.org", "198.51.100.1", false, false},
    {"a.org", "203.0.113.1", false, false},
    {"a.org", "64:ff9b::c612:1", false, false}, // 198.18.0.1 behind NAT64
    {"a.org", "100::1", false, false},
    {"a.org", "2001::1", false, false},
    {"a.org", "2001:2::1", false, false},
    {"a.org", "2001:10::1", false, false},
    {"a.org", "2001:db8::1", false, false},
    {"a.org", "3fff::1", false, false},
    {"a.org", "5f00::1", false, false},
    {"chat.lab", "198.18.0.1", true, false},
    // Link-local addresses and addresses that are not those of one host are refused, whatever is allowed and
    // wherever the server listens.
    {"a.org", "169.254.169.254", false, false},
    {"chat.lab", "169.254.169.254", false, false},
    {"a.org", "::ffff:169.254.169.254", false, false},
    {"a.org", "64:ff9b::a9fe:a9fe", false, false},
    {"a.org", "::169.254.169.254", false, false},
    {"a.org", "fe80::1", false, false},
    {"chat.lab", "fec0::1", false, false},
    {"chat.lab", "192.0.0.192", false, false},
    {"chat.lab", "64:ff9b:1::a00:1", false, false},
    {"chat.lab", "::ffff:192.0.0.1", false, false},
    {"a.org", "0.0.0.0", false, false},
    {"chat.lab", "0.1.2.3", false, false},
    {"chat.lab", "240.0.0.1", false, false},
    {"chat.lab", "ff02::1", false, false},
    {"a.org", "::", false, false},
    {"a.org", "224.0.0.1", false, false},
    {"a.org", "255.255.255.255", false, false},
    {"a.org", "no address", false, false},
  };
  for (const auto& x : cases) {
    EXPECT_EQ(from_outside.refuses(x.host, x.address).empty(), x.outside) << x.host << " " << x.address;
    EXPECT_EQ(on_loopback.refuses(x.host, x.address).empty(), x.loopback) << x.host << " " << x.address;
  }
}

TEST(WebhookSignature, IsTheOneThatReceiversOfDeterminedCheck) {
  // The value is that of: printf '1700000000,{}' | openssl dgst -sha256 -hmac key
  EXPECT_EQ(webhook_signature("key", "1700000000", "{}"),
            "2fdbb74798e4583e043310a5bc73eefc59c82df61e53f710b45d401474727221");
}

} // namespace
} // namespace troupe::node

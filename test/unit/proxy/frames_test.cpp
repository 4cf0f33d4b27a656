#include "runtime/proxy/frames.hpp"

#include <gtest/gtest.h>

namespace troupe::proxy {
namespace {

/// Returns a frame as a client sends it, masked.
std::string sent(int first_byte, std::string_view payload, const std::string& length = {}) {
  std::string out{static_cast<char>(first_byte)};
  out += length.empty() ? std::string{static_cast<char>(0x80 | payload.size())} : length;
  const unsigned char mask[] = {0x12, 0x34, 0x56, 0x78};
  out.append(reinterpret_cast<const char*>(mask), 4);
  for (std::size_t i = 0; i < payload.size(); ++i)
    out += static_cast<char>(static_cast<unsigned char>(payload[i]) ^ mask[i & 3]);
  return out;
}

TEST(ProxyFrames, ReadsBytesHoweverTheyAreCut) {
  std::string all = sent(0x82, "hello ") + sent(0x89, "ping") + sent(0x82, "") + sent(0x8a, "late");
  const std::string large(70'000, 'x');
  std::string length{static_cast<char>(0xff)};
  for (int i = 7; i >= 0; --i)
    length += static_cast<char>(large.size() >> (8 * i));
  all += sent(0x82, large, length) + sent(0x88, "");
  for (const std::size_t cut : {1u, 2u, 3u, 7u, 4096u, 100'000u}) {
    frame_reader reader;
    std::string bytes, pong;
    bool closed = false;
    for (std::size_t at = 0; at < all.size(); at += cut) {
      auto got = reader.feed(std::string_view(all).substr(at, cut));
      ASSERT_FALSE(got.wrong) << got.wrong->reason;
      bytes += got.bytes;
      pong += got.pong.value_or("");
      closed = closed || got.closed;
    }
    EXPECT_EQ(bytes, "hello " + large) << cut;
    EXPECT_EQ(pong, "ping");
    EXPECT_TRUE(closed);
  }
}

TEST(ProxyFrames, RefusesWithACode) {
  const std::string two_gigabytes{static_cast<char>(0xff), 0, 0, 0, 0, static_cast<char>(0x80), 0, 0, 0};
  const struct {
    std::string frame;
    int code;
    const char* why;
  } table[] = {
    {sent(0x81, "text"), 1003, "text"},
    {sent(0x02, "part"), 1003, "the first of several"},
    {sent(0x80, "part"), 1003, "a continuation"},
    {sent(0x82, "", two_gigabytes), 1009, "2 GB"},
    {sent(0xc2, "x"), 1002, "a reserved bit"},
    {sent(0x83, "x"), 1002, "an unknown kind"},
    {std::string("\x82\x01x", 3), 1002, "unmasked"},
    {sent(0x09, "x"), 1002, "a control frame in pieces"},
    {sent(0x89, std::string(126, 'x'), std::string("\xfe\x00\x7e", 3)), 1002, "a long control frame"},
    {sent(0x82, "x", std::string("\xfe\x00\x01", 3)), 1002, "a length longer than it has to be"},
    {sent(0x88, "\x03"), 1002, "half a code"},
    {sent(0x88, "\x03\xe7"), 1002, "code 999"},
    {sent(0x88, "\x03\xee"), 1002, "code 1006, which is never sent"},
    {sent(0x88, "\x13\x88"), 1002, "code 5000"},
    {sent(0x88, "\x03\xe8\xff"), 1007, "a reason that is no UTF-8"},
  };
  for (const auto& row : table) {
    frame_reader reader;
    const auto got = reader.feed(row.frame);
    ASSERT_TRUE(got.wrong) << row.why;
    EXPECT_EQ(got.wrong->code, row.code) << row.why;
    EXPECT_TRUE(got.bytes.empty());
    EXPECT_FALSE(reader.feed(sent(0x82, "more")).wrong) << "it takes nothing more";
  }
}

TEST(ProxyFrames, WritesWhole) {
  EXPECT_EQ(frame_of(frame_kind::binary, "abc"), std::string("\x82\x03"
                                                             "abc"));
  EXPECT_EQ(frame_of(frame_kind::binary, std::string(126, 'x')).substr(0, 4),
            std::string("\x82\x7e\x00\x7e", 4));
  EXPECT_EQ(frame_of(frame_kind::binary, std::string(65536, 'x')).substr(0, 10),
            std::string("\x82\x7f\0\0\0\0\0\1\0\0", 10));
  EXPECT_EQ(close_frame(1000, ""), std::string("\x88\x02\x03\xe8", 4));
}

TEST(ProxyFrames, AnswersAHandshake) {
  // the example of RFC 6455, section 1.3
  EXPECT_EQ(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  for (const char* key : {"", "short", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25j!Q=="})
    EXPECT_EQ(accept_of(key), "") << key;
}

} // namespace
} // namespace troupe::proxy

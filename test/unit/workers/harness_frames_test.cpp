#include "workers/harness_frames.hpp"

#include "model/rng.hpp"
#include "model/value.hpp"

#include <msgpack.hpp>

#include <gtest/gtest.h>

#include <functional>

namespace troupe::workers {
namespace {

using packer = msgpack::packer<msgpack::sbuffer>;

std::string packed(const std::function<void(packer&)>& write) {
  msgpack::sbuffer buffer;
  packer out(buffer);
  write(out);
  return {buffer.data(), buffer.size()};
}

std::string report_frame(std::string_view metrics, const char* group = "training", std::int64_t steps = 3) {
  return packed([&](packer& out) {
           out.pack_array(3).pack("reports").pack(7).pack_array(1).pack_array(4).pack(group).pack(steps);
         }) +
         std::string(metrics) + packed([](packer& out) { out.pack(std::int64_t{1'000'000}); });
}

std::string map_of(int keys) {
  value x = value::object();
  for (int i = 0; i < keys; ++i)
    x["k" + std::to_string(i)] = i;
  return to_msgpack(x);
}

std::string nested(int levels) {
  std::string bytes;
  for (int i = 1; i < levels; ++i)
    bytes += std::string("\x81\xa1x", 3);
  return bytes + '\x80';
}

TEST(HarnessFrames, KeepsTheBytesOfEachMetricsMap) {
  auto metrics = to_msgpack(value{{"loss", 0.1}, {"deep", {{"list", {1, 2, nullptr, true, "x"}}}}});
  auto frame = decode_task_frame(report_frame(metrics, "validation"));
  reports expected{7, {{true, 3, time_point(1s), metrics, ""}}};
  ASSERT_TRUE(std::holds_alternative<reports>(frame));
  EXPECT_EQ(std::get<reports>(frame), expected);
}

TEST(HarnessFrames, RefusesABadReportWithItsReasonAndGoesOnToTheNext) {
  struct {
    const char* what;
    std::string metrics;
    const char* group;
    std::string refusal; ///< the beginning of the refusal; empty: the report is accepted
  } cases[] = {
    {"64 levels", nested(64), "training", ""},
    {"65 levels", nested(65), "training", "metrics nest deeper than 64 levels"},
    {"1,000 keys", map_of(1000), "training", ""},
    {"1,001 keys", map_of(1001), "training", "a report of more than 1000 keys"},
    {"a list", to_msgpack(value{1, 2}), "training", "metrics must be a map"},
    {"a list of maps", to_msgpack(value::array({value::object()})), "training", "metrics must be a map"},
    {"a number", to_msgpack(value(1)), "training", "metrics must be a map"},
    {"text", to_msgpack(value("loss")), "training", "metrics must be a map"},
    {"a number as name", std::string("\x81\x01\x02", 3), "training", "the name of a metric must be a string"},
    {"a map as name", std::string("\x81\x80\x02", 3), "training", "the name of a metric must be a string"},
    {"a long name", to_msgpack(value{{std::string(10'241, 'n'), 1}}), "training", "a name of 10241 bytes"},
    {"binary", std::string("\x81\xa1x\xc4\x01y", 6), "training", "metrics cannot hold binary"},
    {"an extension", std::string("\x81\xa1x\xd4\x01y", 6), "training",
     "metrics cannot hold msgpack extension"},
    {"1 MiB", to_msgpack(value{{"x", std::string((1 << 20) - 8, 'y')}}), "training", ""},
    {"over 1 MiB", to_msgpack(value{{"x", std::string(1 << 20, 'y')}}), "training",
     "a report of 1048584 bytes"},
    {"another group", map_of(1), "testing", "the group of a report must be training or validation"},
  };
  for (const auto& c : cases) {
    auto body = report_frame(c.metrics, c.group);
    body[10] = '\x92'; // The frame has two reports: the bad one, and a good one after it.
    body += packed([](packer& out) { out.pack_array(4).pack("training").pack(9).pack_map(0).pack(5); });
    auto frame = decode_task_frame(body);
    ASSERT_TRUE(std::holds_alternative<reports>(frame)) << c.what << ": " << std::get<malformed>(frame).why;
    const auto& rows = std::get<reports>(frame).rows;
    ASSERT_EQ(rows.size(), 2u) << c.what;
    EXPECT_EQ(rows[0].refusal.substr(0, c.refusal.size()), c.refusal) << c.what;
    EXPECT_EQ(rows[0].refusal.empty(), c.refusal.empty()) << c.what << ": " << rows[0].refusal;
    EXPECT_EQ(rows[0].metrics.empty(), !c.refusal.empty()) << c.what;
    EXPECT_EQ(rows[1].steps, 9) << c.what;
  }
}

TEST(HarnessFrames, SaysWhatIsWrongWithABodyThatIsNoFrame) {
  std::string huge_array("\x93\xa7reports\x01\xdd\xff\xff\xff\xff", 15);
  struct {
    const char* what;
    std::string body, why;
  } cases[] = {
    {"nothing", "", "is cut off"},
    {"text", "GET / HTTP/1.1", "a frame must be an array"},
    {"an unknown kind", packed([](packer& o) { o.pack_array(1).pack("sing"); }), "unknown kind"},
    {"a report without time", packed([](packer& o) {
       o.pack_array(3).pack("reports").pack(1).pack_array(1).pack_array(2).pack("training").pack(1);
     }),
     "a report has 4 fields"},
    {"a huge count", huge_array, "is cut off"},
    {"number 0", packed([](packer& o) { o.pack_array(3).pack("reports").pack(0).pack_array(0); }),
     "reports are numbered from 1"},
    {"negative steps", report_frame(map_of(1), "training", -1), "steps must be a number from 0"},
    {"600 levels", report_frame(nested(600)), "nests deeper than 512 levels"},
    {"half a map", report_frame("\x81\xa1x").substr(0, 23), "is cut off"},
    {"a path for a UUID", packed([](packer& o) {
       o.pack_array(6)
         .pack("checkpoint")
         .pack(1)
         .pack("../../../../../../../../../../etc/x.y")
         .pack(1)
         .pack_map(0)
         .pack_map(0);
     }),
     "a checkpoint needs"},
    {"progress beyond 1", packed([](packer& o) { o.pack_array(2).pack("progress").pack(1.5); }),
     "progress must be between"},
    {"progress NaN", packed([](packer& o) {
       o.pack_array(2).pack("progress").pack(std::numeric_limits<double>::quiet_NaN());
     }),
     "progress must be between"},
  };
  for (const auto& c : cases) {
    auto frame = decode_task_frame(c.body);
    ASSERT_TRUE(std::holds_alternative<malformed>(frame)) << c.what;
    EXPECT_NE(std::get<malformed>(frame).why.find(c.why), std::string::npos)
      << c.what << ": " << std::get<malformed>(frame).why;
  }
}

TEST(HarnessFrames, ReadsHelloCheckpointAndProgress) {
  auto body = packed([](packer& o) {
    o.pack_array(7).pack("hello").pack(1).pack("secret").pack("12.3").pack(2).pack("ab").pack(40);
  });
  EXPECT_EQ(decode_task_frame(body), task_frame(hello{1, "secret", {{12}, {3}}, 2, "ab", 40}));
  body = packed([](packer& o) { o.pack_array(2).pack("hello").pack(9); });
  EXPECT_EQ(decode_task_frame(body),
            task_frame(hello{.version = 9, .token = {}, .allocation = {}, .process = {}}))
    << "of another version only the version is read";
  std::string uuid = "0f0e0d0c-0000-4000-8000-0123456789ab";
  body = packed([&](packer& o) {
    o.pack_array(6)
      .pack("checkpoint")
      .pack(2)
      .pack(uuid)
      .pack(16)
      .pack_map(1)
      .pack("a/b")
      .pack(4096)
      .pack_map(0);
  });
  EXPECT_EQ(decode_task_frame(body), task_frame(task_checkpoint{2, uuid, 16, {{"a/b", 4096}}, "\x80"}));
  body = packed([](packer& o) { o.pack_array(2).pack("progress").pack(1); });
  EXPECT_EQ(decode_task_frame(body), task_frame(task_progress{1.0}));
}

TEST(HarnessFrames, CarriesTheMailOfAWorkerAsItIs) {
  const std::string body("\x92\xff\x00word", 7);
  const auto mail = [&](std::size_t bytes) {
    return packed([&](packer& out) {
      const auto text = bytes == body.size() ? body : std::string(bytes, 'x');
      out.pack_array(3)
        .pack("worker")
        .pack(1)
        .pack_bin(std::uint32_t(bytes))
        .pack_bin_body(text.data(), std::uint32_t(bytes));
    });
  };
  EXPECT_EQ(std::get<worker_mail>(decode_task_frame(mail(body.size()))), (worker_mail{1, body}));
  EXPECT_EQ(encode(agent_frame{worker_mail{1, body}}), mail(body.size()));
  EXPECT_TRUE(std::holds_alternative<worker_mail>(decode_task_frame(mail(max_worker_mail_bytes))));
  EXPECT_TRUE(std::holds_alternative<malformed>(decode_task_frame(mail(max_worker_mail_bytes + 1))));
  EXPECT_TRUE(std::holds_alternative<malformed>(
    decode_task_frame(packed([](packer& out) { out.pack_array(3).pack("worker").pack(1).pack("text"); }))));
}

TEST(HarnessFrames, SurvivesEveryTruncationAndManyMutations) {
  auto good = report_frame(to_msgpack(value{{"loss", 0.1}, {"list", {1, 2, 3}}, {"name", "x"}}));
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_TRUE(std::holds_alternative<malformed>(decode_task_frame(std::string_view(good).substr(0, n))))
      << n;
  rng random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto bad = good;
    for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
      bad[random.below(bad.size())] = static_cast<char>(random());
    (void)decode_task_frame(bad);
  }
}

TEST(HarnessFrames, EncodesWhatTheDocumentSays) {
  struct {
    agent_frame frame;
    value expected;
  } cases[] = {
    {welcome{7, "", 1 << 20}, {"welcome", 1, 7, nullptr, 1 << 20}},
    {welcome{0, "pause", 9}, {"welcome", 1, 0, "pause", 9}},
    {ack{9}, value::array({"ack", 9})},
    {decision{4, true, "pruned"}, {"decision", 4, true, "pruned"}},
    {refused{3, "why"}, {"refused", 3, "why"}},
    {saved{2}, value::array({"saved", 2})},
    {unsaved{2, "why"}, {"unsaved", 2, "why"}},
    {stop{"pruned"}, value::array({"stop", "pruned"})},
    {pong{5, ""}, {"pong", 5, nullptr}},
    {again{}, value::array({"again"})},
    {link_error{"token", "why"}, {"error", "token", "why"}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(*parse_msgpack(encode(c.frame)), c.expected) << c.expected;
}

} // namespace
} // namespace troupe::workers

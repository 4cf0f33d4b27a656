#include "host.hpp"
#include "troupe.h"

#include <msgpack.hpp>

#include <atomic>

using namespace host;

namespace {

template <class T>
std::string packed(const T& x) {
  msgpack::sbuffer out;
  msgpack::pack(out, x);
  return {out.data(), out.size()};
}

struct answer {
  int status = 0;
  msgpack::object_handle body;
  std::string json() const {
    std::ostringstream out;
    out << body.get();
    return out.str();
  }
};
answer call(troupe_node* node, const char* request, const std::string& in = {}) {
  void* out = nullptr;
  std::size_t size = 0;
  answer got;
  got.status = troupe_call(node, request, in.data(), in.size(), &out, &size);
  if (out)
    got.body = msgpack::unpack(static_cast<char*>(out), size);
  troupe_free(out);
  return got;
}

TEST(CInterface, RunsAnExperimentAndTellsItsEvents) {
  folder at;
  const auto data = at / "data";
  auto* node =
    troupe_open_json(("{\"data_dir\": \"" + data + "\", \"http\": \"off\", \"cpu_slots\": 1}").c_str());
  ASSERT_NE(node, nullptr) << troupe_last_error();
  struct heard {
    std::atomic<int> events{0}, metrics{0}, ended{0};
  } h;
  ASSERT_EQ(troupe_subscribe(
              node, "experiment, metric",
              [](const void* bytes, std::size_t size, void* with) {
                auto event = msgpack::unpack(static_cast<const char*>(bytes), size);
                std::ostringstream text;
                text << event.get();
                auto& to = *static_cast<heard*>(with);
                ++(text.str().find("\"type\":\"metric\"") != std::string::npos ? to.metrics : to.events);
                to.ended += text.str().find("\"COMPLETED\"") != std::string::npos;
              },
              &h),
            0)
    << troupe_last_error();
  const auto config = std::string("entrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\n");
  std::map<std::string, std::string> body{{"config", config}, {"context_dir", job(at)}};
  auto made = call(node, "POST /troupe/v1/experiments", packed(body));
  ASSERT_EQ(made.status, 200) << troupe_last_error();
  for (int i = 0; i < 6000 && h.ended == 0; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(h.ended, 1);
  for (int i = 0; i < 500 && h.metrics < 3; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(h.metrics, 3);
  EXPECT_GE(h.events, 2);
  auto list = call(node, "GET /api/v1/experiments");
  EXPECT_EQ(list.status, 200);
  EXPECT_NE(list.json().find("STATE_COMPLETED"), std::string::npos) << list.json();
  auto lines = call(node, "GET /troupe/v1/events?after=0");
  EXPECT_EQ(lines.status, 200);
  EXPECT_EQ(lines.body.get().type, msgpack::type::ARRAY) << lines.json();
  troupe_close(node);
}

TEST(CInterface, BadInputIsAnAnswer) {
  folder at;
  troupe_close(nullptr);
  troupe_free(nullptr);
  const std::pair<const char*, const char*> wrong[] = {
    {nullptr, "no options"},
    {"", "not a JSON object"},
    {"[]", "not a JSON object"},
    {"{}", "data_dir"},
    {R"({"data_dir": 3})", "data_dir"},
    {R"({"data_dir": "x", "cpu_slots": "two"})", "cpu_slots"},
    {R"({"data_dir": "x", "cpu_slots": -2})", "cpu_slots"},
    {R"({"data_dir": "x", "store": "tape"})", "disk or memory"},
    {R"({"data_dir": "x", "colour": "red"})", "colour"},
    {R"({"data_dir": "/proc/nowhere"})", "/proc/nowhere"},
  };
  for (const auto& [options, why] : wrong) {
    EXPECT_EQ(troupe_open_json(options), nullptr);
    EXPECT_NE(std::string(troupe_last_error()).find(why), std::string::npos) << troupe_last_error();
  }
  const auto data = at / "data";
  auto* node = troupe_open_json(("{\"data_dir\": \"" + data + "\", \"store\": \"memory\"}").c_str());
  ASSERT_NE(node, nullptr) << troupe_last_error();
  EXPECT_EQ(call(node, "GET").status, 400);
  EXPECT_EQ(call(node, "GET experiments").status, 400);
  EXPECT_EQ(troupe_call(node, nullptr, nullptr, 0, nullptr, nullptr), 400);
  EXPECT_EQ(call(node, "GET /api/v1/experiments/77").status, 404);
  EXPECT_NE(std::string(troupe_last_error()).find("77"), std::string::npos) << troupe_last_error();
  EXPECT_EQ(call(node, "DELETE /api/v1/master").status, 405);
  // Commands by their names.
  const auto status = call(node, "status");
  EXPECT_EQ(status.status, 200) << troupe_last_error();
  EXPECT_NE(status.json().find("experiments_active"), std::string::npos) << status.json();
  EXPECT_EQ(call(node, "experiment.kill").status, 400);
  EXPECT_NE(std::string(troupe_last_error()).find("the field 'id' is missing"), std::string::npos)
    << troupe_last_error();
  EXPECT_EQ(call(node, "experiment.kill", packed(std::map<std::string, int>{{"id", 77}})).status, 404);
  EXPECT_EQ(call(node, "experiment.kill", packed(std::map<std::string, int>{{"id", 77}, {"now", 1}})).status,
            400);
  EXPECT_EQ(call(node, "fence").status, 400) << "what sandboxes say";
  EXPECT_EQ(call(node, "POST /troupe/v1/experiments", "\xc1").status, 400) << "no msgpack";
  EXPECT_EQ(
    call(node, "POST /troupe/v1/experiments", packed(std::map<std::string, int>{{"config", 1}})).status, 400);
  EXPECT_EQ(troupe_subscribe(
              node, "weather", [](const void*, std::size_t, void*) {}, nullptr),
            -1);
  EXPECT_EQ(troupe_subscribe(
              node, "", [](const void*, std::size_t, void*) {}, nullptr),
            -1);
  EXPECT_EQ(troupe_subscribe(node, "all", nullptr, nullptr), -1);
  troupe_close(node);
}

} // namespace

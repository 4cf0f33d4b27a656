// Tests streaming updates: what a subscriber hears, and the frames that carry the messages.

#include "runtime/api/update_book.hpp"
#include "runtime/api/websocket.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

constexpr time_point t0{1'700'000'000s};

fact project(std::uint64_t id, std::uint64_t workspace, const char* name, bool deleted = false) {
  project_changed x;
  x.at = t0;
  x.id = {id};
  x.workspace = {workspace};
  x.name = name;
  x.owner = "ada";
  x.deleted = deleted;
  return x;
}
fact model(std::uint64_t id, std::uint64_t workspace, const char* owner = "ada") {
  model_changed x;
  x.at = x.created = t0;
  x.id = {id};
  x.workspace = {workspace};
  x.name = "m" + std::to_string(id);
  x.owner = owner;
  return x;
}
fact version(std::uint64_t of, std::uint64_t number) {
  model_version_changed x;
  x.at = x.created = t0;
  x.model = {of};
  x.version = number;
  x.owner = "ada";
  return x;
}

struct reader {
  update_book book;
  std::uint64_t next = 0;
  update_subscription wants;
  bool blind = false;
  update_subscription::world in{[](const std::string& name) { return name == "ada" ? 7 : 8; },
                                [this](updated, const update_entry&) { return !blind; }};

  void write(const fact& x) { book.take(x, next++); }
  static std::string told(const std::vector<std::string>& texts) {
    std::string all;
    for (const auto& text : texts) {
      const auto x = parse_json(text).value();
      for (const auto& [key, what] : x.items())
        if (key == "sync_id")
          all += x["complete"] == true ? "done " : "begin ";
        else if (what.is_object())
          all += key + std::to_string(what["id"].get<std::uint64_t>()) + "@" +
                 std::to_string(what["seq"].get<std::uint64_t>()) + " ";
        else if (what.is_string())
          all += key + "(" + what.get<std::string>() + ") ";
    }
    return all;
  }
  std::string subscribe(const value& message) {
    std::vector<std::string> out;
    auto fine = wants.subscribe(to_json(message), book, in, out);
    if (fine)
      wants.follow(book, in, out);
    return fine ? told(out) : std::string(name(fine.error().code));
  }
  std::string refusal(const value& message) {
    std::vector<std::string> out;
    auto fine = wants.subscribe(to_json(message), book, in, out);
    return fine ? "" : fine.error().what;
  }
  std::string follow() {
    std::vector<std::string> out;
    wants.follow(book, in, out);
    return told(out);
  }
};

TEST(Updates, SayHowLongTheNameOfASubscriptionMayBe) {
  reader r;
  EXPECT_EQ(r.refusal({{"sync_id", std::string(1000, 'a')}, {"subscribe", value::object()}}), "");
  EXPECT_EQ(r.refusal({{"sync_id", std::string(1001, 'a')}, {"subscribe", value::object()}}),
            "sync_id: has to be a text of at most 1000 bytes");
}

TEST(Updates, TellWhatIsWantedAndNotKnown) {
  reader r;
  r.write(project(2, 2, "cats"));
  r.write(project(3, 3, "dogs"));
  r.write(model(1, 2));
  r.write(version(1, 1));
  r.write(project(4, 2, "mice"));
  EXPECT_EQ(r.subscribe({{"sync_id", "a"}, {"subscribe", {{"projects", {{"workspace_ids", {2}}}}}}}),
            "begin project2@1 project4@5 done ");
  // The subscriber is told again only what is newer than what it knows, and is told to delete what it should
  // not have. All kinds have one order.
  EXPECT_EQ(r.subscribe({{"sync_id", "b"},
                         {"known", {{"projects", "2-4,9"}, {"models", "5"}}},
                         {"subscribe",
                          {{"projects", {{"workspace_ids", {2}}, {"since", 4}}},
                           {"models", {{"workspace_ids", {2}}}},
                           {"modelversions", {{"model_ids", {1}}}}}}}),
            "begin projects_deleted(3,9) models_deleted(5) model1@3 modelversion65537@4 project4@5 done ");
  EXPECT_EQ(r.follow(), "");
  r.write(project(2, 3, "cats"));      // the project leaves the filter
  r.write(project(5, 3, "elsewhere")); // the project never was in the filter
  r.write(project(4, 2, "rats"));
  r.write(model(1, 2));
  r.write(project(4, 2, "rats", true));
  EXPECT_EQ(r.follow(), "projects_deleted(2) model1@9 projects_deleted(4) ");
  EXPECT_EQ(r.subscribe({{"sync_id", "c"}, {"known", {{"models", "1"}}}, {"subscribe", value::object()}}),
            "begin models_deleted(1) done ")
    << "no subscription of a kind: all of it goes";
  r.blind = true;
  EXPECT_EQ(r.subscribe({{"sync_id", "d"}, {"subscribe", {{"models", {{"model_ids", {1}}}}}}}),
            "begin done ");
}

TEST(Updates, VersionsMoveWithTheirModel) {
  reader r;
  r.write(model(1, 2));
  r.write(version(1, 1));
  r.write(model(2, 2));
  r.write(version(2, 1));
  EXPECT_EQ(r.subscribe({{"sync_id", "a"}, {"subscribe", {{"modelversions", {{"model_ids", {1}}}}}}}),
            "begin modelversion65537@2 done ");
  r.write(model(1, 3));
  EXPECT_EQ(r.follow(), "modelversion65537@5 ");
  EXPECT_EQ(r.book.all().at({updated::version, version_number({1}, 1)}).shape["workspace_id"], 3);
  EXPECT_EQ(r.book.all().at({updated::version, version_number({2}, 1)}).shape["workspace_id"], 2);
  r.write(model(1, 3));
  EXPECT_EQ(r.follow(), "");
}

TEST(Updates, WhoWasCutOffAmongVersionsThatMovedTogetherHearsOfAllOfThemAgain) {
  reader r;
  r.write(model(1, 2));
  for (const std::uint64_t number : {1, 2, 3})
    r.write(version(1, number));
  r.write(model(1, 3)); // the client has heard of the first version, as of change 5
  const value again{{"sync_id", "a"},
                    {"known", {{"modelversions", "65537-65539"}}},
                    {"subscribe", {{"modelversions", {{"model_ids", {1}}, {"since", 5}}}}}};
  EXPECT_EQ(r.subscribe(again), "begin modelversion65537@5 modelversion65538@5 modelversion65539@5 done ");
  r.write(version(1, 1));
  r.write(version(1, 3));
  EXPECT_EQ(r.subscribe(again), "begin modelversion65538@5 modelversion65537@6 modelversion65539@7 done ")
    << "the only one that is left with that number";
}

TEST(Updates, TheStockClientNamesModelsWhereItShouldNameVersions) {
  reader r;
  r.write(model(1, 1));
  r.write(version(1, 1));
  EXPECT_EQ(r.subscribe({{"sync_id", "a"},
                         {"known", {{"modelversions", "1,65537"}}},
                         {"subscribe", {{"modelversions", {{"user_ids", {7}}, {"since", 2}}}}}}),
            "begin done ");
}

TEST(Updates, TheClientsConstructorsTakeTheirKeys) {
  reader r;
  r.write(project(2, 2, "cats"));
  std::vector<std::string> out;
  ASSERT_TRUE(
    r.wants.subscribe(R"({"sync_id":"1","subscribe":{"projects":{"project_ids":[2]}}})", r.book, r.in, out));
  r.wants.follow(r.book, r.in, out);
  EXPECT_EQ(parse_json(out.at(1)).value()["project"], (value{{"id", 2},
                                                             {"name", "cats"},
                                                             {"description", ""},
                                                             {"archived", false},
                                                             {"created_at", 1'700'000'000.0},
                                                             {"notes", value::array()},
                                                             {"workspace_id", 2},
                                                             {"user_id", 7},
                                                             {"immutable", false},
                                                             {"state", "UNSPECIFIED"},
                                                             {"key", ""},
                                                             {"seq", 1}}));
}

TEST(Updates, ALongAnswerComesInPiecesAndWhatChangesMeanwhileInItsTurn) {
  reader r;
  for (std::uint64_t id = 1; id <= 4; ++id)
    r.write(model(id, 2));
  std::vector<std::string> out;
  ASSERT_TRUE(
    r.wants.subscribe(R"({"sync_id":"1","subscribe":{"models":{"workspace_ids":[2]}}})", r.book, r.in, out));
  r.wants.follow(r.book, r.in, out, 1);
  EXPECT_EQ(r.told(out), "begin model1@1 ");
  EXPECT_FALSE(r.wants.is_answered());
  r.write(model(2, 2)); // the model changed before it was told
  r.write(model(3, 5)); // the model left the filter before it was told
  r.write(model(1, 2)); // the model changed after it was told
  out.clear();
  r.wants.follow(r.book, r.in, out, 1);
  EXPECT_EQ(r.told(out), "model4@4 done ");
  EXPECT_FALSE(r.wants.is_answered()) << "what changed meanwhile comes in pieces as well";
  out.clear();
  r.wants.follow(r.book, r.in, out, 1);
  EXPECT_EQ(r.told(out), "model2@5 ");
  EXPECT_EQ(r.follow(), "models_deleted(3) model1@7 ");
  EXPECT_TRUE(r.wants.is_answered());
  EXPECT_EQ(r.follow(), "");
  // A further subscription ends the rest of an answer.
  out.clear();
  ASSERT_TRUE(
    r.wants.subscribe(R"({"sync_id":"2","subscribe":{"models":{"workspace_ids":[2]}}})", r.book, r.in, out));
  EXPECT_EQ(r.subscribe({{"sync_id", "3"}, {"subscribe", {{"models", {{"model_ids", {4}}}}}}}),
            "begin model4@4 done ");
}

TEST(Updates, WhatIsNoMessageIsRefused) {
  reader r;
  for (const char* text :
       {"", "{", "[]", "{}", R"({"sync_id":1})", R"({"sync_id":"a","more":1})",
        R"({"sync_id":"a","known":{"projects":"1-"}})", R"({"sync_id":"a","known":{"projects":"3-1"}})",
        R"({"sync_id":"a","known":{"projects":"1-99999999"}})", R"({"sync_id":"a","known":{"projects":7}})",
        R"({"sync_id":"a","subscribe":{"projects":[]}})", R"({"sync_id":"a","subscribe":{"project":{}}})",
        R"({"sync_id":"a","known":[]})", R"({"sync_id":"a","subscribe":{"projects":{"user_ids":[1]}}})",
        R"({"sync_id":"a","subscribe":{"projects":{"project_ids":"1"}}})",
        R"({"sync_id":"a","subscribe":{"projects":{"project_ids":[-1]}}})",
        R"({"sync_id":"a","subscribe":{"projects":{"since":"x"}}})"}) {
    std::vector<std::string> out;
    EXPECT_FALSE(r.wants.subscribe(text, r.book, r.in, out)) << text;
    EXPECT_TRUE(out.empty()) << text;
  }
  EXPECT_EQ(write_ranges({1, 2, 3, 7, 9, 10}), "1-3,7,9-10");
  EXPECT_EQ(read_ranges("1-3,7,9-10").value(), (std::set<std::uint64_t>{1, 2, 3, 7, 9, 10}));
  EXPECT_TRUE(read_ranges("").value().empty());
}

std::string masked(int first, std::string_view body, bool mask = true) {
  std::string out{static_cast<char>(first)};
  const int bit = mask ? 0x80 : 0;
  if (body.size() < 126) {
    out += static_cast<char>(bit | static_cast<int>(body.size()));
  } else {
    out += static_cast<char>(bit | 126);
    out += static_cast<char>(body.size() >> 8);
    out += static_cast<char>(body.size());
  }
  if (mask)
    out += "abcd";
  for (std::size_t i = 0; i < body.size(); ++i)
    out += mask ? static_cast<char>(body[i] ^ "abcd"[i % 4]) : body[i];
  return out;
}

TEST(WebSocket, FramesBecomeMessages) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    << "the example of RFC 6455";
  EXPECT_EQ(websocket_accept("short"), "");
  websocket_reader r(1000);
  std::vector<websocket_reader::message> got;
  const auto all = masked(0x81, "one") + masked(0x01, "two ") + masked(0x89, "ping") +
                   masked(0x80, std::string(300, 'x')) + masked(0x88, "");
  for (const char c : all) // sends one byte at a time
    ASSERT_TRUE(r.take({&c, 1}, got));
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].bytes, "one");
  EXPECT_EQ(got[1].what, websocket_reader::kind::ping);
  EXPECT_EQ(got[2].bytes, "two " + std::string(300, 'x'));
  EXPECT_EQ(got[3].what, websocket_reader::kind::close);
  for (const auto& bad : {masked(0x81, "a", false), masked(0xc1, "a"), masked(0x80, "a"), masked(0x83, "a"),
                          masked(0x09, "a"), masked(0x81, std::string(1001, 'x'))}) {
    websocket_reader fresh(1000);
    EXPECT_FALSE(fresh.take(bad, got));
  }
  EXPECT_EQ(websocket_text("hi"), "\x81\x02hi");
  EXPECT_EQ(websocket_text(std::string(70'000, 'x')).size(), 70'010u);
  EXPECT_EQ(websocket_close(1008, "no"), std::string("\x88\x04\x03\xf0no"));
}

} // namespace
} // namespace troupe::api

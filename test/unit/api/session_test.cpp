// Tests how the web page logs in, and what a browser has to send beside its cookie.

#include "table.hpp"

#include "runtime/api/gzip.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/router.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

namespace troupe::api {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string header(const response& x, const std::string& name) {
  for (const auto& [key, text] : x.headers)
    if (key == name)
      return text;
  return {};
}

request_headers page_headers(const std::string& cookie = {}) {
  request_headers h;
  h.host = "localhost:8080";
  h.cookie = cookie;
  h.fetch_site = "same-origin";
  return h;
}

std::string cookie_of(const response& x) {
  const auto text = header(x, "Set-Cookie");
  return text.substr(0, text.find(';'));
}

TEST(Session, ACookieOfThisClusterThatNoScriptReads) {
  table t;
  auto in = t.ask("POST", "/troupe/v1/session", page_headers(), R"({"username": "admin", "password": ""})");
  ASSERT_EQ(in.status, 200u) << in.body;
  const auto cookie = header(in, "Set-Cookie");
  EXPECT_TRUE(cookie.starts_with("troupe-c=")) << cookie; // the id of this cluster is "c"
  EXPECT_THAT(cookie, HasSubstr("; HttpOnly; SameSite=Strict"));
  EXPECT_EQ(cookie.find("Secure"), cookie.npos) << "over plain HTTP a browser would not send it back";
  EXPECT_EQ(in.body.find(cookie.substr(9, 20)), in.body.npos) << "the body holds the token";
  auto me = t.ask("GET", "/troupe/v1/session", page_headers(cookie_of(in)));
  ASSERT_EQ(me.status, 200u);
  EXPECT_EQ((*parse_json(me.body))["user"]["username"], "admin");
}

TEST(Session, RightsAreThoseOfTheTable) {
  table t;
  auto rights = [&](const std::string& user) {
    auto in =
      t.ask("POST", "/troupe/v1/session", page_headers(), to_json({{"username", user}, {"password", ""}}));
    return (*parse_json(in.body))["rights"].get<std::set<std::string>>();
  };
  EXPECT_TRUE(rights("admin").contains("kill actor"));
  EXPECT_FALSE(rights("determined").contains("kill actor"));
  EXPECT_TRUE(rights("determined").contains("kill experiment"));
}

TEST(Session, AWrongPasswordSetsNoCookie) {
  table t;
  auto in = t.ask("POST", "/troupe/v1/session", page_headers(), R"({"username": "admin", "password": "no"})");
  EXPECT_EQ(in.status, 401u);
  EXPECT_EQ(header(in, "Set-Cookie"), "");
}

TEST(Session, SigningOutEndsTheTokenAndTheCookie) {
  table t;
  auto in = t.ask("POST", "/troupe/v1/session", page_headers(), R"({"username": "admin", "password": ""})");
  auto out = t.ask("DELETE", "/troupe/v1/session", page_headers(cookie_of(in)));
  EXPECT_EQ(out.status, 200u);
  EXPECT_THAT(header(out, "Set-Cookie"), HasSubstr("Max-Age=0"));
  EXPECT_EQ(t.ask("GET", "/api/v1/me", page_headers(cookie_of(in))).status, 401u);
  auto nobody = t.ask("GET", "/troupe/v1/session", page_headers(cookie_of(in)));
  EXPECT_EQ(*parse_json(nobody.body), value({{"user", nullptr}}));
}

TEST(Session, ACodeWorksOnceAndForTenMinutes) {
  table t;
  auto made = t.ask("POST", "/troupe/v1/session/codes", t.user("determined"));
  ASSERT_EQ(made.status, 200u) << made.body;
  const auto code = (*parse_json(made.body))["code"].get<std::string>();
  auto in = t.ask("POST", "/troupe/v1/session", page_headers(), to_json({{"code", code}}));
  EXPECT_EQ(in.status, 200u);
  EXPECT_EQ((*parse_json(in.body))["user"]["username"], "determined");
  EXPECT_EQ(t.ask("POST", "/troupe/v1/session", page_headers(), to_json({{"code", code}})).status, 401u);

  login_codes codes;
  const auto late = codes.make({3}, t0);
  EXPECT_FALSE(codes.take(late, t0 + login_codes::life));
  const auto early = codes.make({3, 7, "token"}, t0);
  const auto taken = codes.take(early, t0 + login_codes::life - 1s);
  ASSERT_TRUE(taken);
  EXPECT_EQ(std::tie(taken->user_id, taken->generation, taken->token), std::tuple(3u, 7u, "token"));
}

TEST(Session, ACodeEndsWithTheLoginThatHadItMade) {
  const auto code = [](table& t, const request_headers& by) {
    return to_json({{"code", (*parse_json(t.ask("POST", "/troupe/v1/session/codes", by).body))["code"]}});
  };
  table t;
  auto in = t.ask("POST", "/troupe/v1/session", page_headers(), R"({"username": "admin", "password": ""})");
  const auto one = code(t, page_headers(cookie_of(in)));
  EXPECT_EQ(t.ask("DELETE", "/troupe/v1/session", page_headers(cookie_of(in))).status, 200u);
  EXPECT_EQ(t.ask("POST", "/troupe/v1/session", page_headers(), one).status, 401u);

  const auto other = code(t, t.user("determined"));
  const auto id = std::to_string(t.users->find("determined")->id);
  ASSERT_EQ(t.ask("PATCH", "/api/v1/users/" + id, t.user("admin"), R"({"password": "Secret-123"})").status,
            200u);
  EXPECT_EQ(t.ask("POST", "/troupe/v1/session", page_headers(), other).status, 401u);
}

TEST(Session, ATokenOfATaskMakesNoCode) {
  table t;
  request_headers h;
  h.authorization = "Bearer " + t.users->experiment_token({7}, t.users->find("determined")->id);
  EXPECT_EQ(t.ask("GET", "/troupe/v1/session", h).status, 200u); // the token is valid for other routes
  EXPECT_EQ(t.ask("POST", "/troupe/v1/session/codes", h).status, 403u);
  EXPECT_EQ(t.ask("POST", "/troupe/v1/session/codes", t.task()).status, 403u);
}

TEST(Session, TooManyCodesPushTheOldestOut) {
  login_codes codes;
  const auto first = codes.make({1}, t0);
  for (std::size_t i = 0; i < login_codes::most; ++i)
    codes.make({2 + i}, t0 + 1s);
  EXPECT_FALSE(codes.take(first, t0 + 2s));
}

TEST(Session, OneUsersCodesPushOutOnlyTheirOwn) {
  login_codes codes;
  const auto other = codes.make({1}, t0), own = codes.make({2}, t0);
  for (std::size_t i = 0; i < login_codes::most; ++i)
    codes.make({2}, t0 + 1s);
  EXPECT_FALSE(codes.take(own, t0 + 2s));
  EXPECT_TRUE(codes.take(other, t0 + 2s));
}

TEST(CrossSite, AChangeByCookieNeedsOurOwnPage) {
  table t;
  auto in = t.ask("POST", "/troupe/v1/session", page_headers(), R"({"username": "admin", "password": ""})");
  const auto pause = [&](auto set) {
    auto h = page_headers(cookie_of(in));
    set(h);
    return t.ask("POST", "/api/v1/experiments/7/pause", h).status;
  };
  EXPECT_EQ(pause([](auto&) {}), 200u);
  EXPECT_EQ(pause([](auto& h) { h.fetch_site = "cross-site"; }), 403u);
  EXPECT_EQ(pause([](auto& h) { h.fetch_site = "same-site"; }), 403u);
  EXPECT_EQ(pause([](auto& h) { h.fetch_site = ""; }), 403u);
  EXPECT_EQ(pause([](auto& h) {
              h.fetch_site = "";
              h.origin = "http://localhost:8080";
            }),
            200u);
  EXPECT_EQ(pause([](auto& h) {
              h.fetch_site = "";
              h.origin = "http://localhost:8081"; // this origin is another cluster on the same host
            }),
            403u);
  EXPECT_EQ(pause([](auto& h) {
              h.fetch_site = "cross-site";
              // what the browser says about the site decides before the origin
              h.origin = "http://localhost:8080";
            }),
            403u);
  // A read changes nothing, and a token in a header was put there on purpose.
  auto h = page_headers(cookie_of(in));
  h.fetch_site = "cross-site";
  EXPECT_EQ(t.ask("GET", "/api/v1/experiments/7", h).status, 200u);
  auto token = t.user();
  token.fetch_site = "cross-site";
  EXPECT_EQ(t.ask("POST", "/api/v1/experiments/7/pause", token).status, 200u);
}

TEST(CrossSite, TheStockClientsCookieIsNoWayAroundIt) {
  table t;
  request_headers h;
  h.cookie = "auth=" + t.users->log_in("admin", "", true, t0 + 59s)->token;
  EXPECT_EQ(t.ask("POST", "/api/v1/experiments/7/kill", h).status, 403u);
  EXPECT_EQ(t.ask("GET", "/api/v1/experiments/7", h).status, 200u);
}

TEST(CrossSite, NobodyElsesPageSignsOneIn) {
  table t;
  auto h = page_headers();
  h.fetch_site = "cross-site";
  EXPECT_EQ(t.ask("POST", "/troupe/v1/session", h, R"({"username": "admin", "password": ""})").status, 403u);
  h.fetch_site = "";
  h.origin = "http://elsewhere.example";
  EXPECT_EQ(t.ask("POST", "/troupe/v1/session", h, R"({"username": "admin", "password": ""})").status, 403u);
  // curl sends none of these headers
  EXPECT_EQ(t.ask("POST", "/troupe/v1/session", {}, R"({"username": "admin", "password": ""})").status, 200u);
}

TEST(CrossSite, CookiesOfTwoClustersOnOneHostStandBesideEachOther) {
  EXPECT_EQ(cookie_name("0a1b2c3d-4e5f-4000-8000-000000000000"), "troupe-0a1b2c3d");
  request_headers h;
  h.cookie = "troupe-11111111=other; troupe-0a1b2c3d=ours";
  EXPECT_EQ(shown_token(h, "0a1b2c3d-4e5f").token, "ours");
  EXPECT_TRUE(shown_token(h, "0a1b2c3d-4e5f").by_cookie);
  h.authorization = "Bearer mine";
  EXPECT_EQ(shown_token(h, "0a1b2c3d-4e5f").token, "mine");
  EXPECT_FALSE(shown_token(h, "0a1b2c3d-4e5f").by_cookie);
}

TEST(Rebinding, OnLoopbackAForeignNameIsRefusedOnEveryRoute) {
  live l;
  for (const char* host : {"localhost", "127.0.0.1:8080", "[::1]:1", "LocalHost:9"}) {
    raw_client w(l.http->port());
    w.send("GET /health HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    EXPECT_EQ(w.answer().status, 200) << host;
  }
  for (const char* host :
       {"evil.example", "", ":8080", "localhost.evil.example:8080", "7.localhost", "127.0.0.1.evil"})
    for (const char* path : {"/health", "/info", "/troupe/v1/openapi.json", "/nowhere"}) {
      raw_client w(l.http->port());
      w.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
      EXPECT_EQ(w.answer().status, 403) << host << path;
    }
}

TEST(Rebinding, NamesThatWereGivenAreOurs) {
  server_options how;
  how.browsers.hosts = {"head.lab"};
  live l(std::move(how));
  raw_client w(l.http->port());
  w.send("GET /health HTTP/1.1\r\nHost: head.lab:8080\r\n\r\n");
  EXPECT_EQ(w.answer().status, 200);
  browser_rules open; // The server is reachable from other hosts, so it does not know its names.
  request_headers h;
  h.host = "anything.example";
  EXPECT_TRUE(host_is_ours(h, open));
}

TEST(Gzip, ForThoseWhoAsk) {
  EXPECT_TRUE(takes_gzip("gzip, deflate, br"));
  EXPECT_TRUE(takes_gzip("br;q=1.0, gzip;q=0.8"));
  EXPECT_FALSE(takes_gzip("br"));
  EXPECT_FALSE(takes_gzip("gzip;q=0, br"));
  EXPECT_FALSE(takes_gzip(""));
  EXPECT_TRUE(takes_gzip("br,GZIP"));
  EXPECT_TRUE(takes_gzip("x-gzip"));
  EXPECT_TRUE(takes_gzip("*"));
  EXPECT_FALSE(takes_gzip("*;q=0"));
  EXPECT_FALSE(takes_gzip("gzip;q=0.0, *"));
  EXPECT_FALSE(takes_gzip("gzipped, identity"));
}

std::string unzipped(std::string_view bytes) {
  z_stream z{};
  EXPECT_EQ(::inflateInit2(&z, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const auto ended = ::inflate(&z, Z_SYNC_FLUSH);
  EXPECT_TRUE(ended == Z_OK || ended == Z_STREAM_END);
  out.resize(z.total_out);
  ::inflateEnd(&z);
  return out + (ended == Z_STREAM_END ? "." : "");
}

TEST(Gzip, WhatWasAddedCanBeReadAtOnce) {
  response x;
  auto zip = gzip_stream::of(x).value();
  std::string sent, whole;
  for (const auto& part :
       {std::string(3000, 'a'), std::string("b"), std::string(), std::string(70'000, 'c')}) {
    sent += zip.add(part, false);
    whole += part;
    EXPECT_EQ(unzipped(sent), whole);
  }
  sent += zip.add("end", true);
  EXPECT_EQ(unzipped(sent), whole + "end.");
}

TEST(Gzip, AnswersInChunks) {
  live l;
  for (std::uint64_t row = 1; row <= 5000; ++row) {
    metric_row one;
    one.row = row + 10;
    one.run = {1};
    one.group = "training";
    one.steps = static_cast<std::int64_t>(row);
    one.metrics = to_msgpack({{"loss", 0.5}});
    l.reader->metric_rows[12].push_back(one);
  }
  const auto ask = [&](const std::string& path, const char* headers) {
    return raw_client(l.http->port()).ask("GET", path, l.token(), {}, headers);
  };
  const auto path = "/troupe/v1/trials/12/metrics";
  const auto plain = ask(path, ""), zipped = ask(path, "Accept-Encoding: gzip\r\n");
  EXPECT_THAT(plain.head, Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(zipped.head, HasSubstr("Content-Encoding: gzip"));
  EXPECT_THAT(zipped.head, HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_LT(zipped.body.size() * 10, plain.body.size());
  EXPECT_EQ(unzipped(zipped.body), plain.body + ".");
  const auto few = ask("/troupe/v1/trials/12/metrics?limit=2", "Accept-Encoding: gzip\r\n");
  EXPECT_THAT(few.head, Not(HasSubstr("Content-Encoding"))) << "less than 1 KiB";
  EXPECT_EQ(few.body.front(), '[');
}

TEST(Gzip, LongAnswersOverTheWire) {
  live l;
  for (std::uint64_t i = 100; i < 200; ++i) {
    l.reader->trial_rows[i] = l.reader->trial_rows[12];
    l.reader->trial_rows[i].id = {i};
  }
  raw_client plain(l.http->port()), small(l.http->port());
  const auto path = "/troupe/v1/experiments/7/trials";
  auto whole = plain.ask("GET", path, l.token());
  auto zipped = small.ask("GET", path, l.token(), {}, "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(whole.head.find("Content-Encoding"), whole.head.npos);
  EXPECT_THAT(zipped.head, HasSubstr("Content-Encoding: gzip"));
  EXPECT_LT(zipped.body.size() * 5, whole.body.size());
  EXPECT_EQ(zipped.body.substr(0, 2), "\x1f\x8b");
  EXPECT_THAT(whole.head, HasSubstr("X-Content-Type-Options: nosniff"));
  raw_client searched(l.http->port());
  auto found = searched.ask("POST", "/api/v1/experiments-search", l.token(), R"({"limit": 100})",
                            "Accept-Encoding: gzip\r\n");
  EXPECT_THAT(found.head, HasSubstr("Content-Encoding: gzip")) << "whatever the method: " << found.head;
  raw_client again(l.http->port());
  auto token = again.ask("POST", "/api/v1/auth/login", {}, R"({"username": "admin", "password": ""})",
                         "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(token.head.find("Content-Encoding"), token.head.npos)
    << "an answer with a token is never compressed";
}

TEST(Router, ARestTakesWhatNothingElseDoes) {
  const auto run = [](const call_ptr&, const reply&) {};
  std::vector<route> table;
  for (const char* path : {"/ui", "/ui/{path*}", "/ui/fixed/{x}"})
    table.push_back({"GET", path, {action::view, thing::door}, run});
  router r(std::move(table));
  const auto find = [&](const std::string& path) { return r.find("GET", parse_target(path)->segments); };
  EXPECT_EQ(find("/ui/a/b/c").path.at("path"), "a/b/c");
  EXPECT_EQ(find("/ui/fixed/1").found->path, "/ui/fixed/{x}");
  EXPECT_EQ(find("/ui/fixed/1/2").path.at("path"), "fixed/1/2");
  EXPECT_EQ(find("/ui/").found->path, "/ui");
  EXPECT_EQ(find("/uix").found, nullptr);
}

} // namespace
} // namespace troupe::api

// Tests the page as a server gives it: its addresses, headers and caching.

#include "runtime/web/page.hpp"

#include "runtime/api/service.hpp"
#include "runtime/web/assets.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <zlib.h>

namespace troupe::web {
namespace {

using namespace api;

/// The gate accepts every command and does nothing, as there is no cluster behind the page.
struct no_gate : gate {
  void call(const principal&, const std::string&, value, answer done) override { done(value::object()); }
};

struct site {
  explicit site(const std::filesystem::path& dir = {})
      : users(std::move(*accounts::open({}, time_point{}))),
        all({cluster, nullptr, users, {"c", "m", "", "0"}, [] { return time_point{}; }}, page_routes(dir)) {}
  response ask(const std::string& path, request_headers h = {}) {
    auto in = all.admit({"GET", path, std::move(h)});
    if (auto* refused = std::get_if<response>(&in))
      return std::move(*refused);
    response got;
    all.run(std::move(std::get<admission>(in)), "", reply{[&](response x) { got = std::move(x); }});
    return got;
  }
  no_gate cluster;
  std::shared_ptr<accounts> users;
  service all;
};

std::string header(const response& x, const std::string& name) {
  for (const auto& [key, text] : x.headers)
    if (key == name)
      return text;
  return {};
}

std::string unzipped(const std::string& bytes) {
  z_stream z{};
  inflateInit2(&z, 15 + 16);
  std::string out(1 << 22, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  inflateEnd(&z);
  return out;
}

TEST(OurPage, WhereTheLinksOfDeterminedLead) {
  EXPECT_EQ(our_page("/"), "/ui/");
  EXPECT_EQ(our_page("/det"), "/ui/");
  EXPECT_EQ(our_page("/det/experiments/7"), "/ui/experiments/7");
  EXPECT_EQ(our_page("/det/experiments/7/overview"), "/ui/experiments/7");
  EXPECT_EQ(our_page("/det/experiments/7/trials"), "/ui/experiments/7/trials");
  EXPECT_EQ(our_page("/det/experiments/7/trials/12/logs"), "/ui/trials/12/logs");
  EXPECT_EQ(our_page("/det/experiments/7/trials/12/workload"), "/ui/trials/12");
  EXPECT_EQ(our_page("/det/trials/12"), "/ui/trials/12");
  EXPECT_EQ(our_page("/det/experiments/..%2f/"), "/ui/experiments");
  EXPECT_EQ(our_page("/det/clusters"), "/ui/cluster");
}

TEST(Site, RedirectsAndUnknownPathsOfTheApi) {
  site s;
  auto root = s.ask("/");
  EXPECT_EQ(root.status, 302u);
  EXPECT_EQ(header(root, "Location"), "/ui/");
  EXPECT_EQ(header(s.ask("/det/experiments/7/trials/12"), "Location"), "/ui/trials/12");
  EXPECT_EQ(header(s.ask("/det/experiments/7?id=all&pinned=loss&orderBy=up"), "Location"),
            "/ui/experiments/7")
    << "queries of pages are not those of the API";
  EXPECT_EQ(s.ask("/api/v1/nothing").status, 404u);
  EXPECT_EQ(s.ask("/troupe/v1/nothing").status, 404u);
  EXPECT_EQ(s.ask("/nothing").status, 404u);
}

class Assets : public testing::Test {
  void SetUp() override {
    if (!has_assets())
      GTEST_SKIP() << "a build without the web page";
  }
};

TEST_F(Assets, EveryAddressBelowUiIsThePage) {
  site s;
  for (const char* path : {"/ui", "/ui/", "/ui/experiments/7/trials", "/ui/no/such/page", "/ui?q=%",
                           "/ui/experiments/3/trials?q=name~50%", "/ui/experiments?q=%00&x=%zz", "/ui/x%00",
                           "/ui/%", "/ui/experiments/%/trials?q=%"}) {
    auto x = s.ask(path);
    EXPECT_EQ(x.status, 200u) << path;
    EXPECT_EQ(x.content_type, "text/html; charset=utf-8");
    EXPECT_EQ(header(x, "Cache-Control"), "no-cache");
  }
}

TEST_F(Assets, FilesAreKeptForeverAndAWrongOneIs404) {
  site s;
  const auto html = s.ask("/ui/").body;
  const auto at = html.find("/ui/assets/");
  ASSERT_NE(at, html.npos) << html;
  const auto script =
    html.substr(html.find("src=\"/ui/assets/") + 5, html.find(".js\"") - html.find("src=\"") - 2);
  auto x = s.ask(script);
  EXPECT_EQ(x.status, 200u) << script;
  EXPECT_EQ(header(x, "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(x.content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(s.ask("/ui/assets/nothing.js").status, 404u);
  EXPECT_EQ(s.ask("/ui/assets/").status, 404u);
}

TEST_F(Assets, WhatOneHasIsNotSentAgain) {
  site s;
  auto whole = s.ask("/ui/");
  request_headers h;
  h.if_none_match = header(whole, "ETag");
  EXPECT_GT(h.if_none_match.size(), 10u);
  auto known = s.ask("/ui/", h);
  EXPECT_EQ(known.status, 304u);
  EXPECT_TRUE(known.body.empty());
  EXPECT_EQ(header(known, "ETag"), h.if_none_match);
  h.accept_encoding = "gzip"; // compressed bytes have another tag
  EXPECT_EQ(s.ask("/ui/", h).status, 200u);
}

TEST_F(Assets, CompressedForThoseWhoAsk) {
  site s;
  request_headers h;
  h.accept_encoding = "gzip, br";
  auto small = s.ask("/ui/", h);
  EXPECT_EQ(header(small, "Content-Encoding"), "gzip");
  EXPECT_EQ(unzipped(small.body), s.ask("/ui/").body);
  EXPECT_EQ(header(small, "Vary"), "Accept-Encoding");
}

TEST_F(Assets, ThePolicyAllowsFilesOfItsOwnAlone) {
  site s;
  for (const char* path : {"/ui/", "/ui/assets/nothing.js", "/", "/det/experiments/7"}) {
    auto x = s.ask(path);
    const auto policy = header(x, "Content-Security-Policy");
    EXPECT_THAT(policy, testing::HasSubstr("default-src 'none'; script-src 'self'")) << path;
    EXPECT_EQ(policy.find("unsafe-"), policy.npos);
    EXPECT_EQ(header(x, "Referrer-Policy"), "no-referrer");
    EXPECT_EQ(header(x, "Cross-Origin-Opener-Policy"), "same-origin");
  }
  EXPECT_EQ(s.ask("/ui/").body.find("<script>"), std::string::npos);
}

TEST(Folder, ServesFromDiskAndNothingOutsideOfIt) {
  const auto dir = std::filesystem::path(testing::TempDir()) / "troupe-web-dir";
  std::filesystem::create_directories(dir / "assets");
  std::ofstream(dir / "index.html") << "<html>mine</html>";
  std::ofstream(dir / "assets" / "a.js") << "1";
  std::ofstream(dir.parent_path() / "secret.js") << "no";
  site s(dir);
  EXPECT_EQ(s.ask("/ui/experiments").body, "<html>mine</html>");
  EXPECT_EQ(s.ask("/ui/assets/a.js").body, "1");
  EXPECT_EQ(s.ask("/ui/assets/../../secret.js").status, 404u);
  EXPECT_EQ(s.ask("/ui/assets/%2e%2e/%2e%2e/secret.js").status, 404u);
  EXPECT_EQ(s.ask("/ui/assets/..%2f..%2fsecret.js").status, 404u);
  EXPECT_EQ(s.ask("/ui/assets/nothing.js").status, 404u);
}

} // namespace
} // namespace troupe::web

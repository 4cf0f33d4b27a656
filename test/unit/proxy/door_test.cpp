#include "runtime/proxy/door.hpp"

#include <gtest/gtest.h>

namespace troupe::proxy {
namespace {

const char* show(opening x) {
  switch (x) {
  case opening::by_nobody:
    return "nobody";
  case opening::by_header:
    return "header";
  case opening::by_query:
    return "query";
  case opening::by_cookie:
    return "cookie";
  case opening::exchange:
    return "exchange";
  case opening::exchange_query:
    return "exchange query";
  case opening::send_on:
    return "send on";
  case opening::send_back:
    return "send back";
  case opening::log_in:
    return "log in";
  case opening::foreign:
    return "foreign";
  case opening::unauthorized:
    return "unauthorized";
  }
  return "?";
}

/// Reads a request from words such as "api browser navigates cookie". What is not named is not part of the
/// request.
knock read(std::string_view words) {
  knock x;
  const auto has = [&](std::string_view word) { return words.find(word) != words.npos; };
  x.at = has("own") ? place::own_page : has("other") ? place::other_page : place::api;
  x.navigates = has("navigates");
  x.browser = x.navigates || has("browser");
  x.safe = !has("POST");
  x.from_elsewhere = has("elsewhere");
  x.anyone = has("open");
  x.header = has("header");
  x.query = has("query");
  x.page_cookie = has("page-cookie");
  x.api_cookie = has("login-cookie");
  x.code = has("code");
  return x;
}

TEST(ProxyDoor, EachCredentialOpensWhatItMayAndNothingElse) {
  const struct {
    const char *request, *answer;
  } table[] = {
    // The origin of the API: clients that are not browsers.
    {"api", "unauthorized"},
    {"api header", "header"},
    {"api query", "query"},
    {"api header POST", "header"},
    {"api login-cookie", "unauthorized"}, // a cookie never counts here
    {"api page-cookie", "unauthorized"},
    {"api code", "unauthorized"},
    {"api open", "nobody"},
    // The origin of the API: a browser is shown nothing of a task.
    {"api browser header", "foreign"},
    {"api browser query", "foreign"},
    {"api browser login-cookie", "foreign"},
    {"api browser open", "foreign"},
    {"api navigates", "log in"},
    {"api navigates open", "log in"},
    {"api navigates login-cookie", "send on"},
    {"api navigates query", "send on"},
    {"api navigates page-cookie", "log in"},
    // The own origin of the service.
    {"own", "unauthorized"},
    {"own browser", "unauthorized"},
    {"own navigates", "send back"},
    {"own navigates POST", "unauthorized"},
    {"own browser page-cookie", "cookie"},
    {"own navigates page-cookie", "cookie"},
    {"own browser POST page-cookie", "cookie"},
    {"own browser login-cookie", "unauthorized"},
    {"own navigates code", "exchange"},
    {"own navigates code page-cookie", "exchange"},
    {"own browser POST code", "unauthorized"},
    {"own navigates query", "exchange query"},
    {"own browser query", "query"},
    {"own header", "header"},
    {"own query", "query"},
    {"own open", "nobody"},
    // A page of another origin may only link to the service.
    {"own browser elsewhere page-cookie", "foreign"},
    {"own browser elsewhere POST page-cookie", "foreign"},
    {"own navigates elsewhere POST page-cookie", "foreign"},
    {"own navigates elsewhere page-cookie", "cookie"},
    {"own navigates elsewhere code", "exchange"},
    // The page of one service is asked for under the address of another.
    {"other header", "foreign"},
    {"other navigates page-cookie", "foreign"},
  };
  for (const auto& row : table)
    EXPECT_STREQ(show(opening_of(read(row.request))), row.answer) << row.request;
}

TEST(ProxyDoor, AnOriginBelongsToOneService) {
  const page_names local{true, "", 0}, domain{false, "tasks.example.org", 0}, none{};
  const struct {
    const char* host;
    const page_names& names;
    place is;
    bool page;
  } table[] = {
    {"2f0c.localhost", local, place::own_page, true},
    {"other.localhost", local, place::other_page, true},
    {"a.2f0c.localhost", local, place::other_page, true},
    {"localhost", local, place::api, false},
    {"127.0.0.1", local, place::api, false},
    {"2f0c.localhost", domain, place::api, false},
    {"2f0c.tasks.example.org", domain, place::own_page, true},
    {"other.tasks.example.org", domain, place::other_page, true},
    {"tasks.example.org", domain, place::api, false},
    {"2f0c.localhost", none, place::api, false},
    {"", local, place::api, false},
  };
  for (const auto& row : table) {
    EXPECT_EQ(place_of(row.host, "2f0c", row.names), row.is) << row.host;
    EXPECT_EQ(is_page_host(row.host, row.names), row.page) << row.host;
  }
}

TEST(ProxyDoor, ThePageHasAnAddressOfItsOwn) {
  const struct {
    const char* host;
    bool tls;
    page_names names;
    const char* origin; ///< null: the page has no address of its own
  } table[] = {
    {"localhost:8080", false, {true, "", 0}, "http://2f0c.localhost:8080"},
    {"127.0.0.1:8080", false, {true, "", 0}, "http://2f0c.localhost:8080"},
    {"[::1]:8080", true, {true, "", 0}, "https://2f0c.localhost:8080"},
    {"head", false, {false, "tasks.example.org", 0}, "https://2f0c.tasks.example.org"},
    {"head:8080", false, {false, "tasks.example.org", 8082}, "https://2f0c.tasks.example.org"},
    {"head:8443", true, {false, "tasks.example.org", 0}, "https://2f0c.tasks.example.org:8443"},
    {"head", true, {false, "tasks.example.org", 0}, "https://2f0c.tasks.example.org"},
    {"head:8080", false, {}, nullptr},
    // The pages have a port of their own.
    {"head:8080", false, {false, "", 8082}, "http://head:8082"},
    {"head", true, {false, "", 8082}, "https://head:8082"},
    {"[fd00::7]:8080", true, {false, "", 8082}, "https://[fd00::7]:8082"},
    {"", true, {false, "", 8082}, nullptr},
    {"127.0.0.1:8080", false, {true, "", 8082}, "http://2f0c.localhost:8080"},
    {"head.lab:8080", false, {true, "", 8082}, "http://head.lab:8082"},
    {"head.lab:8080", false, {true, "", 0}, "http://2f0c.localhost:8080"},
  };
  for (const auto& row : table) {
    const auto found = page_origin("2f0c", row.host, row.tls, row.names);
    EXPECT_EQ(found, row.origin ? std::optional<std::string>(row.origin) : std::nullopt) << row.host;
  }
}

} // namespace
} // namespace troupe::proxy

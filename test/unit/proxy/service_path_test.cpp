#include "runtime/proxy/service_path.hpp"

#include <gtest/gtest.h>

namespace troupe::proxy {
namespace {

constexpr const char* task = "7.00000000-0000-4000-8000-00000000000c";

TEST(ServicePath, NamesAServiceAndPassesTheRestAsItCame) {
  struct {
    std::string target, service, task_part, path, query;
    int port;
  } cases[] = {
    {"/proxy/7.00000000-0000-4000-8000-00000000000c:8080/a/b?x=1", std::string(task) + ":8080", task,
     "/proxy/7.00000000-0000-4000-8000-00000000000c:8080/a/b", "x=1", 8080},
    {"/proxy/7.00000000-0000-4000-8000-00000000000c%3A8080/", std::string(task) + ":8080", task,
     "/proxy/7.00000000-0000-4000-8000-00000000000c%3A8080/", "", 8080},
    {"/proxy/2f0c/lab/api/settings/@jupyterlab%2Fapputils:themes", "2f0c", "2f0c",
     "/proxy/2f0c/lab/api/settings/@jupyterlab%2Fapputils:themes", "", 0},
    {"/proxy/2f0c", "2f0c", "2f0c", "/proxy/2f0c", "", 0},
    {"/proxy/2f0c/?token=a%20b&y", "2f0c", "2f0c", "/proxy/2f0c/", "token=a%20b&y", 0},
  };
  for (const auto& c : cases) {
    const auto got = parse_service_path(c.target);
    ASSERT_TRUE(got) << c.target << ": " << got.error().what;
    EXPECT_EQ(got->service, c.service);
    EXPECT_EQ(got->task, c.task_part);
    EXPECT_EQ(got->port, c.port);
    EXPECT_EQ(got->path, c.path);
    EXPECT_EQ(got->query, c.query);
  }
}

TEST(ServicePath, RefusesWhatCouldMeanAnotherPathToTheService) {
  for (const std::string target : {"/proxy/",
                                   "/proxy",
                                   "/proxy//a",
                                   "/proxy/../a",
                                   "/proxy/./a",
                                   "/proxy/..",
                                   "/proxy/2f0c//a",
                                   "/proxy/2f0c/a//b",
                                   "/proxy/2f0c/../x",
                                   "/proxy/2f0c/..%2fx",
                                   "/proxy/2f0c/%2e%2e/x",
                                   "/proxy/2f0c/a%2f..%2fb",
                                   "/proxy/2f0c/.",
                                   "/proxy/2f0c/a\\b",
                                   "/proxy/2f0c/a%5cb",
                                   "/proxy/2f0c/%0d%0aHost:x",
                                   "/proxy/2f0c/%zz",
                                   "/proxy/2f0c/%4",
                                   "/proxy/2f0c/a b",
                                   "/proxy/2f0c/a#b",
                                   "/proxy/2f0c:0/",
                                   "/proxy/2f0c:70000/",
                                   "/proxy/2f0c:022/",
                                   "/proxy/2f0c:22:22/",
                                   "/proxy/2f0c:/",
                                   "/proxy/2F0C/",
                                   "/proxy/user@host/",
                                   "/proxy/http:%2f%2fx/",
                                   "/other/2f0c/"})
    EXPECT_FALSE(parse_service_path(target)) << target;
  EXPECT_FALSE(parse_service_path("/proxy/" + std::string(129, 'a') + "/"));
  EXPECT_FALSE(parse_service_path("/proxy/a/" + std::string(17'000, 'a')));
}

TEST(ServicePath, TakesAParameterOutOfAQuery) {
  struct {
    std::string query, value, rest;
    bool found;
  } cases[] = {
    {"token=abc", "abc", "", true},
    {"a=1&token=x%2By&b=2", "x+y", "a=1&b=2", true},
    {"%74oken=x&a", "x", "a", true}, // the name is escaped
    {"token=1&token=2", "1", "", true},
    {"tokens=1", "", "tokens=1", false},
    {"token", "", "", true},
    {"", "", "", false},
  };
  for (const auto& c : cases) {
    const auto got = take_parameter(c.query, "token");
    EXPECT_EQ(got.value, c.value) << c.query;
    EXPECT_EQ(got.rest, c.rest) << c.query;
    EXPECT_EQ(got.found, c.found) << c.query;
  }
}

TEST(ServicePath, ANameIsOneLabelOfAHost) {
  EXPECT_EQ(host_label(std::string(task) + ":8080"), "7-00000000-0000-4000-8000-00000000000c-8080");
  EXPECT_EQ(host_label("2f0c"), "2f0c");
}

} // namespace
} // namespace troupe::proxy

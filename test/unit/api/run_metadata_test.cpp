#include "runtime/api/run_metadata.hpp"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

value nested(int levels) {
  value x = 1;
  for (int i = 0; i < levels; ++i)
    x = value{{"k", std::move(x)}};
  return x;
}

value keys(int count) {
  auto x = value::object();
  for (int i = 0; i < count; ++i)
    x["k" + std::to_string(i)] = i;
  return x;
}

TEST(RunMetadata, HasTheBoundsOfDetermined) {
  const auto list = [](int length) {
    return value{{"a", value(std::vector<int>(static_cast<std::size_t>(length), 1))}};
  };
  for (const auto& good :
       {value::object(), nested(10), keys(1000), list(100),
        value{{std::string(50, 'k'), std::string(5000, 't')}}, value{{"é", nullptr}, {"b", true}}})
    EXPECT_TRUE(check_run_metadata(good)) << to_json(good).substr(0, 100);
  const struct {
    value given;
    const char* what;
  } bad[] = {{value::array(), "metadata: has to be an object"},
             {nested(11), "metadata.k.k.k.k.k.k.k.k.k.k: maps and lists go at most 10 levels deep"},
             {keys(1001), "metadata: at most 1000 keys at all levels together"},
             {list(101), "metadata.a: a list has at most 100 elements, not 101"},
             {value{{"a", std::string(5001, 't')}}, "metadata.a: a text has at most 5000 characters"},
             {value{{std::string(51, 'k'), 1}}, nullptr},
             {value{{"", 1}}, nullptr}};
  for (const auto& one : bad) {
    const auto got = check_run_metadata(one.given);
    ASSERT_FALSE(got) << to_json(one.given).substr(0, 100);
    if (one.what) {
      EXPECT_EQ(got.error().what, one.what);
    }
  }
  auto many = value::object();
  for (int i = 0; i < 20; ++i)
    many["k" + std::to_string(i)] = std::string(5000, 'x');
  EXPECT_EQ(check_run_metadata(many).error().what, "metadata: at most 65536 bytes");
}

} // namespace
} // namespace troupe::api

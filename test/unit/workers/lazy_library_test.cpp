// Tests a library that is loaded with the first call: functions are called as if the library were linked, and
// a missing library is an error.

#include "workers/archive_calls.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

// archive_set_error takes a format, and its type has an attribute for that.
#pragma GCC diagnostic ignored "-Wignored-attributes"
TROUPE_LAZY_CALL(archive_library, archive_set_error);

TEST(LazyLibrary, OneThatIsNotThereIsAnErrorWithItsName) {
  const auto loaded = lazy_library<"libnobody-has-this.so.1">::load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::not_found);
  EXPECT_NE(loaded.error().what.find("libnobody-has-this.so.1"), std::string::npos);
  EXPECT_FALSE(lazy_library<"libnobody-has-this.so.1">::load()) << "nor the second time";
}

TEST(LazyLibrary, CallsTakeTheirArgumentsAlsoAnOpenNumberOfThem) {
  ASSERT_TRUE(archive_library::load());
  auto* a = archive_read_new();
  archive_set_error(a, 5, "%s has %d of %s", "it", 3, "four");
  EXPECT_STREQ(archive_error_string(a), "it has 3 of four");
  EXPECT_EQ(archive_read_free(a), ARCHIVE_OK);
}

} // namespace
} // namespace troupe

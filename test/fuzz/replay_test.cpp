// Gives every input that the fuzzers have kept to its target again: test/fuzz/corpus/NAME.tar.gz to the fuzz
// target with that name. A target ends the process where it finds a fault, and then the name of the input is
// printed.

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

extern "C" {
int replay_api_filter(const std::uint8_t* data, std::size_t size);
int replay_api_json(const std::uint8_t* data, std::size_t size);
int replay_api_requests(const std::uint8_t* data, std::size_t size);
int replay_api_stream(const std::uint8_t* data, std::size_t size);
int replay_checker(const std::uint8_t* data, std::size_t size);
int replay_opener(const std::uint8_t* data, std::size_t size);
int replay_proxy(const std::uint8_t* data, std::size_t size);
int replay_reader(const std::uint8_t* data, std::size_t size);
}

namespace troupe {
namespace {

std::string current; ///< the name of the input that is being tested

void say_current(int) {
  std::fprintf(stderr, "the input is %s\n", current.c_str());
  std::fflush(stderr);
}

struct corpus {
  const char* name;
  int (*target)(const std::uint8_t* data, std::size_t size);
  int least; ///< the least number of inputs in the archive
};

class FuzzCorpus : public testing::TestWithParam<corpus> {};

TEST_P(FuzzCorpus, ShowsNoFault) {
  std::signal(SIGABRT, say_current);
  std::signal(SIGILL, [](int) {
    say_current(0);
    std::abort();
  });
  const auto file = std::string(TROUPE_SOURCE_DIR "/test/fuzz/corpus/") + GetParam().name + ".tar.gz";
  const std::unique_ptr<archive, int (*)(archive*)> in(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(in.get());
  archive_read_support_filter_gzip(in.get());
  ASSERT_EQ(archive_read_open_filename(in.get(), file.c_str(), 1 << 16), ARCHIVE_OK)
    << archive_error_string(in.get());
  int inputs = 0;
  for (archive_entry* entry = nullptr; archive_read_next_header(in.get(), &entry) == ARCHIVE_OK;) {
    if (archive_entry_filetype(entry) != AE_IFREG)
      continue;
    current = file + ": " + archive_entry_pathname(entry);
    const auto size = static_cast<std::size_t>(archive_entry_size(entry));
    // The memory has exactly this size, so that a sanitizer notices a read behind it.
    const auto data = std::make_unique<std::uint8_t[]>(size);
    ASSERT_EQ(archive_read_data(in.get(), data.get(), size), static_cast<la_ssize_t>(size)) << current;
    GetParam().target(data.get(), size);
    ++inputs;
  }
  EXPECT_GE(inputs, GetParam().least);
}

INSTANTIATE_TEST_SUITE_P(
  Of, FuzzCorpus,
  testing::Values(corpus{"api_filter", replay_api_filter, 270}, corpus{"api_json", replay_api_json, 648},
                  corpus{"api_requests", replay_api_requests, 830},
                  corpus{"api_stream", replay_api_stream, 220}, corpus{"checker", replay_checker, 104},
                  corpus{"opener", replay_opener, 232}, corpus{"proxy", replay_proxy, 566},
                  corpus{"reader", replay_reader, 162}),
  [](const auto& x) { return std::string(x.param.name); });

} // namespace
} // namespace troupe

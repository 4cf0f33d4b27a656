// Compares records in the format of TensorBoard with bytes that TensorBoard's own writer made.

#include "workers/event_files.hpp"

#include <gtest/gtest.h>

#include <msgpack.hpp>

namespace troupe::workers {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char c : bytes) {
    out += "0123456789abcdef"[c >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

TEST(EventFiles, ChecksumsAreThoseOfTheFormat) {
  // The CRC-32C of "123456789" is e3069283.
  EXPECT_EQ(masked_checksum("123456789"), ((0xe3069283u >> 15) | (0xe3069283u << 17)) + 0xa282ead8u);
  EXPECT_EQ(masked_checksum(""), 0xa282ead8u);
}

TEST(EventFiles, RecordsAreThoseOfTensorBoardsOwnWriter) {
  const time_point at{std::chrono::microseconds(1'700'000'000'500'000)};
  EXPECT_EQ(hex(event_file_header(at)),
            "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
  EXPECT_EQ(hex(event_scalars(at, 300, {{"loss", 0.5}, {"a/b", -2}})),
            "2700000000000000bbe1b1460900002040fc54d94110ac022a190a0b0a046c6f7373150000003f0a0a0a03612f621500"
            "0000c05946c7e6");
  EXPECT_EQ(hex(event_restart(at, 7)), "0f000000000000006d532b090900002040fc54d94110073a0208019beb06a7");
}

TEST(EventFiles, NumbersOfAReportHaveTheNamesOfDeterminedsLibrary) {
  msgpack::sbuffer bytes;
  msgpack::packer<msgpack::sbuffer> pack(bytes);
  pack.pack_map(6);
  pack.pack("loss");
  pack.pack(0.25);
  pack.pack("val_acc");
  pack.pack(1);
  pack.pack("deep");
  pack.pack_map(2);
  pack.pack("x");
  pack.pack(-3);
  pack.pack("word");
  pack.pack("no number");
  pack.pack("flag");
  pack.pack(true);
  pack.pack("nothing");
  pack.pack_nil();
  pack.pack("list");
  pack.pack_array(1);
  pack.pack(1);
  const std::string_view metrics(bytes.data(), bytes.size());
  using all = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(event_values(metrics, false), (all{{"Determined/loss", 0.25},
                                               {"Determined/val_acc", 1},
                                               {"Determined/deep/x", -3},
                                               {"Determined/flag", 1}}));
  EXPECT_EQ(event_values(metrics, true), (all{{"Determined/val_loss", 0.25},
                                              {"Determined/val_acc", 1},
                                              {"Determined/val_deep/x", -3},
                                              {"Determined/val_flag", 1}}));
  EXPECT_TRUE(event_values(metrics.substr(0, 12), false).empty());
  EXPECT_TRUE(event_values("", false).empty());
  EXPECT_TRUE(event_values("\x01", false).empty());
}

} // namespace
} // namespace troupe::workers

#include "model/ids.hpp"
#include "model/names.hpp"
#include "model/pack.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

constexpr task_id notebook = task_id::of(task_kind::notebook, 0xf0e1d2c3b4a59687ULL, 0xf8192a3b4c5d6e7fULL);
constexpr const char* notebook_text = "20e1d2c3-b4a5-4687-b819-2a3b4c5d6e7f";

std::string hex(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

TEST(Ids, AreWrittenAndReadBack) {
  struct {
    task_id id;
    std::string text;
    task_kind kind;
  } cases[] = {
    {trial_id{12}, "12", task_kind::trial},
    {trial_id{(1ULL << 56) - 1}, "72057594037927935", task_kind::trial},
    {notebook, notebook_text, task_kind::notebook},
    {task_id::of(task_kind::command, 0, 0), "10000000-0000-4000-8000-000000000000", task_kind::command},
    {task_id::of(task_kind::generic, ~0ULL, ~0ULL), "5fffffff-ffff-4fff-bfff-ffffffffffff",
     task_kind::generic},
    {task_id::of(task_kind::checkpoint_gc, 1, 2), "60000000-0000-4001-8000-000000000002",
     task_kind::checkpoint_gc},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(to_string(c.id), c.text);
    EXPECT_EQ(parse_task(c.text), c.id) << c.text;
    EXPECT_EQ(c.id.kind(), c.kind) << c.text;
    EXPECT_EQ(c.id.is_trial(), c.kind == task_kind::trial) << c.text;
    EXPECT_EQ(parse_allocation(c.text + ".3"), (allocation_id{c.id, {3}})) << c.text;
    EXPECT_EQ(to_string(allocation_id{c.id, {3}}), c.text + ".3");
    EXPECT_EQ(unpack<task_id>(pack(c.id)).value(), c.id) << c.text;
    const auto part = named_part(part_name({c.id, {3}}, 2));
    // The name of a part keeps only 32 bits of the number of a trial.
    if (c.id != task_id{trial_id{(1ULL << 56) - 1}}) {
      EXPECT_EQ(part.allocation, (allocation_id{c.id, {3}})) << c.text;
      EXPECT_EQ(part.node_rank, 2) << c.text;
    }
    EXPECT_EQ(named_task(task_name({7}, c.id)),
              c.id.is_trial() ? task_id{trial_id{c.id.low() & 0xffffffffffff}} : c.id);
    EXPECT_EQ(named_allocation(allocation_name({7}, {c.id, {3}})).run, run_id{3}) << c.text;
  }
  EXPECT_EQ(notebook.trial(), trial_id{});
}

TEST(Ids, OfNothingAreReadFromOddTexts) {
  for (const char* bad : {"", "0", "-1", "12 ", "12.3", "20e1d2c3-b4a5-4687-b819-2a3b4c5d6e7",
                          "20e1d2c3-b4a5-4687-b819-2a3b4c5d6e7F", "20e1d2c3+b4a5-4687-b819-2a3b4c5d6e7f",
                          "00e1d2c3-b4a5-4687-b819-2a3b4c5d6e7f",  // the first digit is that of a trial
                          "70e1d2c3-b4a5-4687-b819-2a3b4c5d6e7f",  // the kind belongs to a later build
                          "20e1d2c3-b4a5-1687-b819-2a3b4c5d6e7f",  // another version of UUID
                          "20e1d2c3-b4a5-4687-7819-2a3b4c5d6e7f"}) // another variant of UUID
    EXPECT_FALSE(parse_task(bad)) << bad;
  for (const char* bad : {"", "12", "12.", ".3", "0.1", "12.3.4", "20e1d2c3-b4a5-4687-b819-2a3b4c5d6e7f"})
    EXPECT_FALSE(parse_allocation(bad)) << bad;
  for (const char* bad :
       {"20e1d2c3-b4a5-4687-b819-2a3b4c5d6e7f.1", "12.3.0", "20e1d2c3-b4a5-4687-b819-2a3b4c5d6e7f.1.x",
        "20e1d2c3-b4a5-4687-b819-2a3b4c5d6e7f.1.70000"})
    EXPECT_FALSE(named_part(bad).allocation) << bad;
}

TEST(Ids, OfTrialsHaveTheBytesThatTheyAlwaysHad) {
  EXPECT_EQ(hex(pack(allocation_id{{12}, {3}})), "920c03");
  EXPECT_EQ(hex(pack(allocation_id{{300}, {3}})), "92cd012c03");
  EXPECT_EQ(hex(pack(task_id{trial_id{300}})), hex(pack(trial_id{300})));
  EXPECT_EQ(hex(pack(allocation_id{notebook, {1}})), "92c41020e1d2c3b4a54687b8192a3b4c5d6e7f01");
}

TEST(Ids, OfOtherBytesAreRefused) {
  for (const auto* bad :
       {"c40120", "c41000e1d2c3b4a54687b8192a3b4c5d6e7f", "c41070e1d2c3b4a54687b8192a3b4c5d6e7f", "a13c"}) {
    std::string bytes;
    for (std::string_view digits = bad; !digits.empty(); digits.remove_prefix(2))
      bytes += static_cast<char>(std::stoi(std::string(digits.substr(0, 2)), nullptr, 16));
    EXPECT_FALSE(unpack<task_id>(bytes)) << bad;
  }
}

TEST(Ids, OfTrialsComeFirstInTheirOrder) {
  const std::set<allocation_id> all{{notebook, {1}}, {{7}, {2}}, {{12}, {1}}, {{7}, {1}}};
  std::string order;
  for (const auto& id : all)
    order += to_string(id) + " ";
  EXPECT_EQ(order, std::string("7.1 7.2 12.1 ") + notebook_text + ".1 ");
}

} // namespace
} // namespace troupe

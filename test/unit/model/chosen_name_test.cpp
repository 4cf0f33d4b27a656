#include "model/chosen_name.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

std::string repeated(const char* text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += text;
  return out;
}

TEST(ChosenName, HasOneToEightyCharactersThatPeopleSee) {
  for (const auto& good : {std::string("a"), std::string("cats and dogs"), std::string("Проект"),
                           std::string("猫"), std::string("a/b"), repeated("é", 80), repeated("𝛼", 80)})
    EXPECT_TRUE(check_chosen_name("x", good)) << good;
  for (const auto& bad :
       {std::string(), std::string("  "), std::string("\u00a0\u3000"), std::string("\u200b"),
        repeated("é", 81), std::string(81, 'a'), std::string("a\nb"), std::string("a\x7f"),
        std::string("a\u0085"), std::string("a\u202e"), std::string("a\u2066"), std::string("\xff"),
        std::string("\xc3"), std::string("\xed\xa0\x80"), std::string("a\0b", 3)})
    EXPECT_FALSE(check_chosen_name("x", bad)) << bad;
  EXPECT_EQ(check_chosen_name("a label", "").error().what,
            "a label has 1 to 80 characters, not all blank and none a control character");
}

TEST(ChosenName, OfAConfigurationIsInOneLine) {
  for (const auto& [given, shown] : {std::pair<std::string, std::string>{"cats and dogs", "cats and dogs"},
                                     {"a name\n", "a name"}, // the name comes from a block of YAML
                                     {"\ta\x1b[31mb\u202ec\n\nd ", "a [31mb c  d"},
                                     {"\a \n", ""},
                                     {"", ""},
                                     {"Проект", "Проект"},
                                     {repeated("é", 200), repeated("é", 200)}})
    EXPECT_EQ(in_one_line(given), shown);
}

TEST(ChosenName, InAnAddressHasNoSlashAndIsNoStep) {
  for (const char* fine : {"a", "a b", "...", "a.", ".git"})
    EXPECT_TRUE(check_name_in_address("names", fine)) << fine;
  for (const char* bad : {".", "..", "a/b", "/", "a\\b"})
    EXPECT_FALSE(check_name_in_address("names", bad)) << bad;
}

TEST(ChosenName, IsOneInAnyCaseOfAnyScript) {
  for (const auto& [a, b] :
       {std::pair{"Vision", "vISION"}, {"ПРОЕКТ", "проект"}, {"ΣΑΣ", "σας"}, {"ÄÖ", "äö"}, {"a", "a"}})
    EXPECT_EQ(case_folded(a), case_folded(b)) << a;
  EXPECT_NE(case_folded("проект"), case_folded("проекты"));
  EXPECT_NE(case_folded("a"), case_folded("á"));
}

} // namespace
} // namespace troupe

// Tests the filter and sort language of experiments-search and runs.

#include "runtime/api/search_filter.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::api {
namespace {

const std::vector<known_column> known = {
  {"id", column_kind::number},          {"name", column_kind::text},      {"tags", column_kind::text},
  {"state", column_kind::text},         {"startTime", column_kind::date}, {"forkedFrom", column_kind::number},
  {"parentArchived", column_kind::flag}};

/// Returns a column of one row, which has numbers, texts, a list, a time, an unset column and the
/// hyperparameters of a search.
result<value> row(const column_name& column) {
  static const value fields = {{"id", 7},
                               {"name", "Digits of Ada"},
                               {"tags", {"good", "old", "Grüße"}},
                               {"state", "COMPLETED"},
                               {"parentArchived", false},
                               {"startTime", "2026-03-04T05:06:07.000000Z"}};
  static const value hparams = {{"lr", {{"type", "log"}, {"minval", -4}, {"maxval", -1}}},
                                {"n", {{"type", "const"}, {"val", 64}}},
                                {"opt", {{"type", "categorical"}, {"vals", {"adam", "sgd"}}}}};
  const auto& from = column.of == column_of::hyperparameter ? hparams : fields;
  if (column.of == column_of::metric)
    return column.name == "validation.loss.last" ? value(0.25) : value();
  auto at = from.find(column.name);
  return at == from.end() ? value() : *at;
}

std::string condition(const std::string& column, const std::string& op, const std::string& wanted,
                      const std::string& location = "LOCATION_TYPE_EXPERIMENT") {
  return R"({"kind":"field","columnName":")" + column + R"(","location":")" + location + R"(","operator":")" +
         op + R"(","value":)" + wanted + "}";
}
std::string filter_of(const std::string& children, const char* how = "and") {
  return R"({"filterGroup":{"kind":"group","conjunction":")" + std::string(how) + R"(","children":[)" +
         children + R"(]},"showArchived":false})";
}
std::string taken(const std::string& filter) {
  auto read = search_filter::read(filter, known);
  if (!read)
    return read.error().what;
  auto takes = read->takes(row);
  return !takes ? takes.error().what : *takes ? "yes" : "no";
}

TEST(SearchFilter, ComparesEachKindOfColumn) {
  const char* hp = "LOCATION_TYPE_HYPERPARAMETERS";
  const char* metric = "LOCATION_TYPE_VALIDATIONS";
  const struct {
    std::string one;
    const char* outcome;
  } cases[] = {
    {condition("id", "=", "7"), "yes"},
    {condition("id", "=", "\"7\""), "yes"},
    {condition("id", "!=", "7"), "no"},
    {condition("id", "<", "7"), "no"},
    {condition("id", "<=", "7"), "yes"},
    {condition("id", ">", "6.5"), "yes"},
    {condition("name", "contains", "\"of ada\""), "yes"},
    {condition("name", "notContains", "\"of ada\""), "no"},
    {condition("name", "=", "\"digits of ada\""), "no"},
    {condition("tags", "contains", "\"OLD\""), "yes"},
    {condition("tags", "contains", "\"GRÜ\""), "yes"},
    {condition("tags", "isEmpty", "null"), "no"},
    {condition("tags", "notEmpty", "null"), "yes"},
    {condition("state", "=", "\"STATE_COMPLETED\""), "yes"},
    {condition("startTime", ">=", "\"2026-03-04\""), "yes"},
    {condition("startTime", "<", "\"2026-03-04T07:00:00+02:00\""), "no"},
    {condition("forkedFrom", "isEmpty", "null"), "yes"},
    {condition("forkedFrom", "=", "1"), "no"},
    {condition("forkedFrom", "!=", "1"), "yes"},
    {condition("forkedFrom", "<", "1"), "no"},
    {condition("forkedFrom", "notContains", "\"1\""), "yes"},
    {condition("name", "=", "null"), "yes"}, // null asks for nothing
    {condition("validation.loss.last", "<", "0.3", metric), "yes"},
    {condition("validation.other.last", "<", "0.3", metric), "no"},
    {condition("hp.n", "=", "64", hp), "yes"},
    {condition("hp.opt", "contains", "\"sgd\"", hp), "yes"},
    {condition("hp.opt", "contains", "\"SGD\"", hp), "no"}, // the comparison respects upper and lower case
    {condition("hp.lr", "=", "-2", hp), "yes"},
    {condition("hp.lr", "=", "0", hp), "no"},
    {condition("hp.lr", "<", "-3", hp), "yes"}, // a part of the range meets the condition
    {condition("hp.lr", ">", "-1", hp), "no"},
    {condition("hp.none", "isEmpty", "null", hp), "yes"},
  };
  for (const auto& one : cases)
    EXPECT_EQ(taken(filter_of(one.one)), one.outcome) << one.one;
}

TEST(SearchFilter, GroupsAreAndOrOr) {
  const auto yes = condition("id", "=", "7"), no = condition("id", "=", "8");
  EXPECT_EQ(taken(filter_of(yes + "," + no)), "no");
  EXPECT_EQ(taken(filter_of(yes + "," + no, "or")), "yes");
  EXPECT_EQ(taken(filter_of(no + "," + no, "or")), "no");
  EXPECT_EQ(taken(filter_of("")), "yes");
  EXPECT_EQ(taken(filter_of("", "or")), "yes") << "an empty group is true";
  EXPECT_EQ(taken(""), "yes");
  EXPECT_FALSE(search_filter::read(filter_of(""), known)->show_archived());
  EXPECT_TRUE(search_filter::read("", known)->show_archived());
}

TEST(SearchFilter, RefusesAValueOfAnotherKindThanItsColumn) {
  const auto typed = [](const std::string& column, const char* op, const char* wanted, const char* type) {
    auto one = condition(column, op, wanted);
    one.insert(one.size() - 1, std::string(R"(,"type":"COLUMN_TYPE_)") + type + "\"");
    return taken(filter_of(one));
  };
  EXPECT_TRUE(typed("id", "=", "7", "COLOUR").starts_with("invalid filter: unknown type "));
  EXPECT_EQ(typed("id", "=", "\"7\"", "NUMBER"), "yes");
  EXPECT_EQ(typed("id", "=", "null", "NUMBER"), "yes");
  EXPECT_EQ(typed("id", "isEmpty", "\"\"", "NUMBER"), "no");
  EXPECT_EQ(typed("startTime", "<", "\"2026-04\"", "DATE"), "yes");
  EXPECT_EQ(typed("startTime", ">=", "\"2026-03-04T05:06:07Z\"", "DATE"), "yes");
  // The type that a client gives for a column decides nothing.
  for (const char* said : {"NUMBER", "UNSPECIFIED", "TEXT"})
    for (const char* bad : {"\"abc\"", "[1]", "{\"a\":1}", "true"})
      EXPECT_EQ(typed("id", ">", bad, said), "invalid filter: column 'id' is compared with a number");
  for (const char* said : {"DATE", "UNSPECIFIED"})
    for (const char* bad : {"\"noon\"", "\"2026-13-01\"", "7"})
      EXPECT_TRUE(typed("startTime", "<", bad, said).starts_with("invalid filter: column 'startTime' is "))
        << bad;
}

TEST(SearchFilter, ReadsTextsOfTrueAndFalseWhereAColumnHoldsThem) {
  for (const char* is : {"false", "\"false\"", "\"False\""}) {
    EXPECT_EQ(taken(filter_of(condition("parentArchived", "=", is))), "yes") << is;
    EXPECT_EQ(taken(filter_of(condition("parentArchived", "!=", is))), "no") << is;
  }
  EXPECT_EQ(taken(filter_of(condition("parentArchived", "=", "\"true\""))), "no");
  for (const char* bad : {"0", "\"no\"", "\"\""})
    EXPECT_EQ(taken(filter_of(condition("parentArchived", "=", bad))),
              "invalid filter: column 'parentArchived' is compared with true or false")
      << bad;
}

TEST(SearchFilter, ComparesABooleanOfMetadataWithTheTextThatAClientSends) {
  const auto takes = [](const char* op, const char* wanted, const value& has) {
    auto read = search_filter::read(
      filter_of(condition("metadata.flag", op, wanted, "LOCATION_TYPE_RUN_METADATA")), known);
    return read && *read->takes([&](const column_name&) -> result<value> { return has; });
  };
  for (const char* wanted : {"true", "\"true\"", "\"True\""}) {
    EXPECT_TRUE(takes("=", wanted, true)) << wanted;
    EXPECT_FALSE(takes("=", wanted, false)) << wanted;
    EXPECT_FALSE(takes("!=", wanted, true)) << wanted;
    EXPECT_TRUE(takes("!=", wanted, false)) << wanted;
    EXPECT_FALSE(takes("=", wanted, "no")) << wanted;
    EXPECT_FALSE(takes("=", wanted, 1)) << wanted;
    EXPECT_FALSE(takes("=", wanted, nullptr)) << wanted;
  }
  EXPECT_FALSE(takes("=", "\"yes\"", true));
}

TEST(SearchFilter, ReadsTimesAndStatesWhereAColumnHoldsThem) {
  const auto takes = [](const std::string& one, const char* has) {
    auto read = search_filter::read(filter_of(one), known);
    return read && *read->takes([&](const column_name&) -> result<value> { return value(has); });
  };
  EXPECT_FALSE(takes(condition("name", "=", "\"2026-02-01\""), "2026-02")) << "two names";
  EXPECT_TRUE(takes(condition("startTime", "=", "\"2026-02-01\""), "2026-02"));
  EXPECT_TRUE(
    takes(condition("metadata.day", "=", "\"2026-02-01\"", "LOCATION_TYPE_RUN_METADATA"), "2026-02"));
  EXPECT_TRUE(
    takes(condition("metadata.day", ">", "\"2026-01-31T23:30:00-01:00\"", "LOCATION_TYPE_RUN_METADATA"),
          "2026-02-02"));
  EXPECT_FALSE(takes(condition("hp.day", "=", "\"2026-02-01\"", "LOCATION_TYPE_HYPERPARAMETERS"), "2026-02"));
  EXPECT_FALSE(takes(condition("name", "=", "\"zeta\""), "STATE_zeta"));
  EXPECT_TRUE(takes(condition("state", "=", "\"STATE_ACTIVE\""), "ACTIVE"));
}

TEST(SearchFilter, RefusesWhatIsNone) {
  std::string deep = condition("id", "=", "7");
  for (int i = 0; i < 100; ++i)
    deep = R"({"kind":"group","conjunction":"and","children":[)" + deep + "]}";
  std::string many = condition("id", "=", "7");
  for (int i = 0; i < 600; ++i)
    many += "," + condition("id", "=", "7");
  for (const auto& bad :
       {std::string("("), std::string("[]"), filter_of(deep), filter_of(many), filter_of("7"),
        filter_of(R"({"kind":"else"})"), filter_of(R"({"kind":"group","children":[]})"),
        filter_of(R"({"kind":"group","conjunction":"xor","children":[]})"),
        filter_of(condition("id", "~", "1")), filter_of(condition("nothing", "=", "1")),
        filter_of(condition("id", "=", "1", "LOCATION_TYPE_MOON")),
        filter_of(condition("loss", "<", "1", "LOCATION_TYPE_VALIDATIONS")),
        filter_of(condition("validation.loss.median", "<", "1", "LOCATION_TYPE_VALIDATIONS")),
        filter_of(condition("validation.loss", "<", "1", "LOCATION_TYPE_CUSTOM_METRIC"))})
    EXPECT_TRUE(taken(bad).starts_with("invalid filter: ")) << bad.substr(0, 200) << " " << taken(bad);
}

TEST(SearchSort, ReadsColumnsAndOrdersRows) {
  const auto fault = [](const char* text) { return read_sort(text, known).error().what; };
  EXPECT_TRUE(fault("id").starts_with("invalid sort parameter"));
  EXPECT_TRUE(fault(",").starts_with("invalid sort parameter"));
  EXPECT_TRUE(fault("id=asc,").starts_with("invalid sort parameter"));
  EXPECT_TRUE(fault("hp.=asc").starts_with("invalid sort col"));
  EXPECT_TRUE(fault("metadata.=asc").starts_with("invalid sort col"));
  EXPECT_TRUE(fault("id=up").starts_with("invalid sort direction"));
  EXPECT_TRUE(fault("nothing=asc").starts_with("invalid sort col"));
  EXPECT_TRUE(fault("validation.loss.median=asc").starts_with("invalid sort col"));
  const auto by = read_sort("name=desc,validation.loss.min=asc,hp.n=asc", known);
  ASSERT_TRUE(by) << by.error().what;
  ASSERT_EQ(by->size(), 3u);
  EXPECT_EQ((*by)[1].column.of, column_of::metric);
  EXPECT_EQ((*by)[2].column.name, "n");
  const std::vector<value> a = {"b", 1, 2}, b = {"a", 1, 2}, unset = {nullptr, 1, 2}, c = {"b", 0.5, 2};
  EXPECT_TRUE(sorts_before(*by, a, b)) << "downwards";
  EXPECT_TRUE(sorts_before(*by, c, a)) << "the next key decides";
  EXPECT_TRUE(sorts_before(*by, a, unset)) << "what is unset comes last, whichever way";
  EXPECT_FALSE(sorts_before(*by, unset, a));
  EXPECT_FALSE(sorts_before(*by, a, a));
}

TEST(SearchFilter, ComparesWithWhatStandsInPlaceOfAValue) {
  const wanted_value now = [](const column_name& column, const value& wanted) {
    return column.name == "name" && wanted == "Digits" ? value("Digits of Ada") : wanted;
  };
  const struct {
    std::string one;
    bool takes;
  } cases[] = {
    {condition("name", "=", "\"Digits\""), true},        {condition("name", "!=", "\"Digits\""), false},
    {condition("name", "=", "\"Digits of Ada\""), true}, {condition("name", "=", "\"Ada\""), false},
    {condition("state", "=", "\"Digits\""), false},      {condition("name", "<=", "\"Digits\""), false},
  };
  for (const auto& c : cases) {
    auto read = search_filter::read(filter_of(c.one), known, now);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read->takes(row), c.takes) << c.one;
  }
}

TEST(SearchSort, OrdersUnlikeValuesAndSectionsOfASearch) {
  const auto by = read_sort("hp.n=asc", known);
  ASSERT_TRUE(by) << by.error().what;
  const value rising[] = {-1,
                          {{"type", "const"}, {"val", 2}},
                          {{"type", "int"}, {"minval", 9}, {"maxval", 20}},
                          10, // 10 comes after 9, although the text "10" comes before "9"
                          false,
                          "1a", // a text, although it begins with a digit
                          "2",
                          "2026-01-02",
                          {{"type", "categorical"}, {"vals", {"a", "b"}}},
                          nullptr};
  for (std::size_t i = 0; i < std::size(rising); ++i)
    for (std::size_t j = 0; j < std::size(rising); ++j)
      EXPECT_EQ(sorts_before(*by, {rising[i]}, {rising[j]}), i < j) << rising[i] << " " << rising[j];
}

TEST(SearchSort, OrdersTimesOfMetadataBeforeTexts) {
  const auto by = read_sort("metadata.when=asc", known);
  ASSERT_TRUE(by) << by.error().what;
  const value rising[] = {7, "2026-01-01T23:00:00-05:00", "2026-01-03", "1a", nullptr};
  for (std::size_t i = 0; i < std::size(rising); ++i)
    for (std::size_t j = 0; j < std::size(rising); ++j)
      EXPECT_EQ(sorts_before(*by, {rising[i]}, {rising[j]}), i < j) << rising[i] << " " << rising[j];
}

} // namespace
} // namespace troupe::api

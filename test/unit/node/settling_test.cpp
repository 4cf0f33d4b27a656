// Tests what a configuration changes about accounts and named tokens, and in which order.

#include "runtime/node/settling.hpp"

#include <gtest/gtest.h>

namespace troupe::node {
namespace {

std::string show(const drop_token& x) { return "drop " + x.user + "." + x.name; }
std::string show(const dismiss_user& x) { return "dismiss " + x.user; }
std::string show(const make_user& x) { return "make " + x.user + (x.admin ? " admin" : ""); }
std::string show(const keep_token& x) { return "keep " + x.user + "." + x.name + " " + x.expires; }
std::string show(const change_user& x) {
  const auto flag = [](const char* name, const std::optional<bool>& to) {
    return to ? std::string(" ") + name + (*to ? "=yes" : "=no") : std::string();
  };
  return "change " + x.user + (x.new_password ? " password" : "") + flag("active", x.active) +
         flag("admin", x.admin);
}

TEST(Settling, DoesWhatTheConfigurationChanges) {
  const known_account user, admin{true}, gone{false, false}, other_password{false, true, false};
  struct {
    const char *what, *before, *wanted;
    std::map<std::string, known_account> accounts;
    const char* passwords;
    std::vector<std::string> prune;
    const char* steps;
  } cases[] = {
    {"nothing", "null", "null", {{"admin", admin}}, "{}", {}, ""},
    {"a new user",
     "null",
     R"({"users": [{"name": "ada", "role": "admin"}, {"name": "bob"}]})",
     {},
     "{}",
     {},
     "make ada admin;make bob;"},
    {"one that is there as it should be",
     "null",
     R"({"users": [{"name": "ada"}]})",
     {{"ada", user}},
     R"({"ada": "x"})",
     {},
     ""},
    {"another password",
     "null",
     R"({"users": [{"name": "ada"}]})",
     {{"ada", other_password}},
     R"({"ada": "x"})",
     {},
     "change ada password;"},
    {"a password that the file does not give stays",
     "null",
     R"({"users": [{"name": "ada"}]})",
     {{"ada", other_password}},
     "{}",
     {},
     ""},
    {"one that was dismissed",
     "null",
     R"({"users": [{"name": "ada", "role": "admin"}]})",
     {{"ada", gone}},
     "{}",
     {},
     "change ada active=yes admin=yes;"},
    {"no longer an admin",
     "null",
     R"({"users": [{"name": "ada", "role": "user"}]})",
     {{"ada", admin}},
     "{}",
     {},
     "change ada admin=no;"},
    {"the role of a built-in one stays",
     "null",
     R"({"users": [{"name": "admin", "role": "user"}]})",
     {{"admin", admin}},
     "{}",
     {},
     ""},
    {"one that it names no longer",
     R"({"users": [{"name": "ada", "tokens": [{"name": "ci"}]}]})",
     "{}",
     {{"ada", user}},
     "{}",
     {},
     "drop ada.ci;dismiss ada;"},
    {"one that it names no longer and that is gone",
     R"({"users": [{"name": "ada"}]})",
     "{}",
     {{"ada", gone}},
     "{}",
     {},
     ""},
    {"made by hand, and not asked for", "null", "{}", {{"eve", user}}, "{}", {}, ""},
    {"made by hand, and to go",
     "null",
     "{}",
     {{"eve", user}, {"admin", admin}},
     "{}",
     {"eve", "admin", "nobody"},
     "dismiss eve;"},
    {"tokens come and go",
     R"({"users": [{"name": "ada", "tokens": [{"name": "ci"}, {"name": "cd"}]}]})",
     R"({"users": [{"name": "ada", "tokens": [{"name": "cd", "expires": "30d"}, {"name": "new", "expires": "1h"}]}]})",
     {{"ada", user}},
     "{}",
     {},
     "drop ada.ci;keep ada.cd 30d;keep ada.new 1h;"},
    {"who goes, goes after who comes: one of them may be the last admin",
     R"({"users": [{"name": "ada"}]})",
     R"({"users": [{"name": "bob"}]})",
     {{"ada", user}},
     "{}",
     {},
     "make bob;dismiss ada;"},
    {"an admin who is one no longer comes last, too",
     "null",
     R"({"users": [{"name": "ada", "role": "user"}, {"name": "bob", "role": "admin"}]})",
     {{"ada", admin}, {"bob", other_password}},
     R"({"bob": "x"})",
     {},
     "change bob password admin=yes;change ada admin=no;"},
    {"pruned and wanted: it stays",
     "null",
     R"({"users": [{"name": "ada"}]})",
     {{"ada", user}},
     "{}",
     {"ada"},
     ""},
  };
  for (const auto& c : cases) {
    std::string steps;
    for (const auto& step : settling_steps(parse_json(c.before).value(), parse_json(c.wanted).value(),
                                           c.accounts, parse_json(c.passwords).value(), c.prune))
      steps += std::visit([](const auto& x) { return show(x); }, step) + ";";
    EXPECT_EQ(steps, c.steps) << c.what;
  }
}

} // namespace
} // namespace troupe::node

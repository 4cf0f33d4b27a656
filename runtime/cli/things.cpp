#include "runtime/cli/things.hpp"

#include "model/config/document.hpp"
#include "runtime/client/submission.hpp"

#include <algorithm>
#include <fstream>
#include <ostream>

namespace troupe::cli {
namespace {

constexpr int most_at_once = 500; ///< groups and roles in one answer

/// Cuts the text at each `at`.
std::vector<std::string> parts_of(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == text.npos;
}

/// The one of `rows` whose name is this word, otherwise the one whose number it is.
result<value> row_named(const value& rows, const std::string& what, const std::string& word, const char* name,
                        const char* id) {
  for (const auto& one : rows)
    if (part(one, name) == word)
      return one;
  for (const auto& one : rows)
    if (!word.empty() && id_text(one, id) == word)
      return one;
  return error{errc::not_found, what + " '" + word + "' not found\nhint: troupe " + what + " list"};
}

} // namespace

std::string id_text(const value& thing, std::string_view key) {
  const auto& id = part(thing, key);
  return id.is_number_integer() ? to_json(id) : std::string();
}

result<value> named(client::server& cluster, const std::string& path, const std::string& key,
                    const std::string& what, const std::string& word, const char* name) {
  auto rows = cluster.list(path, key);
  return rows ? row_named(*rows, what, word, name, "id") : rows.error();
}

result<value> workspace_named(client::server& cluster, const std::string& word) {
  return named(cluster, "/api/v1/workspaces", "workspaces", "workspace", word);
}

result<value> project_named(client::server& cluster, const std::string& word) {
  const auto slash = word.find('/');
  if (slash == word.npos) {
    auto found = is_number(word) ? thing_at(cluster, "/api/v1/projects/" + word, "project")
                                 : error{errc::not_found, "project '" + word + "' not found"};
    if (!found && found.error().code == errc::not_found)
      return error{errc::not_found,
                   found.error().what + "\nhint: its number, or WORKSPACE/NAME; troupe project list"};
    return found;
  }
  auto workspace = workspace_named(cluster, word.substr(0, slash));
  if (!workspace)
    return workspace.error();
  return named(cluster, "/api/v1/workspaces/" + id_text(*workspace) + "/projects", "projects", "project",
               word.substr(slash + 1));
}

result<value> user_named(client::server& cluster, const std::string& word) {
  return named(cluster, "/api/v1/users", "users", "user", word, "username");
}

result<value> groups(client::server& cluster) {
  value rows = value::array();
  for (;;) {
    auto got = cluster.post("/api/v1/groups/search", {{"limit", most_at_once}, {"offset", rows.size()}});
    if (!got)
      return got.error();
    for (const auto& one : part(*got, "groups"))
      rows.push_back({{"id", part(one, "group.groupId")},
                      {"name", part(one, "group.name")},
                      {"numMembers", part(one, "numMembers")}});
    const auto total = number_in(part(*got, "pagination.total")).value_or(0);
    if (part(*got, "groups").empty() || static_cast<double>(rows.size()) >= total)
      return rows;
  }
}

result<value> group_named(client::server& cluster, const std::string& word) {
  auto rows = groups(cluster);
  return rows ? row_named(*rows, "group", word, "name", "id") : rows.error();
}

result<value> roles(client::server& cluster) {
  auto got = cluster.post("/api/v1/roles/search", {{"limit", most_at_once}});
  return got ? result<value>(part(*got, "roles")) : got.error();
}

result<value> role_named(client::server& cluster, const std::string& word) {
  auto rows = roles(cluster);
  return rows ? row_named(*rows, "role", word, "name", "roleId") : rows.error();
}

result<value> webhook_named(client::server& cluster, const std::string& word) {
  return named(cluster, "/api/v1/webhooks", "webhooks", "webhook", word);
}

result<value> thing_at(client::server& cluster, const std::string& path, const char* key) {
  auto got = cluster.get(path);
  return got ? result<value>(part(got->body, key)) : got.error();
}

result<void> not_both(const arguments& given, const char* one, const char* other) {
  if (given.has(one) && given.has(other))
    return error{errc::invalid,
                 std::string(one) + " and " + other + " exclude each other\nhint: give one of them"};
  return {};
}

result<value> map_in(session& s, const std::string& file) {
  auto text = client::read_config(file, s.io.in);
  if (!text)
    return text.error();
  const auto name = file == "-" ? std::string("<stdin>") : file;
  const auto document = config::read_document(*text, name);
  std::string faults;
  for (const auto& fault : document.faults) {
    auto shown = config::render(fault, *text);
    while (shown.ends_with('\n'))
      shown.pop_back();
    faults += (faults.empty() ? "" : "\n") + shown;
  }
  if (!faults.empty())
    return error{errc::invalid, faults};
  if (!document.root.is(config::kind::map))
    return error{errc::invalid, name + ": has to be a map, and is " +
                                  config::name_with_article(document.root.type) +
                                  "\nhint: lines of the form KEY: VALUE, or a JSON object"};
  return config::to_value(document.root);
}

result<std::string> password_in(const std::string& file) {
  std::ifstream in(file);
  std::string password;
  if (!in || !std::getline(in, password))
    return error{errc::invalid, file + ": cannot be read\nhint: its first line is the password"};
  if (password.ends_with('\r'))
    password.pop_back();
  return password;
}

result<value> account_in(const std::string& text) {
  const auto parts = parts_of(text, ':');
  if (parts.size() != 4 || !is_number(parts[0]) || !is_number(parts[1]) || parts[2].empty() ||
      parts[3].empty())
    return error{errc::invalid, "--account '" + text + "': expected UID:GID:USER:GROUP, all four" +
                                  "\nhint: --account 1000:1000:ann:users"};
  return value{{"agentUid", std::stoll(parts[0])},
               {"agentGid", std::stoll(parts[1])},
               {"agentUser", parts[2]},
               {"agentGroup", parts[3]}};
}

std::vector<std::string> changed_labels(const value& now, const arguments& given, const char* add,
                                        const char* remove) {
  std::vector<std::string> labels;
  for (const auto& one : now)
    labels.push_back(one);
  for (const auto& one : given.all(remove))
    std::erase(labels, one);
  for (const auto& one : given.all(add))
    if (std::find(labels.begin(), labels.end(), one) == labels.end())
      labels.push_back(one);
  return labels;
}

result<value> changed_metadata(value now, const arguments& given) {
  if (!now.is_object())
    now = value::object();
  for (const auto& key : given.all("--remove-metadata"))
    now.erase(key);
  for (const auto& one : given.all("--metadata")) {
    const auto equals = one.find('=');
    if (equals == one.npos || equals == 0)
      return error{errc::invalid,
                   "--metadata takes KEY=VALUE, not '" + one + "'\nhint: --metadata accuracy=0.93"};
    const auto text = one.substr(equals + 1);
    const auto read = config::read_document(text, "--metadata");
    if (!read.faults.empty())
      return error{errc::invalid, "--metadata " + one + ": " + read.faults.front().message};
    now[one.substr(0, equals)] = text.empty() ? value("") : config::to_value(read.root);
  }
  return now;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

bool wants_thing(const arguments& given) {
  return given.has("--output") || given.has("--columns") || given.has("--no-header") || given.has("--quiet");
}

bool is_card(const output_options& options) {
  return options.format == output_format::table && !options.quiet && options.columns.empty();
}

int print_list(session& s, const std::string& path, const char* key, const std::vector<column>& columns,
               const client::query& with) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto rows = (*cluster)->list(path, key, with);
  return rows ? s.print(show_rows(*rows, columns, s.output())) : s.fail(rows.error());
}

int print_below(session& s, const char* title, const value& rows, const std::vector<column>& columns) {
  const auto options = s.output();
  if (!is_card(options) || rows.empty())
    return exit_done;
  s.io.out << "\n" << painted(title, paint::bold, s.io.screen) << "\n";
  return s.print(show_rows(rows, columns, options));
}

int print_deed(session& s, const result<deed>& did, const std::vector<column>& columns) {
  if (!did)
    return s.fail(did.error());
  if (wants_thing(s.given))
    return s.print(show_one(did->thing, columns, s.output()));
  if (!did->line.empty())
    s.io.out << did->line << "\n";
  return exit_done;
}

} // namespace troupe::cli

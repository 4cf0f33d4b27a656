#include "model/commands/table.hpp"

#include <cstring>

namespace troupe::commands {
namespace {

template <command C>
result<value> checked(value given, reading how) {
  auto x = read<C>(C::is.name, std::move(given), how);
  return x ? result<value>(write(std::move(*x))) : x.error();
}

template <command... Cs>
std::vector<row> rows_of(list<Cs...>) {
  return {row{Cs::is, field_rows<Cs>(), checked<Cs>}...};
}

std::string fields_text(const row& x) {
  std::string out;
  for (const auto& f : x.fields)
    out += (out.empty() ? "`" : ", `") + std::string(f.rules.name) + "`" + (f.rules.required ? "" : "?") +
           ": " + f.type;
  return out.empty() ? "-" : out;
}

/// "An operator says `kill` to experiment.", or an empty text.
std::string spoken_text(const row& x) {
  std::string kinds;
  for (const char* one : x.is.operators.kinds)
    if (one)
      kinds += (kinds.empty() ? "" : ", ") + std::string(std::strcmp(one, "*") == 0 ? "every actor" : one);
  return kinds.empty() ? ""
                       : " An operator says `" + std::string(x.is.operators.word) + "` to " + kinds + ".";
}

} // namespace

const char* name(repeat x) {
  switch (x) {
  case repeat::question:
    return "a question";
  case repeat::safe:
    return "safe";
  case repeat::by_key:
    return "safe with a key";
  case repeat::again:
    return "again";
  }
  return "";
}

const char* name(taker x) {
  switch (x) {
  case taker::cluster:
    return "cluster";
  case taker::trial:
    return "trial/N";
  case taker::allocation:
    return "allocation/N.R";
  case taker::journal:
    return "journal";
  case taker::configuration:
    return "node";
  case taker::desk:
    return "desk";
  case taker::inspector:
    return "inspector";
  case taker::actor:
    return "the actor";
  case taker::task:
    return "task/ID";
  }
  return "";
}

const std::vector<row>& table() {
  static const auto made = rows_of(all_commands{});
  return made;
}

const row* find(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const row*> out;
    for (const auto& one : table())
      out.emplace(one.is.name, &one);
    return out;
  }();
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

bool spoken_to(const row& x, const std::string& kind) {
  for (const char* one : x.is.operators.kinds)
    if (one && (kind == one || std::strcmp(one, "*") == 0))
      return true;
  return false;
}

const row* find_spoken(const std::string& kind, const std::string& word) {
  for (const auto& one : table())
    if (word == one.is.operators.word && spoken_to(one, kind))
      return &one;
  return nullptr;
}

std::vector<std::string> choices(std::string_view command, std::string_view field) {
  std::vector<std::string> out;
  if (const auto* known = find(command))
    for (const auto& f : known->fields)
      if (field == f.rules.name && f.schema.contains("enum"))
        for (const auto& one : f.schema["enum"])
          out.push_back(one);
  return out;
}

std::string command_page() {
  std::string out =
    "## Commands\n\n"
    "What `client_command`, `task_call`, `shell_call`, `inspect_request` and the API carry by name; made "
    "from the table in\n"
    "`model/commands/table.hpp`. `?` marks fields that may be missing. **Needs** is the right that "
    "`model/authority` checks.\n\n"
    "| command | to | fields | answers | needs | repeat? | what it does |\n|---|---|---|---|---|---|---|\n";
  for (const auto& x : table())
    out += "| " + std::string(x.is.name) + " | " + name(x.is.by) + " | " + fields_text(x) + " | " +
           x.is.answers + " | " + authority::name(x.is.right.what) + " " + authority::name(x.is.right.on) +
           " (" + authority::who_may(x.is.right) + ") | " + name(x.is.again) + " | " + x.is.sentence +
           spoken_text(x) + " |\n";
  return out;
}

} // namespace troupe::commands

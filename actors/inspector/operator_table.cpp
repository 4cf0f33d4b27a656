#include "actors/inspector/operator_table.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace troupe {
namespace {

using field = operator_field;

std::string kinds_text(const operator_message& m, const char* glue) {
  std::string out;
  for (const char* kind : m.kinds)
    out += (out.empty() ? "" : glue) + std::string(std::strcmp(kind, "*") == 0 ? "every kind" : kind);
  return out;
}

bool takes(const operator_message& m, const std::string& kind) {
  return std::any_of(m.kinds.begin(), m.kinds.end(),
                     [&](const char* k) { return kind == k || std::strcmp(k, "*") == 0; });
}

result<value> typed(const operator_message& m, const field& f, const value& given) {
  const error wrong{errc::invalid, std::string(m.name) + ": the field '" + f.name + "' has to be a " +
                                     name(f.is) + ", not " + to_json(given).substr(0, 100)};
  switch (f.is) {
  case field::type::text:
    return given.is_string()       ? result<value>(given)
           : given.is_structured() ? result<value>(wrong)
                                   : result<value>(to_json(given));
  case field::type::number: {
    if (given.is_number())
      return given;
    double number = 0;
    const auto text = given.is_string() ? given.get<std::string>() : std::string();
    auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || fault != std::errc{} || end != text.data() + text.size())
      return wrong;
    return value(number);
  }
  case field::type::flag:
    if (given.is_boolean())
      return given;
    if (given == "true" || given == "on" || given == "yes")
      return value(true);
    if (given == "false" || given == "off" || given == "no")
      return value(false);
    return wrong;
  case field::type::object: {
    if (given.is_object())
      return given;
    auto read = given.is_string() ? parse_json(given.get<std::string>()) : result<value>(wrong);
    return read && read->is_object() ? read : result<value>(wrong);
  }
  }
  return wrong;
}

} // namespace

const char* name(operator_field::type type) {
  switch (type) {
  case field::type::text:
    return "text";
  case field::type::number:
    return "number";
  case field::type::flag:
    return "flag";
  case field::type::object:
    return "object";
  }
  return "text";
}

const std::vector<operator_message>& operator_messages() {
  static const std::vector<operator_message> table = {
    {"ping", {"*"}, {}, false, "Answers how long the message waited in the mailbox."},
    {"activate", {"experiment"}, {}, true, "Lets a paused experiment go on."},
    {"pause", {"experiment"}, {}, true, "Its trials save a checkpoint and leave their slots."},
    {"cancel", {"experiment"}, {}, true, "Ends it; its trials save a checkpoint first."},
    {"kill", {"experiment", "trial"}, {}, true, "Ends it at once; what its run has not saved is lost."},
    {"preempt",
     {"allocation", "trial"},
     {},
     true,
     "Its script is asked to save and leave, as when its slots are wanted; the trial runs again. Of a "
     "trial: its open run."},
    {"validate",
     {"worker", "allocation", "trial"},
     {},
     true,
     "The ranks of a trial in C++ validate after the batch at hand, besides their schedule. Answers how many "
     "were told."},
    {"checkpoint",
     {"worker", "allocation", "trial"},
     {},
     true,
     "The ranks of a trial in C++ save a checkpoint after the batch at hand, besides their schedule. Answers "
     "how many were told."},
    {"set_metadata",
     {"trial"},
     {{"metadata", field::type::object, true, "replaces what the trial has"}},
     true,
     "Notes metadata of the trial; answered once durable."},
    {"drain",
     {"agent"},
     {{"on", field::type::flag, false, "false takes it back; true unless said"}},
     true,
     "Nothing new is placed on this agent; what runs there goes on."},
    {"describe", {"pool"}, {}, false, "Its slots in numbers, who holds them and who waits."},
    {"status", {"cluster"}, {}, false, "Slots, agents and running experiments in numbers."},
    {"clean_logs",
     {"cluster", "retention"},
     {},
     true,
     "Erases the logs of ended trials whose log_retention_days are over."},
    {"flush", {"journal"}, {}, true, "Commits what is queued, now."},
    {"save", {"searcher"}, {}, false, "Answers the size of the search's state."},
    {"redial", {"agent_node"}, {}, true, "Looks for the master now, where the link is down."},
  };
  return table;
}

result<const operator_message*> find_operator_message(const std::string& kind, const std::string& wanted) {
  std::string known;
  for (const auto& m : operator_messages())
    if (takes(m, kind)) {
      if (wanted == m.name)
        return &m;
      known += (known.empty() ? "" : ", ") + std::string(m.name);
    }
  return error{errc::invalid, "the field 'message': an actor of the kind " + kind + " takes no '" +
                                wanted.substr(0, 100) + "'\nhint: it takes " + known};
}

result<value> checked_fields(const operator_message& m, const value& given) {
  if (!given.is_null() && !given.is_object())
    return error{errc::invalid, std::string(m.name) + ": 'fields' has to be an object"};
  value out = value::object();
  if (given.is_object())
    for (const auto& [key, x] : given.items()) {
      auto it =
        std::find_if(m.fields.begin(), m.fields.end(), [&key = key](const auto& f) { return key == f.name; });
      if (it == m.fields.end()) {
        std::string known;
        for (const auto& f : m.fields)
          known += (known.empty() ? "its fields are " : ", ") + std::string(f.name);
        return error{errc::invalid, std::string(m.name) + ": no field '" + key.substr(0, 100) + "'; " +
                                      (known.empty() ? "it has none" : known)};
      }
      auto one = typed(m, *it, x);
      if (!one)
        return one.error();
      out[key] = std::move(*one);
    }
  for (const auto& f : m.fields)
    if (f.required && !out.contains(f.name))
      return error{errc::invalid,
                   std::string(m.name) + ": the field '" + f.name + "' is missing (" + f.doc + ")"};
  return out;
}

value operator_message_rows() {
  value rows = value::array();
  for (const auto& m : operator_messages()) {
    value kinds = value::array(), fields = value::array();
    for (const char* kind : m.kinds)
      kinds.push_back(kind);
    for (const auto& f : m.fields)
      fields.push_back({{"name", f.name}, {"type", name(f.is)}, {"required", f.required}, {"doc", f.doc}});
    rows.push_back({{"name", m.name},
                    {"kinds", kinds},
                    {"fields", fields},
                    {"permission", m.acts ? "operator" : "user"},
                    {"doc", m.doc}});
  }
  return rows;
}

std::string operator_message_page() {
  std::string out =
    "## By an operator\n\n"
    "What the shell's `send` delivers; made from the table in `actors/inspector/operator_table.cpp`.\n\n"
    "| name | actors | fields | who may | what it does |\n|---|---|---|---|---|\n";
  for (const auto& m : operator_messages()) {
    std::string fields;
    for (const auto& f : m.fields)
      fields += (fields.empty() ? "" : "; ") + std::string(f.name) + ": " + name(f.is) +
                (f.required ? "" : ", optional") + ", " + f.doc;
    out += "| " + std::string(m.name) + " | " + kinds_text(m, ", ") + " | " +
           (fields.empty() ? "-" : fields) + " | " + (m.acts ? "operator" : "user") + " | " + m.doc + " |\n";
  }
  return out;
}

} // namespace troupe

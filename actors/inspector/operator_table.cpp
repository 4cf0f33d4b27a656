#include "actors/inspector/operator_table.hpp"

#include <algorithm>

namespace troupe {
namespace {

bool is_implied(const commands::row& m, std::string_view field) {
  const auto& all = m.is.operators.implied;
  return std::any_of(all.begin(), all.end(), [&](const char* one) { return one && field == one; });
}

} // namespace

bool acts(const commands::row& message) { return message.is.again != commands::repeat::question; }

result<const commands::row*> find_operator_message(const std::string& kind, const std::string& word) {
  if (const auto* known = word.empty() ? nullptr : commands::find_spoken(kind, word))
    return known;
  std::string takes;
  for (const auto& m : commands::table())
    if (spoken_to(m, kind))
      takes += (takes.empty() ? "" : ", ") + std::string(m.is.operators.word);
  return error{errc::invalid, "the field 'message': an actor of the kind " + kind + " takes no '" +
                                word.substr(0, 100) + "'\nhint: it takes " + takes};
}

result<value> checked_fields(const commands::row& m, value given, const std::string& actor_id) {
  if (given.is_null())
    given = value::object();
  if (!given.is_object())
    return error{errc::invalid, std::string(m.is.operators.word) + ": 'fields' has to be an object"};
  std::vector<const char*> known;
  for (const auto& f : m.fields)
    if (!is_implied(m, f.rules.name))
      known.push_back(f.rules.name);
  for (const auto& [key, x] : given.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return commands::detail::unknown_field(m.is.operators.word, key, known);
  if (const char* name = m.is.operators.implied[0])
    given[name] = actor_id;
  return m.checked(std::move(given), {.numbers_as_text = true, .known_only = true});
}

value operator_message_rows() {
  value rows = value::array();
  for (const auto& m : commands::table()) {
    if (!*m.is.operators.word)
      continue;
    value kinds = value::array(), fields = value::array();
    for (const char* kind : m.is.operators.kinds)
      if (kind)
        kinds.push_back(kind);
    for (const auto& f : m.fields)
      if (!is_implied(m, f.rules.name))
        fields.push_back(
          {{"name", f.rules.name}, {"type", f.type}, {"required", f.rules.required}, {"doc", f.rules.doc}});
    rows.push_back({{"name", m.is.operators.word},
                    {"kinds", kinds},
                    {"fields", fields},
                    {"permission", acts(m) ? "operator" : "user"},
                    {"doc", m.is.sentence}});
  }
  return rows;
}

} // namespace troupe

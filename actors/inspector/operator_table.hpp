#pragma once
// The messages that an operator may send to an actor by the shell: the one table behind `send`, its
// completion and the last section of docs/messages.md. Pure; shell_desk_actor.cpp delivers them.

#include "model/value.hpp"

#include <string>
#include <vector>

namespace troupe {

struct operator_field {
  const char* name;
  enum class type { text, number, flag, object } is = type::text;
  bool required = false;
  const char* doc = "";
};

struct operator_message {
  const char* name;
  std::vector<const char*> kinds; ///< of actors: "trial"; "*": every kind
  std::vector<operator_field> fields;
  bool acts = true; ///< it changes something: for operators (admins) only, and in the audit log
  const char* doc = "";
};

const std::vector<operator_message>& operator_messages();
const char* name(operator_field::type type);

/// errc::not_found where actors of `kind` take no such message; the text lists those that they do.
result<const operator_message*> find_operator_message(const std::string& kind, const std::string& name);
/// `given` as the table wants it; text that reads as a number or flag is taken for one. errc::invalid names
/// the field.
result<value> checked_fields(const operator_message& message, const value& given);

/// The table as rows for clients.
value operator_message_rows();
/// The table as the section of docs/messages.md, from its heading to its last line.
std::string operator_message_page();

} // namespace troupe

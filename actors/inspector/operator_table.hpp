#pragma once
// The messages that an operator may send to an actor from the shell: the rows of model/commands/table.hpp
// that have a word. `send` and its completion use them. Pure; shell_desk_actor.cpp delivers the messages.

#include "model/commands/table.hpp"

namespace troupe {

/// Whether the message changes something: then only operators (admins) may send it, and the audit log gets a
/// row.
bool acts(const commands::row& message);

/// Fails with errc::invalid if actors of `kind` take no such message; the text lists the messages that they
/// take.
result<const commands::row*> find_operator_message(const std::string& kind, const std::string& word);

/// Returns the fields as the command expects them: the fields that an operator has given, and those that
/// follow from the actor's id. Text that reads as a number or flag becomes one. Fails with errc::invalid and
/// names the field.
result<value> checked_fields(const commands::row& message, value given, const std::string& actor_id);

/// The messages as rows for clients.
value operator_message_rows();

} // namespace troupe

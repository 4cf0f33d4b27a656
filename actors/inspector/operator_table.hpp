#pragma once
// The messages that an operator may send to an actor by the shell: the rows of model/commands/table.hpp that
// have a word. Behind `send` and its completion. Pure; shell_desk_actor.cpp delivers them.

#include "model/commands/table.hpp"

namespace troupe {

/// It changes something: for operators (admins) only, and in the audit log.
bool acts(const commands::row& message);

/// errc::invalid where actors of `kind` take no such message; the text lists those that they do.
result<const commands::row*> find_operator_message(const std::string& kind, const std::string& word);

/// The fields that an operator has given, and those that the actor's id implies, as the command wants them;
/// text that reads as a number or flag is taken for one. errc::invalid names the field.
result<value> checked_fields(const commands::row& message, value given, const std::string& actor_id);

/// The messages as rows for clients.
value operator_message_rows();

} // namespace troupe

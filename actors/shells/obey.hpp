#pragma once
// How an actor obeys a command by its name: the table (model/commands/table.hpp) reads the command's struct,
// which the actor's own function for it then gets.

#include "actors/messages.hpp"
#include "model/commands/table.hpp"

#include <caf/result.hpp>

namespace troupe {

/// Calls `take` with the struct of `List` that has this name. Refuses the command if a field is wrong, or if
/// the list has no such command.
template <class List, class F>
caf::result<command_result> obey(const std::string& name, value fields, F take, commands::reading how = {}) {
  auto done =
    commands::dispatch<caf::result<command_result>, List>(name, std::move(fields), std::move(take), how);
  return done ? std::move(*done) : caf::result<command_result>(refused(done.error()));
}

template <commands::command C>
client_command client_command_of(C order, std::string user = {}, bool admin = false,
                                 std::string allocation = {}) {
  return {std::move(user), admin, std::move(allocation), C::is.name, commands::write(std::move(order))};
}

template <commands::command C>
task_call task_call_of(allocation_id to, C order) {
  return {to, C::is.name, commands::write(std::move(order))};
}

} // namespace troupe

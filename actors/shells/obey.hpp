#pragma once
// How an actor takes a command by name: the struct is read by the table (model/commands/table.hpp) and given
// to the actor's own function for it.

#include "actors/messages.hpp"
#include "model/commands/table.hpp"

#include <caf/result.hpp>

namespace troupe {

/// `take` is called with the struct of `List` that `name` stands for. Refused where a field is wrong, or
/// where the list has no such command.
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

#pragma once
// What the commands of the table do, by file.

#include "runtime/shell/session.hpp"

namespace troupe::shell::actions {

// look.cpp
outcome nodes(session&, const given&);
outcome ps(session&, const given&);
outcome info(session&, const given&);
outcome tree(session&, const given&);
outcome state(session&, const given&);
outcome msgs(session&, const given&);
outcome stats(session&, const given&);
outcome links(session&, const given&);
outcome who_waits(session&, const given&);
outcome log(session&, const given&);
// streams.cpp
outcome events(session&, const given&);
outcome trace(session&, const given&);
outcome follow(session&, const given&);
// top.cpp
outcome top(session&, const given&);
// act.cpp
outcome send(session&, const given&);
outcome kill(session&, const given&);
outcome restart(session&, const given&);
outcome config_set(session&, const given&);
outcome drain(session&, const given&);
outcome fault(session&, const given&);
// settings.cpp
outcome help(session&, const given&);
outcome quit(session&, const given&);
outcome cd(session&, const given&);
outcome source(session&, const given&);
outcome as_table(session&, const given&);
outcome as_json(session&, const given&);
outcome as_csv(session&, const given&);
outcome as_yaml(session&, const given&);
outcome read_write(session&, const given&);
outcome read_only(session&, const given&);
outcome attach(session&, const given&);
outcome unreachable_here(session&, const given&); ///< let, watch, repeat: statements, not commands

/// The columns of `ps`, also for `top`.
const std::vector<cli::column>& ps_columns();
/// The actor that a command names, or the one that `cd` chose; errc::invalid where there is none.
result<std::string> actor_of(session& s, const given& g, const std::string& command);
/// The rows of an answer {"rows", "missing"}, the missing nodes as notes.
answer rows_of(const value& body, std::vector<cli::column> columns);
/// "kind=trial" as key and value.
std::optional<std::pair<std::string, std::string>> pair_of(const std::string& word);

} // namespace troupe::shell::actions

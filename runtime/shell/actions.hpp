#pragma once
// The functions of the table's commands, by file.

#include "runtime/shell/session.hpp"

namespace troupe::shell::actions {

// look.cpp
outcome nodes(session&, const typed_words&);
outcome ps(session&, const typed_words&);
outcome info(session&, const typed_words&);
outcome tree(session&, const typed_words&);
outcome state(session&, const typed_words&);
outcome msgs(session&, const typed_words&);
outcome stats(session&, const typed_words&);
outcome links(session&, const typed_words&);
outcome who_waits(session&, const typed_words&);
outcome log(session&, const typed_words&);
// streams.cpp
outcome events(session&, const typed_words&);
outcome trace(session&, const typed_words&);
outcome follow(session&, const typed_words&);
// top.cpp
outcome top(session&, const typed_words&);
// act.cpp
outcome send(session&, const typed_words&);
outcome kill(session&, const typed_words&);
outcome restart(session&, const typed_words&);
outcome config_set(session&, const typed_words&);
outcome drain(session&, const typed_words&);
outcome fault(session&, const typed_words&);
// settings.cpp
outcome help(session&, const typed_words&);
outcome quit(session&, const typed_words&);
outcome cd(session&, const typed_words&);
outcome source(session&, const typed_words&);
outcome as_table(session&, const typed_words&);
outcome as_json(session&, const typed_words&);
outcome as_csv(session&, const typed_words&);
outcome as_yaml(session&, const typed_words&);
outcome read_write(session&, const typed_words&);
outcome read_only(session&, const typed_words&);
outcome attach(session&, const typed_words&);
outcome unreachable_here(session&, const typed_words&); ///< let, watch, repeat: statements, not commands

/// The columns of `ps`, which `top` uses too.
const std::vector<cli::column>& ps_columns();
/// The actor that a command names, or the one that `cd` chose. Fails with errc::invalid where there is none.
result<std::string> actor_of(session& s, const typed_words& g, const std::string& command);
/// The rows of an answer {"rows", "missing"}; the missing nodes become notes.
answer rows_of(const value& body, std::vector<cli::column> columns);
/// Splits "kind=trial" into key and value.
std::optional<std::pair<std::string, std::string>> pair_of(const std::string& word);

} // namespace troupe::shell::actions

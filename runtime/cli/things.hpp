#pragma once
// Things that people name (workspaces, users, groups, ...): how they are found by a word, changed and shown.

#include "runtime/cli/session.hpp"

namespace troupe::cli {

// ---- found

/// The number under `key` as text; empty where it is missing.
std::string id_text(const value& thing, std::string_view key = "id");
/// The row of the list at `path` whose `name` is this word, or, where the word is a number, whose `id` it is.
/// Fails with errc::not_found and the verb that lists them.
result<value> named(client::server& cluster, const std::string& path, const std::string& key,
                    const std::string& what, const std::string& word, const char* name = "name");
result<value> workspace_named(client::server& cluster, const std::string& word);
/// A project by its number or "WORKSPACE/NAME".
result<value> project_named(client::server& cluster, const std::string& word);
result<value> user_named(client::server& cluster, const std::string& word);
/// {id, name, numMembers} of each group that the caller sees.
result<value> groups(client::server& cluster);
result<value> group_named(client::server& cluster, const std::string& word);
result<value> roles(client::server& cluster);
result<value> role_named(client::server& cluster, const std::string& word);
result<value> webhook_named(client::server& cluster, const std::string& word);
/// The part of GET's answer under `key`.
result<value> thing_at(client::server& cluster, const std::string& path, const char* key);

// ---- read from the command line

/// Fails with errc::invalid where both options are given.
result<void> not_both(const arguments& given, const char* one, const char* other);
/// The map in the file's YAML or JSON; "-" is standard input. Fails with errc::invalid and the place of each
/// fault.
result<value> map_in(session& s, const std::string& file);
/// The first line of the file.
result<std::string> password_in(const std::string& file);
/// "UID:GID:USER:GROUP" as {agentUid, agentGid, agentUser, agentGroup}.
result<value> account_in(const std::string& text);
/// `now` without the labels of the option `remove`, then with those of `add`, each once.
std::vector<std::string> changed_labels(const value& now, const arguments& given, const char* add,
                                        const char* remove);
/// `now` with each KEY=VALUE of --metadata, the value as YAML, and without the keys of --remove-metadata.
result<value> changed_metadata(value now, const arguments& given);
std::string upper(std::string text);

// ---- shown

/// Whether an output option is given: then the thing is printed, not the line that says what was done.
bool wants_thing(const arguments& given);
/// Whether it is a table for people, below which others may follow.
bool is_card(const output_options& options);
int print_list(session& s, const std::string& path, const char* key, const std::vector<column>& columns,
               const client::query& with = {});
/// Prints rows below a card, after a blank line and a title; nothing where there are none, or where they are
/// not wanted.
int print_below(session& s, const char* title, const value& rows, const std::vector<column>& columns);

/// What was done, and the thing as the cluster then answers it.
struct deed {
  std::string line; ///< "workspace 7"
  value thing;
};
int print_deed(session& s, const result<deed>& did, const std::vector<column>& columns);
/// Calls `act` with the cluster, and prints the deed that it returns, or the error.
template <class Act>
int act_on(session& s, const std::vector<column>& columns, const Act& act) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  const result<deed> did = act(**cluster);
  return print_deed(s, did, columns);
}

} // namespace troupe::cli

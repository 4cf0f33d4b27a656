#pragma once
// The steps that make accounts and named tokens equal to what a configuration says.

#include "model/value.hpp"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::node {

struct known_account {
  bool admin = false, active = true;
  /// Whether the password that came with the configuration, if any, is already this account's password.
  bool password_fits = true;
};

/// A token that the configuration no longer names: its session ends and its file is removed.
struct drop_token {
  std::string user, name;
  friend bool operator==(const drop_token&, const drop_token&) = default;
};
/// The account is made inactive; as in Determined, an account is never deleted.
struct dismiss_user {
  std::string user;
  friend bool operator==(const dismiss_user&, const dismiss_user&) = default;
};
/// The account gets the password that came with the configuration, or otherwise a blank one.
struct make_user {
  std::string user;
  bool admin = false;
  friend bool operator==(const make_user&, const make_user&) = default;
};
struct change_user {
  std::string user;
  bool new_password = false; ///< whether the account gets the password that came with the configuration
  std::optional<bool> active, admin;
  friend bool operator==(const change_user&, const change_user&) = default;
};
/// The token is made anew if its file is missing or no longer valid: a session that lives for `expires`,
/// opened with the user's password.
struct keep_token {
  std::string user, name, expires;
  friend bool operator==(const keep_token&, const keep_token&) = default;
};
using settling_step = std::variant<drop_token, dismiss_user, make_user, change_user, keep_token>;

bool is_built_in(const std::string& user);

/// Returns the steps in the order in which they have to be done. `wanted` (checked) lists the users that the
/// configuration makes, `before` those of the configuration until now; `accounts` holds all accounts;
/// `passwords` has the passwords by name; `prune` names accounts that were made by hand and are to be
/// dismissed. The role of a built-in account is never changed, and a built-in account is never dismissed.
std::vector<settling_step> settling_steps(const value& before, const value& wanted,
                                          std::map<std::string, known_account> accounts,
                                          const value& passwords, const std::vector<std::string>& prune);

// Read a list, text or named member of a configuration: empty or null if there is none.
const value& list_in(const value& x, const char* key);
std::string text_in(const value& x, const std::string& key);
const value* named_in(const value& list, const std::string& name);

} // namespace troupe::node

#pragma once
// What has to be done so that accounts and named tokens are as a configuration has them.

#include "model/value.hpp"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::node {

struct known_account {
  bool admin = false, active = true;
  bool password_fits =
    true; ///< the password that came with the configuration, if any, is this account's already
};

/// A token that the configuration names no longer: its session ends, its file goes.
struct drop_token {
  std::string user, name;
  friend bool operator==(const drop_token&, const drop_token&) = default;
};
/// As in Determined, an account is never deleted.
struct dismiss_user {
  std::string user;
  friend bool operator==(const dismiss_user&, const dismiss_user&) = default;
};
/// With the password that came with the configuration, else a blank one.
struct make_user {
  std::string user;
  bool admin = false;
  friend bool operator==(const make_user&, const make_user&) = default;
};
struct change_user {
  std::string user;
  bool new_password = false; ///< the one that came with the configuration
  std::optional<bool> active, admin;
  friend bool operator==(const change_user&, const change_user&) = default;
};
/// Made anew where its file is missing or void; a session of `expires`, opened with the user's password.
struct keep_token {
  std::string user, name, expires;
  friend bool operator==(const keep_token&, const keep_token&) = default;
};
using settling_step = std::variant<drop_token, dismiss_user, make_user, change_user, keep_token>;

bool is_built_in(const std::string& user);

/// In the order in which to do them. Of users, `wanted` (checked) says whom the configuration makes, `before`
/// whom it made until now; `accounts` holds all there are; `passwords` by name; `prune` names accounts that
/// were made by hand and shall go. A role of a built-in account is never changed, and none of them is
/// dismissed.
std::vector<settling_step> settling_steps(const value& before, const value& wanted,
                                          std::map<std::string, known_account> accounts,
                                          const value& passwords, const std::vector<std::string>& prune);

// A configuration's maps and lists as they are read: empty where there is none.
const value& list_in(const value& x, const char* key);
std::string text_in(const value& x, const std::string& key);
const value* named_in(const value& list, const std::string& name);

} // namespace troupe::node

#pragma once
// Users, their tokens, the configuration in force and operators' settings: who may change what into what is
// decided here; whether the caller has the right is decided before. Pure. The cluster's actor is its shell:
// its facts stand in the stream "cluster".
//
// Hashes of passwords are not here: a user's `password` is the name of one (runtime/api/accounts.hpp).

#include "actors/machine.hpp"
#include "model/commands/house_commands.hpp"

#include <optional>

namespace troupe {

using commands::user_wish;

/// Not thread-safe: one actor owns it. `by` is the name of the user who asks.
class catalogue {
public:
  using decided = result<std::vector<catalogue_fact>>;

  /// errc::invalid where the name is taken, or has characters that URLs and environments cannot hold.
  [[nodiscard]] decided make_user(const user_wish& wanted, const std::string& by, time_point now);
  /// No fact where nothing changes. errc::not_found, errc::invalid as above. A new password and a
  /// deactivation end all tokens of the user.
  [[nodiscard]] decided change_user(user_id id, const user_wish& wanted, const std::string& by,
                                    time_point now);

  /// Gives a token of `wanted.user` its name: another one of that name is revoked. errc::not_found where
  /// there is no such user.
  [[nodiscard]] decided name_token(token_changed wanted);
  /// No fact where it is revoked already, or void anyway.
  [[nodiscard]] decided revoke_token(token_changed wanted);

  /// The token's number is in the fact. errc::not_found where there is no such user, errc::invalid for one
  /// who is not active, or who has too many.
  [[nodiscard]] decided make_access_token(const commands::token_create& wanted, const std::string& by,
                                          time_point now);
  /// errc::not_found; errc::invalid where it is void already.
  [[nodiscard]] decided change_access_token(const commands::token_change& wanted, const std::string& by,
                                            time_point now);

  /// errc::conflict where `revision` is not that of the configuration in force (0: none is). No fact where it
  /// is in force already.
  [[nodiscard]] decided configure(value wanted, std::uint64_t revision, const std::string& by,
                                  time_point now);
  /// No fact where the key has that value already. Which keys there are, and what they may be, the shell's
  /// desk knows.
  [[nodiscard]] decided set(const std::string& key, const value& to, const std::string& by, time_point now);

  void replay(const catalogue_fact& fact);
  void replay(const cluster_fact& fact); ///< those of other machines change nothing

  const std::map<user_id, user_changed>& users() const { return users_; }
  /// The present name of the user that has this name, or had it; `owner` itself where there is none.
  std::string now_named(const std::string& owner) const;
  const std::map<std::string, token_changed>& tokens() const {
    return tokens_;
  } ///< by id; void ones may lack
  const std::map<std::string, setting_changed>& settings() const { return settings_; }
  const configuration_changed& configuration() const { return configuration_; } ///< revision 0: none
  std::string snapshot() const;
  value describe() const; ///< the state, for people

private:
  result<void> check_name(const std::string& name, user_id of) const;
  result<void> check_display_name(const std::string& name, user_id of) const;
  result<void> check_rest(const user_wish& wanted, user_id of) const;
  std::vector<catalogue_fact> note(catalogue_fact fact);

  std::map<user_id, user_changed> users_;
  std::map<std::string, user_id> former_; ///< names that users had, folded: nobody else may take them
  std::map<std::string, token_changed> tokens_;
  std::map<std::string, setting_changed> settings_;
  configuration_changed configuration_;
  std::uint64_t newest_access_token_ = 0;
};

} // namespace troupe

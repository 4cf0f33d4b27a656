#pragma once
// Users, their tokens, the configuration in force, and the settings of operators. The machine decides which
// changes of these are possible; the right of the caller is checked before. Pure. The cluster's actor is the
// shell; the facts stand in the stream "cluster".
//
// Hashes of passwords are not here: `password` of a user is the name of a hash (runtime/api/accounts.hpp).

#include "actors/machine.hpp"
#include "model/commands/house_commands.hpp"

#include <optional>

namespace troupe {

using commands::user_wish;

/// Not thread-safe: one actor owns the machine. `by` is the name of the user who asks.
class catalogue {
public:
  using decided = result<std::vector<catalogue_fact>>;

  /// Fails with errc::invalid where the name is taken, or has characters that URLs and environments cannot
  /// hold.
  [[nodiscard]] decided make_user(const user_wish& wanted, const std::string& by, time_point now);
  /// Gives no fact where nothing changes. Fails with errc::not_found, and with errc::invalid as above. A new
  /// password and a deactivation end all tokens of the user.
  [[nodiscard]] decided change_user(user_id id, const user_wish& wanted, const std::string& by,
                                    time_point now);

  /// Gives a token of `wanted.user` a name; another token of the user with that name is revoked. Fails with
  /// errc::not_found where there is no such user.
  [[nodiscard]] decided name_token(token_changed wanted);
  /// Gives no fact where the token is revoked already, or is not valid anyway.
  [[nodiscard]] decided revoke_token(token_changed wanted);

  /// The fact has the number of the new token. Fails with errc::not_found where there is no such user, and
  /// with errc::invalid for a user who is not active or has too many tokens.
  [[nodiscard]] decided make_access_token(const commands::token_create& wanted, const std::string& by,
                                          time_point now);
  /// Fails with errc::not_found, and with errc::invalid where the token is no longer valid.
  [[nodiscard]] decided change_access_token(const commands::token_change& wanted, const std::string& by,
                                            time_point now);

  /// Fails with errc::conflict where `revision` is not that of the configuration in force (0: there is none).
  /// Gives no fact where `wanted` is in force already.
  [[nodiscard]] decided configure(value wanted, std::uint64_t revision, const std::string& by,
                                  time_point now);
  /// Gives no fact where the key has that value already. The desk of the shell knows the keys and their
  /// possible values.
  [[nodiscard]] decided set(const std::string& key, const value& to, const std::string& by, time_point now);

  void replay(const catalogue_fact& fact);
  void replay(const cluster_fact& fact); ///< facts of other machines change nothing

  const std::map<user_id, user_changed>& users() const { return users_; }
  /// The present name of the user who has or had the name `owner`; `owner` itself where there is none.
  std::string now_named(const std::string& owner) const;
  /// Tokens by id; tokens that are no longer valid may be missing.
  const std::map<std::string, token_changed>& tokens() const { return tokens_; }
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
  std::map<std::string, user_id> former_; ///< case-folded old names, which no other user may take
  std::map<std::string, token_changed> tokens_;
  std::map<std::string, setting_changed> settings_;
  configuration_changed configuration_;
  std::uint64_t newest_access_token_ = 0;
};

} // namespace troupe

#pragma once
#include "model/account_name.hpp"
#include "model/chosen_name.hpp"
#include "model/commands/commands.hpp"

namespace troupe {

/// Checks a whole account of the hosts. Fails with errc::invalid for numbers that no account has, and for
/// names that a file of accounts cannot hold.
inline result<void> check_account(const commands::host_account& as) {
  constexpr std::int64_t most = 0xfffffffe; // the last number says "none"
  for (const auto& [key, number] : {std::pair{"agentUid", as.uid}, {"agentGid", as.gid}})
    if (number < 0 || number >= most)
      return error{errc::invalid, std::string("agentUserGroup: ") + key + ": " + std::to_string(number) +
                                    " is the number of no account: 0 to 4294967293"};
  for (const auto& [key, name] : {std::pair{"agentUser", as.user}, {"agentGroup", as.group}})
    if (auto fine = check_chosen_name(std::string("agentUserGroup: ") + key, name, 256);
        !fine || !is_account_name(name))
      return fine ? error{errc::invalid, std::string("agentUserGroup: ") + key + ": '" + name +
                                           "' is the name of no account: it has no colon, comma, slash or "
                                           "space, and begins with neither - nor +"}
                  : fine.error();
  return {};
}

} // namespace troupe

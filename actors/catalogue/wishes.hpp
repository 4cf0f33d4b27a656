#pragma once
// What machines of the catalogue do with a wish: what it names becomes different, the rest stays.

#include "model/account_name.hpp"
#include "model/chosen_name.hpp"
#include "model/commands/commands.hpp"
#include "model/pack.hpp"
#include "model/time.hpp"

#include <optional>

namespace troupe {

template <class T>
void take(const std::optional<T>& wish, T& to) {
  if (wish)
    to = *wish;
}

/// Whether two facts say the same, but for who did it and when.
template <class Fact>
bool same(Fact a, const Fact& b) {
  a.at = b.at;
  a.by = b.by;
  return pack(a) == pack(b);
}

/// Whether `x` says something else than `old`; then it is `by`'s, of now.
template <class Fact>
bool differs(Fact& x, const Fact& old, const std::string& by, time_point now) {
  if (same(x, old))
    return false;
  x.at = now;
  x.by = by;
  return true;
}

/// An account of the hosts, whole: errc::invalid for numbers that none has, and names that could not stand in
/// a file of accounts.
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

#include "runtime/api/unix_account_in.hpp"

namespace troupe::api {

std::optional<commands::host_account> unix_account_in(fields& f) {
  if (!f.has("agentUserGroup"))
    return std::nullopt;
  fields g{f.object("agentUserGroup"), "agentUserGroup"};
  for (const char* key : {"agentUid", "agentGid", "agentUser", "agentGroup"})
    if (!g.has(key))
      g.fault(key, "is missing: an account has all four of agentUid, agentGid, agentUser, agentGroup");
  commands::host_account as{g.number("agentUid"), g.number("agentGid"), g.text("agentUser"),
                            g.text("agentGroup")};
  if (g.bad())
    f.fault("agentUserGroup", g.bad()->what);
  return as;
}

} // namespace troupe::api

#pragma once
// Lets the machines decide each command about people and rules. Pure. The right of the caller is checked
// before.

#include "actors/catalogue/house_rules.hpp"
#include "actors/catalogue/people.hpp"
#include "actors/catalogue/place_changes.hpp"

namespace troupe {

template <class Command>
result<place_change> decide(people& folk, house_rules& rules, const people::world& known, const Command& x,
                            const std::string& by, time_point now) {
  using namespace commands;
  using c = Command;
  if constexpr (requires { x.workspace.value; })
    if (x.workspace && !known.workspace(x.workspace))
      return error{errc::not_found, "workspace '" + to_string(x.workspace) + "' not found"};
  if constexpr (std::is_same_v<c, group_create>) {
    auto done = as_change(folk.make(x, known, by, now));
    if (done)
      done->answer["id"] = std::get<group_changed>(done->facts.back()).id.value;
    return done;
  } else if constexpr (std::is_same_v<c, group_change>) {
    return as_change(folk.change(x, known, by, now));
  } else if constexpr (std::is_same_v<c, group_remove>) {
    return as_change(folk.remove(x, by, now));
  } else if constexpr (std::is_same_v<c, role_assign>) {
    return as_change(folk.assign(x, known, by, now));
  } else if constexpr (std::is_same_v<c, user_set>) {
    return as_change(folk.set(x, known, by, now));
  } else if constexpr (std::is_same_v<c, project_visit>) {
    return as_change(folk.visit(x, now));
  } else if constexpr (std::is_same_v<c, policy_set>) {
    if (x.workspace && !x.policies.is_null())
      if (auto fine = known.takes(x.workspace); !fine)
        return fine.error();
    return as_change(rules.set(x, by, now));
  } else if constexpr (std::is_same_v<c, pool_bind>) {
    for (const auto id : x.workspaces)
      if (!known.workspace(id))
        return error{errc::not_found, "workspace '" + to_string(id) + "' not found"};
    return as_change(rules.bind(x, by, now));
  } else if constexpr (std::is_same_v<c, webhook_create>) {
    if (x.workspace)
      if (auto fine = known.takes(x.workspace); !fine)
        return fine.error();
    auto done = as_change(rules.make(x, by, now));
    if (done)
      done->answer["id"] = std::get<webhook_changed>(done->facts.back()).id.value;
    return done;
  } else if constexpr (std::is_same_v<c, webhook_change>) {
    return as_change(rules.change(x, by, now));
  } else if constexpr (std::is_same_v<c, webhook_remove>) {
    return as_change(rules.remove(x, by, now));
  } else if constexpr (std::is_same_v<c, cluster_message_set>) {
    return as_change(rules.say(x, by, now));
  } else if constexpr (std::is_same_v<c, log_retain>) {
    return as_change(rules.retain(x, by, now));
  } else {
    static_assert(std::is_same_v<c, trial_source_declare>);
    return as_change(rules.declare(x, by, now));
  }
}

} // namespace troupe

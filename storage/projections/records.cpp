// Folds facts that are rows without any change: the newest fact of each name, found by kind and name.

#include "storage/projections/projections.hpp"

namespace troupe::storage::projections {
namespace {

std::string number(std::uint64_t x) {
  std::string key;
  keys::add_number(key, x);
  return key;
}

std::string name_of(const log_retention_changed& x) {
  return number(x.experiment.value) + number(x.trial.value);
}
std::string name_of(const group_changed& x) { return number(x.id.value); }
std::string name_of(const roles_changed& x) {
  return number(static_cast<std::uint64_t>(x.role)) + number(x.workspace.value) + number(x.user.value) +
         number(x.group.value);
}
std::string name_of(const policy_changed& x) { return number(x.workspace.value) + x.kind; }
std::string name_of(const pool_bound& x) { return x.pool; }
std::string name_of(const webhook_changed& x) { return number(x.id.value); }
std::string name_of(const webhook_event& x) { return x.id; }
std::string name_of(const cluster_message_changed&) { return {}; }
std::string name_of(const user_setting_changed& x) { return number(x.user.value) + x.path + '\0' + x.key; }
std::string name_of(const project_visited& x) { return number(x.user.value) + number(x.project.value); }
std::string name_of(const trial_source_declared& x) { return x.checkpoint + number(x.trial.value); }

} // namespace

void fold_records(const fact& x, tables& rows) {
  std::visit(
    [&](const auto& one) {
      if constexpr (requires { name_of(one); })
        rows.records.make(keys::record(one.tag, name_of(one))) = encode(fact{one});
    },
    x);
}

} // namespace troupe::storage::projections

// Folds facts to the rows of users, tokens, settings and the configuration. Each row is its newest fact.

#include "storage/projections/projections.hpp"

namespace troupe::storage::projections {

void fold_catalogue(const fact& x, tables& rows) {
  if (const auto* user = std::get_if<user_changed>(&x))
    rows.users.make(user->id) = *user;
  else if (const auto* token = std::get_if<token_changed>(&x))
    rows.tokens.make(token->id) = *token;
  else if (const auto* configuration = std::get_if<configuration_changed>(&x))
    rows.configurations.make({}) = *configuration;
  else if (const auto* setting = std::get_if<setting_changed>(&x))
    rows.settings.make(setting->key) = *setting;
}

} // namespace troupe::storage::projections

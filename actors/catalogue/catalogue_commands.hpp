#pragma once
// Lets the machine decide each command that changes the catalogue (commands::catalogue_commands). Pure.

#include "actors/catalogue/catalogue.hpp"

namespace troupe {

struct catalogue_change {
  std::vector<catalogue_fact> facts;
  value answer = value::object(); ///< to be given once the facts are durable
};

// The right of `by` is checked before. Errors come from the machine.

result<catalogue_change> change(catalogue& machine, const commands::user_create& x, const std::string& by,
                                time_point now);
result<catalogue_change> change(catalogue& machine, const commands::user_change& x, const std::string& by,
                                time_point now);
result<catalogue_change> change(catalogue& machine, const commands::token_name& x, const std::string& by,
                                time_point now);
result<catalogue_change> change(catalogue& machine, const commands::token_revoke& x, const std::string& by,
                                time_point now);
result<catalogue_change> change(catalogue& machine, const commands::token_create& x, const std::string& by,
                                time_point now);
result<catalogue_change> change(catalogue& machine, const commands::token_change& x, const std::string& by,
                                time_point now);
result<catalogue_change> change(catalogue& machine, const commands::configuration_record& x,
                                const std::string& by, time_point now);
result<catalogue_change> change(catalogue& machine, const commands::setting_change& x, const std::string& by,
                                time_point now);

} // namespace troupe

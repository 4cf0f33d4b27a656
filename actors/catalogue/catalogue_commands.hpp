#pragma once
// The commands that change the catalogue (commands::catalogue_commands), each as the machine decides it.
// Pure.

#include "actors/catalogue/catalogue.hpp"

namespace troupe {

struct catalogue_change {
  std::vector<catalogue_fact> facts;
  value answer = value::object(); ///< once they are durable
};

// Whether `by` may is checked before. Errors are the machine's.

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

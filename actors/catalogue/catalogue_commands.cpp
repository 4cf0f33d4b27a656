#include "actors/catalogue/catalogue_commands.hpp"

namespace troupe {
namespace {

using outcome = result<catalogue_change>;

outcome noted(catalogue::decided facts) {
  return facts ? outcome(catalogue_change{std::move(*facts)}) : outcome(facts.error());
}

template <class Command>
token_changed token_of(const Command& x, const std::string& by, time_point now) {
  token_changed token;
  token.at = now;
  token.by = by;
  token.user = x.user;
  token.id = x.id;
  token.until = time_point{duration{x.until}};
  return token;
}

} // namespace

outcome change(catalogue& machine, const commands::user_create& x, const std::string& by, time_point now) {
  auto done = noted(machine.make_user(x, by, now));
  if (done)
    done->answer["id"] = std::get<user_changed>(done->facts.front()).id.value;
  return done;
}

outcome change(catalogue& machine, const commands::user_change& x, const std::string& by, time_point now) {
  return noted(machine.change_user(x.id, x, by, now));
}

outcome change(catalogue& machine, const commands::token_name& x, const std::string& by, time_point now) {
  auto token = token_of(x, by, now);
  token.name = x.name;
  return noted(machine.name_token(std::move(token)));
}

outcome change(catalogue& machine, const commands::token_revoke& x, const std::string& by, time_point now) {
  return noted(machine.revoke_token(token_of(x, by, now)));
}

outcome change(catalogue& machine, const commands::token_create& x, const std::string& by, time_point now) {
  auto done = noted(machine.make_access_token(x, by, now));
  if (done)
    done->answer["number"] = std::get<token_changed>(done->facts.front()).number;
  return done;
}

outcome change(catalogue& machine, const commands::token_change& x, const std::string& by, time_point now) {
  return noted(machine.change_access_token(x, by, now));
}

outcome change(catalogue& machine, const commands::configuration_record& x, const std::string& by,
               time_point now) {
  auto done = noted(machine.configure(x.configuration, x.revision, by, now));
  if (done)
    done->answer["revision"] = machine.configuration().revision;
  return done;
}

outcome change(catalogue& machine, const commands::setting_change& x, const std::string& by, time_point now) {
  return noted(machine.set(x.key, x.to, by, now));
}

} // namespace troupe

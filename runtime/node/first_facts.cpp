#include "runtime/node/first_facts.hpp"

#include "actors/inspector/shell_desk_actor.hpp"
#include "model/authority/roles.hpp"
#include "system/whole_file.hpp"

namespace troupe::node {
namespace {

constexpr const char* maker = "troupe";

result<std::optional<configuration_changed>> older_configuration(const std::filesystem::path& file,
                                                                 time_point now) {
  auto text = read_whole(file);
  if (!text)
    return text.error();
  if (!*text)
    return std::optional<configuration_changed>{};
  auto x = parse_json(**text);
  if (!x || !x->is_object() || !x->contains("configuration") || !x->contains("revision") ||
      !(*x)["revision"].is_number_unsigned())
    return error{errc::corrupt,
                 file.string() +
                   " does not decode\nhint: restore the file, or delete it and apply the cluster file again"};
  return std::optional{
    configuration_changed{now, maker, (*x)["revision"].get<std::uint64_t>(), (*x)["configuration"]}};
}

/// The settings that operators ordered when settings were not yet facts.
std::vector<catalogue_fact> older_settings(const std::filesystem::path& audit, time_point now) {
  std::vector<catalogue_fact> facts;
  for (const auto& order : standing_orders(audit))
    if (order.value("name", std::string()) == "config") {
      const auto fields = order.value("fields", value::object());
      facts.push_back(
        setting_changed{now, maker, fields.value("key", std::string()), fields.value("value", value())});
    }
  return facts;
}

} // namespace

result<std::unique_ptr<api::accounts>> open_accounts(storage::journal& journal,
                                                     const std::filesystem::path& folder,
                                                     api::accounts::options how, time_point now) {
  const auto reads = journal.reads();
  api::accounts::recorded known;
  auto users = reads->users();
  auto tokens = reads->tokens();
  for (const auto* fault : {users ? nullptr : &users.error(), tokens ? nullptr : &tokens.error()})
    if (fault)
      return *fault;
  known.users = std::move(*users);
  known.tokens = std::move(*tokens);
  const bool first_time = known.users.empty();
  if (!folder.empty()) {
    how.file = folder / "passwords";
    how.old_file = folder / "users";
  }
  auto accounts = api::accounts::open(how, now, known);
  if (!accounts)
    return accounts.error();
  auto facts = (*accounts)->take_first_facts();
  if (first_time && !folder.empty()) {
    auto configuration = older_configuration(folder / "configuration", now);
    if (!configuration)
      return configuration.error();
    if (*configuration)
      facts.push_back(std::move(**configuration));
    for (auto& setting : older_settings(folder / "audit", now))
      facts.push_back(std::move(setting));
  }
  if (!facts.empty()) {
    auto next = reads->next_of(cluster_entity);
    if (!next)
      return next.error();
    storage::append first{cluster_entity, *next, {}};
    for (const auto& one : facts)
      first.facts.push_back(encode_as(one));
    // Also where roles decide nothing yet: later, others may have the role, and `admin` would be given none.
    if (*next == 0)
      first.facts.push_back(encode(roles_changed{now, maker, authority::cluster_admin, user_id{1}, {}, {}}));
    if (auto ok = journal.append(first); !ok)
      return ok.error();
    if (auto ok = journal.commit(); !ok)
      return ok.error();
  }
  // After a crash before this, the next start removes the older files.
  if (!folder.empty())
    for (const char* older : {"users", "configuration"}) {
      std::error_code ignored;
      std::filesystem::remove(folder / older, ignored);
    }
  return std::move(*accounts);
}

} // namespace troupe::node

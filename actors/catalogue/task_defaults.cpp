#include "actors/catalogue/task_defaults.hpp"

#include "model/authority/authority.hpp"
#include "model/config/cluster_config.hpp"

namespace troupe {

sandbox_defaults task_defaults(const catalogue& records, const places& where, std::string_view pool,
                               workspace_id workspace, const std::string& owner) {
  auto of_pool = config::tasks_of_pool(records.configuration().configuration, pool);
  sandbox_defaults out{std::move(of_pool.work_dir), std::move(of_pool.startup_hook), {}};
  const auto take = [&out](const std::vector<unix_account>& as) {
    if (!out.account && !as.empty())
      out.account = {as[0].uid, as[0].gid, as[0].user, as[0].group};
  };
  if (const auto place = where.workspaces().find(workspace); place != where.workspaces().end())
    take(place->second.runs_as);
  for (const auto& [id, user] : records.users())
    if (authority::bears(owner, user.name, user.former))
      take(user.runs_as);
  return out;
}

} // namespace troupe

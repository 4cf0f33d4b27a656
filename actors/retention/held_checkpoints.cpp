#include "actors/retention/held_checkpoints.hpp"

#include <algorithm>

namespace troupe {

result<std::set<std::string>> held_checkpoints(const storage::reader& reads,
                                               const std::vector<std::string>& uuids) {
  std::set<std::string> held;
  if (uuids.empty())
    return held;
  const auto hold = [&](const std::string& uuid) {
    if (std::find(uuids.begin(), uuids.end(), uuid) != uuids.end())
      held.insert(uuid);
  };
  auto versions = reads.model_versions();
  if (!versions)
    return versions.error();
  for (const auto& version : *versions)
    hold(version.checkpoint);
  auto standings = reads.experiment_standings();
  if (!standings)
    return standings.error();
  for (const auto& now : *standings) {
    if (terminal(now.state))
      continue;
    auto row = reads.experiment(now.id);
    if (!row && row.error().code == errc::not_found)
      continue; // deleted since
    if (!row)
      return row.error();
    const auto searcher = row->config->is_object() ? row->config->value("searcher", value()) : value();
    const auto source = searcher.is_object() ? searcher.value("source_checkpoint_uuid", value()) : value();
    if (source.is_string())
      hold(source);
  }
  return held;
}

} // namespace troupe

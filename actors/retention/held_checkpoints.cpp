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
      continue; // the experiment was deleted in the meantime
    if (!row)
      return row.error();
    auto sources = sources_of(reads, *row);
    if (!sources)
      return sources.error();
    for (const auto& uuid : *sources)
      hold(uuid);
  }
  return held;
}

std::set<std::string> source_in(const value& config) {
  const auto source = config.is_object()
                        ? config.value(value::json_pointer("/searcher/source_checkpoint_uuid"), value())
                        : value();
  return source.is_string() ? std::set{source.get<std::string>()} : std::set<std::string>();
}

result<std::set<std::string>> sources_of(const storage::reader& reads, const experiment_row& row) {
  auto out = source_in(row.config);
  if (!row.config->is_object() ||
      row.config->value(value::json_pointer("/searcher/name"), value()) != "custom")
    return out;
  const auto facts = reads.facts_of(entity(row.id));
  if (!facts)
    return facts.error();
  for (const auto& bytes : *facts)
    if (const auto fact = decode_as<experiment_fact>(bytes))
      if (const auto* step = std::get_if<search_stepped>(&*fact))
        for (const auto& made : step->created)
          if (!made.source_checkpoint.empty())
            out.insert(made.source_checkpoint);
  return out;
}

} // namespace troupe

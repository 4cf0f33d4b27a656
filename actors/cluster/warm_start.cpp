#include "actors/cluster/warm_start.hpp"

#include <algorithm>

namespace troupe {

result<void> resolve_source(const storage::reader& reads,
                            const std::function<std::string(const checkpoint_row&)>& unusable,
                            value& settings) {
  auto searcher = settings.find("searcher");
  if (searcher == settings.end() || !searcher->is_object())
    return {};
  auto trial = searcher->value("source_trial_id", value()),
       uuid = searcher->value("source_checkpoint_uuid", value());
  if (trial.is_number_integer()) {
    const trial_id id{static_cast<std::uint64_t>(trial.get<std::int64_t>())};
    auto row = reads.trial(id);
    if (!row)
      return error{errc::invalid, "searcher.source_trial_id: trial " + to_json(trial) + " not found"};
    auto saved = reads.checkpoints(id);
    if (!saved)
      return saved.error();
    std::erase_if(*saved, [](const auto& one) { return one.state != checkpoint_state::completed; });
    if (saved->empty())
      return error{errc::invalid, "searcher.source_trial_id: trial " + to_string(id) + " has no checkpoint"};
    const auto newest = std::max_element(saved->begin(), saved->end(), [](const auto& a, const auto& b) {
      return a.saved.steps < b.saved.steps;
    });
    if (const auto why = unusable(*newest); !why.empty())
      return error{errc::invalid, "searcher.source_trial_id: the newest checkpoint of trial " +
                                    to_string(id) + ", " + newest->saved.uuid + ", " + why};
    (*searcher)["source_checkpoint_uuid"] = newest->saved.uuid;
    (*searcher)["source_trial_id"] = nullptr; // a configuration may name only one of both
  } else if (uuid.is_string()) {
    const auto row = reads.checkpoint(uuid.get<std::string>());
    if (const auto why = row ? unusable(*row) : "not found"; !why.empty())
      return error{errc::invalid,
                   "searcher.source_checkpoint_uuid: checkpoint '" + uuid.get<std::string>() + "' " + why};
  }
  return {};
}

bool starts_elsewhere(const value& before, const value& now) {
  const auto named = [](const value& settings, const char* key) {
    return settings.value(value::json_pointer(std::string("/searcher/") + key), value());
  };
  return !named(now, "source_trial_id").is_null() ||
         named(now, "source_checkpoint_uuid") != named(before, "source_checkpoint_uuid");
}

} // namespace troupe

#include "model/described.hpp"

#include <utility>

namespace troupe {
namespace {

std::string text_at(const value& config, const char* key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

} // namespace

config_words words_of(const value& config) {
  if (!config.is_object())
    return {};
  config_words out{text_at(config, "name"), text_at(config, "description"), {}};
  if (const auto found = config.find("labels"); found != config.end() && found->is_array())
    for (const auto& one : *found)
      if (one.is_string())
        out.labels.push_back(one);
  return out;
}

void take_continued(experiment_described& said, const config_words& before, const config_words& now) {
  if (!now.name.empty() && now.name != before.name)
    said.name = now.name;
  if (now.description != before.description)
    said.description = now.description;
  if (now.labels != before.labels)
    said.labels = now.labels;
  said.save_experiment_best = said.save_trial_best = said.save_trial_latest = -1;
}

void lay_over(experiment_row& row, const experiment_described& said) {
  row.name = said.name;
  row.description = said.description;
  row.notes = said.notes;
  row.labels = said.labels;
  for (const auto& [key, number] : {std::pair{"save_experiment_best", said.save_experiment_best},
                                    {"save_trial_best", said.save_trial_best},
                                    {"save_trial_latest", said.save_trial_latest}})
    if (number >= 0 && row.config->is_object()) {
      auto changed = row.config.get();
      changed["checkpoint_storage"][key] = number;
      row.config = std::move(changed);
    }
}

} // namespace troupe

#pragma once
// What is said of an experiment: by its configuration first, and by users since.

#include "model/rows.hpp"

namespace troupe {

/// Empty where the configuration does not say them.
struct config_words {
  std::string name, description;
  std::vector<std::string> labels;
  TROUPE_PACKED(name, description, labels)
};
config_words words_of(const value& config);

/// What is said of an experiment whose configuration is replaced by that of a continuation. `before` and
/// `now` are the words of both. What the new one says otherwise than the old one counts over what a user said
/// earlier. The numbers of checkpoints that are kept stand in the new one in any case.
void take_continued(experiment_described& said, const config_words& before, const config_words& now);

/// Lays what users have said over a row that has the words of its configuration.
void lay_over(experiment_row& row, const experiment_described& said);

} // namespace troupe

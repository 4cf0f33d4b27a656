#pragma once
// What several verbs do with experiments: read what is submitted, send it, name one.

#include "runtime/cli/session.hpp"

namespace troupe::cli {

struct submission {
  std::filesystem::path config;       ///< "-": `in`
  std::filesystem::path context;      ///< empty: no files
  std::vector<std::string> overrides; ///< "a.b=value", over the configuration; the value is read as YAML
  bool activate = true;
  std::string key, name;
};

/// Reads and checks everything before anything is sent: the configuration, its overrides, the files. Faults of a
/// configuration come all at once, each as FILE:LINE:COL with a caret.
result<client::new_experiment> read_submission(const submission& what, std::istream& in);

/// "7", or "last" for the newest. Fails with errc::invalid on other words and errc::not_found where there is none.
result<experiment_id> named_experiment(client::server& cluster, const std::string& word);
result<trial_id> named_trial(const std::string& word);

/// "a.b=value" laid over `config`. Fails with errc::invalid.
result<void> apply_override(value& config, const std::string& override_text);

} // namespace troupe::cli

#pragma once
// The file of a whole cluster (`troupe up FILE`): takes its text, gives its completed form or every fault.
// Pure: files and variables come through `file_world`.

#include "model/config/experiment_config.hpp"

#include <functional>

namespace troupe::config {

/// How the reader reaches what is outside of the text.
struct file_world {
  /// Reads the whole file. The error gives the reason without the path: "No such file or directory", "has 10
  /// MB ...".
  std::function<result<std::string>(const std::string& path)> read;
  std::function<bool(const std::string& path)> exists;
  std::string folder; ///< absolute; relative paths of the command line begin here
  std::function<std::optional<std::string>(const std::string& name)> environment; ///< $HOME is one of them
};

struct cluster_file {
  /// Complete: ranges are expanded into nodes with names, paths are absolute, defaults are filled in, one
  /// pool is the default. Passwords are left out. Meaningful where there is no fault.
  value config;
  value secrets; ///< {"users": {NAME: PASSWORD}, "webhooks": {"signing_key": KEY}}, as far as they are set
  std::string resolved; ///< the merged file as YAML, ranges expanded, each value with "# FILE:LINE"
  std::vector<diagnostic> faults, warnings;               ///< in the order of the files and their lines
  std::vector<std::pair<std::string, std::string>> texts; ///< every file that was read, for `render`
  int settings = 0, from_environment = 0;

  bool ok() const { return faults.empty(); }
  /// Faults, then warnings, with their lines and carets.
  std::string rendered() const;
};

/// `path` is the name in diagnostics; included files, and `.env`, are looked for beside it.
cluster_file load_cluster_file(const std::string& path, const file_world& world);

/// `gpu[01-03,07]` gives gpu01 gpu02 gpu03 gpu07; a text without brackets gives itself. Fails on text that is
/// not a range, and above 10,000 names.
result<std::vector<std::string>> expand_range(std::string_view text);

/// `90s`, `15m`, `12h`, `90d`; 0 where the text is none of these.
std::int64_t duration_seconds(std::string_view text);

/// Type, default, meaning and example of a key: `storage.type`, `users.tokens.name`, `defaults.max_restarts`.
/// Empty: the sections.
result<std::string> explain_cluster_key(std::string_view key);
std::string cluster_file_page(); ///< docs/cluster-file.md

/// One line of a plan.
struct cluster_change {
  char sign = '~';  ///< '+', '-', '~', '!' (needs a restart), '=' (stays as it is)
  std::string what; ///< "pools.main.preemption"
  std::string text; ///< "false -> true", or the meaning
};
struct cluster_plan {
  std::vector<cluster_change> changes;
  int counted() const;      ///< number of steps that are carried out
  std::string text() const; ///< "no changes" where there are no steps
};
/// The only pool of a cluster whose file names none, or that has no file; complete.
value pool_without_file();

/// The steps from the configuration in force to the wanted one; secrets are neither shown nor compared.
/// `by_hand` holds {"users": [...]} that no file made; they are removed only with `prune`.
cluster_plan plan_cluster(const value& live, const value& wanted, const value& by_hand, bool prune);

} // namespace troupe::config

#pragma once
// The file of a whole cluster (`troupe up FILE`): text, in; its completed form or every fault, out. Pure:
// files and variables come through `file_world`.

#include "model/config/experiment_config.hpp"

#include <functional>

namespace troupe::config {

/// How the reader reaches what stands outside of the text.
struct file_world {
  /// The whole file. Fails with the reason, without the path: "No such file or directory", "has 10 MB ...".
  std::function<result<std::string>(const std::string& path)> read;
  std::function<bool(const std::string& path)> exists;
  std::string folder; ///< absolute: where relative paths of the command line begin
  std::function<std::optional<std::string>(const std::string& name)> environment; ///< $HOME among them
};

struct cluster_file {
  /// Complete: ranges expanded into nodes with names, paths absolute, defaults filled in, one pool the
  /// default. Without passwords. Meaningful where there is no fault.
  value config;
  value secrets;        ///< {"users": {NAME: PASSWORD}, "webhooks": {"signing_key": KEY}} of what has one
  std::string resolved; ///< the merged file as YAML, ranges expanded, each value with "# FILE:LINE"
  std::vector<diagnostic> faults, warnings; ///< all at once, in the order of the files and their lines
  std::vector<std::pair<std::string, std::string>> texts; ///< every file that was read, for `render`
  int settings = 0, from_environment = 0;

  bool ok() const { return faults.empty(); }
  /// Faults, then warnings, with their lines and carets.
  std::string rendered() const;
};

/// `path` as diagnostics name it; what it includes is looked for beside it, `.env` too.
cluster_file load_cluster_file(const std::string& path, const file_world& world);

/// `gpu[01-03,07]` -> gpu01 gpu02 gpu03 gpu07; a text without brackets is itself. Fails on what is not a
/// range, and beyond 10,000 names.
result<std::vector<std::string>> expand_range(std::string_view text);

/// `90s`, `15m`, `12h`, `90d`; 0 where it is none of these.
std::int64_t duration_seconds(std::string_view text);

/// `storage.type`, `users.tokens.name`, `defaults.max_restarts`: type, default, meaning, example. Empty: the
/// sections.
result<std::string> explain_cluster_key(std::string_view key);
std::string cluster_file_page(); ///< docs/cluster-file.md

/// One line of a plan.
struct cluster_change {
  char sign = '~';  ///< '+', '-', '~', '!' (needs a restart), '=' (is left alone)
  std::string what; ///< "pools.main.preemption"
  std::string text; ///< "false -> true", or what it means
};
struct cluster_plan {
  std::vector<cluster_change> changes;
  int counted() const;      ///< number of the steps that are done
  std::string text() const; ///< "no changes" where there are none
};
/// The only pool of a cluster whose file names none, or that has no file; complete.
value pool_without_file();

/// From what is in force to what is wanted; secrets are neither shown nor compared. `by_hand`: {"users":
/// [...]} that no file made; they go only with `prune`.
cluster_plan plan_cluster(const value& live, const value& wanted, const value& by_hand, bool prune);

} // namespace troupe::config

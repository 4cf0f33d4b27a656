#pragma once
// From the files that a person names to what is sent: everything is read and checked here, before anything is
// sent.

#include "runtime/client/server.hpp"

#include <iosfwd>

namespace troupe::client {

struct submission {
  std::filesystem::path config;  ///< "-": `in`
  std::filesystem::path context; ///< a folder or one file; empty: no files
  std::vector<std::string>
    overrides; ///< "a.b=value", the value as YAML; in the place of what the configuration says
  bool activate = true;
  std::string key, name;
  value cluster = {}; ///< the configuration in force, whose defaults lie below; null: none is known
};

struct prepared {
  new_experiment what;
  /// Digest of the configuration's text, overrides included, and of the context: equal for the same job,
  /// whenever and wherever it is read.
  std::string digest;
  std::string warnings; ///< text for people: keys without effect, each with its place; whole lines, or empty
};

/// Fails with errc::invalid: every fault of the configuration, each as FILE:LINE:COL with a caret; or every
/// unfit thing in the context, each with its place and reason. A hint may follow after "\nhint: ".
result<prepared> prepare(const submission& what, std::istream& in);

/// The text of a configuration; "-": `in`.
result<std::string> read_config(const std::filesystem::path& file, std::istream& in);
/// The configuration as JSON with "a.b=value" in the place of what it says.
result<std::string> with_overrides(const std::string& text, const std::string& name,
                                   const std::vector<std::string>& overrides);

} // namespace troupe::client

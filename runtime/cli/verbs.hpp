#pragma once
// The verb tree: every verb with its arguments, options and the function that does it.

#include "runtime/cli/arguments.hpp"

namespace troupe::cli {

/// All verbs, in the order of help.
std::span<const verb_spec> all_verbs();

/// What the words mean before the options are read.
struct resolved {
  const verb_spec* verb = nullptr; ///< none: the help of `noun`, or of everything, is asked for
  std::string noun;                ///< "" or "experiment"
  std::vector<std::string> rest;   ///< words after the verb; options before the verb come first
  bool wants_help = false;
};
/// Accepts unambiguous prefixes, `ls` for list, a noun alone for its list, and options of a client before the
/// verb. Fails with errc::invalid and names the word that was probably meant.
result<resolved> resolve_words(const std::vector<std::string>& given);

/// The text of `troupe --help` and `troupe experiment --help`.
std::string overview_text();
std::string noun_text(const std::string& noun);
/// The text of docs/cli.md.
std::string manual_markdown();
std::string bash_completion();
/// `troupe help ...`; returns the exit code.
int show_help(session& s, const std::vector<std::string>& words);

// What the verbs do, by file.
namespace verbs {
// cluster_verbs.cpp
int up(session&, const arguments&);
int master(session&, const arguments&);
int agent(session&, const arguments&);
int run(session&, const arguments&);
int status(session&, const arguments&);
int web(session&, const arguments&);
int down(session&, const arguments&);
int agent_list(session&, const arguments&);
int agent_remove(session&, const arguments&);
int slot_list(session&, const arguments&);
int tls_init(session&, const arguments&);
int shell(session&, const arguments&);
int version(session&, const arguments&);
int completion(session&, const arguments&);
// tunnel_verb.cpp
int tunnel(session&, const arguments&);
// experiment_verbs.cpp
int experiment_create(session&, const arguments&);
int experiment_list(session&, const arguments&);
int experiment_describe(session&, const arguments&);
int experiment_pause(session&, const arguments&);
int experiment_activate(session&, const arguments&);
int experiment_cancel(session&, const arguments&);
int experiment_kill(session&, const arguments&);
int experiment_wait(session&, const arguments&);
int experiment_follow(session&, const arguments&);
int experiment_pareto(session&, const arguments&);
// event_verbs.cpp
int events(session&, const arguments&);
int experiment_events(session&, const arguments&);
int trial_events(session&, const arguments&);
// log_verbs.cpp
int experiment_logs(session&, const arguments&);
int trial_logs(session&, const arguments&);
// trial_verbs.cpp
int trial_list(session&, const arguments&);
int trial_describe(session&, const arguments&);
int trial_metrics(session&, const arguments&);
int trial_kill(session&, const arguments&);
// checkpoint_verbs.cpp
int checkpoint_list(session&, const arguments&);
int checkpoint_describe(session&, const arguments&);
int checkpoint_download(session&, const arguments&);
} // namespace verbs

} // namespace troupe::cli

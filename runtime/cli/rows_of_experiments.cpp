// Rows of the verb table: experiments, trials, checkpoints.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/pool_verbs.hpp"
#include "runtime/cli/rows.hpp"
#include "runtime/cli/verbs.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr option_spec follow_flag{"-f,--follow", "", "Continue until the experiment or trial ends", toggle};
constexpr option_spec create_flags[] = {
  follow_flag,
  {"--config", "KEY=VALUE", "Replace one value of the configuration; may be given several times", list},
  {"--paused", "", "Create the experiment paused", toggle},
  {"--name", "NAME", "Name of the experiment (default: the name in the configuration)", text},
  {"--key", "KEY",
   "Key of this submission; a second submission with the same key returns the id of the first", text},
};
constexpr option_spec list_flags[] = {
  {"--state", "STATE", "List only experiments in this state: active, paused, completed, canceled, error",
   text, "active paused completed canceled error"},
  where,
  sort,
};
constexpr option_spec trial_list_flags[] = {
  where,
  sort,
  {"--at", "NUMBER", "The trials as they were after that fact; troupe experiment events has the numbers",
   number},
};
constexpr option_spec wait_flags[] = {
  {"--timeout", "SECONDS", "Time limit; exit code 7 when the time is over (default: no limit)", number},
};
constexpr option_spec log_flags[] = {
  follow_flag,
  {"--tail", "N", "Show only the last N lines", number},
  {"--rank", "N", "Show only lines of rank N", number},
  {"-t,--timestamps", "", "Show time, source and level of each line", toggle},
  {"--search", "TEXT", "Show only lines that hold TEXT", text},
  {"--regex", "", "TEXT of --search is a regular expression (RE2)", toggle},
};
constexpr option_spec metrics_flags[] = {
  {"--group", "GROUP",
   "Show only reports of this group: training, validation, system (use of the slots; left out by default), "
   "or one that the trial named itself",
   text},
  {"--metric", "NAME", "Metric of the curve (default: the searcher's metric)", text},
  where,
  sort,
};
constexpr option_spec checkpoint_flags[] = {
  {"--trial", "TRIAL", "List only checkpoints of this trial", number},
  where,
  sort,
};
constexpr option_spec download_flags[] = {
  {"--output-dir", "DIR", "Folder for the files (default: ./UUID)", text},
};
constexpr argument_spec config_and_dir[] = {
  {"CONFIG", "Configuration of the experiment, YAML or JSON; - means standard input"},
  {"DIR", "Files of the experiment: a folder or one file, at most 95 MB (default: no files)", false},
};
constexpr argument_spec experiments[] = {{"EXPERIMENT", "Ids of experiments, or `last`", true, true}};
constexpr argument_spec maybe_experiment[] = {{"EXPERIMENT", "Id of the experiment, or `last`", false}};
constexpr argument_spec trials[] = {{"TRIAL", "Ids of trials", true, true}};
constexpr option_spec set_flags[] = {
  {"--priority", "N", "Priority from 1 to 99; a smaller number comes first", text},
  {"--weight", "X", "Weight of the experiment's share of a fair pool; 0: only what is left over", text},
  {"--max-slots", "N", "Limit of the slots that the trials hold at once; none: no limit", text},
  {"--pool", "NAME", "Pool of the runs; runs in another pool are preempted", text},
  {"--name", "NAME", "New name", text},
  {"--description", "TEXT", "Purpose of the experiment", text},
  {"--notes", "TEXT", "Text of any length", text},
  {"--save-experiment-best", "N", "Checkpoints that are kept: the best of the experiment", number},
  {"--save-trial-best", "N", "Checkpoints that are kept: the best of each trial", number},
  {"--save-trial-latest", "N", "Checkpoints that are kept: the latest of each trial", number},
};
constexpr argument_spec uuid[] = {{"UUID", "UUID of the checkpoint"}};
constexpr option_spec move_flags[] = {
  {"--project", "PROJECT", "Number of the new project, or WORKSPACE/NAME", text},
};
constexpr option_spec label_flags[] = {
  {"--add", "LABEL", "Label to add; may be given several times", list},
  {"--remove", "LABEL", "Label to take away; may be given several times", list},
};
constexpr option_spec continue_flags[] = {
  follow_flag,
  {"--config", "KEY=VALUE",
   "Replace one value of the configuration, of a `single` search; may be given several times", list},
  {"--config-file", "FILE", "Lay the text of a file over the configuration, of a `single` search", text},
};

constexpr verb_spec table[] = {
  {"experiment create", "Submit an experiment", config_and_dir, create_flags, true, true,
   "troupe experiment create digits.yaml . --follow\ntroupe experiment create digits.yaml . --config "
   "searcher.max_trials=8",
   "troupe experiment list, troupe run", verbs::experiment_create},
  {"experiment list",
   "List experiments",
   {},
   list_flags,
   true,
   true,
   "troupe experiment list\ntroupe e ls --state active -o json\n"
   "troupe experiment list --where \"owner=ada best>0.9\" --sort -best",
   "troupe experiment describe",
   verbs::experiment_list},
  {"experiment describe",
   "Show one experiment",
   experiment,
   {},
   true,
   true,
   "troupe experiment describe 7\ntroupe experiment describe last -o json",
   "troupe trial list",
   verbs::experiment_describe},
  {"experiment follow",
   "Show an experiment live until its end",
   experiment,
   {},
   false,
   true,
   "troupe experiment follow 7",
   "troupe experiment wait",
   verbs::experiment_follow},
  {"experiment pause",
   "Pause an experiment: trials save a checkpoint and release their slots",
   experiments,
   {},
   false,
   true,
   "troupe experiment pause 7",
   "troupe experiment activate",
   verbs::experiment_pause},
  {"experiment activate",
   "Resume a paused experiment",
   experiments,
   {},
   false,
   true,
   "troupe experiment activate 7",
   "troupe experiment pause",
   verbs::experiment_activate},
  {"experiment cancel",
   "End an experiment; trials may save a last checkpoint",
   experiments,
   {},
   false,
   true,
   "troupe experiment cancel 7",
   "troupe experiment kill",
   verbs::experiment_cancel},
  {"experiment kill",
   "End an experiment at once; work since the last checkpoint is lost",
   experiments,
   {},
   false,
   true,
   "troupe experiment kill 7",
   "troupe experiment cancel",
   verbs::experiment_kill},
  {"experiment set",
   "Change priority, weight, limit or pool of a live experiment; name, description, notes and the "
   "checkpoints "
   "that are kept of any",
   experiment, set_flags, true, true,
   "troupe experiment set 7 --priority 10\ntroupe experiment set 7 --max-slots none --pool gpu\n"
   "troupe experiment set 7 --name digits --save-trial-best 3 -o json",
   "troupe explain experiment, docs/scheduling.md", verbs::experiment_set},
  {"experiment archive",
   "Hide experiments that have ended",
   experiments,
   {},
   true,
   true,
   "troupe experiment archive 7 8",
   "troupe experiment unarchive",
   verbs::experiment_archive},
  {"experiment unarchive",
   "Show archived experiments again",
   experiments,
   {},
   true,
   true,
   "troupe experiment unarchive 7",
   "troupe experiment archive",
   verbs::experiment_unarchive},
  {"experiment delete", "Delete experiments that have ended, with their checkpoints, reports and logs",
   experiments, yes_flags, true, true, "troupe experiment delete 7 --yes", "troupe experiment archive",
   verbs::experiment_delete},
  {"experiment continue",
   "Continue an experiment that has ended: what did not complete, then what its search has left", experiment,
   continue_flags, true, true,
   "troupe experiment continue 7\ntroupe experiment continue 7 --config max_restarts=2 --follow",
   "troupe experiment create", verbs::experiment_continue},
  {"experiment move", "Move experiments to another project", experiments, move_flags, true, true,
   "troupe experiment move 7 --project vision/cats", "troupe project list", verbs::experiment_move},
  {"experiment label", "Print the labels of an experiment; add some, take some away", experiment, label_flags,
   true, true, "troupe experiment label 7 --add good --remove new", "troupe experiment describe",
   verbs::experiment_label},
  {"experiment wait", "Wait for the end of an experiment; the exit code says how it ended", experiment,
   wait_flags, false, true, "troupe experiment wait 7 --timeout 3600", "troupe help exit-codes",
   verbs::experiment_wait},
  {"experiment pareto",
   "List the trials that no other beats in all metrics of the search",
   experiment,
   {},
   true,
   true,
   "troupe experiment pareto 7\ntroupe experiment pareto last -o json",
   "troupe trial list",
   verbs::experiment_pareto},
  {"experiment logs", "Show what the trials of an experiment printed", experiment, log_flags, true, true,
   "troupe experiment logs 7 -f", "troupe trial logs", verbs::experiment_logs},
  {"experiment events", "List what happened to an experiment, its trials and their runs, fact by fact",
   experiment, grid_flags, true, true, "troupe experiment events 7\ntroupe experiment events last -o json",
   "troupe trial events, troupe experiment follow", verbs::experiment_events},
  {"trial list", "List the trials of an experiment", experiment, trial_list_flags, true, true,
   "troupe trial list 7\ntroupe trial list last -o csv\n"
   "troupe trial list 7 --where 'lr<0.01 m.training.loss.min<0.2' --sort -best",
   "troupe trial describe", verbs::trial_list},
  {"trial describe",
   "Show one trial",
   trial,
   {},
   true,
   true,
   "troupe trial describe 12\ntroupe trial describe 12 -o json",
   "troupe trial metrics, troupe checkpoint list",
   verbs::trial_describe},
  {"trial logs", "Show what a trial printed", trial, log_flags, true, true,
   "troupe trial logs 12 -f\ntroupe trial logs 12 --tail 50", "troupe experiment logs", verbs::trial_logs},
  {"trial metrics", "Show every report of a trial, and its curve", trial, metrics_flags, true, true,
   "troupe trial metrics 12\ntroupe trial metrics 12 --group validation -o csv", "troupe trial describe",
   verbs::trial_metrics},
  {"trial events", "List what happened to a trial, fact by fact", trial, grid_flags, true, true,
   "troupe trial events 12\ntroupe trial events 12 -o csv", "troupe experiment events", verbs::trial_events},
  {"trial kill",
   "End a trial at once",
   trials,
   {},
   false,
   true,
   "troupe trial kill 12",
   "troupe experiment kill",
   verbs::trial_kill},
  {"checkpoint list", "List the checkpoints of an experiment or trial", maybe_experiment, checkpoint_flags,
   true, true, "troupe checkpoint list 7\ntroupe checkpoint list --trial 12", "troupe checkpoint download",
   verbs::checkpoint_list},
  {"checkpoint describe",
   "Show one checkpoint",
   uuid,
   {},
   true,
   true,
   "troupe checkpoint describe 1f3a...",
   "troupe checkpoint download",
   verbs::checkpoint_describe},
  {"checkpoint download", "Copy the files of a checkpoint to this host", uuid, download_flags, false, true,
   "troupe checkpoint download 1f3a... --output-dir best", "troupe checkpoint list",
   verbs::checkpoint_download},
};

} // namespace

std::span<const verb_spec> of_experiments() { return table; }

} // namespace troupe::cli::rows

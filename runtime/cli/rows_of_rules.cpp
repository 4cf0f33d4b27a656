// Rows of the verb table: policies and webhooks.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/rows.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr argument_spec webhook_and_url[] = {
  {"NAME", "Name of the receiver in configurations of experiments"},
  {"URL", "Address of the receiver, http or https"}};
constexpr argument_spec one_webhook[] = {{"WEBHOOK", "Name or number of the webhook"}};
constexpr option_spec webhook_flags[] = {
  in_workspace,
  {"--state", "STATE",
   "Tell of experiments that end so: completed, canceled, error; may be given several times", list},
  {"--log", "REGEX", "Tell of the first line of each task's log that matches; may be given several times",
   list},
  {"--custom", "",
   "Tell of what scripts say with core_context.alert, where the experiment names the receiver", toggle},
  {"--specific", "", "Tell only of experiments that name the receiver in integrations.webhooks", toggle},
  {"--slack", "", "Messages have the form that Slack reads", toggle},
};
constexpr option_spec webhook_set_flags[] = {
  {"--url", "URL", "Address of the receiver, http or https", text}};
constexpr option_spec policy_flags[] = {
  in_workspace,
  {"--kind", "KIND",
   "Kind of work: EXPERIMENT (default), or NTSC for notebooks, TensorBoards, shells, commands", text,
   "EXPERIMENT NTSC"},
};
constexpr argument_spec policy_file[] = {
  {"FILE", "invariant_config and constraints, as YAML or JSON; - means standard input"}};

constexpr verb_spec table[] = {
  {"policy list", "List what configurations have to be, in the cluster and in each workspace", no_words,
   no_options, true, true, "troupe policy list", "troupe policy describe", verbs::policy_list},
  {"policy describe", "Print what configurations of a kind of work have to be", no_words, policy_flags, true,
   true, "troupe policy describe --workspace vision\ntroupe policy describe --kind NTSC",
   "troupe policy list", verbs::policy_describe},
  {"policy set", "Say what configurations of a kind of work have to be", policy_file, policy_flags, true,
   true, "troupe policy set policies.yaml\ntroupe policy set limits.yaml --workspace vision --kind NTSC",
   "troupe policy describe", verbs::policy_set},
  {"policy delete", "Take the policies of a kind of work away", no_words, policy_flags, true, true,
   "troupe policy delete --workspace vision", "troupe policy set", verbs::policy_delete},
  {"webhook list", "List the receivers of events", no_words, no_options, true, true, "troupe webhook list",
   "troupe webhook describe", verbs::webhook_list},
  {"webhook describe", "Show one receiver with its triggers", one_webhook, no_options, true, true,
   "troupe webhook describe chat", "troupe webhook list", verbs::webhook_describe},
  {"webhook create", "Add a receiver of events", webhook_and_url, webhook_flags, true, true,
   "troupe webhook create chat https://chat.lab/hook --state completed --state error --slack",
   "troupe webhook test", verbs::webhook_create},
  {"webhook set", "Give a receiver another address", one_webhook, webhook_set_flags, true, true,
   "troupe webhook set chat --url https://chat.lab/other", "troupe webhook describe", verbs::webhook_set},
  {"webhook delete", "Delete a receiver of events", one_webhook, no_options, true, true,
   "troupe webhook delete chat", "troupe webhook list", verbs::webhook_delete},
  {"webhook test", "Send a test event, and say whether it arrived", one_webhook, no_options, true, true,
   "troupe webhook test chat", "troupe webhook list", verbs::webhook_test},
};

} // namespace

std::span<const verb_spec> of_rules() { return table; }

} // namespace troupe::cli::rows

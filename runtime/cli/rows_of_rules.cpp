// Rows of the verb table: policies and webhooks.

#include "runtime/cli/house_verbs.hpp"
#include "runtime/cli/rows.hpp"

namespace troupe::cli::rows {
namespace {

using enum option_kind;

constexpr argument_spec webhook_and_url[] = {{"NAME", "Name by which experiments name it"},
                                             {"URL", "Address of the receiver, http or https"}};
constexpr argument_spec one_webhook[] = {{"WEBHOOK", "Name or number of the webhook"}};
constexpr option_spec webhook_flags[] = {
  in_workspace,
  {"--state", "STATE",
   "Tell of experiments that end so: completed, canceled, error; may be given several times", list},
  {"--log", "REGEX", "Tell of the first line of each task's log that matches; may be given several times",
   list},
  {"--custom", "", "Tell of what scripts say with core_context.alert, where experiments name it", toggle},
  {"--specific", "", "Only for experiments that name it in integrations.webhooks", toggle},
  {"--slack", "", "Messages have the form that Slack reads", toggle},
};
constexpr argument_spec policy_file[] = {{"FILE", "invariant_config and constraints, as YAML or JSON"}};

constexpr verb_spec table[] = {
  {"policy describe",
   "Print what configurations of experiments have to be",
   {},
   workspace_flags,
   true,
   true,
   "troupe policy describe --workspace vision",
   "troupe policy set",
   verbs::policy_describe},
  {"policy set", "Say what configurations of experiments have to be", policy_file, workspace_flags, false,
   true, "troupe policy set policies.yaml", "troupe policy describe", verbs::policy_set},
  {"policy delete",
   "Take the policies of experiments away",
   {},
   workspace_flags,
   false,
   true,
   "troupe policy delete --workspace vision",
   "troupe policy set",
   verbs::policy_delete},
  {"webhook list",
   "List the receivers of events",
   {},
   {},
   true,
   true,
   "troupe webhook list",
   "troupe webhook create",
   verbs::webhook_list},
  {"webhook create", "Add a receiver of events", webhook_and_url, webhook_flags, false, true,
   "troupe webhook create chat https://chat.lab/hook --state completed --state error --slack",
   "troupe webhook test", verbs::webhook_create},
  {"webhook delete",
   "Delete a receiver of events",
   one_webhook,
   {},
   false,
   true,
   "troupe webhook delete chat",
   "troupe webhook list",
   verbs::webhook_delete},
  {"webhook test",
   "Send an event for test, and say whether it arrived",
   one_webhook,
   {},
   false,
   true,
   "troupe webhook test chat",
   "troupe webhook list",
   verbs::webhook_test},
};

} // namespace

std::span<const verb_spec> of_rules() { return table; }

} // namespace troupe::cli::rows

#pragma once
// Shows facts and actions of the machines as short text for tables of steps: "activated started(1@0) |
// start(1@0)".

#include "actors/agent/agent.hpp"
#include "actors/allocation/allocation.hpp"
#include "actors/cluster/cluster.hpp"
#include "actors/cluster/members.hpp"
#include "actors/experiment/experiment.hpp"
#include "actors/pool/pool.hpp"
#include "actors/trial/trial.hpp"
#include "workers/worker_messages.hpp"

#include <string>

namespace troupe {

template <class... Ts>
std::string show(const std::variant<Ts...>& x);
template <class T>
std::string show(const std::vector<T>& list) {
  std::string text;
  for (const auto& x : list)
    text += (text.empty() ? "" : " ") + show(x);
  return text;
}

inline std::string text(bool x, const char* yes) { return x ? std::string(" ") + yes : ""; }
inline std::string text(std::int64_t x) { return std::to_string(x); }
inline std::string text(std::string_view x) { return std::string(x); }
template <class Id>
std::string text(Id x) requires requires {
  to_string(x);
}
{ return to_string(x); }

inline std::string show(const placement& x) {
  std::string slots;
  for (int slot : x.slots)
    slots += (slots.empty() ? "" : ",") + std::to_string(slot);
  return x.agent + ":" + slots;
}

// ---- facts
inline std::string show(const experiment_created& x) { return "created(" + to_string(x.id) + ")"; }
inline std::string show(const experiment_swept& x) { return "swept(" + text(x.id) + ")"; }
inline std::string show(const agent_joined& x) {
  return "joined(" + x.agent + " " + text(x.slots) + (x.pool.empty() ? "" : " for " + x.pool) + ")";
}
inline std::string show(const agent_changed& x) {
  auto text_ = "changed(" + x.agent + (x.draining ? " draining" : "");
  for (int slot : x.disabled)
    text_ += " -" + text(slot);
  for (int slot : x.ended)
    text_ += " !" + text(slot);
  return text_ + (x.ends ? " !" : "") + " by " + x.by + ")";
}
inline std::string show(const agent_left& x) { return "left(" + x.agent + " by " + x.by + ")"; }
inline std::string show(const user_changed& x) {
  return "user(" + text(x.id) + " " + x.name + text(x.admin, "admin") + text(!x.active, "inactive") + " " +
         x.password + "/" + std::to_string(x.generation) + " by " + x.by + ")";
}
inline std::string show(const token_changed& x) {
  return "token(" + x.id + " of " + text(x.user) + " '" + x.name + "'" + text(x.revoked, "revoked") + ")";
}
inline std::string show(const configuration_changed& x) {
  return "configuration(" + std::to_string(x.revision) + " by " + x.by + ")";
}
inline std::string show(const setting_changed& x) { return "set(" + x.key + " " + to_json(x.to) + ")"; }
inline std::string show(const workspace_changed& x) {
  return "workspace(" + text(x.id) + " " + x.name + text(x.archived, "archived") +
         text(x.deleted, "deleted") + ")";
}
inline std::string show(const project_changed& x) {
  return "project(" + text(x.id) + " " + x.name + text(x.archived, "archived") + text(x.deleted, "deleted") +
         ")";
}
inline std::string show(const template_changed& x) {
  return "template(" + x.name + text(x.deleted, "deleted") + ")";
}
inline std::string show(const model_changed& x) {
  return "model(" + text(x.id) + " " + x.name + text(x.deleted, "deleted") + ")";
}
inline std::string show(const model_version_changed& x) {
  return "version(" + text(x.model) + "." + std::to_string(x.version) + text(x.deleted, "deleted") + ")";
}
inline std::string show(const experiment_moved& x) {
  return "moved(" + text(x.id) + " " + text(x.project) + ")";
}
inline std::string show(const experiment_described& x) {
  return "described(" + text(x.id) + " " + x.name + ")";
}
inline std::string numbers_of(const std::vector<trial_id>& trials) {
  std::string all;
  for (const auto id : trials)
    all += " " + text(id);
  return all;
}
inline std::string show(const experiment_continued& x) {
  return "continued(" + text(x.id) + "#" + text(x.number) + numbers_of(x.trials) + ")";
}
inline std::string show(const experiment_resumed& x) {
  return "resumed(#" + text(x.number) + numbers_of(x.trials) + ")";
}
inline std::string show(const trial_continued& x) {
  return "continued(#" + text(x.number) + " after " + text(x.run) + ")";
}
inline std::string show(const trial_heard&) { return "heard"; }
inline std::string show(const log_policy_matched& x) {
  return "matched(" + x.policy + text(x.cancel_retries, "no retry") +
         (x.exclude_agent.empty() ? "" : " not on " + x.exclude_agent) + ")";
}
inline const char* name_of_step(deletion_step x) {
  static constexpr const char* steps[] = {"none", "ordered", "failed", "done"};
  return steps[int(x)];
}
inline std::string show(const trial_archived& x) {
  return (x.archived ? "archived(" : "unarchived(") + text(x.experiment) + "/" + text(x.trial) + ")";
}
inline std::string show(const trial_deleted& x) {
  return "deleted(" + text(x.experiment) + "/" + text(x.trial) + " " + name_of_step(x.step) +
         (x.why.empty() ? "" : ": " + x.why) + ")";
}
inline std::string show(const experiment_deleted& x) {
  return "deleted(" + text(x.id) + " " + name_of_step(x.step) + (x.why.empty() ? "" : ": " + x.why) + ")";
}
inline std::string show(const checkpoint_files_removed& x) {
  static constexpr const char* steps[] = {"none", "ordered", "failed", "done"};
  return "files_removed(" + text(x.experiment) + " " + x.cause + " " + steps[int(x.step)] + " " +
         text(x.removed) + "/" + text(x.removed + x.failed) + (x.why.empty() ? "" : ": " + x.why) + ")";
}
inline std::string show(const log_retention_changed& x) {
  return "retained(" + text(x.experiment) + "/" + text(x.trial) + " " + text(x.days) + ")";
}
inline std::string show(const group_changed& x) {
  return "group(" + text(x.id) + " " + x.name + " " + text(x.members.size()) + text(x.deleted, "deleted") +
         ")";
}
inline std::string show(const roles_changed& x) {
  return "role(" + text(x.role) + " " + (x.user ? "user " + text(x.user) : "group " + text(x.group)) +
         (x.workspace ? " in " + text(x.workspace) : "") + text(x.deleted, "deleted") + ")";
}
inline std::string show(const policy_changed& x) {
  return "policy(" + text(x.workspace) + " " + x.kind + " " + to_json(x.policies) + ")";
}
inline std::string show(const pool_bound& x) {
  return "bound(" + x.pool + " " + text(x.workspaces.size()) + ")";
}
inline std::string show(const webhook_changed& x) {
  return "webhook(" + text(x.id) + " " + x.url + text(x.deleted, "deleted") + ")";
}
inline std::string show(const webhook_event& x) { return "event(" + x.id + ")"; }
inline std::string show(const cluster_message_changed& x) { return "message(" + x.message + ")"; }
inline std::string show(const user_setting_changed& x) {
  return "setting(" + text(x.user) + " " + x.key + "=" + x.text + ")";
}
inline std::string show(const project_visited& x) {
  return "visited(" + text(x.project) + " by " + text(x.user) + ")";
}
inline std::string show(const trial_source_declared& x) {
  return "uses(" + text(x.trial) + " " + x.checkpoint + ")";
}
inline std::string show(const checkpoint_described& x) { return "described(" + x.uuid + ")"; }
inline std::string said_by(const std::string& user) { return user.empty() ? "" : " by " + user; }
inline std::string show(const experiment_changed& x) {
  return "changed(" + text(name(x.state)) + said_by(x.by) + ")";
}
inline std::string show(const search_stepped& x) {
  static constexpr const char* inputs[] = {"started",      "validated", "exited_early", "exited",
                                           "checkpointed", "ordered",   "continued"};
  std::string text_ = std::string("stepped(") + inputs[int(x.input)];
  if (x.trial)
    text_ += " " + to_string(x.trial);
  if (x.row)
    text_ += "#" + std::to_string(x.row);
  for (const auto& made : x.created)
    text_ += " +" + to_string(made.trial);
  for (const auto& stop : x.stopped)
    text_ += " -" + to_string(stop.trial);
  for (auto id : x.paused)
    text_ += " pause " + to_string(id);
  for (const auto& again : x.resumed)
    text_ += " resume " + to_string(again.trial);
  for (const auto& p : x.perturbed)
    text_ += " perturb " + to_string(p.trial) + "#" + std::to_string(p.number);
  return text_ + text(x.shut_down, "over") + ")";
}
inline std::string show(const trial_activated&) { return "activated"; }
inline std::string show(const trial_paused&) { return "paused"; }
inline std::string show(const trial_stop_ordered& x) {
  return "stopping(" + text(name(x.outcome)) + text(x.kill, "kill") + said_by(x.by) + ")";
}
inline std::string show(const trial_perturbed& x) {
  return "perturbed(#" + std::to_string(x.number) + " after " + text(x.run) + " @" + text(x.steps) + ")";
}
inline std::string show(const run_started& x) {
  return "started(" + text(x.run) + "@" + text(x.from_steps) + ")";
}
inline std::string show(const checkpoint_recorded& x) {
  return "recorded(" + text(x.run) + "@" + text(x.saved.steps) + ")";
}
inline std::string show(const run_ended& x) { return "ended(" + text(x.run) + " " + text(name(x.why)) + ")"; }
inline std::string show(const trial_ended& x) { return "done(" + text(name(x.state)) + ")"; }
inline std::string show(const allocation_placed& x) { return "placed(" + show(x.on) + ")"; }
inline std::string show(const allocation_closed& x) { return "closed(" + text(name(x.why)) + ")"; }

inline std::string show(const checkpoint_changed& x) {
  return "changed(" + x.uuid + " " + text(x.files.size()) + said_by(x.by) + ")";
}
inline std::string show(const trial_metadata_set& x) { return "metadata" + said_by(x.by); }
inline std::string show(const trial_progressed& x) {
  return "progressed(" + text(std::int64_t(x.progress * 100)) + ")";
}
inline std::string show(const allocation_ready&) { return "ready"; }
inline std::string show(const allocation_yielded& x) { return "yielded" + text(x.outside, "outside"); }
inline std::string show(const allocation_gave_up&) { return "gave_up"; }
inline std::string show(const part_made_daemon& x) { return "daemon(" + x.agent + ")"; }
inline std::string show(const member_lost& x) {
  return "member_lost(" + x.agent + (x.rank < 0 ? "" : "/" + text(x.rank)) + ")";
}
inline std::string show(const allocation_preempted& x) { return "preempted(" + x.reason + ")"; }
inline std::string show(const allocation_resized& x) {
  return "resized(#" + text(x.generation) + " to " + text(x.ranks) + text(x.later, "later") + ")";
}

// ---- trial
inline std::string show(const checkpoint_files_changed& x) {
  return "files(" + x.uuid + " " + text(x.left.size()) + ")";
}
inline std::string show(const metadata_given&) { return "metadata"; }
inline std::string show(const description_given& x) { return "description(" + x.uuid + ")"; }
inline std::string show(const log_matched& x) { return "log(" + x.pattern + ")"; }
inline std::string show(const say_in_log& x) { return "say(" + x.source + ")"; }
inline std::string show(const progress_told& x) {
  return "progress(" + text(std::int64_t(x.progress * 100)) + ")";
}
inline std::string show(const start_allocation& x) {
  return "start(" + text(x.run) + "@" + text(x.from_steps) + ")";
}
inline std::string show(const stop_allocation& x) {
  return "stop(" + text(x.run) + " " + x.reason + text(x.kill, "kill") + ")";
}
inline std::string show(const acknowledge_checkpoint& x) {
  return (x.refused.empty() ? "acknowledge(" : "refuse(") + text(x.run) + " " + x.uuid + ")";
}
inline std::string show(const report_checkpoint& x) { return "told(" + x.uuid + "@" + text(x.steps) + ")"; }
inline std::string show(const report_perturbed& x) {
  return "taken(#" + std::to_string(x.number) + " after " + text(x.run) + ")";
}
inline std::string show(const report_trial_end& x) {
  return "report(" + text(name(x.state)) + (x.exit_reason < 0 ? "" : " " + text(x.exit_reason)) + ")";
}
inline std::string show(const trial_activate&) { return "activate"; }
inline std::string show(const trial_pause&) { return "pause"; }
inline std::string show(const trial_stop& x) {
  return "stop(" + text(name(x.outcome)) + text(x.kill, "kill") + ")";
}
inline std::string show(const trial_perturb& x) { return "perturb(#" + std::to_string(x.number) + ")"; }
inline std::string show(const checkpoint_saved& x) {
  return "saved(" + text(x.run) + " " + x.saved.uuid + ")";
}
inline std::string show(const allocation_ended& x) {
  return "allocation_ended(" + text(x.run) + " " + text(name(x.why)) + ")";
}
inline std::string show(const time_passed&) { return "time"; }

// ---- allocation
inline std::string show(const request_slots& x) {
  return "request(" + text(x.slots) + (x.least ? " or " + text(x.least) : "") + ")";
}
inline std::string show(const release_slots& x) {
  return x.agent.empty() ? "release" : "release(" + x.agent + ")";
}
inline std::string show(const start_task& x) { return "start(" + show(x.on) + ")"; }
inline std::string show(const preempt_task& x) { return "preempt(" + x.agent + " " + x.reason + ")"; }
inline std::string show(const kill_task& x) { return "kill(" + x.agent + ")"; }
inline std::string show(const watch_task& x) { return "watch(" + x.agent + ")"; }
inline std::string show(const forget_task& x) { return "forget(" + x.agent + ")"; }
inline std::string show(const report_allocation_end& x) { return "report(" + text(name(x.why)) + ")"; }
inline std::string show(const slots_granted& x) { return "granted(" + show(x.on) + ")"; }
inline std::string show(const allocation_stop& x) { return "stop(" + x.reason + text(x.kill, "kill") + ")"; }
inline std::string show(const task_started& x) { return "up(" + text(x.allocation) + " " + x.agent + ")"; }
inline std::string show(const task_exited& x) {
  return "exit(" + text(x.allocation) + " " + x.agent + " " +
         (x.certain ? x.signal ? "signal " + text(x.signal) : text(x.exit_code) : "unsure") + ")";
}
inline std::string show(const task_unknown& x) {
  return "unknown(" + text(x.allocation) + " " + x.agent + ")";
}
inline std::string show(const agent_lost& x) { return "lost(" + x.agent + ")"; }

inline std::string show(const member_failed& x) {
  return "failed(" + text(x.allocation) + " " + x.agent + "/" + text(x.rank) + ")";
}
/// Shows a message of a worker or an order to it with its kind and fields: "train_until(200)".
inline std::string show_worker(const std::string& bytes) {
  if (auto order = workers::decode_worker<workers::worker_order>(bytes))
    return std::visit(overloaded{
                        [](const workers::train_until& x) {
                          return "train_until(" + text(x.batch) + text(x.may_rebuild, "or rebuild") + ")";
                        },
                        [](const workers::stop_training& x) { return "stop(" + x.reason + ")"; },
                        [](const workers::rebuild_group& x) {
                          std::string all = "rebuild(#" + text(x.generation);
                          for (const int member : x.members)
                            all += " " + text(member);
                          return all + ")";
                        },
                        [](const auto& x) { return x.tag + ("(" + text(x.number)) + ")"; },
                      },
                      *order);
  if (auto word = workers::decode_worker<workers::worker_word>(bytes))
    return std::visit(overloaded{
                        [](const workers::worker_status& x) {
                          return std::string(workers::name(x.phase)) + "(#" + text(x.generation) + " " +
                                 text(x.step) + " of " + text(x.until) + " of " + text(x.batches) + ")";
                        },
                        [](const workers::worker_failure& x) { return "failure(" + x.why + ")"; },
                        [](const workers::worker_heard& x) { return "heard(" + text(x.taken) + ")"; },
                      },
                      *word);
  return "not readable";
}
inline std::string show(const worker_said& x) {
  return "said(" + text(x.allocation) + "/" + text(x.member) + " " + show_worker(x.word) + ")";
}
inline std::string show(const slots_spare& x) {
  return "spare(" + text(x.allocation) + " " + text(x.slots) + ")";
}
inline std::string show(const order_worker& x) {
  return "order(" + x.agent + "/" + text(x.member) + " " + show_worker(x.order) + ")";
}

inline std::string show(const hold_slots& x) { return "hold(" + show(x.on) + ")"; }
inline std::string show(const answer_signals&) { return "signal"; }
inline std::string show(const answer_gang&) { return "gang"; }
inline std::string show(const signal_polled&) { return "polled"; }
inline std::string show(const stop_agreed& x) { return "agreed" + text(x.outside, "outside"); }
inline std::string show(const hyperparameters_refused&) { return "refused"; }
inline std::string show(const part_called& x) { return "called(" + text(x.node_rank) + ")"; }
inline std::string show(const work_wanted& x) {
  return x.what == work_wanted::work::validate ? "validate" : "checkpoint";
}
inline std::string show(const part_left_alone& x) { return "alone(" + text(x.node_rank) + ")"; }

// ---- pool
inline std::string show(const agent_up& x) {
  auto text_ = "agent_up(" + x.agent + " " + text(x.slots);
  for (const auto& [id, slots] : x.busy)
    text_ += " " + id;
  return text_ + ")";
}
inline std::string show(const agent_down& x) { return "agent_down(" + x.agent + ")"; }
inline std::string show(const slots_requested& x) {
  return "requested(" + text(x.allocation) + " " + text(x.slots) + ")";
}
inline std::string show(const slots_released& x) {
  return "released(" + text(x.allocation) + (x.agent.empty() ? "" : " " + x.agent) + ")";
}
inline std::string show(const report_spare& x) {
  return "spare(" + text(x.allocation) + " " + text(x.slots) + ")";
}
inline std::string show(const agent_drain& x) {
  auto text_ = (x.on ? "drain(" : "undrain(") + x.agent;
  for (int slot : x.disabled)
    text_ += " -" + text(slot);
  for (int slot : x.ended)
    text_ += " !" + text(slot);
  return text_ + (x.ends ? " !" : "") + (x.leaves_for.empty() ? "" : " for " + x.leaves_for) + ")";
}
inline std::string show(const slots_held& x) { return "held(" + text(x.allocation) + " " + show(x.on) + ")"; }
inline std::string show(const job_changed& x) { return "job(" + text(x.job.job) + ")"; }
inline std::string show(const pool_configured&) { return "configured"; }
inline std::string show(const preempt_allocation& x) {
  return "preempt(" + text(x.allocation) + (x.wanted_by ? " for " + text(x.wanted_by) : "") + " " + x.reason +
         ")";
}
inline std::string show(const holders_heard&) { return "heard"; }
inline std::string show(const agent_forgotten& x) { return "forgotten(" + x.agent + ")"; }
inline std::string show(const grant_slots& x) {
  return "grant(" + text(x.allocation) + " " + show(x.on) + ")";
}
inline std::string show(const reserve_slots& x) {
  return "reserve(" + text(x.allocation) + " " + show(x.on) + ")";
}
inline std::string show(const drop_reservation& x) { return "unreserve(" + text(x.allocation) + ")"; }
inline std::string show(const fall_back& x) {
  auto text_ = "fall_back(" + text(x.allocation);
  for (const auto& pool : x.pools)
    text_ += " " + pool;
  return text_ + ")";
}
inline std::string show(const guest_waits& x) {
  return "guest_waits(" + text(x.allocation) + (x.pool.empty() ? "" : " " + x.pool) + ")";
}
inline std::string show(const supply_told& x) { return "supply(" + x.type + ")"; }
inline std::string show(const ask_pool& x) { return "ask(" + x.pool + ")"; }
inline std::string show(const leave_pool& x) { return "leave(" + x.pool + ")"; }
inline std::string show(const report_unplaceable& x) { return "unplaceable(" + text(x.allocation) + ")"; }

// ---- members
inline std::string show(const make_pool& x) { return "pool(" + x.pool + text(x.again, "again") + ")"; }
inline std::string show(const supply_pool& x) {
  return "supply(" + x.pool + (x.settings.contains("type") ? "" : " none") + ")";
}
inline std::string show(const end_pool& x) { return "end_pool(" + x.pool + ")"; }
inline std::string show(const make_twin& x) {
  auto out = "twin(" + x.agent + " in " + x.pool + text(x.again, "again");
  for (const auto& [run, slots] : x.let_go)
    out += ", ends " + text(run) + " on " + std::to_string(slots.size());
  return out + ")";
}
inline std::string show(const end_run& x) { return "end(" + text(x.run) + " on " + x.agent + ")"; }
inline std::string show(const release_run& x) {
  return "release(" + text(x.run) + " in " + x.pool + (x.agent.empty() ? "" : " on " + x.agent) + ")";
}
inline std::string show(const end_twin& x) { return "end_twin(" + x.agent + " in " + x.pool + ")"; }
inline std::string show(const configure_pool& x) { return "configure(" + x.pool + ")"; }
inline std::string show(const order_agent& x) {
  return show(agent_drain{x.agent, x.draining, x.disabled, x.ends, x.ended, x.leaves_for});
}
inline std::string show(const watch_agent& x) { return "watch(" + x.agent + " in " + x.pool + ")"; }
inline std::string show(const forget_agent& x) { return "forget(" + x.agent + " in " + x.pool + ")"; }
inline std::string show(const give_up& x) { return "give_up: " + x.why.what; }

// ---- twin and agent
inline std::string show(const agent_registered& x) {
  auto text_ = "registered(" + std::to_string(x.epoch);
  for (const auto& t : x.inventory)
    text_ += " " + text(t.allocation) + (t.exited ? " exited" : "");
  return text_ + ")";
}
inline std::string show(const agent_heartbeat&) { return "heartbeat"; }
inline std::string show(const link_lost&) { return "link_lost"; }
inline std::string show(const start_ordered& x) { return "start(" + text(x.allocation) + ")"; }
inline std::string show(const preempt_ordered& x) { return "preempt(" + text(x.allocation) + ")"; }
inline std::string show(const kill_ordered& x) { return "kill(" + text(x.allocation) + ")"; }
inline std::string show(const forget_ordered& x) { return "forget(" + text(x.allocation) + ")"; }
inline std::string show(const watch_ordered& x) { return "watch(" + text(x.allocation) + ")"; }
inline std::string show(const worker_ordered& x) {
  return "order(" + text(x.allocation) + "/" + text(x.member) + " " + show_worker(x.order) + ")";
}
inline std::string show(const tell_worker& x) { return show(x.order); }
inline std::string show(const service_ordered& x) {
  return "connect(" + text(x.allocation) + " " + x.service + ")";
}
inline std::string show(const open_service& x) {
  return x.runs ? "open" + show(x.order) : "no" + show(x.order);
}
inline std::string show(const death_confirmed& x) { return "dead(" + text(x.allocation) + ")"; }
inline std::string show(const tell_allocation& x) {
  return "tell(" + text(x.allocation) + " " + show(x.event) + ")";
}
inline std::string show(const tell_pool& x) { return "pool(" + show(x.event) + ")"; }
inline std::string show(const acknowledge_heartbeat& x) { return x.epoch ? "ack" : "refuse"; }
inline std::string show(const link_up& x) { return "link_up(" + std::to_string(x.epoch) + ")"; }
inline std::string show(const link_down&) { return "link_down"; }
inline std::string show(const order_received& x) { return "order(" + show(x.order) + ")"; }
inline std::string show(const heartbeat_acked&) { return "acked"; }
inline std::string show(const task_adopted& x) {
  return "adopted(" + text(x.task.allocation) + text(x.task.exited, "exited") + ")";
}
inline std::string show(const task_launched& x) { return "launched(" + text(x.allocation) + ")"; }
inline std::string show(const task_is_over& x) { return "ended(" + text(x.task.allocation) + ")"; }
inline std::string show(const launch_task& x) { return "launch(" + text(x.allocation) + ")"; }
inline std::string show(const stop_task& x) { return "ask(" + text(x.allocation) + " " + x.reason + ")"; }
inline std::string show(const destroy_task& x) { return "destroy(" + text(x.allocation) + ")"; }
inline std::string show(const drop_task& x) { return "drop(" + text(x.allocation) + ")"; }
inline std::string show(const renew_leases&) { return "renew"; }
inline std::string show(const send_heartbeat&) { return "beat"; }
inline std::string show(const register_again&) { return "register"; }
inline std::string show(const report_to_twin& x) { return show(x.report); }

// ---- experiment
inline std::string show(const experiment_activate&) { return "activate"; }
inline std::string show(const experiment_pause&) { return "pause"; }
inline std::string show(const experiment_stop& x) { return "stop" + text(x.kill, "kill"); }
inline std::string show(const validation_recorded& x) {
  return "validated(" + text(x.trial) + "#" + std::to_string(x.row) + ")";
}
inline std::string show(const checkpoint_reported& x) {
  return "checkpointed(" + text(x.trial) + " " + x.uuid + ")";
}
inline std::string show(const perturbation_taken& x) {
  return "taken(" + text(x.trial) + "#" + std::to_string(x.number) + ")";
}
inline std::string show(const search_orders&) { return "orders"; }
inline std::string show(const trial_finished& x) { return "finished(" + text(x.trial) + ")"; }
inline std::string show(const search_decided& x) {
  return "decided(+" + text(std::int64_t(x.created.size())) + " -" + text(std::int64_t(x.stopped.size())) +
         text(x.shut_down, "over") + ")";
}
inline std::string show(const experiment_resources_changed& x) {
  return "resources(" + text(x.priority) + " " + std::to_string(x.weight) + " " + text(x.max_slots) + " " +
         x.pool + " by " + x.by + ")";
}
inline std::string show(const experiment_set& x) { return "set(" + text(x.priority) + " by " + x.by + ")"; }
inline std::string show(const experiment_resume& x) { return "resume(#" + text(x.number) + ")"; }
inline std::string show(const tell_resources& x) { return "tell_" + show(x.now); }
inline std::string show(const keep_snapshot& x) { return "keep(" + std::to_string(x.facts) + ")"; }
inline std::string show(const ask_searcher& x) {
  static constexpr const char* kinds[] = {"started",    "validated",    "exited_early", "exited",
                                          "progressed", "checkpointed", "ordered",      "continued"};
  return std::string("ask(") + kinds[x.event.index()] + ")";
}
inline std::string show(const spawn_trial& x) {
  return "spawn(" + text(x.trial.trial) + text(!x.active, "paused") +
         text(x.perturb.has_value(), "perturbed") + (x.continued ? " #" + text(x.continued) : "") + ")";
}
inline std::string show(const order_trial& x) {
  static constexpr const char* kinds[] = {"activate(", "pause(", "stop(", "perturb("};
  return kinds[int(x.what)] + text(x.trial) +
         (x.what == order_trial::kind::stop ? " " + text(name(x.outcome)) + text(x.kill, "kill") : "") + ")";
}
inline std::string show(const answer_validation& x) {
  return "answer(" + text(x.stop ? "stop" : "go on") + ")";
}
inline std::string show(const answer_orders& x) {
  return x.refused.empty() ? "orders taken" : "orders refused";
}
inline std::string show(const report_experiment_end& x) { return "report(" + text(name(x.state)) + ")"; }

template <class... Ts>
std::string show(const std::variant<Ts...>& x) {
  return std::visit([](const auto& one) { return show(one); }, x);
}
template <class Fact, class Action>
std::string show(const step_of<Fact, Action>& s) {
  return show(s.facts) + " | " + show(s.actions);
}

} // namespace troupe

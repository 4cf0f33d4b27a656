#pragma once
// All messages between actors and all typed actor interfaces. docs/messages.md says for each message who
// sends it, whether a repeat is safe and what a timeout means. The names of types are part of the wire
// format, so a type must never be renamed.
//
// A message is a struct with TROUPE_PACKED. On the wire it is the msgpack bytes of the struct, so that
// doubles stay exact (CAF 0.17 breaks them) and fields may be added at the end. A few messages hold actor
// handles and have an `inspect` function of their own.

#include "actors/agent_twin/agent_twin.hpp"
#include "actors/cluster/cluster.hpp"
#include "actors/experiment/experiment.hpp"
#include "actors/journal/line_matched.hpp"
#include "actors/pool/pool_events.hpp"
#include "actors/provider/provisioner_events.hpp"
#include "actors/trial/trial.hpp"
#include "storage/journal.hpp"
#include "workers/harness_link.hpp"

#include <caf/actor.hpp>
#include <caf/error.hpp>
#include <caf/fwd.hpp>
#include <caf/meta/load_callback.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/sec.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <optional>
#include <sstream>

namespace troupe {

inline constexpr std::uint32_t link_protocol = 1; ///< agents of another version are refused

template <class T>
concept packable = std::is_class_v<T> && requires(const T& x, msgpack::packer<msgpack::sbuffer>& p) {
  x.msgpack_pack(p);
};

template <class Inspector, packable T>
typename Inspector::result_type inspect(Inspector& f, T& x) {
  if constexpr (std::is_void_v<typename Inspector::result_type>) { // text for people, in traces and in the
                                                                   // shell
    std::ostringstream text;
    auto bytes = pack(x);
    text << msgpack::unpack(bytes.data(), bytes.size()).get();
    auto shown = text.str();
    return f(shown);
  } else if constexpr (Inspector::reads_state) {
    auto bytes = pack(x);
    return f(bytes);
  } else {
    std::string bytes;
    auto set = [&]() -> caf::error {
      auto got = unpack<T>(bytes);
      if (!got)
        return caf::sec::invalid_argument;
      x = std::move(*got);
      return caf::none;
    };
    return f(bytes, caf::meta::load_callback(set));
  }
}

/// An error on the wire: two fields, its code + 1 (0: there is no error) and its text.
struct error_on_wire {
  int code = 0;
  std::string what;
  error_on_wire() = default;
  explicit error_on_wire(const std::optional<error>& x)
      : code(x ? static_cast<int>(x->code) + 1 : 0), what(x ? x->what : std::string()) {}
  std::optional<error> get() const {
    if (code == 0)
      return std::nullopt;
    const bool known = code > 0 && code <= static_cast<int>(errc::internal) + 1;
    return error{known ? static_cast<errc>(code - 1) : errc::internal, what};
  }
};

/// Packs as TROUPE_PACKED does, for structs whose members differ from their fields. An error is two
/// fields.
template <class Packer, class... Ts>
void pack_fields(Packer& to, const Ts&... xs) {
  constexpr auto count = (0 + ... + (std::is_same_v<Ts, error_on_wire> ? 2 : 1));
  to.pack_array(count);
  const auto one = [&]<class T>(const T& x) {
    if constexpr (std::is_same_v<T, error_on_wire>)
      to.pack(x.code).pack(x.what);
    else
      to.pack(x);
  };
  (one(xs), ...);
}
/// Missing fields keep the value that they have; further ones are ignored.
template <class... Ts>
void unpack_fields(const msgpack::object& from, Ts&... xs) {
  if (from.type != msgpack::type::ARRAY)
    throw msgpack::type_error();
  std::uint32_t next = 0;
  const auto take = [&](auto& x) {
    if (next < from.via.array.size)
      from.via.array.ptr[next].convert(x);
    ++next;
  };
  const auto one = [&]<class T>(T& x) {
    if constexpr (std::is_same_v<T, error_on_wire>) {
      take(x.code);
      take(x.what);
    } else {
      take(x);
    }
  };
  (one(xs), ...);
}

// ---- journal
struct append_facts {
  std::string entity;
  std::uint64_t first = 0;
  std::vector<std::string> facts;
  TROUPE_PACKED(entity, first, facts)
};
struct committed {
  TROUPE_PACKED()
};
struct append_reports {
  allocation_id allocation;
  std::int32_t rank = 0;
  std::string process;
  std::uint64_t first_sequence = 1;
  std::vector<storage::report_batch::report> reports;
  TROUPE_PACKED(allocation, rank, process, first_sequence, reports)
};
struct reports_committed {
  std::uint64_t up_to = 0;
  std::optional<error> refused;
  template <class Packer>
  void msgpack_pack(Packer& to) const {
    pack_fields(to, up_to, error_on_wire(refused));
  }
  void msgpack_unpack(const msgpack::object& from) {
    error_on_wire why;
    unpack_fields(from, up_to, why);
    refused = why.get();
  }
};
struct append_log {
  task_id task;
  std::vector<log_line> lines;
  std::string source;
  std::uint64_t position = 0;
  TROUPE_PACKED(task, lines, source, position)
};
struct store_blob {
  std::string bytes;
  TROUPE_PACKED(bytes)
};
struct blob_stored {
  std::string name;
  TROUPE_PACKED(name)
};
struct flush_journal {
  TROUPE_PACKED()
};
struct log_position {
  std::string source;
  TROUPE_PACKED(source)
};
struct log_position_is {
  std::uint64_t position = 0;
  TROUPE_PACKED(position)
};

struct read_facts { ///< asks the reader of facts for the facts of `entity` from number `first` on
  std::string entity;
  std::uint64_t first = 0;
  TROUPE_PACKED(entity, first)
};
struct facts_read {
  std::vector<std::string> facts;
  TROUPE_PACKED(facts)
};

// ---- cluster
struct client_command { ///< gives the cluster one of the commands of model/commands/table.hpp, by name
  std::string user;
  bool admin = false;
  std::string allocation;
  std::string name;
  value fields;
  TROUPE_PACKED(user, admin, allocation, name, fields)
};
struct command_result { ///< the answer to a command, or the error
  result<value> got = value();
  template <class Packer>
  void msgpack_pack(Packer& to) const {
    static const value nothing;
    pack_fields(to, error_on_wire(got ? std::optional<error>() : got.error()), got ? *got : nothing);
  }
  void msgpack_unpack(const msgpack::object& from) {
    error_on_wire why;
    value answer;
    unpack_fields(from, why, answer);
    if (auto no = why.get())
      got = std::move(*no);
    else
      got = std::move(answer);
  }
};
/// A command for a trial or an allocation, which is handed down: cluster -> experiment -> trial ->
/// allocation. The actor that it is for answers with command_result. model/commands/table.hpp lists the
/// commands of trials and those of allocations.
struct task_call {
  allocation_id allocation; ///< run 0: the trial itself, whichever run is open
  std::string name;
  value fields;
  TROUPE_PACKED(allocation, name, fields)
};
struct reserve_trials {
  std::uint64_t count = 0;
  TROUPE_PACKED(count)
};
struct trials_reserved {
  trial_id first;
  TROUPE_PACKED(first)
};
struct experiment_finished {
  experiment_id id;
  TROUPE_PACKED(id)
};
/// Lines of logs that matched a pattern. The journal sends them, and stores them once their effects are
/// durable.
struct lines_matched {
  std::vector<line_matched> lines;
  TROUPE_PACKED(lines)
};
struct webhook_told { ///< the outcome of sending one event
  std::string id;     ///< id of the event
  bool done = false;
  bool final = false; ///< without `done`: the event is not sent again
  std::string why;
  TROUPE_PACKED(id, done, final, why)
};
struct webhooks_told { ///< outcomes of several events, which the sender of webhooks reports together
  std::vector<webhook_told> each;
  TROUPE_PACKED(each)
};
/// Called with the outcomes of sending, from any thread.
using webhook_ear = std::shared_ptr<const std::function<void(std::vector<webhook_told>)>>;
struct task_finished { ///< the end of a task that is not a trial is durable
  task_id id;
  TROUPE_PACKED(id)
};
struct route_validation { ///< a durable validation, which the cluster passes on to the experiment
  experiment_id experiment;
  validation_recorded what;
  TROUPE_PACKED(experiment, what)
};
struct kill_trial { ///< a user kills one trial of a search
  trial_id trial;
  std::string by;
  TROUPE_PACKED(trial, by)
};

struct orders_answered {   ///< answers the driver of a custom search once its orders are durable
  std::string refused;     ///< why the orders changed nothing; empty: they were taken
  std::uint64_t heard = 0; ///< id of the newest event
  std::vector<std::pair<std::string, trial_id>> created;
  TROUPE_PACKED(refused, heard, created)
};
struct await_events { ///< the driver of a custom search waits for an event with an id above `after`
  std::uint64_t after = 0;
  std::int64_t timeout_ms = 0;
  TROUPE_PACKED(after, timeout_ms)
};
struct events_heard {
  std::uint64_t heard = 0;
  TROUPE_PACKED(heard)
};

// ---- snapshots
struct search_save { ///< asks the searcher for its state after all inputs
  TROUPE_PACKED()
};
struct search_saved {
  std::string bytes;
  TROUPE_PACKED(bytes)
};
struct store_snapshot { ///< asks the journal to keep a snapshot
  std::string entity;
  std::uint64_t facts = 0;
  std::string bytes;
  TROUPE_PACKED(entity, facts, bytes)
};

// ---- retention
struct erase_log { ///< asks the journal to erase all log lines of a task that has ended
  task_id task;
  bool reports = false; ///< also erases the reports of the task
  TROUPE_PACKED(task, reports)
};
/// Asks retention to erase what is stored: everything of an experiment, or only its TensorBoard files. Files
/// of checkpoints are erased in two steps: a message with `only_look` makes tasks of the order, and a message
/// with `tasks` carries these out.
struct erase_stored {
  experiment_id experiment; ///< 0: only `checkpoints` are meant
  bool tensorboards_only = false;
  std::vector<std::string> checkpoints, globs; ///< files of these checkpoints whose paths match a pattern
  bool only_look = false;                      ///< nothing is erased; the answer says what would be left
  bool refresh = false;                        ///< nothing is erased; the answer says what is there
  trial_id trial;                              ///< only this trial of the experiment; 0: all trials
  std::string by;                              ///< user who gave the order
  std::vector<task_id> tasks;                  ///< collections to carry out; all other members are empty then
  TROUPE_PACKED(experiment, tensorboards_only, checkpoints, globs, only_look, refresh, trial, by, tasks)
};
struct stored_erased {
  std::vector<trial_id> trials;                                    ///< trials of the experiment
  std::map<std::string, std::map<std::string, std::int64_t>> left; ///< by checkpoint: bytes of files, by path
  std::vector<task_id> tasks; ///< answers only_look: a task for each experiment whose files will be removed
  /// Why some of it could not be erased; `left` then has the checkpoints of which files are gone.
  std::string why;
  TROUPE_PACKED(trials, left, tasks, why)
};
struct removal_work;
struct remove_stored { ///< asks a remover to remove the pieces of `work`; never leaves the process
  std::shared_ptr<removal_work> work;
};
struct stored_removed { ///< the same work with the outcome of each piece; never leaves the process
  std::shared_ptr<removal_work> work;
};
struct sweep_experiment { ///< tells retention that the experiment has ended, or that fewer checkpoints are
                          ///< kept
  experiment_id id;
  bool at_once = false; ///< without the usual hour in which users may look at the checkpoints
  TROUPE_PACKED(id, at_once)
};
struct sweep_finished { ///< no superfluous checkpoint of the experiment is left
  experiment_id id;
  TROUPE_PACKED(id)
};
struct clean_logs { ///< erases the logs of all trials whose time is over
  TROUPE_PACKED()
};
struct logs_cleaned {
  std::uint64_t trials = 0;
  TROUPE_PACKED(trials)
};

// ---- searcher
struct search_ask {
  search_input input = search_input::started;
  std::string key;
  value metrics;
  int reason = 0;
  std::string checkpoint;
  double time = 0;
  TROUPE_PACKED(input, key, metrics, reason, checkpoint, time)
};

// ---- between trial, allocation, twin, agent and harness
struct task_checkpoint { ///< goes up: a script has written a checkpoint and waits for the answer
  report_origin origin;
  checkpoint saved;
  TROUPE_PACKED(origin, saved)
};
/// Goes up: the progress that a script reports. It may be lost, as the next one tells more.
struct progress_heard {
  allocation_id allocation;
  double done = 0; ///< 0..1
  TROUPE_PACKED(allocation, done)
};
struct checkpoint_answer { ///< goes down: answers task_checkpoint
  allocation_id allocation;
  std::string uuid;
  std::string refused;
  TROUPE_PACKED(allocation, uuid, refused)
};
struct validation_answer { ///< goes down: the decision of the search on a validation
  report_origin origin;
  bool stop = false;
  std::string reason;
  TROUPE_PACKED(origin, stop, reason)
};
struct locate_agents {
  std::vector<std::string> names;
  TROUPE_PACKED(names)
};
/// The cluster tells a twin which tasks run on the agent by the journal: at a recovery, or when the twin
/// replaces one that died. The twin hears it before the agent may register. The allocations of these tasks
/// speak later; without this message the twin would kill the tasks, as no allocation waits for them.
struct expect_tasks {
  std::vector<watch_ordered> tasks;
  TROUPE_PACKED(tasks)
};
/// A message of an allocation to the twin of an agent whose handle the allocation may not know. The pool
/// hands it on in the allocation's name.
struct watch_by_name {
  std::string agent;
  watch_ordered watch;
  TROUPE_PACKED(agent, watch)
};
/// The cluster tells all actors that speak with a pool that the pool died and was made again. An actor
/// answers once it, and all actors that it owns, have told the new pool what they hold of it and what they
/// wait for.
struct pool_renewed;
struct pool_joined {
  TROUPE_PACKED()
};
/// Goes down to trials and allocations: an operator moves the experiment to this pool. A run that holds slots
/// of another pool is preempted; a run that waits, and every later run, asks this pool.
struct pool_chosen;
/// A pool tells its allocations that the twin of an agent died and was made again.
struct twin_renewed;
struct describe_pool {
  TROUPE_PACKED()
};
struct explain_allocation { ///< asks a pool why an allocation waits
  allocation_id allocation;
  std::vector<run_outlook> outlooks; ///< what is known of the runs that hold slots
  TROUPE_PACKED(allocation, outlooks)
};
struct allocation_explained { ///< the explanation for people; null: the pool does not know the allocation
  value why;
  TROUPE_PACKED(why)
};
struct look_at_agent { ///< asks a pool whether it holds anything on the agent
  std::string agent;
  TROUPE_PACKED(agent)
};
struct agent_looked_at {
  bool is_idle = false; ///< the pool holds nothing on the agent
  TROUPE_PACKED(is_idle)
};
struct list_waiting { ///< asks a pool for all runs that wait for slots
  TROUPE_PACKED()
};
struct waiting_listed { ///< the waiting runs, in the order of the queue
  std::vector<queued_run> runs;
  TROUPE_PACKED(runs)
};
/// A pool for people: `agents` as agent.list shows them, `waiting` as queue.list does (model/commands).
struct pool_description {
  int total = 0, used = 0;
  std::map<std::string, std::vector<allocation_id>> agents;
  std::vector<std::pair<allocation_id, int>> waiting;
  value details; ///< queue, jobs, quotas and reservation, as pool.describe shows them
  TROUPE_PACKED(total, used, agents, waiting, details)
};

// ---- agent
struct link_order { ///< goes from the master to an agent; exactly one of the orders is set
  std::uint64_t epoch = 0;
  std::vector<start_ordered> start;
  std::vector<preempt_ordered> preempt;
  std::vector<kill_ordered> kill;
  std::vector<forget_ordered> forget;
  std::vector<worker_ordered> worker;
  std::vector<service_ordered> services;
  TROUPE_PACKED(epoch, start, preempt, kill, forget, worker, services)
};
struct heartbeat_ack {
  std::uint64_t epoch = 0; ///< 0: the agent was given up and has to register again
  time_point sent;         ///< time of the heartbeat, by the agent's clock
  TROUPE_PACKED(epoch, sent)
};
struct link_report { ///< goes from an agent to the master; one of the reports is set
  std::uint64_t epoch = 0;
  std::vector<task_started> started;
  std::vector<task_exited> exited;
  std::vector<member_failed> failed;
  std::vector<worker_said> said;
  TROUPE_PACKED(epoch, started, exited, failed, said)
};
/// Gives an agent the cluster actor of the master, or null where the master could not be reached. The handle
/// has no static type, as the two interfaces name each other.
struct master_found {
  caf::actor cluster;
  std::string why;    ///< why the master could not be reached; empty: it was
  bool final = false; ///< the master cannot be reached with these settings at any time
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, master_found& x) {
  return f(caf::meta::type_name("master_found"), x.cluster, x.why, x.final);
}
/// A node that has connected gives its inspector, which the shell asks about the node's actors.
struct node_joined {
  std::string node;
  caf::actor inspector;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_joined& x) {
  return f(caf::meta::type_name("node_joined"), x.node, x.inspector);
}
struct dial_master {
  TROUPE_PACKED()
};

// ---- on one host: agent, worker runtime, harness gateway, log pump
struct launch_order {
  allocation_id allocation;
  std::vector<int> slots;
  launch_spec spec;
  time_point lease_from;
  std::string fence_token; ///< token with which the sandbox asks the master when the agent is dead
  TROUPE_PACKED(allocation, slots, spec, lease_from, fence_token)
};
struct destroy_order {
  allocation_id allocation;
  TROUPE_PACKED(allocation)
};
struct drop_order {
  allocation_id allocation;
  TROUPE_PACKED(allocation)
};
struct renew_order {
  time_point lease_from;                    ///< a lease ends when the time `freeze` has passed since then
  std::int64_t freeze_us = 0, adopt_us = 0; ///< lease times of the cluster in microseconds; 0: unchanged
  TROUPE_PACKED(lease_from, freeze_us, adopt_us)
};
struct adopt_order {
  TROUPE_PACKED()
};
enum class task_change : int { adopted = 0, launched, ended, all_adopted, frozen, nothing, rank_failed };
struct task_news { ///< the worker runtime reports a change of a task
  task_change change = task_change::launched;
  task_report task;
  std::string token, checkpoint_dir, spool;
  int rank = -1; ///< failed rank of the gang; -1: the news is another one
  TROUPE_PACKED(change, task, token, checkpoint_dir, spool, rank)
};
struct harness_task { ///< the processes of this task may report from now on
  allocation_id allocation;
  std::string token, checkpoint_dir;
  bool begins = false; ///< no process of the task has been started yet
  TROUPE_PACKED(allocation, token, checkpoint_dir, begins)
};
/// The processes of the task are dead. The gateway answers with harness_drained once their reports are
/// durable.
struct harness_gone {
  allocation_id allocation;
  TROUPE_PACKED(allocation)
};
struct harness_drained {
  allocation_id allocation;
  bool silent = false; ///< see task_exited
  TROUPE_PACKED(allocation, silent)
};
struct pump_spool {
  allocation_id allocation;
  std::string agent, spool;
  TROUPE_PACKED(allocation, agent, spool)
};
struct pump_end { ///< nothing more will be written to the spool
  allocation_id allocation;
  TROUPE_PACKED(allocation)
};
struct pumped { ///< all lines of the spool are in the journal
  allocation_id allocation;
  TROUPE_PACKED(allocation)
};
/// Goes from the gateway to a stand-in: a message of a process that has the allocation's token.
struct worker_frame {
  allocation_id allocation;
  int member = 0; ///< rank that the process names
  std::string process;
  std::uint64_t protocol = 0;
  std::string word;
  TROUPE_PACKED(allocation, member, process, protocol, word)
};
struct worker_reply { ///< goes from a stand-in to the gateway; either `order` or `refused` is set
  allocation_id allocation;
  int member = 0;
  std::string process;
  std::string order, refused;
  TROUPE_PACKED(allocation, member, process, order, refused)
};
/// Messages that the thread of the socket has decoded; never leaves the process.
struct harness_frames {
  std::shared_ptr<std::vector<workers::task_message>> messages;
};

// ---- interfaces, top down
using journal_actor = caf::typed_actor<
  caf::replies_to<append_facts>::with<committed>, caf::replies_to<append_reports>::with<reports_committed>,
  caf::replies_to<append_log>::with<committed>, caf::replies_to<store_blob>::with<blob_stored>,
  caf::replies_to<log_position>::with<log_position_is>, caf::reacts_to<flush_journal>,
  caf::replies_to<erase_log>::with<committed>, caf::replies_to<store_snapshot>::with<committed>>;

using fact_reader_actor = caf::typed_actor<caf::replies_to<read_facts>::with<facts_read>>;

using remover_actor = caf::typed_actor<caf::replies_to<remove_stored>::with<stored_removed>>;

using retention_actor =
  caf::typed_actor<caf::reacts_to<sweep_experiment>, caf::replies_to<clean_logs>::with<logs_cleaned>,
                   caf::replies_to<erase_stored>::with<stored_erased>, caf::reacts_to<time_passed>>;

using searcher_actor = caf::typed_actor<caf::replies_to<search_ask>::with<search_decided>,
                                        caf::replies_to<search_save>::with<search_saved>>;

using agent_actor =
  caf::typed_actor<caf::reacts_to<link_order>, caf::reacts_to<heartbeat_ack>,
                   caf::reacts_to<validation_answer>, caf::reacts_to<checkpoint_answer>,
                   caf::reacts_to<task_checkpoint>, caf::reacts_to<progress_heard>,
                   caf::reacts_to<dial_master>, caf::reacts_to<time_passed>, caf::reacts_to<task_news>,
                   caf::reacts_to<harness_drained>, caf::reacts_to<pumped>, caf::reacts_to<master_found>,
                   caf::reacts_to<worker_frame>, caf::reacts_to<worker_said>, caf::reacts_to<member_failed>,
                   caf::reacts_to<node_joined>>;
using worker_runtime_actor =
  caf::typed_actor<caf::reacts_to<launch_order>, caf::reacts_to<destroy_order>, caf::reacts_to<drop_order>,
                   caf::reacts_to<renew_order>, caf::reacts_to<adopt_order>, caf::reacts_to<task_news>>;
using harness_actor =
  caf::typed_actor<caf::reacts_to<harness_frames>, caf::reacts_to<harness_task>, caf::reacts_to<harness_gone>,
                   caf::reacts_to<validation_answer>, caf::reacts_to<checkpoint_answer>,
                   caf::reacts_to<preempt_ordered>, caf::reacts_to<journal_actor>,
                   caf::reacts_to<time_passed>, caf::reacts_to<worker_reply>>;
using stand_in_actor = ///< stands for one worker on its agent; renewals of leases are its clock
  caf::typed_actor<caf::reacts_to<worker_frame>, caf::reacts_to<worker_ordered>, caf::reacts_to<renew_order>>;
using log_pump_actor = caf::typed_actor<caf::reacts_to<pump_spool>, caf::reacts_to<pump_end>,
                                        caf::reacts_to<journal_actor>, caf::reacts_to<time_passed>>;

/// The owner of an allocation; see actors/allocation/owner.hpp.
using allocation_owner = caf::typed_actor<caf::reacts_to<allocation_ended>, caf::reacts_to<task_checkpoint>,
                                          caf::reacts_to<progress_heard>>;

using allocation_actor = caf::typed_actor<
  caf::reacts_to<slots_granted>, caf::reacts_to<report_unplaceable>, caf::reacts_to<allocation_stop>,
  caf::reacts_to<task_started>, caf::reacts_to<task_exited>, caf::reacts_to<task_unknown>,
  caf::reacts_to<agent_lost>, caf::reacts_to<time_passed>, caf::reacts_to<task_checkpoint>,
  caf::reacts_to<checkpoint_answer>, caf::reacts_to<progress_heard>, caf::reacts_to<validation_answer>,
  caf::replies_to<task_call>::with<command_result>, caf::reacts_to<member_failed>,
  caf::reacts_to<worker_said>, caf::reacts_to<slots_spare>, caf::replies_to<pool_renewed>::with<pool_joined>,
  caf::reacts_to<twin_renewed>, caf::reacts_to<preempt_allocation>, caf::reacts_to<job_changed>,
  caf::reacts_to<pool_chosen>, caf::reacts_to<fall_back>, caf::reacts_to<guest_waits>>;

using twin_actor = caf::typed_actor<
  caf::reacts_to<agent_registered, agent_actor>, caf::reacts_to<agent_heartbeat>, caf::reacts_to<link_report>,
  caf::reacts_to<start_ordered>, caf::reacts_to<preempt_ordered>, caf::reacts_to<kill_ordered>,
  caf::reacts_to<forget_ordered>, caf::reacts_to<watch_ordered>, caf::reacts_to<expect_tasks>,
  caf::reacts_to<death_confirmed>, caf::reacts_to<time_passed>, caf::reacts_to<task_checkpoint>,
  caf::reacts_to<progress_heard>, caf::reacts_to<checkpoint_answer>, caf::reacts_to<validation_answer>,
  caf::reacts_to<worker_ordered>, caf::replies_to<pool_renewed>::with<pool_joined>,
  caf::reacts_to<service_ordered>>;

/// Calls the provider of an elastic pool. The actor has a thread of its own, as a call may take a minute.
using provider_calls_actor = caf::typed_actor<caf::replies_to<list_instances>::with<instances_listed>,
                                              caf::replies_to<launch_instances>::with<instances_launched>,
                                              caf::replies_to<terminate_instances>::with<instances_ended>>;
using provisioner_actor =
  caf::typed_actor<caf::reacts_to<pool_demand>, caf::reacts_to<provider_configured>,
                   caf::reacts_to<time_passed>, caf::replies_to<pool_renewed>::with<pool_joined>>;

using pool_actor = caf::typed_actor<
  caf::reacts_to<agent_up>, caf::reacts_to<agent_down>, caf::reacts_to<slots_requested>,
  caf::reacts_to<slots_released>, caf::reacts_to<watch_by_name>, caf::reacts_to<agent_drain>,
  caf::reacts_to<twin_actor, std::string>, caf::replies_to<locate_agents>::with<std::vector<twin_actor>>,
  caf::replies_to<describe_pool>::with<pool_description>, caf::replies_to<slots_held>::with<pool_joined>,
  caf::reacts_to<holders_heard>, caf::reacts_to<agent_forgotten>, caf::reacts_to<job_changed>,
  caf::reacts_to<pool_configured>, caf::reacts_to<time_passed>,
  caf::replies_to<explain_allocation>::with<allocation_explained>,
  caf::replies_to<look_at_agent>::with<agent_looked_at>, caf::reacts_to<supply_told>,
  caf::replies_to<list_waiting>::with<waiting_listed>, caf::reacts_to<provisioner_actor>>;

struct pool_renewed {
  std::string name;
  pool_actor pool;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, pool_renewed& x) {
  return f(caf::meta::type_name("pool_renewed"), x.name, x.pool);
}
struct pool_chosen {
  std::string name;
  pool_actor pool;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, pool_chosen& x) {
  return f(caf::meta::type_name("pool_chosen"), x.name, x.pool);
}
struct twin_renewed {
  std::string agent;
  twin_actor twin;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, twin_renewed& x) {
  return f(caf::meta::type_name("twin_renewed"), x.agent, x.twin);
}

using trial_actor = caf::typed_actor<
  caf::reacts_to<trial_activate>, caf::reacts_to<trial_pause>, caf::reacts_to<trial_stop>,
  caf::reacts_to<trial_perturb>, caf::reacts_to<task_checkpoint>, caf::reacts_to<progress_heard>,
  caf::reacts_to<allocation_ended>, caf::reacts_to<time_passed>, caf::reacts_to<validation_answer>,
  caf::replies_to<task_call>::with<command_result>, caf::replies_to<pool_renewed>::with<pool_joined>,
  caf::reacts_to<job_changed>, caf::reacts_to<pool_chosen>>;

using experiment_actor = caf::typed_actor<
  caf::replies_to<experiment_activate>::with<committed>, caf::replies_to<experiment_pause>::with<committed>,
  caf::replies_to<experiment_stop>::with<committed>, caf::reacts_to<validation_recorded>,
  caf::reacts_to<trial_finished>, caf::reacts_to<checkpoint_reported>, caf::reacts_to<perturbation_taken>,
  caf::replies_to<search_orders>::with<orders_answered>, caf::replies_to<await_events>::with<events_heard>,
  caf::replies_to<kill_trial>::with<committed>, caf::reacts_to<time_passed>,
  caf::replies_to<task_call>::with<command_result>, caf::replies_to<pool_renewed>::with<pool_joined>,
  caf::replies_to<experiment_set>::with<committed>, caf::reacts_to<pool_chosen>>;

/// A task that is not a trial; orders to it are commands.
using task_actor =
  caf::typed_actor<caf::reacts_to<task_checkpoint>, caf::reacts_to<progress_heard>,
                   caf::reacts_to<allocation_ended>, caf::reacts_to<time_passed>,
                   caf::replies_to<task_call>::with<command_result>,
                   caf::replies_to<pool_renewed>::with<pool_joined>, caf::reacts_to<pool_chosen>>;

/// What an agent tells the master when it registers; the answer is `registered`.
struct register_agent {
  std::uint32_t protocol = link_protocol;
  std::string name, id, token, host;
  int slots = 0;
  std::vector<task_report> inventory;
  agent_traits traits;
  std::string pool; ///< pool that the agent wants to be in; empty: the cluster file or the default decides
  std::uint64_t life = 0; ///< number of the agent's process, higher for a later process; 0: unknown
  TROUPE_PACKED(protocol, name, id, token, host, slots, inventory, traits, pool, life)
};
struct registered {
  std::uint64_t epoch = 0;
  twin_actor twin;
  journal_actor journal;
  std::int64_t freeze_us = 0;
  std::uint16_t http_port = 0;
  std::string fence_token; ///< token of this agent's sandboxes
  /// With freeze_us, the times in `cluster.leases` of the cluster file, in microseconds; 0: the agent keeps
  /// its own.
  std::int64_t heartbeat_us = 0, adopt_us = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, registered& x) {
  return f(caf::meta::type_name("registered"), x.epoch, x.twin, x.journal, x.freeze_us, x.http_port,
           x.fence_token, x.heartbeat_us, x.adopt_us);
}

/// The only actor that a node publishes.
using cluster_actor =
  caf::typed_actor<caf::replies_to<register_agent, agent_actor>::with<registered>,
                   caf::replies_to<client_command>::with<command_result>,
                   caf::replies_to<reserve_trials>::with<trials_reserved>,
                   caf::reacts_to<experiment_finished>, caf::reacts_to<route_validation>,
                   caf::reacts_to<time_passed>, caf::reacts_to<sweep_finished>, caf::reacts_to<node_joined>,
                   caf::replies_to<lines_matched>::with<committed>, caf::reacts_to<webhooks_told>,
                   caf::reacts_to<task_finished>>;

inline command_result refused(error why) { return {std::move(why)}; }
inline command_result answered(value with = value::object()) { return {std::move(with)}; }

caf::error to_caf(const error& why);
error from_caf(const caf::error& why);

} // namespace troupe

MSGPACK_ADD_ENUM(troupe::task_change)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::harness_frames)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::remove_stored)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::stored_removed)

CAF_BEGIN_TYPE_ID_BLOCK(troupe, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(troupe, (troupe::append_facts))
CAF_ADD_TYPE_ID(troupe, (troupe::committed))
CAF_ADD_TYPE_ID(troupe, (troupe::append_reports))
CAF_ADD_TYPE_ID(troupe, (troupe::reports_committed))
CAF_ADD_TYPE_ID(troupe, (troupe::append_log))
CAF_ADD_TYPE_ID(troupe, (troupe::store_blob))
CAF_ADD_TYPE_ID(troupe, (troupe::blob_stored))
CAF_ADD_TYPE_ID(troupe, (troupe::flush_journal))
CAF_ADD_TYPE_ID(troupe, (troupe::log_position))
CAF_ADD_TYPE_ID(troupe, (troupe::log_position_is))
CAF_ADD_TYPE_ID(troupe, (troupe::client_command))
CAF_ADD_TYPE_ID(troupe, (troupe::command_result))
CAF_ADD_TYPE_ID(troupe, (troupe::reserve_trials))
CAF_ADD_TYPE_ID(troupe, (troupe::trials_reserved))
CAF_ADD_TYPE_ID(troupe, (troupe::experiment_finished))
CAF_ADD_TYPE_ID(troupe, (troupe::kill_trial))
CAF_ADD_TYPE_ID(troupe, (troupe::route_validation))
CAF_ADD_TYPE_ID(troupe, (troupe::search_ask))
CAF_ADD_TYPE_ID(troupe, (troupe::search_decided))
CAF_ADD_TYPE_ID(troupe, (troupe::task_checkpoint))
CAF_ADD_TYPE_ID(troupe, (troupe::checkpoint_answer))
CAF_ADD_TYPE_ID(troupe, (troupe::validation_answer))
CAF_ADD_TYPE_ID(troupe, (troupe::locate_agents))
CAF_ADD_TYPE_ID(troupe, (troupe::describe_pool))
CAF_ADD_TYPE_ID(troupe, (troupe::watch_by_name))
CAF_ADD_TYPE_ID(troupe, (troupe::expect_tasks))
CAF_ADD_TYPE_ID(troupe, (troupe::pool_description))
CAF_ADD_TYPE_ID(troupe, (troupe::link_order))
CAF_ADD_TYPE_ID(troupe, (troupe::heartbeat_ack))
CAF_ADD_TYPE_ID(troupe, (troupe::link_report))
CAF_ADD_TYPE_ID(troupe, (troupe::dial_master))
CAF_ADD_TYPE_ID(troupe, (troupe::master_found))
CAF_ADD_TYPE_ID(troupe, (troupe::register_agent))
CAF_ADD_TYPE_ID(troupe, (troupe::registered))
CAF_ADD_TYPE_ID(troupe, (troupe::time_passed))
CAF_ADD_TYPE_ID(troupe, (troupe::trial_activate))
CAF_ADD_TYPE_ID(troupe, (troupe::trial_pause))
CAF_ADD_TYPE_ID(troupe, (troupe::trial_stop))
CAF_ADD_TYPE_ID(troupe, (troupe::allocation_ended))
CAF_ADD_TYPE_ID(troupe, (troupe::slots_granted))
CAF_ADD_TYPE_ID(troupe, (troupe::report_unplaceable))
CAF_ADD_TYPE_ID(troupe, (troupe::allocation_stop))
CAF_ADD_TYPE_ID(troupe, (troupe::task_started))
CAF_ADD_TYPE_ID(troupe, (troupe::task_exited))
CAF_ADD_TYPE_ID(troupe, (troupe::task_unknown))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_lost))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_up))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_down))
CAF_ADD_TYPE_ID(troupe, (troupe::slots_requested))
CAF_ADD_TYPE_ID(troupe, (troupe::slots_released))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_registered))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_heartbeat))
CAF_ADD_TYPE_ID(troupe, (troupe::start_ordered))
CAF_ADD_TYPE_ID(troupe, (troupe::preempt_ordered))
CAF_ADD_TYPE_ID(troupe, (troupe::kill_ordered))
CAF_ADD_TYPE_ID(troupe, (troupe::forget_ordered))
CAF_ADD_TYPE_ID(troupe, (troupe::watch_ordered))
CAF_ADD_TYPE_ID(troupe, (troupe::death_confirmed))
CAF_ADD_TYPE_ID(troupe, (troupe::experiment_activate))
CAF_ADD_TYPE_ID(troupe, (troupe::experiment_pause))
CAF_ADD_TYPE_ID(troupe, (troupe::experiment_stop))
CAF_ADD_TYPE_ID(troupe, (troupe::validation_recorded))
CAF_ADD_TYPE_ID(troupe, (troupe::trial_finished))
CAF_ADD_TYPE_ID(troupe, (troupe::launch_order))
CAF_ADD_TYPE_ID(troupe, (troupe::destroy_order))
CAF_ADD_TYPE_ID(troupe, (troupe::drop_order))
CAF_ADD_TYPE_ID(troupe, (troupe::renew_order))
CAF_ADD_TYPE_ID(troupe, (troupe::adopt_order))
CAF_ADD_TYPE_ID(troupe, (troupe::task_news))
CAF_ADD_TYPE_ID(troupe, (troupe::harness_task))
CAF_ADD_TYPE_ID(troupe, (troupe::harness_gone))
CAF_ADD_TYPE_ID(troupe, (troupe::harness_drained))
CAF_ADD_TYPE_ID(troupe, (troupe::pump_spool))
CAF_ADD_TYPE_ID(troupe, (troupe::pump_end))
CAF_ADD_TYPE_ID(troupe, (troupe::pumped))
CAF_ADD_TYPE_ID(troupe, (troupe::harness_frames))
CAF_ADD_TYPE_ID(troupe, (troupe::worker_runtime_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::harness_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::log_pump_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::journal_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::searcher_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::allocation_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::twin_actor))
CAF_ADD_TYPE_ID(troupe, (std::vector<troupe::twin_actor>))
CAF_ADD_TYPE_ID(troupe, (troupe::pool_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::trial_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::experiment_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::cluster_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::trial_perturb))
CAF_ADD_TYPE_ID(troupe, (troupe::checkpoint_reported))
CAF_ADD_TYPE_ID(troupe, (troupe::perturbation_taken))
CAF_ADD_TYPE_ID(troupe, (troupe::search_orders))
CAF_ADD_TYPE_ID(troupe, (troupe::orders_answered))
CAF_ADD_TYPE_ID(troupe, (troupe::await_events))
CAF_ADD_TYPE_ID(troupe, (troupe::events_heard))
CAF_ADD_TYPE_ID(troupe, (troupe::task_call))
CAF_ADD_TYPE_ID(troupe, (troupe::erase_log))
CAF_ADD_TYPE_ID(troupe, (troupe::sweep_experiment))
CAF_ADD_TYPE_ID(troupe, (troupe::sweep_finished))
CAF_ADD_TYPE_ID(troupe, (troupe::clean_logs))
CAF_ADD_TYPE_ID(troupe, (troupe::logs_cleaned))
CAF_ADD_TYPE_ID(troupe, (troupe::search_save))
CAF_ADD_TYPE_ID(troupe, (troupe::search_saved))
CAF_ADD_TYPE_ID(troupe, (troupe::store_snapshot))
CAF_ADD_TYPE_ID(troupe, (troupe::member_failed))
CAF_ADD_TYPE_ID(troupe, (troupe::worker_said))
CAF_ADD_TYPE_ID(troupe, (troupe::slots_spare))
CAF_ADD_TYPE_ID(troupe, (troupe::worker_ordered))
CAF_ADD_TYPE_ID(troupe, (troupe::worker_frame))
CAF_ADD_TYPE_ID(troupe, (troupe::worker_reply))
CAF_ADD_TYPE_ID(troupe, (troupe::node_joined))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_drain))
CAF_ADD_TYPE_ID(troupe, (troupe::read_facts))
CAF_ADD_TYPE_ID(troupe, (troupe::facts_read))
CAF_ADD_TYPE_ID(troupe, (troupe::slots_held))
CAF_ADD_TYPE_ID(troupe, (troupe::holders_heard))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_forgotten))
CAF_ADD_TYPE_ID(troupe, (troupe::pool_renewed))
CAF_ADD_TYPE_ID(troupe, (troupe::pool_joined))
CAF_ADD_TYPE_ID(troupe, (troupe::twin_renewed))
CAF_ADD_TYPE_ID(troupe, (troupe::job_changed))
CAF_ADD_TYPE_ID(troupe, (troupe::pool_configured))
CAF_ADD_TYPE_ID(troupe, (troupe::preempt_allocation))
CAF_ADD_TYPE_ID(troupe, (troupe::explain_allocation))
CAF_ADD_TYPE_ID(troupe, (troupe::look_at_agent))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_looked_at))
CAF_ADD_TYPE_ID(troupe, (troupe::allocation_explained))
CAF_ADD_TYPE_ID(troupe, (troupe::list_waiting))
CAF_ADD_TYPE_ID(troupe, (troupe::waiting_listed))
CAF_ADD_TYPE_ID(troupe, (troupe::experiment_set))
CAF_ADD_TYPE_ID(troupe, (troupe::pool_chosen))
CAF_ADD_TYPE_ID(troupe, (troupe::erase_stored))
CAF_ADD_TYPE_ID(troupe, (troupe::stored_erased))
CAF_ADD_TYPE_ID(troupe, (troupe::remove_stored))
CAF_ADD_TYPE_ID(troupe, (troupe::stored_removed))
CAF_ADD_TYPE_ID(troupe, (troupe::fall_back))
CAF_ADD_TYPE_ID(troupe, (troupe::guest_waits))
CAF_ADD_TYPE_ID(troupe, (troupe::supply_told))
CAF_ADD_TYPE_ID(troupe, (troupe::pool_demand))
CAF_ADD_TYPE_ID(troupe, (troupe::provider_configured))
CAF_ADD_TYPE_ID(troupe, (troupe::list_instances))
CAF_ADD_TYPE_ID(troupe, (troupe::launch_instances))
CAF_ADD_TYPE_ID(troupe, (troupe::terminate_instances))
CAF_ADD_TYPE_ID(troupe, (troupe::instances_listed))
CAF_ADD_TYPE_ID(troupe, (troupe::instances_launched))
CAF_ADD_TYPE_ID(troupe, (troupe::instances_ended))
CAF_ADD_TYPE_ID(troupe, (troupe::provider_calls_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::provisioner_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::service_ordered))
CAF_ADD_TYPE_ID(troupe, (troupe::lines_matched))
CAF_ADD_TYPE_ID(troupe, (troupe::webhooks_told))
CAF_ADD_TYPE_ID(troupe, (troupe::task_finished))
CAF_ADD_TYPE_ID(troupe, (troupe::task_actor))
CAF_ADD_TYPE_ID(troupe, (troupe::progress_heard))
CAF_END_TYPE_ID_BLOCK(troupe)

#include "test/sim/platform/replayed_machines.hpp"

#include "actors/shells/durable.hpp"
#include "actors/shells/probed.hpp"

#include <algorithm>
#include <functional>
#include <memory>

namespace troupe::sim {
namespace {

/// Sets whether live machines show their snapshots alone, which is much quicker.
void show_snapshots_alone(node_config& config, bool on) {
  caf::put(config.content, std::string("driven.") + snapshots_alone, std::int64_t{on});
}

} // namespace

replayed_machines::replayed_machines(node_config& config, bool skips)
    : config_(config), probes_(*config.probes), skips_(skips) {
  show_snapshots_alone(config_, true);
}

void replayed_machines::stored(const storage::commit_summary& what, const storage::reader& reads) {
  for (const auto& fact : what.facts)
    take(fact, reads);
}

void replayed_machines::take(const storage::committed_fact& x, const storage::reader& reads) {
  constexpr std::string_view of_experiment = "experiment/", of_trial = "trial/";
  if (x.entity.starts_with(of_experiment)) {
    if (const auto fact = decode_as<experiment_fact>(x.bytes))
      take(parse_id<experiment_id>(std::string_view(x.entity).substr(of_experiment.size())), *fact, reads);
  } else if (x.entity.starts_with(of_trial)) {
    if (const auto fact = decode_as<trial_fact>(x.bytes))
      take(parse_id<trial_id>(std::string_view(x.entity).substr(of_trial.size())), *fact);
  }
}

void replayed_machines::take(experiment_id id, const experiment_fact& fact, const storage::reader& reads) {
  if (!settings_.contains(id)) {
    const auto row = reads.experiment(id);
    auto settings = row ? experiment_settings_of({id, row->config, {}, {}, "/", {}}) : row.error();
    if (!settings)
      return;
    settings_.emplace(id, std::move(*settings));
  }
  const auto& settings = settings_.at(id);
  auto name = entity(id);
  auto known = experiments_.find(name);
  if (known == experiments_.end())
    known = experiments_.try_emplace(name, experiment(experiment_spec_of(settings))).first;
  known->second.machine.replay(fact);
  ++known->second.facts;
  static_cast<void>(known->second.machine.take_history());
  changed_.insert(std::move(name));
  if (const auto* step = std::get_if<search_stepped>(&fact))
    for (const auto& made : step->created)
      trials_.try_emplace(entity(made.trial), trial(trial_spec_of(settings, made)));
}

void replayed_machines::take(trial_id id, const trial_fact& fact) {
  const auto known = trials_.find(entity(id));
  if (known == trials_.end())
    return;
  ++known->second.facts;
  if (!(skips_ && std::holds_alternative<trial_paused>(fact)))
    known->second.machine.replay(fact);
  changed_.insert(known->first);
}

std::string replayed_machines::differs_after(const caf::scheduled_actor* ran) {
  for (auto it = changed_.begin(); it != changed_.end();) {
    const auto name = *it++;
    const auto entry = probes_.find(name);
    const auto who = entry ? entry->who.lock() : nullptr;
    auto* live = who ? dynamic_cast<caf::scheduled_actor*>(who->get()) : nullptr;
    if (!live) // it has ended
      changed_.erase(name);
    if (live != ran)
      continue;
    const auto of_experiment = experiments_.find(name);
    return of_experiment != experiments_.end() ? compare(name, of_experiment->second, *live)
                                               : compare(name, trials_.at(name), *live);
  }
  return {};
}

template <class Machine>
std::string replayed_machines::compare(const std::string& name, const replayed<Machine>& with,
                                       caf::scheduled_actor& live) {
  value shown;
  const auto show = [&](probe_side& side) { shown = side.describe ? side.describe() : value(); };
  const auto order = std::make_shared<std::function<void(probe_side&)>>(show);
  const auto ask = [&] {
    const auto mail = caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, probe_order{order});
    live.consume(*mail); // between two messages, as when it takes the order from its mailbox
  };
  ask();
  if (!shown.is_object() || !shown.contains("snapshot") || shown.at("facts") != with.facts)
    return {}; // not all that it has decided is stored
  changed_.erase(name);
  ++compared_;
  const auto& bytes = shown.at("snapshot").get_binary();
  const auto replayed = with.machine.snapshot();
  if (std::equal(bytes.begin(), bytes.end(), replayed.begin(), replayed.end(),
                 [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }))
    return {};
  show_snapshots_alone(config_, false);
  ask();
  return "what is stored of " + name +
         " gives another state than its actor has: " + with.machine.describe().dump() + ", and not " +
         shown.dump();
}

} // namespace troupe::sim

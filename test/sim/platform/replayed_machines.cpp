#include "test/sim/platform/replayed_machines.hpp"

#include "actors/shells/probed.hpp"

#include <functional>
#include <memory>

namespace troupe::sim {

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
  auto& known = experiments_.try_emplace(entity(id), experiment(experiment_spec_of(settings))).first->second;
  known.machine.replay(fact);
  ++known.facts;
  static_cast<void>(known.machine.take_history());
  changed_.insert(entity(id));
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
  const auto ask = [&](probe_side& side) { shown = side.describe ? side.describe() : value(); };
  auto order = std::make_shared<std::function<void(probe_side&)>>(ask);
  const auto mail =
    caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, probe_order{std::move(order)});
  live.consume(*mail); // between two messages, as when it takes the order from its mailbox
  if (!shown.is_object() || !shown.contains("snapshot") || shown.at("facts") != with.facts)
    return {}; // not all that it has decided is stored
  changed_.erase(name);
  ++compared_;
  const auto& bytes = shown.at("snapshot").get_binary();
  if (std::string(bytes.begin(), bytes.end()) == with.machine.snapshot())
    return {};
  return "what is stored of " + name +
         " gives another state than its actor has: " + with.machine.describe().dump() + ", and not " +
         shown.dump();
}

} // namespace troupe::sim

// Facts to the row of their experiment, and the index of submitters' keys.

#include "storage/projections/projections.hpp"

namespace troupe::storage::projections {
namespace {

void on(const experiment_created& x, const subject&, tables& rows) {
  auto& row = rows.experiments.make(x.id);
  row = {x.id, x.name, x.owner, x.context, x.key, x.source, {}, true, x.config, x.at};
  if (x.config.is_object())
    if (auto searcher = x.config.find("searcher"); searcher != x.config.end() && searcher->is_object()) {
      if (auto metric = searcher->find("metric"); metric != searcher->end() && metric->is_string())
        row.metric = metric->get<std::string>();
      if (auto smaller = searcher->find("smaller_is_better"); smaller != searcher->end() && smaller->is_boolean())
        row.smaller_is_better = smaller->get<bool>();
    }
  rows.experiment_states.make(x.id);
  if (!x.key.empty())
    rows.entries.emplace_back(keys::tagged('K', x.key), keys::one(x.id.value));
}

void on(const experiment_changed& x, const subject& of, tables& rows) {
  auto* row = rows.experiment_states.change(of.experiment);
  if (!row)
    return;
  row->state = x.state;
  row->why = x.why;
  if (terminal(x.state))
    row->ended = x.at;
}

void on(const search_stepped& x, const subject& of, tables& rows) {
  auto* row = rows.experiment_states.change(of.experiment);
  if (!row)
    return;
  row->progress = x.progress;
  row->num_trials += x.created.size();
  const auto* constant = rows.experiments.find(of.experiment);
  if (x.input != search_input::validated || !constant || !x.metrics.is_object())
    return;
  auto found = x.metrics.find(constant->metric);
  auto metric = found == x.metrics.end() ? std::nullopt : number_in(*found);
  if (metric && better(*metric, row->best_metric, !row->best_trial, constant->smaller_is_better)) {
    row->best_trial = x.trial;
    row->best_metric = *metric;
  }
}

template <class Other>
void on(const Other&, const subject&, tables&) {}

} // namespace

void fold_experiment(const fact& x, const subject& of, tables& rows) {
  std::visit([&](const auto& one) { on(one, of, rows); }, x);
}

} // namespace troupe::storage::projections

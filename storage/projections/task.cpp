// Facts to what every task has: whose it is, and which of its runs is open.

#include "storage/projections/projections.hpp"

namespace troupe::storage::projections {
namespace {

std::string workspace_of(const value& config) {
  if (!config.is_object())
    return {};
  const auto found = config.find("workspace");
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void on(const search_stepped& x, const subject& of, tables& rows) {
  if (x.created.empty())
    return;
  const auto* experiment = rows.experiments.find(of.experiment);
  for (const auto& created : x.created) {
    auto& row = rows.tasks.make(created.trial);
    row.id = created.trial;
    row.experiment = of.experiment;
    row.owner = experiment ? experiment->owner : std::string();
    row.workspace = experiment ? workspace_of(experiment->config) : std::string();
    row.created = x.at;
  }
}

void on(const run_started& x, const subject& of, tables& rows) {
  auto* row = rows.tasks.change(of.task);
  if (!row || x.run <= row->run)
    return;
  row->run = x.run;
  row->open = true;
}

void on(const run_ended& x, const subject& of, tables& rows) {
  if (auto* row = rows.tasks.change(of.task); row && row->run == x.run)
    row->open = false;
}

void on(const trial_ended& x, const subject& of, tables& rows) {
  if (auto* row = rows.tasks.change(of.task))
    row->ended = x.at;
}

void on(const trial_continued& x, const subject& of, tables& rows) {
  auto* row = rows.tasks.change(of.task);
  if (!row)
    return;
  row->ended = {};
  row->continued.push_back(x.run);
}

template <class Other>
void on(const Other&, const subject&, tables&) {}

} // namespace

void fold_task(const fact& x, const subject& of, tables& rows) {
  std::visit([&](const auto& one) { on(one, of, rows); }, x);
}

} // namespace troupe::storage::projections

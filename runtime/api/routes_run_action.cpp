// Routes for actions on many runs. Each run is judged on its own and has its own line in the answer.

#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/guard.hpp"
#include "runtime/api/run_search.hpp"

#include <set>

namespace troupe::api {
namespace {

struct chosen_runs {
  std::vector<trial_id> ids; ///< ids, each of them once
  project_id project;        ///< project that the runs have to be in; 0: any
  value body;
};

constexpr std::size_t most_runs = 10'000;

result<chosen_runs> runs_in(const call& c, const char* project_key) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  chosen_runs out;
  out.body = *body;
  fields f{out.body};
  std::set<trial_id> known;
  for (const auto id : f.ids<trial_id>("runIds"))
    if (known.insert(id).second)
      out.ids.push_back(id);
  const auto filter = f.text("filter");
  out.project = f.id<project_id>(project_key);
  if (f.bad())
    return *f.bad();
  if (filter.empty())
    return out.ids.size() > most_runs
             ? result<chosen_runs>(error{errc::invalid, "runIds: at most 10000 at once"})
             : out;
  if (!out.ids.empty())
    return error{errc::invalid, "if filter is provided run id list must be empty"};
  auto found = runs_that_fit(c, out.project, filter);
  if (!found)
    return found.error();
  out.ids = std::move(*found);
  return out;
}

/// An order that goes to the cluster once; nullopt: nothing has to be done. Its answer comes on any thread.
using errand = std::optional<grouped_order>;

/// The errand of an order, or the refusal where the caller lacks a right for it; `state` is the reason why
/// the order is not given, which is told only to who has the right.
template <class Order>
result<errand> order_of(const call& c, Order what, result<bool> state = true) {
  if (auto fine = may_order(c.parts->cluster, c.by.who, what); !fine)
    return fine.error();
  if (!state)
    return state.error();
  return *state ? errand(grouped(std::move(what))) : errand();
}

/// Makes the errand for a run; none where the run is already as it should be.
using errand_of_run = std::function<result<errand>(const trial_row&, const experiment_row&)>;

struct run_rules {
  bool by_project = true;     ///< a run of another project than the named one is not found
  bool by_experiment = false; ///< one errand serves all chosen runs of an experiment
  const char* failed = "";    ///< text before the cluster's error
};

std::string not_found_text(trial_id id, project_id project) {
  return "Run with id '" + to_string(id) + "' not found" +
         (project ? " in project with id '" + to_string(project) + "'" : "");
}

/// Carries out the errands and answers {results: [{id, error}]}.
void on_runs(const call_ptr& c, const reply& back, const chosen_runs& chosen, const errand_of_run& make,
             run_rules rules = {}) {
  struct work {
    std::mutex mutex;
    std::size_t left = 1;
    std::map<trial_id, std::string> errors;
  };
  struct planned {
    grouped_order order;
    std::vector<trial_id> of;
  };
  auto all = std::make_shared<work>();
  std::vector<planned> errands;
  std::map<experiment_id, std::size_t> of_experiment;
  const auto project = rules.by_project ? chosen.project : project_id{};
  for (const auto id : chosen.ids) {
    auto trial = c->parts->storage->trial(id);
    auto row =
      trial ? c->parts->storage->experiment(trial->experiment) : result<experiment_row>(trial.error());
    if (!row || trial->deletion == deletion_step::ordered || (project && row->project != project)) {
      all->errors[id] = not_found_text(id, project);
      continue;
    }
    auto wanted = make(*trial, *row);
    if (!wanted || !*wanted)
      all->errors[id] = wanted ? std::string() : wanted.error().what;
    else if (auto at = of_experiment.find(row->id); rules.by_experiment && at != of_experiment.end())
      errands[at->second].of.push_back(id);
    else {
      of_experiment[row->id] = errands.size();
      errands.push_back({std::move(**wanted), {id}});
    }
  }
  all->left += errands.size();
  const auto done = [all, back, c](const std::vector<trial_id>& ids, const std::string& why) {
    std::lock_guard lock(all->mutex);
    for (const auto id : ids)
      all->errors[id] = why;
    if (--all->left)
      return;
    value results = value::array();
    for (const auto& [one, text] : all->errors)
      results.push_back({{"id", one.value}, {"error", text}});
    back(json({{"results", std::move(results)}}, c->query.has("pretty")));
  };
  std::vector<grouped_order> orders;
  for (auto& one : errands) {
    one.order.done = [done, of = std::move(one.of), failed = rules.failed](result<value> got) {
      done(of, got ? std::string() : failed + got.error().what);
    };
    orders.push_back(std::move(one.order));
  }
  c->parts->cluster.call_together(c->by.who, std::move(orders));
  done({}, "");
}

std::string quoted(trial_id id) { return "'" + to_string(id) + "'"; }

bool has_others(const experiment_row& row) { return is_search(row) || row.num_trials > 1; }

void kill_runs(const call_ptr& c, const reply& back) {
  auto chosen = runs_in(*c, "projectId");
  if (!chosen)
    return back(failure(chosen.error()));
  on_runs(c, back, *chosen,
          [c](const trial_row& t, const experiment_row&) -> result<errand> {
            return order_of(*c, commands::trial_kill{t.id}, !terminal(t.state));
          },
          {.by_project = false});
}

template <class Order>
handler pause_or_resume() {
  return [](const call_ptr& c, const reply& back) {
    auto chosen = runs_in(*c, "projectId");
    if (!chosen)
      return back(failure(chosen.error()));
    on_runs(c, back, *chosen, [c](const trial_row& t, const experiment_row& row) -> result<errand> {
      result<bool> state = true;
      if (t.archived || row.archived)
        state = error{errc::invalid, "Run is archived."};
      else if (has_others(row))
        state = error{errc::invalid, "Cannot pause/unpause run " + quoted(t.id) + " (part of multi-trial)."};
      return order_of(*c, Order{row.id}, std::move(state));
    });
  };
}

handler archive_runs(bool archived) {
  return [archived](const call_ptr& c, const reply& back) {
    auto chosen = runs_in(*c, "projectId");
    if (!chosen)
      return back(failure(chosen.error()));
    on_runs(c, back, *chosen, [c, archived](const trial_row& t, const experiment_row&) -> result<errand> {
      return order_of(*c, commands::trial_archive{t.id, archived});
    });
  };
}

void delete_runs(const call_ptr& c, const reply& back) {
  auto chosen = runs_in(*c, "projectId");
  if (!chosen)
    return back(failure(chosen.error()));
  on_runs(c, back, *chosen, [c](const trial_row& t, const experiment_row& row) -> result<errand> {
    if (auto fine = allowed(*c, action::remove, {thing::experiment, to_string(row.id), row.owner}); !fine)
      return fine.error();
    if (has_others(row))
      return order_of(*c, commands::trial_delete{t.id});
    result<bool> state = true;
    if (!terminal(t.state) || !terminal(row.state))
      state = error{errc::invalid, "Run is not in a terminal state."};
    return order_of(*c, commands::experiment_delete{row.id}, state); // the experiment would have no run left
  });
}

void move_runs(const call_ptr& c, const reply& back) {
  auto chosen = runs_in(*c, "sourceProjectId");
  if (!chosen)
    return back(failure(chosen.error()));
  fields f{chosen->body};
  const auto to = f.id<project_id>("destinationProjectId");
  const bool skip = f.flag("skipMultitrial");
  if (f.bad())
    return back(failure(*f.bad()));
  on_runs(
    c, back, *chosen,
    [c, to, skip](const trial_row& t, const experiment_row& row) -> result<errand> {
      if (auto fine = allowed(*c, action::move, {thing::experiment, to_string(row.id), row.owner}); !fine)
        return fine.error();
      result<bool> state = true;
      if (t.archived || row.archived)
        state = error{errc::invalid, "Run is archived."};
      else if (has_others(row) && skip)
        state = error{errc::invalid, "Skipping run " + quoted(t.id) + " (part of multi-trial)."};
      return order_of(*c, commands::experiment_move{row.id, to}, std::move(state));
    },
    // A search is moved with all its runs.
    {.by_experiment = true, .failed = "Failed to move associated experiment: "});
}

} // namespace

std::vector<route> run_action_routes() {
  const authority::need change{action::change, thing::experiment};
  return {
    {"POST",
     "/api/v1/runs/kill",
     {action::kill, thing::experiment},
     kill_runs,
     "v1KillRunsRequest",
     "v1KillRunsResponse",
     "Ends many runs at once."},
    {"POST", "/api/v1/runs/pause", change, pause_or_resume<commands::experiment_pause>(),
     "v1PauseRunsRequest", "v1PauseRunsResponse", "Pauses many runs that are part of no search."},
    {"POST", "/api/v1/runs/resume", change, pause_or_resume<commands::experiment_activate>(),
     "v1ResumeRunsRequest", "v1ResumeRunsResponse", "Goes on with many runs that are part of no search."},
    {"POST", "/api/v1/runs/archive", change, archive_runs(true), "v1ArchiveRunsRequest",
     "v1ArchiveRunsResponse", "Archives many ended runs, each alone."},
    {"POST", "/api/v1/runs/unarchive", change, archive_runs(false), "v1UnarchiveRunsRequest",
     "v1UnarchiveRunsResponse", "Opens many archived runs again."},
    asks_again({"POST",
                "/api/v1/runs/delete",
                {action::remove, thing::experiment},
                delete_runs,
                "v1DeleteRunsRequest",
                "v1DeleteRunsResponse",
                "Deletes many ended runs, behind the answer; the only one of an experiment with it."}),
    asks_again({"POST",
                "/api/v1/runs/move",
                {action::move, thing::experiment},
                move_runs,
                "v1MoveRunsRequest",
                "v1MoveRunsResponse",
                "Moves many runs to another project, each with its whole experiment."}),
  };
}

} // namespace troupe::api

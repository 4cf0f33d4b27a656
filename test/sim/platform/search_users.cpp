#include "test/sim/platform/search_users.hpp"

#include "model/checkpoint_place.hpp"

#include <algorithm>
#include <filesystem>

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;
constexpr int most_tries = 20; ///< tries of an order that is refused because the search is still ending

/// Whether the order is possible only for a search that has ended.
bool needs_end(search_wish what) {
  return what == search_wish::go_on || what == search_wish::archive || what == search_wish::remove;
}

} // namespace

search_users::search_users(scene with, const platform_plan& plan, project_id other_project)
    : with_(std::move(with)), plan_(plan), other_project_(other_project), users_(plan.searches.size()) {}

void search_users::begin(std::size_t search, experiment_id id) {
  users_[search].id = id;
  users_[search].waits = true;
  go_on(search, 0);
}

void search_users::go_on(std::size_t n, std::size_t wish) {
  const auto& wishes = plan_.searches[n].wishes;
  if (wish == wishes.size()) {
    users_[n].waits = false;
    return;
  }
  with_.later(wishes[wish].after, [this, n, wish] {
    if (needs_end(plan_.searches[n].wishes[wish].what))
      return await_end(n, wish, [this, n, wish] { perform(n, wish, 0); });
    perform(n, wish, 0);
  });
}

void search_users::await_end(std::size_t n, std::size_t wish, std::function<void()> then) {
  const auto reads = with_.reads();
  const auto state = reads ? state_of(*reads, users_[n].id) : std::nullopt;
  if (state && terminal(*state))
    return then();
  with_.later(500ms, [this, n, wish, then] { await_end(n, wish, then); });
}

void search_users::perform(std::size_t n, std::size_t wish, int tries) {
  const auto& wanted = plan_.searches[n].wishes[wish];
  auto& one = users_[n];
  value fields{{"id", one.id.value}};
  std::string order;
  switch (wanted.what) {
  case search_wish::kill:
  case search_wish::cancel:
    order = wanted.what == search_wish::kill ? "experiment.kill" : "experiment.cancel";
    one.stopped = true;
    break;
  case search_wish::go_on:
    order = "experiment.continue";
    one.stop_acknowledged = false;
    break;
  case search_wish::archive:
  case search_wish::unarchive:
    order = "experiment.describe";
    fields["archived"] = wanted.what == search_wish::archive;
    one.archived.reset();
    break;
  case search_wish::move:
    order = "experiment.move";
    fields["project"] = wanted.number == 0 ? 1 : other_project_.value;
    one.project.reset();
    break;
  case search_wish::set_priority:
    order = "experiment.set";
    fields["priority"] = wanted.number;
    one.priority.reset();
    break;
  case search_wish::set_max_slots:
    order = "experiment.set";
    fields["max_slots"] = wanted.number;
    one.max_slots.reset();
    break;
  case search_wish::set_pool:
    order = "experiment.set";
    fields["pool"] = name_of_pool(wanted.number);
    one.pool.reset();
    break;
  case search_wish::remove:
    if (!with_.reads())
      return with_.later(500ms, [this, n, wish, tries] { perform(n, wish, tries); });
    order = "experiment.delete";
    one.delete_sent = true;
    note_what_goes(one);
    one.stop_acknowledged = false;
    if (wanted.number == 1) // another user orders the same at the same time
      with_.insist("experiment.continue", fields, [](const auto&) {});
    break;
  }
  with_.insist(order, fields, [this, n, wish, tries, what = wanted.what, fields](const result<value>& got) {
    auto& asked = users_[n];
    // The search's actor ends a moment after its end is stored.
    if (!got && got.error().code == errc::conflict && needs_end(what) && tries < most_tries)
      return with_.later(1s, [this, n, wish, tries] {
        await_end(n, wish, [this, n, wish, tries] { perform(n, wish, tries + 1); });
      });
    // An earlier order whose answer was lost may have deleted the search.
    const bool gone = !got && got.error().code == errc::not_found && asked.delete_sent;
    if (got || gone)
      switch (what) {
      case search_wish::kill:
      case search_wish::cancel:
        asked.stop_acknowledged = true;
        break;
      case search_wish::go_on:
        ++asked.continued;
        asked.stopped = false;
        break;
      case search_wish::archive:
      case search_wish::unarchive:
        asked.archived = fields.at("archived").get<bool>();
        break;
      case search_wish::move:
        asked.project = project_id{fields.at("project").get<std::uint64_t>()};
        break;
      case search_wish::set_priority:
        asked.priority = plan_.searches[n].wishes[wish].number;
        break;
      case search_wish::set_max_slots:
        asked.max_slots = plan_.searches[n].wishes[wish].number;
        break;
      case search_wish::set_pool:
        asked.pool = plan_.searches[n].wishes[wish].number;
        break;
      case search_wish::remove:
        asked.deleted = true;
        return await_deletion(n); // no further orders are given for this search
      }
    else if (what == search_wish::remove)
      return with_.note("the deletion of experiment " + to_string(asked.id) +
                        " is refused: " + got.error().what);
    go_on(n, wish + 1);
  });
}

void search_users::await_deletion(std::size_t n) {
  const auto reads = with_.reads();
  if (reads) {
    const auto row = reads->experiment(users_[n].id);
    if (row && row->state == experiment_state::delete_failed)
      return with_.note("the deletion of experiment " + to_string(users_[n].id) + " failed: " + row->why);
    if (!row && row.error().code == errc::not_found) {
      users_[n].waits = false;
      return;
    }
  }
  with_.later(1s, [this, n] { await_deletion(n); });
}

/// Notes the trials and folders that a deletion has to remove. The search has ended, so none is added later.
void search_users::note_what_goes(user& of) const {
  const auto reads = with_.reads();
  const auto trials = reads->trials(of.id);
  for (const auto& trial : trials ? *trials : std::vector<trial_row>()) {
    of.trials.push_back(trial.id);
    if (const auto rows = reads->checkpoints(trial.id))
      for (const auto& row : *rows)
        of.folders.push_back(folder_of(row.saved));
  }
}

bool search_users::done() const {
  return std::none_of(users_.begin(), users_.end(), [](const user& x) { return x.waits; });
}
search_users::user* search_users::user_of(experiment_id id) {
  return const_cast<user*>(std::as_const(*this).user_of(id));
}
const search_users::user* search_users::user_of(experiment_id id) const {
  const auto at = std::find_if(users_.begin(), users_.end(), [&](const user& x) { return x.id == id; });
  return at == users_.end() ? nullptr : &*at;
}
bool search_users::is_stopped(experiment_id id) const {
  const auto* one = user_of(id);
  return one && one->stopped;
}
bool search_users::is_deleted(experiment_id id) const {
  const auto* one = user_of(id);
  return one && one->deleted;
}
bool search_users::is_deleted(trial_id id) const {
  return std::any_of(users_.begin(), users_.end(), [&](const user& x) {
    return x.deleted && std::count(x.trials.begin(), x.trials.end(), id) > 0;
  });
}

// ---- the verdict

void search_users::check_acknowledged() const {
  const auto reads = with_.reads();
  for (const auto& one : users_) {
    if (!one.id)
      continue;
    const auto row = reads->experiment(one.id);
    const auto it = "experiment " + to_string(one.id);
    if (!row) {
      if (!one.delete_sent)
        with_.note(it + " was acknowledged and is not there");
      continue;
    }
    const bool goes =
      row->state == experiment_state::deleting || row->state == experiment_state::delete_failed;
    if (one.deleted != goes && !(one.delete_sent && !one.deleted))
      with_.note(it + " is " + std::string(name(row->state)) +
                 (one.deleted ? ", and its deletion was acknowledged" : ", and nobody deletes it"));
    if (one.archived && row->archived != *one.archived)
      with_.note("what " + it + " was told of its archive is not stored");
    if (one.project && row->project != *one.project)
      with_.note(it + " is in project " + to_string(row->project) + ", and its move to " +
                 to_string(*one.project) + " was acknowledged");
    const auto set = row->resources.empty() ? experiment_resources_changed() : row->resources.front();
    if ((one.priority && set.priority != *one.priority) ||
        (one.max_slots && set.max_slots != *one.max_slots) ||
        (one.pool && set.pool != name_of_pool(*one.pool)))
      with_.note("what " + it + " was told of its priority, max_slots or pool is not stored");
    if (row->continued < one.continued)
      with_.note(it + " was continued " + std::to_string(row->continued) + " times, and " +
                 std::to_string(one.continued) + " were acknowledged");
    if (one.stop_acknowledged && !stopping(row->state) && !terminal(row->state))
      with_.note("the end of " + it + " was acknowledged, and it is " + std::string(name(row->state)));
  }
}

void search_users::check_ends() const {
  check_acknowledged();
  for (const auto& one : users_)
    if (one.deleted)
      check_gone(one);
}

void search_users::check_gone(const user& of) const {
  const auto reads = with_.reads();
  const auto it = " of experiment " + to_string(of.id) + ", which is deleted";
  const auto none = [](const auto& rows) { return !rows || rows->empty(); };
  if (!none(reads->trials(of.id)))
    with_.note("there are rows of trials" + it);
  for (const auto id : of.trials) {
    if (reads->trial(id) || reads->task(id))
      with_.note("trial " + to_string(id) + it + ", is there");
    if (!none(reads->metrics(id, 0, 1)))
      with_.note("there are reports of trial " + to_string(id) + it);
    if (!none(reads->logs(id, 0, 1)))
      with_.note("there are lines of trial " + to_string(id) + it);
    if (!none(reads->checkpoints(id)))
      with_.note("there are checkpoints of trial " + to_string(id) + it);
  }
  for (const auto& folder : of.folders)
    if (!folder.empty() && std::filesystem::exists(folder))
      with_.note("there are files in " + folder + it);
}

} // namespace troupe::sim

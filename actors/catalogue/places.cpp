#include "actors/catalogue/places.hpp"

#include "actors/catalogue/wishes.hpp"
#include "model/chosen_name.hpp"
#include "model/config/experiment_config.hpp"
#include "model/config/secrets.hpp"
#include "model/rows.hpp"

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

constexpr workspace_id first_workspace{1};
constexpr project_id first_project{1};
constexpr std::size_t most_labels = 1000;

error missing(const char* kind, std::uint64_t id) {
  return {errc::not_found, std::string(kind) + " '" + std::to_string(id) + "' not found"};
}

std::string text_at(const value& config, const char* key) {
  if (!config.is_object())
    return {};
  auto found = config.find(key);
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> once_each(const std::vector<std::string>& labels) {
  std::vector<std::string> out;
  for (const auto& one : labels)
    if (std::find(out.begin(), out.end(), one) == out.end())
      out.push_back(one);
  return out;
}

/// The elements of `all` whose deletion is under way.
template <class Id, class Place>
std::vector<Place> going(const std::map<Id, Place>& all) {
  std::vector<Place> out;
  for (const auto& [id, one] : all)
    if (one.deletion == deletion_step::ordered)
      out.push_back(one);
  return out;
}

} // namespace

places::places() {
  workspaces_[first_workspace] = uncategorized_workspace();
  projects_[first_project] = uncategorized_project();
  keys_[projects_[first_project].key] = first_project;
}

std::vector<place_fact> places::note(place_fact fact) {
  replay(fact);
  return {std::move(fact)};
}

result<void> places::check_name(const std::string& name, workspace_id of) const {
  if (auto fine = check_chosen_name("the name of a workspace", name); !fine)
    return fine;
  const auto folded = case_folded(name);
  for (const auto& [id, other] : workspaces_)
    if (id != of && case_folded(other.name) == folded)
      return error{errc::conflict, "avoid names equal to other workspaces (case-insensitive)"};
  return {};
}

result<void> places::check_name(const std::string& name, workspace_id in, project_id of) const {
  if (auto fine = check_chosen_name("the name of a project", name); !fine)
    return fine;
  const auto folded = case_folded(name);
  for (const auto& [id, other] : projects_)
    if (id != of && other.workspace == in && case_folded(other.name) == folded)
      return error{errc::conflict, "a project named '" + name + "' is in this workspace already"};
  return {};
}

/// The key of a project: the wanted key, which must be free, or the first three letters and digits of the
/// name in upper case. Where the key made of the name is taken, letters are added.
result<std::string> places::key_for(const std::string& wanted, const std::string& name, project_id of) const {
  std::string key;
  for (unsigned char c : wanted)
    key += static_cast<char>(std::toupper(c));
  const auto taken = [&](const std::string& text) {
    const auto known = keys_.find(text);
    return known != keys_.end() && known->second != of;
  };
  if (!wanted.empty()) {
    if (key.size() > 5 ||
        !std::all_of(key.begin(), key.end(), [](unsigned char c) { return c < 0x80 && std::isalnum(c); }))
      return error{errc::invalid, "a project's key has 1 to 5 letters and digits, not '" + wanted + "'"};
    if (taken(key))
      return error{errc::conflict,
                   projects_.at(keys_.at(key)).key == key
                     ? "the key '" + key + "' is another project's"
                     : "the key '" + key + "' was another project's: names of its runs still lead there"};
    return key;
  }
  for (unsigned char c : name)
    if (key.size() < 3 && c < 0x80 && std::isalnum(c))
      key += static_cast<char>(std::toupper(c));
  if (!key.empty() && !taken(key))
    return key;
  const auto base = key.substr(0, 3);
  for (int number = 0;; ++number) { // the number in base 26, with at least two letters
    std::string letters;
    for (int rest = number; letters.size() < 2 || rest > 0; rest /= 26)
      letters.insert(letters.begin(), static_cast<char>('A' + rest % 26));
    auto made = base.substr(0, letters.size() < 5 ? 5 - letters.size() : 0) + letters;
    if (!taken(made))
      return made;
  }
}

result<void> places::check_rest(const commands::workspace_wish& wanted) {
  if (wanted.runs_as)
    if (auto fine = check_account(*wanted.runs_as); !fine)
      return fine;
  if (!wanted.checkpoint_storage || wanted.checkpoint_storage->empty())
    return {};
  const auto text = to_json(*wanted.checkpoint_storage);
  const auto checked =
    config::complete_as("checkpoint-storage", text, "checkpointStorageConfig", config::level::complete);
  if (!checked.ok())
    return error{errc::invalid, config::render(checked.faults.front(), text)};
  return {};
}

result<void> places::takes(workspace_id id) const {
  auto at = workspaces_.find(id);
  if (at == workspaces_.end())
    return missing("workspace", id.value);
  if (!open(id))
    return error{errc::invalid, "workspace '" + at->second.name + "' is " +
                                  (at->second.archived ? "archived" : "being deleted") +
                                  ": it takes nothing new"};
  return {};
}

bool places::open(workspace_id id) const {
  auto at = workspaces_.find(id);
  return at != workspaces_.end() && !at->second.archived && at->second.deletion == deletion_step::none;
}

result<void> places::takes_projects(workspace_id id) const {
  auto at = workspaces_.find(id);
  if (at == workspaces_.end())
    return missing("workspace", id.value);
  if (id == first_workspace)
    return error{errc::invalid, "cannot add a project to immutable workspace '" + at->second.name + "'"};
  if (at->second.deletion != deletion_step::none)
    return error{errc::invalid, "workspace '" + at->second.name + "' is being deleted"};
  if (at->second.archived)
    return error{errc::invalid, "cannot add a project to archived workspace '" + at->second.name + "'"};
  return {};
}

result<void> places::takes_experiments(project_id id) const {
  auto at = projects_.find(id);
  if (at == projects_.end())
    return missing("project", id.value);
  if (at->second.deletion != deletion_step::none)
    return error{errc::invalid, "project '" + at->second.name + "' is being deleted"};
  if (at->second.archived || !open(at->second.workspace))
    return error{errc::invalid, "project '" + at->second.name + "' is archived: it takes no experiments"};
  return {};
}

places::decided places::make(const commands::workspace_create& wanted, const std::string& by,
                             time_point now) {
  const auto name = wanted.name.value_or("");
  if (auto fine = check_name(name, {}); !fine)
    return fine.error();
  if (auto fine = check_rest(wanted); !fine)
    return fine.error();
  workspace_changed x;
  x.at = now;
  x.by = x.owner = by;
  x.id = {newest_workspace_.value + 1};
  x.name = name;
  x.pinned_by = {by};
  if (wanted.runs_as)
    x.runs_as = {{wanted.runs_as->uid, wanted.runs_as->gid, wanted.runs_as->user, wanted.runs_as->group}};
  take(wanted.checkpoint_storage, x.checkpoint_storage);
  take(wanted.compute_pool, x.compute_pool);
  take(wanted.aux_pool, x.aux_pool);
  if (auto fine = config::check_no_mask({{"checkpoint_storage", x.checkpoint_storage}}); !fine)
    return fine.error();
  return note(std::move(x));
}

places::decided places::change(const commands::workspace_change& wanted, const std::string& by,
                               time_point now) {
  auto known = workspaces_.find(wanted.id);
  if (known == workspaces_.end())
    return missing("workspace", wanted.id.value);
  if (wanted.id == first_workspace)
    return error{errc::invalid, "cannot change immutable workspace '" + known->second.name + "'"};
  if (known->second.archived && !(wanted.archived && !*wanted.archived))
    return wanted.archived
             ? decided(std::vector<place_fact>{})
             : error{errc::invalid, "cannot change archived workspace '" + known->second.name + "'"};
  if (wanted.name)
    if (auto fine = check_name(*wanted.name, wanted.id); !fine)
      return fine.error();
  if (auto fine = check_rest(wanted); !fine)
    return fine.error();
  auto x = known->second;
  take(wanted.name, x.name);
  take(wanted.archived, x.archived);
  take(wanted.compute_pool, x.compute_pool);
  take(wanted.aux_pool, x.aux_pool);
  if (wanted.runs_as)
    x.runs_as = {{wanted.runs_as->uid, wanted.runs_as->gid, wanted.runs_as->user, wanted.runs_as->group}};
  if (wanted.checkpoint_storage)
    x.checkpoint_storage = wanted.checkpoint_storage->empty() ? value() : *wanted.checkpoint_storage;
  config::restore_storage_secrets(x.checkpoint_storage, known->second.checkpoint_storage);
  if (auto fine = config::check_no_mask({{"checkpoint_storage", x.checkpoint_storage}});
      !fine && wanted.checkpoint_storage)
    return fine.error();
  return differs(x, known->second, by, now) ? note(std::move(x)) : std::vector<place_fact>{};
}

places::decided places::change(const commands::workspace_pin& wanted, const std::string& by, time_point now) {
  auto known = workspaces_.find(wanted.id);
  if (known == workspaces_.end())
    return missing("workspace", wanted.id.value);
  auto x = known->second;
  const bool pinned = std::find(x.pinned_by.begin(), x.pinned_by.end(), by) != x.pinned_by.end();
  if (pinned == wanted.on)
    return std::vector<place_fact>{};
  if (wanted.on)
    x.pinned_by.push_back(by);
  else
    std::erase(x.pinned_by, by);
  x.at = now;
  x.by = by;
  return note(std::move(x));
}

places::decided places::remove(const commands::workspace_remove& wanted, const std::string& by,
                               time_point now) {
  auto known = workspaces_.find(wanted.id);
  if (known == workspaces_.end())
    return missing("workspace", wanted.id.value);
  if (wanted.id == first_workspace)
    return error{errc::invalid, "cannot delete immutable workspace '" + known->second.name + "'"};
  std::vector<place_fact> facts;
  auto x = known->second;
  x.at = now;
  x.by = by;
  x.deletion = deletion_step::ordered;
  x.error.clear();
  facts.push_back(note(std::move(x)).front());
  for (const auto& [id, project] : std::map(projects_)) // a copy, as marking a project changes the map
    if (project.workspace == wanted.id) {
      auto inside = project;
      inside.at = now;
      inside.by = by;
      inside.deletion = deletion_step::ordered;
      inside.error.clear();
      facts.push_back(note(std::move(inside)).front());
    }
  for (auto& fact : settle(now))
    facts.push_back(std::move(fact));
  return facts;
}

places::decided places::make(const commands::project_create& wanted, const std::string& by, time_point now) {
  if (auto fine = takes_projects(wanted.workspace); !fine)
    return fine.error();
  const auto name = wanted.name.value_or("");
  if (auto fine = check_name(name, wanted.workspace, {}); !fine)
    return fine.error();
  auto key = key_for(wanted.key.value_or(""), name, {});
  if (!key)
    return key.error();
  project_changed x;
  x.at = now;
  x.by = x.owner = by;
  x.id = {newest_project_.value + 1};
  x.workspace = wanted.workspace;
  x.name = name;
  x.key = *key;
  take(wanted.description, x.description);
  return note(std::move(x));
}

places::decided places::change(const commands::project_change& wanted, const std::string& by,
                               time_point now) {
  auto known = projects_.find(wanted.id);
  if (known == projects_.end())
    return missing("project", wanted.id.value);
  const auto& old = known->second;
  if (wanted.id == first_project)
    return error{errc::invalid, "cannot change immutable project '" + old.name + "'"};
  if (!open(old.workspace))
    return error{
      errc::invalid,
      "This project belongs to an archived workspace. To make changes, first unarchive the workspace."};
  if (old.archived && !(wanted.archived && !*wanted.archived))
    return wanted.archived ? decided(std::vector<place_fact>{})
                           : error{errc::invalid, "cannot change archived project '" + old.name + "'"};
  if (wanted.workspace && *wanted.workspace != old.workspace)
    if (auto fine = takes_projects(*wanted.workspace); !fine)
      return fine.error();
  auto x = old;
  take(wanted.workspace, x.workspace);
  take(wanted.name, x.name);
  take(wanted.description, x.description);
  take(wanted.archived, x.archived);
  if (wanted.name || wanted.workspace)
    if (auto fine = check_name(x.name, x.workspace, x.id); !fine)
      return fine.error();
  if (wanted.key) {
    auto key = key_for(*wanted.key, x.name, x.id);
    if (!key)
      return key.error();
    x.key = *key;
  }
  if (wanted.notes)
    x.notes.clear();
  for (const auto* notes : {&wanted.notes, &wanted.add_notes})
    if (*notes)
      for (const auto& one : **notes) {
        if (std::find(old.notes.begin(), old.notes.end(), project_note{one.name, one.contents}) ==
            old.notes.end())
          if (auto fine = check_chosen_name("a note's name", one.name); !fine)
            return fine.error();
        x.notes.push_back({one.name, one.contents});
      }
  return differs(x, old, by, now) ? note(std::move(x)) : std::vector<place_fact>{};
}

places::decided places::remove(const commands::project_remove& wanted, const std::string& by,
                               time_point now) {
  auto known = projects_.find(wanted.id);
  if (known == projects_.end())
    return missing("project", wanted.id.value);
  if (wanted.id == first_project)
    return error{errc::invalid, "cannot delete immutable project '" + known->second.name + "'"};
  auto x = known->second;
  x.at = now;
  x.by = by;
  x.deletion = deletion_step::ordered;
  x.error.clear();
  auto facts = note(std::move(x));
  for (auto& fact : settle(now))
    facts.push_back(std::move(fact));
  return facts;
}

std::vector<std::pair<experiment_id, std::string>> places::doomed() const {
  std::vector<std::pair<experiment_id, std::string>> out;
  for (const auto& [id, x] : experiments_) {
    auto project = projects_.find(x.project);
    if (x.deletion == deletion_step::none && project != projects_.end() &&
        project->second.deletion == deletion_step::ordered)
      out.emplace_back(id, project->second.by);
  }
  return out;
}

std::vector<place_fact> places::settle(time_point now) {
  std::vector<place_fact> facts;
  // The first experiment that is still to be deleted ends the search, as they are deleted in this order.
  for (auto& x : going(projects_)) {
    bool empty = true, waits = false;
    for (auto at = experiments_.begin(); at != experiments_.end() && !waits; ++at)
      if (const auto& [experiment, one] = *at; one.project == x.id) {
        empty = false;
        waits = one.deletion != deletion_step::failed;
        if (x.error.empty() && !one.stuck.empty())
          x.error = "experiment " + to_string(experiment) + ": " + one.stuck;
      }
    if (waits)
      continue;
    x.at = now;
    x.deleted = empty;
    x.deletion = empty ? deletion_step::done : deletion_step::failed;
    facts.push_back(note(std::move(x)).front());
  }
  for (auto& x : going(workspaces_)) {
    bool empty = true, waits = false;
    for (const auto& [project, one] : projects_)
      if (one.workspace == x.id) {
        empty = false;
        waits = waits || one.deletion == deletion_step::ordered;
        if (x.error.empty() && !one.error.empty())
          x.error = "project '" + one.name + "': " + one.error;
      }
    if (waits)
      continue;
    x.at = now;
    x.deleted = empty;
    x.deletion = empty ? deletion_step::done : deletion_step::failed;
    facts.push_back(note(std::move(x)).front());
  }
  return facts;
}

namespace {

std::vector<std::string> labels_after(const commands::experiment_describe& wanted,
                                      const experiment_described& now) {
  auto labels = wanted.labels ? *wanted.labels : now.labels;
  if (wanted.add_labels)
    labels.insert(labels.end(), wanted.add_labels->begin(), wanted.add_labels->end());
  if (wanted.remove_labels)
    std::erase_if(labels, [&](const std::string& one) {
      const auto& away = *wanted.remove_labels;
      return std::find(away.begin(), away.end(), one) != away.end();
    });
  return wanted.labels || wanted.add_labels || wanted.remove_labels ? once_each(labels) : labels;
}

} // namespace

result<void> places::check(const commands::experiment_describe& wanted, const experiment_described& now) {
  if (wanted.name && is_blank(*wanted.name))
    return error{errc::invalid, "`name` must not be an empty or whitespace string."};
  if (wanted.name && *wanted.name != now.name) // submissions may have longer names, which may stay
    if (auto fine = check_chosen_name("`name`", *wanted.name); !fine)
      return fine;
  const auto labels = labels_after(wanted, now);
  if (labels.size() > std::max(most_labels, now.labels.size()))
    return error{errc::invalid, "labels: more than " + std::to_string(most_labels)};
  for (const auto& label : labels)
    if (std::find(now.labels.begin(), now.labels.end(), label) == now.labels.end())
      if (auto fine = check_chosen_name("a label", label); !fine)
        return fine;
  return {};
}

places::decided places::change(const commands::experiment_describe& wanted, bool ended, const std::string& by,
                               time_point now) {
  auto known = experiments_.find(wanted.id);
  if (known == experiments_.end())
    return missing("experiment", wanted.id.value);
  const auto& old = known->second.said;
  if (auto fine = check(wanted, old); !fine)
    return fine.error();
  if (wanted.archived && *wanted.archived && !ended)
    return error{errc::invalid, "Experiment is not in terminal state."};
  auto x = old;
  take(wanted.name, x.name);
  take(wanted.description, x.description);
  take(wanted.notes, x.notes);
  take(wanted.archived, x.archived);
  take(wanted.save_experiment_best, x.save_experiment_best);
  take(wanted.save_trial_best, x.save_trial_best);
  take(wanted.save_trial_latest, x.save_trial_latest);
  x.labels = labels_after(wanted, old);
  return differs(x, old, by, now) ? note(std::move(x)) : std::vector<place_fact>{};
}

std::vector<place_fact> places::say_anew(const experiment_continued& again) {
  auto known = experiments_.find(again.id);
  if (known == experiments_.end() || again.config.is_null())
    return {};
  const auto& now = known->second.configured;
  auto x = known->second.said;
  if (!now.name.empty())
    x.name = now.name;
  x.description = now.description;
  x.labels = now.labels;
  return differs(x, known->second.said, again.by, again.at) ? note(std::move(x)) : std::vector<place_fact>{};
}

places::decided places::change(const commands::experiment_move& wanted, const std::string& by,
                               time_point now) {
  auto known = experiments_.find(wanted.id);
  if (known == experiments_.end())
    return missing("experiment", wanted.id.value);
  if (known->second.said.archived)
    return error{errc::invalid, "experiment " + to_string(wanted.id) + " is archived: it cannot be moved"};
  if (known->second.deletion == deletion_step::ordered)
    return error{errc::invalid, "experiment " + to_string(wanted.id) + " is being deleted"};
  if (auto fine = takes_experiments(known->second.project); !fine)
    return error{errc::invalid, "experiment " + to_string(wanted.id) +
                                  " cannot be moved: its project is archived, or is being deleted"};
  if (auto fine = takes_experiments(wanted.project); !fine)
    return fine.error();
  if (known->second.project == wanted.project)
    return std::vector<place_fact>{};
  return note(experiment_moved{now, by, wanted.id, wanted.project});
}

result<project_id> places::place_of(project_id asked, const value& config) const {
  if (!asked) {
    const auto workspace = text_at(config, "workspace"), project = text_at(config, "project");
    if (workspace.empty() != project.empty())
      return error{errc::invalid, "workspace and project: a configuration names both or neither"};
    asked = first_project;
    if (!workspace.empty()) {
      asked = {};
      for (const auto& [id, one] : projects_)
        if (one.name == project && workspaces_.at(one.workspace).name == workspace)
          asked = id;
      if (!asked)
        return error{errc::not_found, "workspace '" + workspace + "' or project '" + project + "' not found"};
    }
  }
  if (auto fine = takes_experiments(asked); !fine)
    return fine.error();
  return asked;
}

workspace_id places::workspace_id_of(experiment_id id) const {
  auto known = experiments_.find(id);
  auto project = known == experiments_.end() ? projects_.end() : projects_.find(known->second.project);
  return project == projects_.end() ? first_workspace : project->second.workspace;
}

result<void> places::takes_runs(experiment_id id) const {
  auto known = experiments_.find(id);
  if (known != experiments_.end() && takes_experiments(known->second.project))
    return {};
  return error{errc::invalid,
               "experiment " + to_string(id) +
                 " takes no trials and no runs: its project or workspace is archived, or is being deleted"};
}

const experiment_described* places::said_of(experiment_id id) const {
  auto known = experiments_.find(id);
  return known == experiments_.end() ? nullptr : &known->second.said;
}

std::string places::workspace_of(experiment_id id) const {
  auto workspace = workspaces_.find(workspace_id_of(id));
  return workspace == workspaces_.end() ? std::string() : workspace->second.name;
}

workspace_id places::workspace_id_of(project_id id) const {
  auto at = projects_.find(id);
  return at == projects_.end() ? workspace_id{} : at->second.workspace;
}

value places::storage_of(project_id id) const {
  auto project = projects_.find(id);
  auto workspace =
    project == projects_.end() ? workspaces_.end() : workspaces_.find(project->second.workspace);
  return workspace == workspaces_.end() ? value() : workspace->second.checkpoint_storage;
}

void places::replay(const place_fact& fact) {
  std::visit(overloaded{
               [this](const workspace_changed& f) {
                 newest_workspace_ = std::max(newest_workspace_, f.id);
                 if (f.deleted)
                   workspaces_.erase(f.id);
                 else
                   workspaces_[f.id] = f;
               },
               [this](const project_changed& f) {
                 newest_project_ = std::max(newest_project_, f.id);
                 if (f.deleted) {
                   projects_.erase(f.id);
                   std::erase_if(keys_, [&](const auto& one) { return one.second == f.id; });
                 } else {
                   projects_[f.id] = f;
                   if (!f.key.empty())
                     keys_[f.key] = f.id;
                 }
                 if (f.deletion == deletion_step::ordered) // deletions that failed are tried again
                   for (auto& [id, one] : experiments_)
                     if (one.project == f.id && one.deletion == deletion_step::failed) {
                       one.deletion = deletion_step::none;
                       one.stuck.clear();
                     }
               },
               [this](const experiment_moved& f) {
                 if (auto it = experiments_.find(f.id); it != experiments_.end())
                   it->second.project = f.project;
               },
               [this](const experiment_described& f) {
                 if (auto it = experiments_.find(f.id); it != experiments_.end())
                   it->second.said = f;
               },
             },
             fact);
}

void places::replay(const cluster_fact& fact) {
  std::visit(
    [this](const auto& f) {
      using of = std::decay_t<decltype(f)>;
      if constexpr (std::is_same_v<of, experiment_created>) {
        auto& made = experiments_[f.id];
        made.project = f.project;
        made.said.id = f.id;
        made.configured = words_of(f.config);
        made.said.name = f.name;
        made.said.description = made.configured.description;
        made.said.labels = made.configured.labels;
      } else if constexpr (std::is_same_v<of, experiment_continued>) {
        auto at = experiments_.find(f.id);
        if (at == experiments_.end() || f.config.is_null())
          return;
        auto now = words_of(f.config);
        take_continued(at->second.said, at->second.configured, now);
        at->second.configured = std::move(now);
      } else if constexpr (std::is_same_v<of, experiment_deleted>) {
        if (f.step == deletion_step::done)
          experiments_.erase(f.id);
        else if (auto at = experiments_.find(f.id); at != experiments_.end()) {
          at->second.deletion = f.step;
          at->second.stuck = f.why;
        }
      } else if constexpr (std::is_constructible_v<place_fact, of>)
        replay(place_fact{f});
    },
    fact);
}

std::string places::snapshot() const {
  return pack(std::tuple{workspaces_, projects_, experiments_, newest_workspace_, newest_project_, keys_});
}

value places::describe() const {
  return {{"workspaces", workspaces_.size()}, {"projects", projects_.size()}};
}

} // namespace troupe

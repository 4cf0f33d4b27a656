#include "actors/catalogue/registry.hpp"

#include "actors/catalogue/wishes.hpp"
#include "model/chosen_name.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

template <class Fact>
Fact gone(Fact x, const std::string& by, time_point now) {
  x.at = now;
  x.by = by;
  x.deleted = true;
  return x;
}

bool every(const std::string& text, int (*is)(int)) {
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) { return is(c) != 0; });
}

/// A version need not have a name.
result<void> check_version_name(const commands::version_wish& wanted) {
  return wanted.name && !wanted.name->empty() ? check_chosen_name("the name of a version", *wanted.name)
                                              : result<void>{};
}

error no_template(const std::string& name) { return {errc::not_found, "template '" + name + "' not found"}; }
error no_model(model_id id) { return {errc::not_found, "model '" + to_string(id) + "' not found"}; }

} // namespace

std::vector<registry_fact> registry::note(registry_fact fact) {
  replay(fact);
  return {std::move(fact)};
}

registry::decided registry::put(const commands::template_put& wanted, const std::string& by, time_point now) {
  auto known = templates_.find(wanted.name);
  if (known == templates_.end())
    if (auto fine = check_template_name(wanted.name, {}); !fine)
      return fine.error();
  if (wanted.fresh && known != templates_.end())
    return error{errc::conflict, "failed to create template " + wanted.name};
  if (wanted.known && known == templates_.end())
    return no_template(wanted.name);
  template_changed x;
  if (known != templates_.end())
    x = known->second;
  x.name = wanted.name;
  take(wanted.workspace, x.workspace);
  x.config = wanted.config;
  if (known != templates_.end())
    config::restore_secrets(x.config, known->second.config);
  if (auto fine = config::check_no_mask(x.config); !fine)
    return fine.error();
  if (known != templates_.end() && same(x, known->second))
    return std::vector<registry_fact>{};
  x.at = now;
  x.by = by;
  return note(std::move(x));
}

registry::decided registry::rename(const commands::template_rename& wanted, const std::string& by,
                                   time_point now) {
  auto known = templates_.find(wanted.name);
  if (known == templates_.end())
    return no_template(wanted.name);
  if (wanted.to == wanted.name)
    return std::vector<registry_fact>{};
  if (auto fine = check_template_name(wanted.to, wanted.name); !fine)
    return fine.error();
  auto x = known->second;
  x.at = now;
  x.by = by;
  x.name = wanted.to;
  auto facts = note(gone(known->second, by, now));
  facts.push_back(note(std::move(x)).front());
  return facts;
}

registry::decided registry::remove(const commands::template_remove& wanted, const std::string& by,
                                   time_point now) {
  auto known = templates_.find(wanted.name);
  return known == templates_.end() ? decided(no_template(wanted.name)) : note(gone(known->second, by, now));
}

std::vector<registry_fact> registry::drop_templates(workspace_id of, const std::string& by, time_point now) {
  std::vector<registry_fact> facts;
  for (const auto& [name, one] : std::map(templates_)) // a copy, as removing changes the map
    if (one.workspace == of)
      facts.push_back(note(gone(one, by, now)).front());
  return facts;
}

const template_changed* registry::find_template(const std::string& name) const {
  auto known = templates_.find(name);
  return known == templates_.end() ? nullptr : &known->second;
}

std::vector<std::string> registry::registered() const {
  std::vector<std::string> out;
  for (const auto& [checkpoint, versions] : registered_)
    out.push_back(checkpoint);
  return out;
}

result<void> registry::check_unregistered(const std::vector<std::string>& checkpoints,
                                          const std::vector<model_id>& seen, const std::string& what) const {
  std::string held;
  for (const auto& checkpoint : checkpoints) {
    const auto known = registered_.find(checkpoint);
    if (known == registered_.end())
      continue;
    held += (held.empty() ? "" : "; ") + checkpoint;
    const auto& of = known->second;
    const auto shown = std::find_if(of.rbegin(), of.rend(), [&](const version_id& id) {
      return std::find(seen.begin(), seen.end(), id.first) != seen.end();
    });
    if (shown != of.rend())
      held += ", registered to " + models_.at(shown->first).name + " (model #" + to_string(shown->first) +
              "), version " + std::to_string(shown->second);
  }
  if (held.empty())
    return {};
  return error{errc::invalid, "this subset of checkpoints provided are in the model registry and cannot be " +
                                what + ": " + held};
}

bool registry::holds_models(workspace_id id) const {
  return std::any_of(models_.begin(), models_.end(),
                     [&](const auto& one) { return one.second.workspace == id; });
}

/// `of`: the present name of the template.
result<void> registry::check_template_name(const std::string& name, const std::string& of) const {
  if (auto fine = check_chosen_name("the name of a template", name); !fine)
    return fine;
  if (auto fine = check_name_in_address("template names", name); !fine)
    return fine;
  const auto folded = case_folded(name);
  for (const auto& [known, other] : templates_)
    if (known != of && case_folded(known) == folded)
      return error{errc::conflict, "failed to create template " + name}; // the caller may not see the other
  return {};
}

result<void> registry::check_name(const std::string& name, model_id of) const {
  if (is_blank(name))
    return error{errc::invalid, "model names cannot be blank"};
  if (auto fine = check_chosen_name("the name of a model", name); !fine)
    return fine;
  if (name.find("  ") != name.npos)
    return error{errc::invalid, "model names cannot have excessive spacing"};
  if (auto fine = check_name_in_address("model names", name); !fine)
    return fine;
  if (every(name, std::isdigit))
    return error{errc::invalid, "model names cannot be only numbers"};
  const auto folded = case_folded(name);
  for (const auto& [id, other] : models_)
    if (id != of && case_folded(other.name) == folded)
      return error{errc::conflict, "avoid names equal to other models (case-insensitive)"};
  return {};
}

result<model_changed> registry::to_change(model_id id) const {
  auto known = models_.find(id);
  if (known == models_.end())
    return no_model(id);
  if (known->second.archived)
    return error{errc::invalid, "model '" + known->second.name + "' is archived and cannot be changed"};
  return known->second;
}

registry::decided registry::make(const commands::model_create& wanted, const std::string& by,
                                 time_point now) {
  const auto name = wanted.name.value_or("");
  if (auto fine = check_name(name, {}); !fine)
    return fine.error();
  model_changed x;
  x.at = x.created = now;
  x.by = x.owner = by;
  x.id = {newest_model_.value + 1};
  x.name = name;
  x.metadata = value::object();
  take(wanted.description, x.description);
  take(wanted.notes, x.notes);
  take(wanted.labels, x.labels);
  take(wanted.metadata, x.metadata);
  take(wanted.workspace, x.workspace);
  return note(std::move(x));
}

registry::decided registry::change(const commands::model_change& wanted, const std::string& by,
                                   time_point now) {
  auto known = models_.find(wanted.id);
  if (known == models_.end())
    return no_model(wanted.id);
  if (known->second.archived && !wanted.archived)
    if (auto x = to_change(wanted.id); !x)
      return x.error();
  if (wanted.name)
    if (auto fine = check_name(*wanted.name, wanted.id); !fine)
      return fine.error();
  auto x = known->second;
  take(wanted.name, x.name);
  take(wanted.description, x.description);
  take(wanted.notes, x.notes);
  take(wanted.labels, x.labels);
  take(wanted.metadata, x.metadata);
  take(wanted.workspace, x.workspace);
  take(wanted.archived, x.archived);
  return differs(x, known->second, by, now) ? note(std::move(x)) : std::vector<registry_fact>{};
}

registry::decided registry::remove(const commands::model_remove& wanted, const std::string& by,
                                   time_point now) {
  auto known = models_.find(wanted.id);
  if (known == models_.end())
    return no_model(wanted.id);
  std::vector<registry_fact> facts;
  for (const auto& [id, version] : std::map(versions_)) // a copy, as removing changes the map
    if (id.first == wanted.id)
      facts.push_back(note(gone(version, by, now)).front());
  facts.push_back(note(gone(known->second, by, now)).front());
  return facts;
}

registry::decided registry::make(const commands::version_create& wanted, const std::string& by,
                                 time_point now) {
  if (auto fine = to_change(wanted.model); !fine)
    return fine.error();
  if (auto fine = check_version_name(wanted); !fine)
    return fine.error();
  model_version_changed x;
  x.at = x.created = now;
  x.by = x.owner = by;
  x.model = wanted.model;
  for (const auto& [id, other] : versions_)
    if (id.first == wanted.model)
      x.version = std::max(x.version, id.second);
  ++x.version;
  x.checkpoint = wanted.checkpoint;
  x.metadata = value::object();
  take(wanted.name, x.name);
  take(wanted.comment, x.comment);
  take(wanted.notes, x.notes);
  take(wanted.labels, x.labels);
  take(wanted.metadata, x.metadata);
  return note(std::move(x));
}

registry::decided registry::change(const commands::version_change& wanted, const std::string& by,
                                   time_point now) {
  if (auto fine = to_change(wanted.model); !fine)
    return fine.error();
  auto known = versions_.find({wanted.model, wanted.version});
  if (known == versions_.end())
    return error{errc::not_found, "version " + std::to_string(wanted.version) + " not found"};
  if (auto fine = check_version_name(wanted); !fine)
    return fine.error();
  auto x = known->second;
  take(wanted.name, x.name);
  take(wanted.comment, x.comment);
  take(wanted.notes, x.notes);
  take(wanted.labels, x.labels);
  take(wanted.metadata, x.metadata);
  return differs(x, known->second, by, now) ? note(std::move(x)) : std::vector<registry_fact>{};
}

registry::decided registry::remove(const commands::version_remove& wanted, const std::string& by,
                                   time_point now) {
  if (auto fine = to_change(wanted.model); !fine)
    return fine.error();
  auto known = versions_.find({wanted.model, wanted.version});
  if (known == versions_.end())
    return error{errc::not_found, "version " + std::to_string(wanted.version) + " not found"};
  return note(gone(known->second, by, now));
}

void registry::forget(version_id id) {
  const auto known = versions_.find(id);
  if (known == versions_.end())
    return;
  const auto of = registered_.find(known->second.checkpoint);
  of->second.erase(id);
  if (of->second.empty())
    registered_.erase(of);
  versions_.erase(known);
}

void registry::replay(const registry_fact& fact) {
  std::visit(overloaded{
               [this](const template_changed& f) {
                 if (f.deleted)
                   templates_.erase(f.name);
                 else
                   templates_[f.name] = f;
               },
               [this](const model_changed& f) {
                 newest_model_ = std::max(newest_model_, f.id);
                 if (f.deleted)
                   models_.erase(f.id);
                 else
                   models_[f.id] = f;
               },
               [this](const model_version_changed& f) {
                 const version_id id{f.model, f.version};
                 forget(id);
                 if (f.deleted)
                   return;
                 versions_[id] = f;
                 registered_[f.checkpoint].insert(id);
               },
             },
             fact);
}

void registry::replay(const cluster_fact& fact) {
  std::visit(
    [this](const auto& f) {
      if constexpr (std::is_constructible_v<registry_fact, decltype(f)>)
        replay(registry_fact{f});
    },
    fact);
}

std::string registry::snapshot() const {
  return pack(std::tuple{templates_, models_, versions_, newest_model_});
}

value registry::describe() const { return {{"templates", templates_.size()}, {"models", models_.size()}}; }

} // namespace troupe

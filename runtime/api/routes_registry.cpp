// Routes for templates of configurations, and for the registry of models and their versions.

#include "runtime/api/checkpoint_uuid.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

template <class Row, class Key>
void sort_by(std::vector<Row>& rows, const Key& key) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return key(a) < key(b); });
}

// ---- templates

result<template_changed> find_template(const call& c, const std::string& name) {
  auto all = c.parts->storage->templates();
  if (!all)
    return all.error();
  for (auto& one : *all)
    if (one.name == name)
      return std::move(one);
  return error{errc::not_found, "template '" + name.substr(0, 100) + "' not found"};
}

result<value> list_templates(const call& c) {
  auto all = c.parts->storage->templates();
  if (!all)
    return all.error();
  const auto in = c.query.every("workspaceIds");
  std::erase_if(*all, [&](const auto& one) {
    return !contains_folded(one.name, c.query.first("name")) ||
           (!in.empty() && std::find(in.begin(), in.end(), to_string(one.workspace)) == in.end());
  });
  sort_by(*all, [](const auto& one) { return one.name; });
  if (is_descending(c.query))
    std::reverse(all->begin(), all->end());
  auto part = page_of(c.query, all->size());
  if (!part)
    return part.error();
  value shaped = value::array();
  for (auto i = part->first; i < part->last; ++i)
    shaped.push_back(shape((*all)[i]));
  return value{{"templates", std::move(shaped)}, {"pagination", part->pagination}};
}

std::string template_named(const call& c) { return std::string(c.named("templateName")); }

result<value> one_template(const call& c) {
  auto found = find_template(c, template_named(c));
  return found ? result<value>(value{{"template", shape(*found)}}) : found.error();
}

answer_shape template_after(const call_ptr& c, const std::string& name) {
  return [c, name](value) -> result<value> {
    auto found = find_template(*c, name);
    return found ? result<value>(value{{"template", shape(*found)}}) : found.error();
  };
}

handler put_template(bool fresh) {
  return [fresh](const call_ptr& c, const reply& back) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    f.need("config");
    commands::template_put with;
    with.name = template_named(*c);
    with.config = f.object("config");
    with.fresh = fresh;
    if (const auto workspace = f.id<workspace_id>("workspaceId"))
      with.workspace = workspace;
    f.text("name"); // the path names it; only the type is checked
    if (f.bad())
      return back(failure(*f.bad()));
    const auto name = with.name;
    command(c, back, std::move(with), template_after(c, name));
  };
}

void patch_template(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  commands::template_put with;
  with.name = template_named(*c);
  with.config = std::move(*body);
  with.known = true;
  const auto name = with.name;
  command(c, back, std::move(with), template_after(c, name));
}

void rename_template(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("oldName");
  f.need("newName");
  commands::template_rename with{f.text("oldName"), f.text("newName")};
  if (f.bad())
    return back(failure(*f.bad()));
  const auto name = with.to;
  command(c, back, std::move(with), template_after(c, name));
}

void delete_template(const call_ptr& c, const reply& back) {
  command(c, back, commands::template_remove{template_named(*c)});
}

// ---- models

struct registered {
  std::vector<model_changed> models;
  std::vector<model_version_changed> versions;

  static result<registered> read(const call& c) {
    auto models = c.parts->storage->models();
    if (!models)
      return models.error();
    auto versions = c.parts->storage->model_versions();
    if (!versions)
      return versions.error();
    return registered{std::move(*models), std::move(*versions)};
  }
  std::size_t versions_of(model_id id) const {
    return static_cast<std::size_t>(
      std::count_if(versions.begin(), versions.end(), [&](const auto& one) { return one.model == id; }));
  }
  /// Finds a model by its name, or else by its number.
  result<const model_changed*> find(std::string_view name) const {
    for (const auto& one : models)
      if (one.name == name)
        return &one;
    for (const auto& one : models)
      if (to_string(one.id) == name)
        return &one;
    return error{errc::not_found, "model '" + std::string(name.substr(0, 100)) + "' not found"};
  }
  value shaped(const model_changed& x, const call& c) const {
    return shape(x, versions_of(x.id), *c.parts->users);
  }
};

result<value> version_shape(const registered& all, const model_changed& model, const model_version_changed& x,
                            const call& c) {
  value checkpoint;
  if (auto row = c.parts->storage->checkpoint(x.checkpoint)) {
    // The caller may see the checkpoint without its experiment, which the shape tells of.
    auto shaped = checkpoint_shape(*row, *(c.parts->all ? *c.parts->all : *c.parts).storage);
    if (!shaped)
      return shaped.error();
    checkpoint = std::move(*shaped);
  }
  return shape(x, all.shaped(model, c), std::move(checkpoint), *c.parts->users);
}

bool one_of(const std::vector<std::string_view>& wanted, std::string_view is) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), is) != wanted.end();
}

result<value> list_models(const call& c) {
  auto all = registered::read(c);
  if (!all)
    return all.error();
  auto places = place_book::read(*c.parts->storage);
  if (!places)
    return places.error();
  const auto workspace_name = [&](const model_changed& one) {
    const auto* in = places->find(one.workspace);
    return in ? in->name : std::string();
  };
  auto rows = all->models;
  std::erase_if(rows, [&](const auto& one) {
    for (auto label : c.query.every("labels"))
      if (std::find(one.labels.begin(), one.labels.end(), label) == one.labels.end())
        return true;
    return !contains_folded(one.name, c.query.first("name")) ||
           !contains_folded(one.description, c.query.first("description")) ||
           (c.query.has("archived") && c.query.flag("archived") != one.archived) ||
           !one_of(c.query.every("users"), c.parts->users->now_named(one.owner)) ||
           !one_of(c.query.every("userIds"), std::to_string(number_of(one.owner, *c.parts->users))) ||
           !one_of(c.query.every("workspaceIds"), to_string(one.workspace)) ||
           !one_of(c.query.every("workspaceNames"), workspace_name(one)) ||
           (c.query.has("id") && c.query.first("id") != "0" && c.query.first("id") != to_string(one.id));
  });
  const auto by = c.query.first("sortBy");
  if (by == "SORT_BY_NAME")
    sort_by(rows, [](const auto& x) { return x.name; });
  else if (by == "SORT_BY_DESCRIPTION")
    sort_by(rows, [](const auto& x) { return x.description; });
  else if (by == "SORT_BY_CREATION_TIME")
    sort_by(rows, [](const auto& x) { return x.created; });
  else if (by == "SORT_BY_NUM_VERSIONS")
    sort_by(rows, [&](const auto& x) { return all->versions_of(x.id); });
  else if (by == "SORT_BY_WORKSPACE")
    sort_by(rows, workspace_name);
  else
    sort_by(rows, [](const auto& x) { return x.at; });
  if (is_descending(c.query))
    std::reverse(rows.begin(), rows.end());
  auto part = page_of(c.query, rows.size());
  if (!part)
    return part.error();
  value shaped = value::array();
  for (auto i = part->first; i < part->last; ++i)
    shaped.push_back(all->shaped(rows[i], c));
  return value{{"models", std::move(shaped)}, {"pagination", part->pagination}};
}

result<value> one_model(const call& c) {
  auto all = registered::read(c);
  if (!all)
    return all.error();
  auto found = all->find(c.named("modelName"));
  return found ? result<value>(value{{"model", all->shaped(**found, c)}}) : found.error();
}

/// The answer with the model as it is after a change; id 0: the model whose number is in the command's
/// answer.
answer_shape model_after(const call_ptr& c, model_id id) {
  return [c, id](value got) -> result<value> {
    auto all = registered::read(*c);
    if (!all)
      return all.error();
    const auto wanted = id ? id : model_id{got.value("id", std::uint64_t{0})};
    for (const auto& one : all->models)
      if (one.id == wanted)
        return value{{"model", all->shaped(one, *c)}};
    return error{errc::not_found, "model '" + to_string(wanted) + "' not found"};
  };
}

void read_wish(const call& c, fields& f, commands::model_wish& wish) {
  if (f.has("name"))
    wish.name = f.text("name");
  if (f.has("description"))
    wish.description = f.text("description");
  if (f.has("notes"))
    wish.notes = f.text("notes");
  if (f.has("labels"))
    wish.labels = f.texts("labels");
  if (f.has("metadata"))
    wish.metadata = f.object("metadata");
  if (const auto workspace = f.id<workspace_id>("workspaceId"))
    wish.workspace = workspace;
  if (const auto name = f.text("workspaceName"); !name.empty() && !wish.workspace) {
    auto places = place_book::read(*c.parts->storage);
    for (const auto& one : places ? places->workspaces() : std::vector<workspace_changed>{})
      if (one.name == name)
        wish.workspace = one.id;
    if (!wish.workspace)
      f.fault("workspaceName", "names no workspace: '" + name + "'");
  }
}

void create_model(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("name");
  commands::model_create with;
  read_wish(*c, f, with);
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with), model_after(c, {}));
}

/// Gives `run` the model that the path names.
template <class Run>
void on_model(const call_ptr& c, const reply& back, const Run& run) {
  auto all = registered::read(*c);
  if (!all)
    return back(failure(all.error()));
  auto found = all->find(c->named("modelName"));
  if (!found)
    return back(failure(found.error()));
  run(**found);
}

void patch_model(const call_ptr& c, const reply& back) {
  on_model(c, back, [&](const model_changed& model) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    commands::model_change with;
    with.id = model.id;
    read_wish(*c, f, with);
    if (f.bad())
      return back(failure(*f.bad()));
    command(c, back, std::move(with), model_after(c, model.id));
  });
}

handler archive_model(bool archived) {
  return [archived](const call_ptr& c, const reply& back) {
    on_model(c, back, [&](const model_changed& model) {
      commands::model_change with;
      with.id = model.id;
      with.archived = archived;
      command(c, back, std::move(with));
    });
  };
}

void move_model(const call_ptr& c, const reply& back) {
  on_model(c, back, [&](const model_changed& model) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    f.need("destinationWorkspaceId");
    commands::model_change with;
    with.id = model.id;
    with.workspace = f.id<workspace_id>("destinationWorkspaceId");
    f.text("modelName"); // the path names it; only the type is checked
    if (f.bad())
      return back(failure(*f.bad()));
    command(c, back, std::move(with));
  });
}

/// Whether the caller may remove it. `of_others` is the permission that roles demand where somebody else owns
/// it; the guard cannot check this, because the command does not name the owner.
result<void> may_remove(const call& c, const model_changed& model, const std::string& owner,
                        authority::permission of_others) {
  if (c.by.roles && !c.by.is(owner) && !c.by.roles->holds(of_others, model.workspace))
    return error{errc::denied, std::string("access denied: this needs the permission ") +
                                 authority::permissions()[static_cast<std::size_t>(of_others)].name +
                                 " in workspace " + to_string(model.workspace)};
  return allowed(c, action::remove, {thing::model, to_string(model.id), owner});
}

void delete_model(const call_ptr& c, const reply& back) {
  on_model(c, back, [&](const model_changed& model) {
    if (auto fine =
          may_remove(*c, model, model.owner, authority::permission::delete_other_user_model_registry);
        !fine)
      return back(failure(fine.error()));
    command(c, back, commands::model_remove{model.id});
  });
}

result<value> labels(const call& c) {
  auto all = c.parts->storage->models();
  if (!all)
    return all.error();
  const auto in = c.query.first("workspaceId");
  std::map<std::string, std::size_t> used;
  for (const auto& one : *all)
    if (in.empty() || in == "0" || in == to_string(one.workspace))
      for (const auto& label : one.labels)
        ++used[label];
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (auto& [label, times] : used)
    sorted.emplace_back(times, label);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  value out = value::array();
  for (auto& [times, label] : sorted)
    out.push_back(label);
  return value{{"labels", std::move(out)}};
}

// ---- versions

std::uint64_t version_named(const call& c) { return parse_id<model_id>(c.named("modelVersionNum")).value; }

error no_version(const call& c) {
  return {errc::not_found,
          "version '" + std::string(c.named("modelVersionNum").substr(0, 100)) + "' not found"};
}

result<const model_version_changed*> find_version(const registered& all, model_id model, const call& c) {
  const auto number = version_named(c);
  for (const auto& one : all.versions)
    if (one.model == model && one.version == number)
      return &one;
  return no_version(c);
}

result<value> list_versions(const call& c) {
  auto all = registered::read(c);
  if (!all)
    return all.error();
  auto model = all->find(c.named("modelName"));
  if (!model)
    return model.error();
  auto rows = all->versions;
  std::erase_if(rows, [&](const auto& one) { return one.model != (*model)->id; });
  if (is_descending(c.query))
    std::reverse(rows.begin(), rows.end());
  auto part = page_of(c.query, rows.size());
  if (!part)
    return part.error();
  value shaped = value::array();
  for (auto i = part->first; i < part->last; ++i) {
    auto one = version_shape(*all, **model, rows[i], c);
    if (!one)
      return one.error();
    shaped.push_back(std::move(*one));
  }
  return value{{"model", all->shaped(**model, c)},
               {"modelVersions", std::move(shaped)},
               {"pagination", part->pagination}};
}

result<value> one_version(const call& c) {
  auto all = registered::read(c);
  if (!all)
    return all.error();
  auto model = all->find(c.named("modelName"));
  if (!model)
    return model.error();
  auto found = find_version(*all, (*model)->id, c);
  if (!found)
    return found.error();
  auto shaped = version_shape(*all, **model, **found, c);
  return shaped ? result<value>(value{{"modelVersion", std::move(*shaped)}}) : shaped.error();
}

answer_shape version_after(const call_ptr& c, model_id model, std::uint64_t version) {
  return [c, model, version](value got) -> result<value> {
    auto all = registered::read(*c);
    if (!all)
      return all.error();
    const auto wanted = version ? version : got.value("version", std::uint64_t{0});
    for (const auto& of : all->models)
      for (const auto& one : all->versions)
        if (of.id == model && one.model == model && one.version == wanted) {
          auto shaped = version_shape(*all, of, one, *c);
          return shaped ? result<value>(value{{"modelVersion", std::move(*shaped)}}) : shaped.error();
        }
    return error{errc::not_found, "version '" + std::to_string(wanted) + "' not found"};
  };
}

void read_wish(fields& f, commands::version_wish& wish) {
  if (f.has("name"))
    wish.name = f.text("name");
  if (f.has("comment"))
    wish.comment = f.text("comment");
  if (f.has("notes"))
    wish.notes = f.text("notes");
  if (f.has("labels"))
    wish.labels = f.texts("labels");
  if (f.has("metadata"))
    wish.metadata = f.object("metadata");
}

void create_version(const call_ptr& c, const reply& back) {
  on_model(c, back, [&](const model_changed& model) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    f.need("checkpointUuid");
    commands::version_create with;
    with.model = model.id;
    with.checkpoint = stored_uuid(*c->parts->storage, f.text("checkpointUuid"));
    read_wish(f, with);
    f.text("modelName"); // the path names it; only the type is checked
    if (f.bad())
      return back(failure(*f.bad()));
    auto row = c->parts->storage->checkpoint(with.checkpoint);
    if (!row)
      return back(
        failure(row.error().code == errc::not_found
                  ? error{errc::not_found, "checkpoint '" + with.checkpoint.substr(0, 100) + "' not found"}
                  : row.error()));
    if (row->state != checkpoint_state::completed)
      return back(failure(
        {errc::invalid, "checkpoint " + with.checkpoint + " is not COMPLETED: it cannot be registered"}));
    command(c, back, std::move(with), version_after(c, model.id, 0));
  });
}

void patch_version(const call_ptr& c, const reply& back) {
  on_model(c, back, [&](const model_changed& model) {
    auto body = parse_object(c->body);
    if (!body)
      return back(failure(body.error()));
    fields f{*body};
    commands::version_change with;
    with.model = model.id;
    with.version = version_named(*c);
    if (with.version == 0)
      return back(failure(no_version(*c)));
    read_wish(f, with);
    if (f.bad())
      return back(failure(*f.bad()));
    const auto version = with.version;
    command(c, back, std::move(with), version_after(c, model.id, version));
  });
}

void delete_version(const call_ptr& c, const reply& back) {
  auto all = registered::read(*c);
  if (!all)
    return back(failure(all.error()));
  auto model = all->find(c->named("modelName"));
  if (!model)
    return back(failure(model.error()));
  auto found = find_version(*all, (*model)->id, *c);
  if (!found)
    return back(failure(found.error()));
  if (auto fine =
        may_remove(*c, **model, (*found)->owner, authority::permission::delete_other_user_model_version);
      !fine)
    return back(failure(fine.error()));
  command(c, back, commands::version_remove{(*model)->id, (*found)->version});
}

} // namespace

std::vector<route> registry_routes() {
  const authority::need view_template{action::view, thing::config_template},
    change_template{action::change, thing::config_template}, view{action::view, thing::model},
    change{action::change, thing::model}, remove{action::remove, thing::model};
  return {
    {"GET", "/api/v1/templates", view_template, answer_with(list_templates), "", "v1GetTemplatesResponse",
     "Templates."},
    {"GET", "/api/v1/templates/{templateName}", view_template, answer_with(one_template), "",
     "v1GetTemplateResponse", "One template."},
    {"POST", "/api/v1/templates/{templateName}", change_template, put_template(true), "v1Template",
     "v1PostTemplateResponse", "Creates a template."},
    {"PUT", "/api/v1/templates/{templateName}", change_template, put_template(false), "v1Template",
     "v1PutTemplateResponse", "Creates or replaces a template."},
    {"PATCH", "/api/v1/templates/{templateName}", change_template, patch_template, "object",
     "v1PatchTemplateConfigResponse", "Replaces the configuration of a template: the body."},
    {"PATCH", "/api/v1/template/rename", change_template, rename_template, "v1PatchTemplateNameRequest",
     "v1PatchTemplateNameResponse", "Gives a template another name."},
    {"DELETE", "/api/v1/templates/{templateName}", change_template, delete_template, "", "Empty",
     "Deletes a template."},
    {"GET", "/api/v1/models", view, answer_with(list_models), "", "v1GetModelsResponse", "Models."},
    {"POST",
     "/api/v1/models",
     {action::create, thing::model},
     create_model,
     "v1PostModelRequest",
     "v1PostModelResponse",
     "Adds a model to the registry."},
    {"GET", "/api/v1/model/labels", view, answer_with(labels), "", "v1GetModelLabelsResponse",
     "Labels of models, the most used first."},
    {"GET", "/api/v1/models/{modelName}", view, answer_with(one_model), "", "v1GetModelResponse",
     "One model, by name or number."},
    {"PATCH", "/api/v1/models/{modelName}", change, patch_model, "v1PatchModel", "v1PatchModelResponse",
     "Changes a model."},
    asks_again({"DELETE", "/api/v1/models/{modelName}", remove, delete_model, "", "Empty",
                "Deletes a model with its versions; the checkpoints stay."}),
    {"POST", "/api/v1/models/{modelName}/archive", change, archive_model(true), "", "Empty",
     "Archives a model: neither it nor its versions can be changed."},
    {"POST", "/api/v1/models/{modelName}/unarchive", change, archive_model(false), "", "Empty",
     "Opens an archived model again."},
    {"POST", "/api/v1/models/{modelName}/move", change, move_model, "v1MoveModelRequest", "Empty",
     "Moves a model to another workspace."},
    {"GET", "/api/v1/models/{modelName}/versions", view, answer_with(list_versions), "",
     "v1GetModelVersionsResponse", "Versions of a model."},
    {"POST", "/api/v1/models/{modelName}/versions", change, create_version, "v1PostModelVersionRequest",
     "v1PostModelVersionResponse", "Registers a checkpoint as the next version of a model."},
    {"GET", "/api/v1/models/{modelName}/versions/{modelVersionNum}", view, answer_with(one_version), "",
     "v1GetModelVersionResponse", "One version of a model."},
    {"PATCH", "/api/v1/models/{modelName}/versions/{modelVersionNum}", change, patch_version,
     "v1PatchModelVersion", "v1PatchModelVersionResponse", "Changes a version of a model."},
    asks_again({"DELETE", "/api/v1/models/{modelName}/versions/{modelVersionNum}", remove, delete_version, "",
                "Empty", "Deletes a version of a model."}),
  };
}

} // namespace troupe::api

// Folds facts to the rows of workspaces, projects, templates and the registry, and to descriptions of
// experiments. Each row is its newest fact. A deleted thing keeps its row, marked as deleted: readers pass
// over it.

#include "storage/projections/projections.hpp"

namespace troupe::storage::projections {

void fold_places(const fact& x, tables& rows) {
  if (const auto* workspace = std::get_if<workspace_changed>(&x))
    rows.workspaces.make(workspace->id) = *workspace;
  else if (const auto* project = std::get_if<project_changed>(&x))
    rows.projects.make(project->id) = *project;
  else if (const auto* templ = std::get_if<template_changed>(&x))
    rows.templates.make(templ->name) = *templ;
  else if (const auto* model = std::get_if<model_changed>(&x))
    rows.models.make(model->id) = *model;
  else if (const auto* version = std::get_if<model_version_changed>(&x))
    rows.versions.make(version_key(version->model, version->version)) = *version;
  else if (const auto* moved = std::get_if<experiment_moved>(&x)) {
    if (auto* row = rows.experiment_states.change(moved->id))
      row->project = moved->project;
  } else if (const auto* said = std::get_if<experiment_described>(&x)) {
    if (auto* row = rows.experiment_states.change(said->id)) {
      row->archived = said->archived;
      ++row->edits;
      rows.described.make(said->id) = *said;
    }
  }
}

} // namespace troupe::storage::projections

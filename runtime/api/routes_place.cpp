// Routes for workspaces and projects.

#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"
#include "runtime/api/unix_account_in.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

result<place_book> book_of(const call& c) { return place_book::counted(*c.parts->storage); }

error not_found(const char* kind, std::string_view id) {
  return {errc::not_found, std::string(kind) + " '" + std::string(id.substr(0, 100)) + "' not found"};
}

workspace_id workspace_named(const call& c) {
  return parse_id<workspace_id>(c.named(c.path.contains("id") ? "id" : "workspaceId"));
}
project_id project_named(const call& c) {
  return parse_id<project_id>(c.named(c.path.contains("id") ? "id" : "projectId"));
}

result<void> may_change(const call& c, const workspace_changed& x, action what) {
  return allowed(c, what, {thing::workspace, to_string(x.id), x.owner});
}
/// Whether the caller may change the project, as its owner or as the owner of its workspace.
result<void> may_change(const call& c, const project_changed& x, const place_book& book, action what) {
  if (const auto* workspace = book.find(x.workspace);
      workspace && allowed(c, what, {thing::project, to_string(x.id), workspace->owner}))
    return {};
  return allowed(c, what, {thing::project, to_string(x.id), x.owner});
}

// ---- filters and sorts that both lists have

bool of_wanted_owner(const call& c, const std::string& owner) {
  const auto users = c.query.every("users"), ids = c.query.every("userIds");
  const auto number = std::to_string(number_of(owner, *c.parts->users));
  const auto name = c.parts->users->now_named(owner);
  return (users.empty() || std::find(users.begin(), users.end(), name) != users.end()) &&
         (ids.empty() || std::find(ids.begin(), ids.end(), number) != ids.end());
}

bool flag_fits(const call& c, const char* key, bool is) {
  return !c.query.has(key) || c.query.flag(key) == is;
}

template <class Row, class Shape>
result<value> page(const call& c, const char* name, std::vector<const Row*> rows, const Shape& shape) {
  const auto by = c.query.first("sortBy");
  if (by == "SORT_BY_NAME")
    std::stable_sort(rows.begin(), rows.end(),
                     [](auto* a, auto* b) { return folded(a->name) < folded(b->name); });
  if constexpr (requires(Row r) { r.description; })
    if (by == "SORT_BY_DESCRIPTION")
      std::stable_sort(rows.begin(), rows.end(),
                       [](auto* a, auto* b) { return a->description < b->description; });
  if (is_descending(c.query))
    std::reverse(rows.begin(), rows.end());
  auto part = page_of(c.query, rows.size());
  if (!part)
    return part.error();
  value shaped = value::array();
  for (auto i = part->first; i < part->last; ++i)
    shaped.push_back(shape(*rows[i]));
  return value{{name, std::move(shaped)}, {"pagination", part->pagination}};
}

// ---- workspaces

result<value> list_workspaces(const call& c) {
  auto book = book_of(c);
  if (!book)
    return book.error();
  std::vector<const workspace_changed*> rows;
  const auto exact = c.query.first("nameCaseSensitive");
  for (const auto& one : book->workspaces()) {
    const bool pinned =
      std::find(one.pinned_by.begin(), one.pinned_by.end(), c.by.who.user) != one.pinned_by.end();
    if (contains_folded(one.name, c.query.first("name")) && (exact.empty() || one.name == exact) &&
        of_wanted_owner(c, one.owner) && flag_fits(c, "archived", one.archived) &&
        flag_fits(c, "pinned", pinned))
      rows.push_back(&one);
  }
  return page(c, "workspaces", std::move(rows),
              [&](const auto& x) { return book->shape(x, *c.parts->users, c.by.who.user); });
}

result<value> one_workspace(const call& c) {
  auto book = book_of(c);
  if (!book)
    return book.error();
  const auto id = workspace_named(c);
  const auto* found = book->find(id);
  if (!found)
    return not_found("workspace", c.named("id"));
  return value{{"workspace", book->shape(*found, *c.parts->users, c.by.who.user)}};
}

/// The answer with the workspace as it is after a change; id 0: the workspace that the command created.
answer_shape workspace_after(const call_ptr& c, workspace_id id) {
  return [c, id](value got) -> result<value> {
    auto book = book_of(*c);
    if (!book)
      return book.error();
    const auto* found = book->find(id ? id : workspace_id{got.value("id", std::uint64_t{0})});
    if (!found)
      return not_found("workspace", to_string(id));
    return value{{"workspace", book->shape(*found, *c->parts->users, c->by.who.user)},
                 {"namespaceBindings", value::object()}};
  };
}

void read_wish(fields& f, commands::workspace_wish& wish) {
  if (f.has("name"))
    wish.name = f.text("name");
  // `det workspace edit` sends the first name of each pair.
  for (const char* key : {"defaultComputeResourcePool", "defaultComputePool"})
    if (f.has(key))
      wish.compute_pool = f.text(key);
  for (const char* key : {"defaultAuxResourcePool", "defaultAuxPool"})
    if (f.has(key))
      wish.aux_pool = f.text(key);
  if (f.has("checkpointStorageConfig"))
    wish.checkpoint_storage = f.object("checkpointStorageConfig");
  wish.runs_as = unix_account_in(f);
}

result<void> only_admins(const call& c, const commands::workspace_wish& wish) {
  // The right is the same as for a user's account.
  if (wish.runs_as && !allowed(c, action::change, {thing::user, {}, {}}))
    return error{errc::denied, "only an admin may set the account that tasks of a workspace run as"};
  return {};
}

void create_workspace(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("name");
  commands::workspace_create with;
  read_wish(f, with);
  if (f.bad())
    return back(failure(*f.bad()));
  if (auto fine = only_admins(*c, with); !fine)
    return back(failure(fine.error()));
  command(c, back, std::move(with), workspace_after(c, {}));
}

/// Runs `order` on the workspace that the path names, if the caller has the right.
template <class Order>
void on_workspace(const call_ptr& c, const reply& back, action what, Order order, bool shaped) {
  auto book = book_of(*c);
  if (!book)
    return back(failure(book.error()));
  const auto* found = book->find(order.id);
  if (!found)
    return back(failure(not_found("workspace", to_string(order.id))));
  if (auto fine = may_change(*c, *found, what); !fine)
    return back(failure(fine.error()));
  const auto id = order.id;
  command(c, back, std::move(order), shaped ? workspace_after(c, id) : answer_shape{});
}

void patch_workspace(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::workspace_change with;
  with.id = workspace_named(*c);
  read_wish(f, with);
  if (f.bad())
    return back(failure(*f.bad()));
  if (auto fine = only_admins(*c, with); !fine)
    return back(failure(fine.error()));
  on_workspace(c, back, action::change, std::move(with), true);
}

handler archive_workspace(bool archived) {
  return [archived](const call_ptr& c, const reply& back) {
    commands::workspace_change with;
    with.id = workspace_named(*c);
    with.archived = archived;
    on_workspace(c, back, action::change, std::move(with), false);
  };
}

handler pin_workspace(bool on) {
  return [on](const call_ptr& c, const reply& back) {
    command(c, back, commands::workspace_pin{workspace_named(*c), on});
  };
}

result<value> completed(value got) { return value{{"completed", got.value("completed", true)}}; }

void delete_workspace(const call_ptr& c, const reply& back) {
  auto book = book_of(*c);
  if (!book)
    return back(failure(book.error()));
  const auto* found = book->find(workspace_named(*c));
  if (!found)
    return back(failure(not_found("workspace", c->named("id"))));
  if (auto fine = may_change(*c, *found, action::remove); !fine)
    return back(failure(fine.error()));
  command(c, back, commands::workspace_remove{found->id}, completed);
}

// ---- projects

result<value> list_projects(const call& c) {
  auto book = book_of(c);
  if (!book)
    return book.error();
  const auto in = workspace_named(c);
  if (in && !book->find(in)) // 0 stands for all workspaces
    return not_found("workspace", c.named("id"));
  std::vector<const project_changed*> rows;
  for (const auto& one : book->projects())
    if ((!in || one.workspace == in) && contains_folded(one.name, c.query.first("name")) &&
        of_wanted_owner(c, one.owner) && flag_fits(c, "archived", book->hidden(one.id)))
      rows.push_back(&one);
  if (c.query.first("sortBy") == "SORT_BY_LAST_EXPERIMENT_START_TIME")
    std::stable_sort(rows.begin(), rows.end(),
                     [&](auto* a, auto* b) { return book->last_started(a->id) < book->last_started(b->id); });
  return page(c, "projects", std::move(rows), [&](const auto& x) { return book->shape(x, *c.parts->users); });
}

result<value> one_project(const call& c) {
  auto book = book_of(c);
  if (!book)
    return book.error();
  const auto* found = book->find(project_named(c));
  if (!found)
    return not_found("project", c.named("id"));
  return value{{"project", book->shape(*found, *c.parts->users)}};
}

result<value> project_by_key(const call& c) {
  auto book = book_of(c);
  if (!book)
    return book.error();
  for (const auto& one : book->projects())
    if (!one.key.empty() && folded(one.key) == folded(c.named("key")))
      return value{{"project", book->shape(one, *c.parts->users)}};
  return not_found("project", c.named("key"));
}

answer_shape project_after(const call_ptr& c, project_id id) {
  return [c, id](value got) -> result<value> {
    auto book = book_of(*c);
    if (!book)
      return book.error();
    const auto* found = book->find(id ? id : project_id{got.value("id", std::uint64_t{0})});
    if (!found)
      return not_found("project", to_string(id));
    return value{{"project", book->shape(*found, *c->parts->users)}};
  };
}
answer_shape notes_after(const call_ptr& c, project_id id) {
  return [shape = project_after(c, id)](value got) -> result<value> {
    auto whole = shape(std::move(got));
    return whole ? result<value>(value{{"notes", (*whole)["project"]["notes"]}}) : whole.error();
  };
}

void create_project(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("name");
  commands::project_create with;
  with.workspace = workspace_named(*c);
  with.name = f.text("name");
  with.description = f.text("description");
  with.key = f.text("key");
  f.number("workspaceId"); // the path names it; only the type is checked
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, std::move(with), project_after(c, {}));
}

/// Gives `make` the project that the path names, and runs the order that `make` returns if the caller has the
/// right.
template <class Make>
void on_project(const call_ptr& c, const reply& back, action what, const Make& make,
                const std::function<answer_shape(project_id)>& shape) {
  auto book = book_of(*c);
  if (!book)
    return back(failure(book.error()));
  const auto* found = book->find(project_named(*c));
  if (!found)
    return back(failure(not_found("project", c->named(c->path.contains("id") ? "id" : "projectId"))));
  if (auto fine = may_change(*c, *found, *book, what); !fine)
    return back(failure(fine.error()));
  auto order = make(*found);
  if (!order)
    return back(failure(order.error()));
  command(c, back, std::move(*order), shape ? shape(found->id) : answer_shape{});
}

commands::project_change change_of(const project_changed& x) {
  commands::project_change with;
  with.id = x.id;
  return with;
}

void patch_project(const call_ptr& c, const reply& back) {
  on_project(
    c, back, action::change,
    [&](const project_changed& x) -> result<commands::project_change> {
      auto body = parse_object(c->body);
      if (!body)
        return body.error();
      fields f{*body};
      auto with = change_of(x);
      if (f.has("name"))
        with.name = f.text("name");
      if (f.has("description"))
        with.description = f.text("description");
      if (f.has("key"))
        with.key = f.text("key");
      if (f.bad())
        return *f.bad();
      return with;
    },
    [&](project_id id) { return project_after(c, id); });
}

handler archive_project(bool archived) {
  return [archived](const call_ptr& c, const reply& back) {
    on_project(c, back, action::change,
               [&](const project_changed& x) -> result<commands::project_change> {
                 auto with = change_of(x);
                 with.archived = archived;
                 return with;
               },
               {});
  };
}

void move_project(const call_ptr& c, const reply& back) {
  on_project(c, back, action::change,
             [&](const project_changed& x) -> result<commands::project_change> {
               auto body = parse_object(c->body);
               if (!body)
                 return body.error();
               fields f{*body};
               f.need("destinationWorkspaceId");
               auto with = change_of(x);
               with.workspace = f.id<workspace_id>("destinationWorkspaceId");
               f.number("projectId"); // the path names it; only the type is checked
               if (f.bad())
                 return *f.bad();
               return with;
             },
             {});
}

commands::note note_in(fields f, std::optional<error>& bad) {
  commands::note out{f.text("name"), f.text("contents")};
  if (f.bad() && !bad)
    bad = f.bad();
  return out;
}

void add_note(const call_ptr& c, const reply& back) {
  on_project(
    c, back, action::change,
    [&](const project_changed& x) -> result<commands::project_change> {
      auto body = parse_object(c->body);
      if (!body)
        return body.error();
      std::optional<error> bad;
      auto with = change_of(x);
      with.add_notes.emplace({note_in(fields{*body}, bad)});
      if (bad)
        return *bad;
      return with;
    },
    [&](project_id id) { return notes_after(c, id); });
}

void put_notes(const call_ptr& c, const reply& back) {
  on_project(
    c, back, action::change,
    [&](const project_changed& x) -> result<commands::project_change> {
      auto body = parse_object(c->body);
      if (!body)
        return body.error();
      fields f{*body};
      std::optional<error> bad;
      auto with = change_of(x);
      auto& all = with.notes.emplace();
      for (const auto& one : f.list("notes")) {
        if (!one.is_object())
          return error{errc::invalid, "notes: each is an object with name and contents"};
        all.push_back(note_in(fields{one, "notes"}, bad));
      }
      f.number("projectId"); // the path names it; only the type is checked
      if (f.bad())
        return *f.bad();
      if (bad)
        return *bad;
      return with;
    },
    [&](project_id id) { return notes_after(c, id); });
}

void delete_project(const call_ptr& c, const reply& back) {
  on_project(
    c, back, action::remove,
    [](const project_changed& x) -> result<commands::project_remove> {
      return commands::project_remove{x.id};
    },
    [](project_id) { return answer_shape(completed); });
}

} // namespace

std::vector<route> place_routes() {
  const authority::need view{action::view, thing::workspace}, change{action::change, thing::workspace},
    view_project{action::view, thing::project}, change_project{action::change, thing::project};
  return {
    {"GET", "/api/v1/workspaces", view, answer_with(list_workspaces), "", "v1GetWorkspacesResponse",
     "Workspaces."},
    {"POST",
     "/api/v1/workspaces",
     {action::create, thing::workspace},
     create_workspace,
     "v1PostWorkspaceRequest",
     "v1PostWorkspaceResponse",
     "Creates a workspace."},
    {"GET", "/api/v1/workspaces/{id}", view, answer_with(one_workspace), "", "v1GetWorkspaceResponse",
     "One workspace."},
    asks_again({"PATCH", "/api/v1/workspaces/{id}", change, patch_workspace, "v1PatchWorkspace",
                "v1PatchWorkspaceResponse", "Changes a workspace."}),
    asks_again({"DELETE",
                "/api/v1/workspaces/{id}",
                {action::remove, thing::workspace},
                delete_workspace,
                "",
                "v1DeleteWorkspaceResponse",
                "Deletes a workspace that owns no models, and behind the answer what it holds."}),
    asks_again({"POST", "/api/v1/workspaces/{id}/archive", change, archive_workspace(true), "", "Empty",
                "Archives a workspace: nothing in it can be changed."}),
    asks_again({"POST", "/api/v1/workspaces/{id}/unarchive", change, archive_workspace(false), "", "Empty",
                "Opens an archived workspace again."}),
    {"POST", "/api/v1/workspaces/{id}/pin", view, pin_workspace(true), "", "Empty",
     "Puts a workspace among the caller's favourites."},
    {"POST", "/api/v1/workspaces/{id}/unpin", view, pin_workspace(false), "", "Empty",
     "Takes a workspace from the caller's favourites."},
    {"GET", "/api/v1/workspaces/{id}/projects", view_project, answer_with(list_projects), "",
     "v1GetWorkspaceProjectsResponse", "Projects of a workspace; of workspace 0: all."},
    {"POST",
     "/api/v1/workspaces/{workspaceId}/projects",
     {action::create, thing::project},
     create_project,
     "v1PostProjectRequest",
     "v1PostProjectResponse",
     "Creates a project."},
    {"GET", "/api/v1/projects/{id}", view_project, answer_with(one_project), "", "v1GetProjectResponse",
     "One project."},
    {"GET", "/api/v1/projects/key/{key}", view_project, answer_with(project_by_key), "",
     "v1GetProjectByKeyResponse", "One project by its key."},
    asks_again({"PATCH", "/api/v1/projects/{id}", change_project, patch_project, "v1PatchProject",
                "v1PatchProjectResponse", "Changes a project."}),
    asks_again({"DELETE",
                "/api/v1/projects/{id}",
                {action::remove, thing::project},
                delete_project,
                "",
                "v1DeleteProjectResponse",
                "Deletes a project, and behind the answer its experiments."}),
    asks_again({"POST", "/api/v1/projects/{id}/archive", change_project, archive_project(true), "", "Empty",
                "Archives a project: its experiments are hidden."}),
    asks_again({"POST", "/api/v1/projects/{id}/unarchive", change_project, archive_project(false), "",
                "Empty", "Opens an archived project again."}),
    asks_again({"POST", "/api/v1/projects/{projectId}/move", change_project, move_project,
                "v1MoveProjectRequest", "Empty", "Moves a project to another workspace."}),
    asks_again({"POST", "/api/v1/projects/{projectId}/notes", change_project, add_note, "v1Note",
                "v1AddProjectNoteResponse", "Adds a note to a project."}),
    asks_again({"PUT", "/api/v1/projects/{projectId}/notes", change_project, put_notes,
                "v1PutProjectNotesRequest", "v1PutProjectNotesResponse", "Replaces the notes of a project."}),
  };
}

} // namespace troupe::api

#include "runtime/api/creation.hpp"

#include "runtime/api/context.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/place_shapes.hpp"

namespace troupe::api {
namespace {

constexpr const char* framed_type = "application/x-troupe-experiment";

/// Makes the command experiment.create of a request in one of our own two forms.
result<commands::experiment_create> own_form(const call& c) {
  std::string_view text = c.body, context;
  const bool framed = std::string_view(c.headers.content_type).starts_with(framed_type);
  if (framed) {
    auto line = text.find('\n');
    if (line == text.npos)
      return error{errc::invalid, "the body has to begin with one line of JSON, then the bytes of the tar"};
    context = text.substr(line + 1);
    text = text.substr(0, line);
  }
  auto body = parse_object(text);
  if (!body)
    return body.error();
  fields f{*body};
  f.need("config");
  commands::experiment_create with;
  with.config = f.text("config");
  with.config_name = f.text("configName", "<config>");
  with.name = f.text("name");
  with.template_name = f.text("template");
  with.project = f.id<project_id>("project");
  with.activate = f.flag("activate", true);
  with.key = f.text("key");
  std::string bytes{context};
  if (f.has("context") && !framed) {
    auto decoded = from_base64(f.text("context"));
    if (!decoded)
      f.fault("context", decoded.error().what);
    else
      bytes = std::move(*decoded);
  }
  if (f.bad())
    return *f.bad();
  if (!bytes.empty()) {
    auto checked = checked_context(std::move(bytes));
    if (!checked)
      return checked.error();
    with.context.held = std::move(*checked);
  }
  return with;
}

/// Makes the command experiment.create of the stock client's request.
result<commands::experiment_create> stock_form(const call& c, fields& f) {
  f.need("config");
  commands::experiment_create with;
  with.config = f.text("config");
  with.config_name = "<config>";
  with.activate = f.flag("activate", true);
  const auto& files = f.list("modelDefinition");
  const auto parent = f.id<experiment_id>("parentId");
  if (f.has("parentId") && !parent)
    f.fault("parentId", "has to be the id of an experiment, or be left out");
  with.template_name = f.text("template");
  with.project = f.id<project_id>("projectId");
  with.unmanaged = f.flag("unmanaged");
  if (f.bad())
    return *f.bad();
  if (parent) {
    auto row = c.parts->storage->experiment(parent);
    if (!row)
      return row.error().code == errc::not_found
               ? error{errc::not_found, "experiment '" + to_string(parent) + "' not found"}
               : row.error();
    with.parent = row->id;
    if (files.empty())
      with.context_blob = row->context;
  }
  if (!files.empty()) {
    auto packed = packed_context(files);
    if (!packed)
      return packed.error();
    with.context.held = std::move(*packed);
  }
  return with;
}

value warnings_of(const value& created) { return created.value("warnings", value::array()); }

void answer_created(const call_ptr& c, const reply& back, value shape, value warnings) {
  for (auto& one : warnings)
    one = "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"; // Determined's client knows this code alone
  auto config = shape["config"];
  back(
    json({{"config", std::move(config)}, {"experiment", std::move(shape)}, {"warnings", std::move(warnings)}},
         c->query.has("pretty")));
}

void create_own(const call_ptr& c, const reply& back) {
  auto with = own_form(*c);
  if (!with)
    return back(failure(with.error()));
  c->parts->cluster.order(c->by.who, std::move(*with), [c, back](result<value> got) {
    if (!got)
      return back(failure(got.error()));
    back(json({{"id", got->value("id", std::uint64_t{0})}, {"warnings", warnings_of(*got)}},
              c->query.has("pretty")));
  });
}

/// Creates an experiment. `external_id` is the name that an unmanaged experiment brings; empty: it has none.
void create_as(const call_ptr& c, const reply& back, const std::string& external_id) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  const bool validate_only = f.flag("validateOnly");
  auto with = stock_form(*c, f);
  if (!with)
    return back(failure(with.error()));
  with->external_id = external_id;
  if (validate_only)
    return command(c, back,
                   commands::experiment_validate{with->config, with->config_name, with->template_name,
                                                 with->project, with->unmanaged},
                   [forks = with->parent.value != 0](const value& got) -> result<value> {
                     if (const auto masked = got.value("masked", std::string()); !masked.empty() && !forks)
                       return error{errc::invalid, masked};
                     return value{{"experiment", empty_experiment_shape()},
                                  {"config", nullptr},
                                  {"warnings", value::array()}};
                   });
  c->parts->cluster.order(c->by.who, std::move(*with), [c, back, external_id](result<value> got) {
    auto row = got ? c->parts->storage->experiment({got->value("id", std::uint64_t{0})})
                   : result<experiment_row>(got.error());
    if (!row)
      return back(failure(row.error()));
    if (row->external_id != external_id) // an earlier creation has used the name as its key
      return back(failure({errc::conflict, "experiment " + to_string(row->id) + " is not unmanaged"}));
    auto places = place_book::read(*c->parts->storage);
    if (!places)
      return back(failure(places.error()));
    answer_created(c, back, experiment_shape(*row, *c->parts->users, *places), warnings_of(*got));
  });
}

void create_stock(const call_ptr& c, const reply& back) { create_as(c, back, ""); }

/// Creates an unmanaged experiment, or finds it by its name. The body is that of a creation, or has that
/// under createExperimentRequest.
void put_external(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  auto inner = std::make_shared<call>(*c);
  if (f.has("createExperimentRequest"))
    inner->body = to_json(f.object("createExperimentRequest"));
  if (f.bad())
    return back(failure(*f.bad()));
  create_as(inner, back, std::string(c->named("externalExperimentId")));
}

route large(route row) {
  row.body_bytes = large_body;
  row.slow = true;
  return row;
}

} // namespace

std::vector<route> creation_routes() {
  return {
    large({"POST",
           "/api/v1/experiments",
           {action::create, thing::experiment},
           create_stock,
           "v1CreateExperimentRequest",
           "v1CreateExperimentResponse",
           "Creates an experiment, as the stock client sends it."}),
    large({"PUT",
           "/api/v1/experiments/by-external-id/{externalExperimentId}",
           {action::create, thing::experiment},
           put_external,
           "v1CreateExperimentRequest",
           "v1PutExperimentResponse",
           "Creates an unmanaged experiment with a name of its own, or finds it again."}),
    large({"POST",
           "/troupe/v1/experiments",
           {action::create, thing::experiment},
           create_own,
           "CreateExperiment",
           "CreatedExperiment",
           "Creates an experiment; see docs/api.md for the two forms of the body."}),
  };
}

} // namespace troupe::api

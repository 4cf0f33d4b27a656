#include "runtime/api/openapi.hpp"

#include "model/assert.hpp"
#include "runtime/api/answers.hpp"
#include "runtime/api/bodies.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::api {
namespace {

value parameters(const std::string& path) {
  value list = value::array();
  const auto shape = parse_target(path).value();
  for (const auto& segment : shape.segments)
    if (segment.front() == '{')
      list.push_back({{"name", segment.substr(1, segment.size() - 2)},
                      {"in", "path"},
                      {"required", true},
                      {"schema", {{"type", "string"}}}});
  return list;
}

value reference(const std::string& type) { return {{"$ref", "#/components/schemas/" + type}}; }

/// The type of one element: the schema of "stream of X", newline-delimited or server-sent, is that of X.
std::string element(std::string type) {
  for (const char* prefix : {"stream of ", "list of "})
    if (type.starts_with(prefix))
      type = type.substr(std::strlen(prefix));
  return type;
}

const char* media_of(const route& row) {
  const std::string_view type = row.answers, path = row.path;
  if (type == "archive")
    return "application/octet-stream";
  const bool events = path == "/troupe/v1/events" || path == "/troupe/v1/live" ||
                      (path.starts_with("/troupe/v1/shell/") && type.starts_with("stream of "));
  return events ? "text/event-stream" : "application/json";
}

value operation(const route& row, value& schemas) {
  value x = {
    {"summary", row.doc}, {"x-access", authority::who_may(row.right)}, {"x-body-bytes", row.body_bytes}};
  if (row.asks_again)
    x["x-asks-again"] = true;
  if (auto list = parameters(row.path); !list.empty())
    x["parameters"] = list;
  if (std::string_view(x["x-access"].get_ref<const std::string&>()) == "open")
    x["security"] = value::array();
  if (*row.takes) {
    auto schema = body_schema(row.takes);
    TROUPE_ASSERT(!schema.is_null()); // otherwise bodies.cpp lacks the schema of this body
    TROUPE_ASSERT(!answer_schemas().contains(row.takes));
    schemas[row.takes] = std::move(schema);
    x["requestBody"] = {{"content", {{"application/json", {{"schema", reference(row.takes)}}}}}};
  }
  const auto type = element(row.answers);
  if (!schemas.contains(type))
    schemas[type] = {{"type", type == "archive" ? "string" : "object"}};
  value ok = {{"description", row.answers}};
  const bool in_list = std::string_view(row.answers).starts_with("list of ");
  ok["content"][media_of(row)]["schema"] =
    in_list ? value{{"type", "array"}, {"items", reference(type)}} : reference(type);
  x["responses"] = {{"200", std::move(ok)}, {"default", {{"$ref", "#/components/responses/Error"}}}};
  return x;
}

value lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

} // namespace

value openapi_document(const std::vector<route>& table) {
  value paths = value::object(), schemas = value::object();
  schemas["Error"] = {{"type", "object"},
                      {"properties",
                       {{"message", {{"type", "string"}}},
                        {"error",
                         {{"type", "object"},
                          {"properties",
                           {{"code", {{"type", "integer"}}},
                            {"reason", {{"type", "string"}}},
                            {"error", {{"type", "string"}}}}}}}}}};
  for (const auto& [name, schema] : answer_schemas())
    schemas[name] = schema;
  for (const auto& row : table)
    paths[row.path][lower(row.method).get<std::string>()] = operation(row, schemas);
  value error_answer = {{"description", "The error's gRPC code and name, and its text."}};
  error_answer["content"]["application/json"]["schema"] = reference("Error");
  value document = {{"openapi", "3.0.3"}};
  document["info"] = {{"title", "Troupe"},
                      {"version", "1"},
                      {"description", "Generated from the route table; see docs/api.md."}};
  document["security"] = value::array({{{"bearer", value::array()}}});
  document["paths"] = std::move(paths);
  document["components"]["schemas"] = std::move(schemas);
  document["components"]["responses"]["Error"] = std::move(error_answer);
  document["components"]["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  return document;
}

} // namespace troupe::api

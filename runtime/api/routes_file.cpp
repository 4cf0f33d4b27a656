// Routes for the files that an experiment was submitted with.

#include "runtime/api/context.hpp"
#include "runtime/api/context_files.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/route.hpp"

namespace troupe::api {
namespace {

result<std::string> context_of(const call& c) {
  auto row = named_experiment(c);
  if (!row)
    return row.error();
  return row->context.empty() ? result<std::string>(std::string()) : c.parts->storage->blob(row->context);
}

/// The files as a tree of folders, in the form that the stock client prints.
value tree_of(const std::vector<context_file>& files) {
  struct node {
    const context_file* file = nullptr;
    std::map<std::string, node> inside;
  };
  node root;
  for (const auto& one : files) {
    node* at = &root;
    for (std::string_view rest = one.path; !rest.empty();) {
      const auto end = rest.find('/');
      at = &at->inside[std::string(rest.substr(0, end))];
      rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
    }
    at->file = &one;
  }
  const std::function<value(const node&, const std::string&)> shape = [&](const node& of,
                                                                          const std::string& path) {
    value list = value::array();
    for (const auto& [name, one] : of.inside) {
      const auto whole = path.empty() ? name : path + "/" + name;
      const bool folder = !one.inside.empty() || (one.file && one.file->folder);
      list.push_back(
        {{"path", whole},
         {"name", name},
         {"isDir", folder},
         {"contentLength", one.file && !folder ? one.file->bytes : 0},
         {"modifiedTime", one.file ? to_rfc3339(time_point{std::chrono::seconds{one.file->modified}}) : ""},
         {"files", folder ? shape(one, whole) : value::array()}});
    }
    return list;
  };
  return shape(root, "");
}

result<value> tree(const call& c) {
  auto bytes = context_of(c);
  if (!bytes)
    return bytes.error();
  auto files = context_files(*bytes);
  return files ? result<value>(value{{"files", tree_of(*files)}}) : files.error();
}

result<value> file(const call& c) {
  auto body = parse_object(c.body);
  if (!body)
    return body.error();
  fields f{*body};
  f.need("path");
  const auto path = f.text("path");
  if (f.bad())
    return *f.bad();
  auto bytes = context_of(c);
  if (!bytes)
    return bytes.error();
  auto one = context_file_bytes(*bytes, path);
  return one ? result<value>(value{{"file", to_base64(*one)}}) : one.error();
}

/// The bytes of a file, which a browser saves and never shows as a page of ours.
result<response> download(const call& c) {
  if (c.query.first("path").empty())
    return error{errc::invalid, "path is missing: the file's, as the list of files names it"};
  auto bytes = context_of(c);
  if (!bytes)
    return bytes.error();
  auto one = context_file_bytes(*bytes, std::string(c.query.first("path")));
  if (!one)
    return one.error();
  response out;
  out.content_type = "application/octet-stream";
  out.body = std::move(*one);
  out.headers.emplace_back("Content-Disposition", "attachment");
  out.headers.emplace_back("Content-Security-Policy", "sandbox");
  return out;
}

} // namespace

std::vector<route> file_routes() {
  return {
    {"GET",
     "/api/v1/experiments/{experimentId}/file_tree",
     {action::view, thing::files},
     answer_with(tree),
     "",
     "v1GetModelDefTreeResponse",
     "The files that it was submitted with."},
    {"POST",
     "/api/v1/experiments/{experimentId}/file",
     {action::view, thing::files},
     answer_with(file),
     "v1GetModelDefFileRequest",
     "v1GetModelDefFileResponse",
     "One of these files, in base64."},
    {"GET",
     "/troupe/v1/experiments/{experimentId}/file",
     {action::view, thing::files},
     respond_with(download),
     "",
     "archive",
     "One of these files, as its bytes."},
  };
}

} // namespace troupe::api

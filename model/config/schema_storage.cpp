// Where checkpoints are stored.

#include "model/config/shapes.hpp"

namespace troupe::config {
namespace {

std::vector<key> kept(schema_table& t) {
  auto count = integer(t, {.least = 0});
  return {
    given("save_experiment_best", count, 0, "The best checkpoints of the experiment to keep at its end.",
          "checkpoints"),
    given("save_trial_best", count, 1, "The best checkpoints of each trial to keep.", "checkpoints"),
    given("save_trial_latest", count, 1, "The latest checkpoints of each trial to keep.", "checkpoints")};
}

shape& storage(schema_table& t, const std::string& schema, const std::string& type, std::string doc,
               std::vector<key> keys) {
  auto& s = t.make(schema);
  s.kinds = map_bit;
  s.doc = std::move(doc);
  s.keys.push_back(required("type", one_of(t, {type}), "Kind of storage."));
  for (auto& k : keys)
    s.keys.push_back(std::move(k));
  for (auto& k : kept(t))
    s.keys.push_back(std::move(k));
  return s;
}

bool no_way_up(std::string_view prefix) {
  return prefix != ".." && !prefix.starts_with("../") && !prefix.ends_with("/..") &&
         prefix.find("/../") == std::string_view::npos;
}

bool names_something(std::string_view text) {
  return !text.empty() && text.find('\0') == std::string_view::npos;
}

shape_ref naming(schema_table& t, std::string says) {
  auto& s = t.make();
  s.kinds = text_bit;
  s.fits = names_something;
  s.pattern = R"(^[^\u0000]+$)";
  s.pattern_says = std::move(says);
  return &s;
}

key prefix(schema_table& t) {
  auto& s = t.make();
  s.kinds = text_bit;
  s.fits = no_way_up;
  s.pattern = R"(^(?!\.\.$)(?!\.\./)(?!.*/\.\.$)(?!.*/\.\./))";
  s.pattern_says = "a prefix without '..'";
  return unset("prefix", &s, "Text put before the name of every object; without '..'.");
}

bool is_set(const node& x, std::string_view name) {
  const auto* found = x.find(name);
  return found && !found->is(kind::null);
}

bool has_text(const node& x, std::string_view name) {
  const auto* found = x.find(name);
  return found && found->is(kind::string);
}

/// The parts of a path; "." is dropped and ".." removes the part before it.
std::vector<std::string_view> clean_parts(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    auto end = path.find('/');
    auto part = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    if (part == ".." && !parts.empty() && parts.back() != "..")
      parts.pop_back();
    else if (!part.empty() && part != ".")
      parts.push_back(part);
  }
  return parts;
}

bool storage_path_inside(const node& x) {
  if (!has_text(x, "storage_path") || !has_text(x, "host_path"))
    return true;
  const auto& path = x.find("storage_path")->text;
  auto inner = clean_parts(path);
  if (!path.starts_with('/'))
    return inner.empty() || inner.front() != "..";
  const auto& host = x.find("host_path")->text;
  if (!host.starts_with('/'))
    return false;
  auto outer = clean_parts(host);
  return inner.size() >= outer.size() && std::equal(outer.begin(), outer.end(), inner.begin()) &&
         (inner.size() == outer.size() || inner[outer.size()] != "..");
}

bool one_login(const node& x) { return is_set(x, "connection_string") != is_set(x, "account_url"); }
bool not_two_secrets(const node& x) {
  return !(has_text(x, "connection_string") && has_text(x, "credential"));
}

void add_azure(schema_table& t) {
  auto& azure =
    storage(t, "azure", "azure", "Azure Blob Storage.",
            {to_run(unset("container", naming(t, "a name"), "The container of the blobs.")),
             quiet(unset("connection_string", text(t), "Connection string, instead of account_url.")),
             quiet(unset("account_url", text(t),
                         "Address of the account, instead of connection_string; for unmanaged experiments.")),
             quiet(unset("credential", text(t), "Secret for account_url."))});
  azure.rules.push_back({"exactly one of connection_string and account_url must be set", one_login, "",
                         need::to_run, nullptr,
                         "add connection_string, as Determined's client cannot sign in by account_url"});
  azure.rules.push_back({"credential and connection_string must not both be set",
                         not_two_secrets,
                         "credential",
                         need::always,
                         {{"not", {{"required", {"connection_string", "credential"}}}}},
                         "a connection string holds its own secret; remove credential"});
}

} // namespace

void add_storage(schema_table& t) {
  auto& shared = storage(
    t, "shared-fs", "shared_fs", "A directory that all hosts see.",
    {to_run(unset("host_path", naming(t, "a path without zero bytes"), "The directory on the hosts.")),
     unset("storage_path", text(t), "Folder of the checkpoints below host_path."),
     given("propagation", text(t), "rprivate", "The mount propagation."),
     quiet(unset("container_path", text(t), "Key of older versions; ignored.")),
     quiet(unset("checkpoint_path", text(t), "Key of older versions; ignored.")),
     quiet(unset("tensorboard_path", text(t), "Key of older versions; ignored."))});
  shared.rules.push_back({"storage_path must either be a relative directory or a subdirectory of host_path",
                          storage_path_inside, "storage_path", need::always, nullptr, ""});
  storage(t, "directory", "directory", "A directory as tasks see it.",
          {to_run(unset("container_path", naming(t, "a path without zero bytes"), "The directory."))});
  storage(t, "s3", "s3", "Amazon S3, or a service with the same protocol.",
          {to_run(unset("bucket", naming(t, "a name"), "The bucket.")),
           unset("access_key", text(t), "The access key."), unset("secret_key", text(t), "The secret key."),
           unset("endpoint_url", text(t), "Address of a server that is not Amazon's."), prefix(t)});
  storage(t, "gcs", "gcs", "Google Cloud Storage.",
          {to_run(unset("bucket", naming(t, "a name"), "The bucket.")), prefix(t)});
  add_azure(t);

  auto& all = t.make("checkpoint-storage");
  all.kinds = map_bit;
  all.doc = "Place of the checkpoints, and which are kept.";
  all.discriminator = "type";
  all.merge = merging::of_one_kind;
  all.members = {{"shared_fs", t.at("shared-fs")},
                 {"directory", t.at("directory")},
                 {"s3", t.at("s3")},
                 {"gcs", t.at("gcs")},
                 {"azure", t.at("azure")}};
  all.keys.push_back(to_run(unset("type", text(t), "Kind of storage; see the kinds.")));
  all.keys.back().nullable = false;
  for (auto& k : kept(t))
    all.keys.push_back(std::move(k));
  for (auto loose : {"access_key", "account_url", "bucket", "checkpoint_path", "connection_string",
                     "container", "container_path", "credential", "endpoint_url", "prefix", "host_path",
                     "propagation", "secret_key", "storage_path", "tensorboard_path", "user"})
    all.keys.push_back(
      quiet(unset(loose, anything(t), "Key of some kinds of storage; checked once type is known.")));

  auto& board = t.make("tensorboard-storage");
  board.kinds = map_bit;
  board.doc = "Key of older versions; ignored.";
  board.discriminator = "type";
  for (auto [type, schema] : {std::pair{"shared_fs", "shared-fs"}, {"s3", "s3"}, {"gcs", "gcs"}}) {
    auto& one = t.make();
    one = *t.at(schema);
    one.name.clear();
    std::erase_if(one.keys, [](const key& k) { return k.name.starts_with("save_"); });
    board.members.push_back({type, &one});
  }
  board.keys.push_back(required("type", text(t), "Kind of storage."));
}

} // namespace troupe::config

#include "model/config/cluster_file.hpp"

#include "model/config/cluster_config.hpp"
#include "model/config/cluster_file_reader.hpp"
#include "model/config/complete.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

namespace troupe::config {
namespace {

constexpr std::size_t most_names = 10'000;

node* child(node& x, std::string_view key) {
  for (auto& e : x.entries)
    if (e.key == key)
      return &e.what;
  return nullptr;
}

void append(std::vector<diagnostic>& to, std::vector<diagnostic> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Sorts by the order of `files`, then by line.
void sort(std::vector<diagnostic>& all, const std::vector<std::pair<std::string, std::string>>& files) {
  auto rank = [&](const diagnostic& x) {
    return std::find_if(files.begin(), files.end(), [&](const auto& f) { return f.first == x.file; }) -
           files.begin();
  };
  std::stable_sort(all.begin(), all.end(), [&](const diagnostic& a, const diagnostic& b) {
    return std::tuple(rank(a), a.line, a.column) < std::tuple(rank(b), b.line, b.column);
  });
  if (all.size() > most_faults)
    all.resize(most_faults);
}

int count_scalars(const node& x) {
  int n = x.is(kind::list) || x.is(kind::map) ? 0 : 1;
  for (const auto& item : x.items)
    n += count_scalars(item);
  for (const auto& e : x.entries)
    n += count_scalars(e.what);
  return n;
}

/// Takes passwords out of the configuration; a file's password is its first line.
void take_passwords(node& root, const file_world& world, cluster_reader& reader, value& secrets) {
  auto* users = child(root, "users");
  if (!users || !users->is(kind::list))
    return;
  for (std::size_t i = 0; i < users->items.size(); ++i) {
    auto& one = users->items[i];
    const auto path = "users[" + std::to_string(i) + "]";
    const auto *name = one.find("name"), *plain = one.find("password"), *file = one.find("password_file");
    if (plain && file)
      reader.fault(one.entry_of("password")->at, path + ".password", "there is a password_file too",
                   "leave one of them out");
    std::string password;
    if (plain && plain->is(kind::string)) {
      password = plain->text;
      if (!reader.is_from_environment(plain->at))
        reader.warn(plain->at, path + ".password", "a password in plain text",
                    "put it into a file: password_file: FILE, or write ${VARIABLE}");
    } else if (file && file->is(kind::string)) {
      auto text = world.read(file->text);
      if (!text) {
        reader.fault(file->at, path + ".password_file",
                     "cannot read '" + file->text + "': " + text.error().what, "");
        continue;
      }
      password = text->substr(0, text->find_first_of("\r\n"));
      if (password.empty())
        reader.fault(file->at, path + ".password_file", "the first line of '" + file->text + "' is empty",
                     "write the password there");
    }
    if (!password.empty() && name && name->is(kind::string))
      secrets["users"][name->text] = password;
    std::erase_if(one.entries, [](const entry& e) { return e.key == "password"; });
  }
}

/// Takes the key of signatures out of the configuration.
void take_signing_key(node& root, cluster_reader& reader, value& secrets) {
  auto* cluster = child(root, "cluster");
  auto* webhooks = cluster ? child(*cluster, "webhooks") : nullptr;
  const auto* key = webhooks ? webhooks->find("signing_key") : nullptr;
  if (!key)
    return;
  if (key->is(kind::string) && key->text.find_first_of("\r\n") == std::string::npos && !key->text.empty())
    secrets["webhooks"]["signing_key"] = key->text;
  else if (key->is(kind::string))
    reader.fault(key->at, "cluster.webhooks.signing_key", "a key is one line of text",
                 "write it on one line, or name its file with signing_key_file");
  if (webhooks->find("signing_key_file"))
    reader.fault(webhooks->entry_of("signing_key")->at, "cluster.webhooks.signing_key",
                 "there is a signing_key_file too", "leave one of them out");
  std::erase_if(webhooks->entries, [](const entry& e) { return e.key == "signing_key"; });
}

/// Reads the experiments' own files: their faults are faults of the cluster file too. Names each experiment.
void check_experiments(const node& root, value& config, const file_world& world, cluster_reader& reader) {
  const auto* list = root.find("experiments");
  if (!list || !config.contains("experiments"))
    return;
  std::map<std::string, place> names;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const auto& one = list->items[i];
    auto& out = config["experiments"][i];
    const auto path = "experiments[" + std::to_string(i) + "]";
    const auto* file = one.find("file");
    if (!file)
      continue;
    auto text = world.read(file->text);
    if (!text) {
      reader.fault(file->at, path + ".file", "cannot read '" + file->text + "': " + text.error().what, "");
      continue;
    }
    auto own = to_value(read_document(*text, file->text).root);
    surroundings around;
    if (auto pool = pool_of_experiment(config, own)) {
      around.defaults = experiment_defaults(config, *pool);
      around.task_container_defaults = task_defaults(config, *pool);
    } else {
      reader.fault(file->at, path + ".file", pool.error().what, "");
    }
    around.checkpoint_storage = default_storage(config);
    auto checked = load_experiment(*text, file->text, level::complete, around);
    if (!checked.ok()) {
      reader.texts.emplace_back(file->text, *text);
      append(reader.faults, std::move(checked.faults));
    }
    if (const auto* context = one.find("context");
        context && context->is(kind::string) && !world.exists(context->text))
      reader.fault(context->at, path + ".context", "'" + context->text + "' does not exist",
                   "name the folder with the trial's files");
    if (!out.contains("name") || out["name"].is_null()) {
      const auto named = own.is_object() ? own.value("name", value()) : value();
      out["name"] =
        named.is_string() ? named.get<std::string>() : std::filesystem::path(file->text).stem().string();
    }
    const auto name = out["name"].get<std::string>();
    if (auto [first, fresh] = names.emplace(name, one.at); !fresh)
      reader.fault(one.at, path,
                   "the experiment '" + name + "' is named twice, first in line " +
                     std::to_string(first->second.line),
                   "give it a name of its own: name: ...");
  }
}

/// Takes out of `from` the layers of other configurations, which must not be completed: what they do not say
/// is left to the layer below. Drops the credentials of a registry, which nobody needs.
value take_layers(value& from) {
  value out = value::object();
  if (!from.is_object())
    return out;
  for (const char* key : {"defaults", "task_container_defaults"})
    if (const auto at = from.find(key); at != from.end()) {
      if (at->is_object())
        out[key] = *at;
      from.erase(at);
    }
  if (const auto tasks = out.find("task_container_defaults"); tasks != out.end())
    tasks->erase("registry_auth");
  return out;
}

/// The value of a tree without faults: defaults are filled in, and one pool is the default.
value completed(const node& root) {
  const auto& s = *schemas().at("cluster-file");
  auto config = to_value(root);
  const auto of_file = take_layers(config);
  auto of_cluster = value::object();
  if (const auto cluster = config.find("cluster"); cluster != config.end())
    of_cluster = take_layers(*cluster);
  std::map<std::string, value> of_pools;
  if (config.contains("pools") && config["pools"].is_object()) {
    for (auto& [name, pool] : config["pools"].items()) {
      if (pool.is_null())
        pool = value::object();
      of_pools[name] = take_layers(pool);
    }
  }
  normalize(config, s);
  fill_defaults(config, s);
  for (auto* list : {"pools", "storage"}) // maps with free names have no defaults of their own
    for (auto& [name, one] : config[list].items())
      fill_defaults(one, *s.find(list)->what->values);
  config.update(of_file);
  config["cluster"].update(of_cluster);
  for (const auto& [name, layers] : of_pools)
    config["pools"][name].update(layers);
  auto& pools = config["pools"];
  if (pools.empty())
    pools["default"] = pool_without_file();
  bool chosen = false;
  for (const auto& [name, pool] : pools.items())
    chosen = chosen || pool.value("default", false);
  if (!chosen) {
    const auto* written = root.find("pools");
    const auto first =
      written && !written->entries.empty() ? written->entries.front().key : pools.begin().key();
    pools[first]["default"] = true;
  }
  for (auto& one : config["nodes"])
    if (auto slots = one.find("slots"); slots != one.end() && slots->is_object())
      *slots = slots->value("cpu", value("auto"));
  return config;
}

} // namespace

value pool_without_file() {
  value pool{{"default", true}};
  fill_defaults(pool, *schemas().at("cluster-file")->find("pools")->what->values);
  return pool;
}

cluster_file load_cluster_file(const std::string& path, const file_world& world) {
  cluster_file out;
  cluster_reader reader(world);
  node root;
  const auto& s = *schemas().at("cluster-file");
  out.secrets = value::object();
  bool whole = reader.read(path, root);
  if (whole) {
    reader.interpolate(root, &s);
    reader.place_paths(root, s);
    report found(reader.files);
    check(root, s, found);
    append(reader.faults, found.take());
    out.settings = count_scalars(root);
    out.from_environment = static_cast<int>(reader.variables.size());
    take_passwords(root, world, reader, out.secrets);
    take_signing_key(root, reader, out.secrets);
    expand_nodes(root, reader);
    check_cluster(root, reader);
    if (reader.faults.empty()) {
      out.config = completed(root);
      check_experiments(root, out.config, world, reader);
      out.resolved = resolved_text(root, reader);
    }
  }
  out.texts = std::move(reader.texts);
  out.faults = std::move(reader.faults);
  out.warnings = std::move(reader.warnings);
  sort(out.faults, out.texts);
  sort(out.warnings, out.texts);
  return out;
}

std::string cluster_file::rendered() const {
  std::string out;
  for (const auto* list : {&faults, &warnings})
    for (const auto& one : *list) {
      std::string_view text;
      for (const auto& [file, content] : texts)
        if (file == one.file)
          text = content;
      out += render(one, text);
    }
  return out;
}

result<std::vector<std::string>> expand_range(std::string_view text) {
  auto open = text.find('[');
  if (open == std::string_view::npos) {
    if (text.find(']') != std::string_view::npos)
      return error{errc::invalid, "'" + std::string(text) + "' has a ] without ["};
    return std::vector<std::string>{std::string(text)};
  }
  auto close = text.find(']', open);
  const error wrong{errc::invalid, "'" + std::string(text) + "' is not a range"};
  if (close == std::string_view::npos || close == open + 1)
    return wrong;
  auto rest = expand_range(text.substr(close + 1));
  if (!rest)
    return rest.error();
  std::vector<std::string> out;
  auto parts = text.substr(open + 1, close - open - 1);
  for (;;) {
    auto part = parts.substr(0, parts.find(','));
    auto dash = part.find('-');
    auto from = part.substr(0, dash), to = dash == std::string_view::npos ? from : part.substr(dash + 1);
    std::uint64_t first = 0, last = 0;
    auto number = [](std::string_view digits, std::uint64_t& n) {
      auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
      return bad == std::errc{} && end == digits.data() + digits.size() && !digits.empty() &&
             digits.size() < 10;
    };
    if (!number(from, first) || !number(to, last))
      return wrong;
    if (first > last)
      return error{errc::invalid, "'" + std::string(text) + "' counts down: " + std::string(part)};
    for (auto n = first; n <= last; ++n) {
      auto digits = std::to_string(n);
      if (from.front() == '0' && digits.size() < from.size())
        digits.insert(0, from.size() - digits.size(), '0');
      for (const auto& end : *rest)
        out.push_back(std::string(text.substr(0, open)) + digits + end);
      if (out.size() > most_names)
        return error{errc::invalid, "'" + std::string(text) + "' stands for more than " +
                                      std::to_string(most_names) + " names"};
    }
    if (part.size() == parts.size())
      return out;
    parts.remove_prefix(part.size() + 1);
  }
}

std::int64_t duration_seconds(std::string_view text) {
  std::int64_t total = 0;
  while (!text.empty()) {
    std::int64_t n = 0;
    auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (bad != std::errc{} || n < 0 || n > 1'000'000'000 || end == text.data() + text.size())
      return 0;
    auto unit = std::string_view("smhdw").find(*end);
    if (unit == std::string_view::npos)
      return 0;
    constexpr std::int64_t seconds[] = {1, 60, 3600, 86400, 604800};
    total += n * seconds[unit];
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  return total;
}

} // namespace troupe::config

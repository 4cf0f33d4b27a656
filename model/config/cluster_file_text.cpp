// The cluster file as people read it: with the place of each value, key by key, and as a page.

#include "model/config/cluster_file_reader.hpp"
#include "model/config/describe.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

// ---- the merged file with places

std::string scalar(const node& x) {
  if (x.is(kind::null))
    return "null";
  if (!x.is(kind::string))
    return x.text.empty() ? to_value(x).dump() : x.text;
  const auto& text = x.text;
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-./@+").find(c) != std::string_view::npos;
  }) && std::isalpha(static_cast<unsigned char>(text.front()));
  static const std::vector<std::string_view> words{
    "null", "true", "false", "yes",   "no",  "on", "off", "Null", "True", "False", "Yes", "No", "On",
    "Off",  "NULL", "TRUE",  "FALSE", "YES", "NO", "ON",  "OFF",  "y",    "n",     "Y",   "N"};
  return plain && std::find(words.begin(), words.end(), text) == words.end() ? text : value(text).dump();
}

std::string key_text(const std::string& key) {
  node x;
  x.type = kind::string;
  x.text = key;
  return scalar(x);
}

class resolved_writer {
public:
  explicit resolved_writer(const cluster_reader& from) : from_(from) {}

  void map(const node& x, std::size_t indent, bool first_inline) {
    for (const auto& e : x.entries) {
      out_ += first_inline ? "" : std::string(indent, ' ');
      first_inline = false;
      out_ += key_text(e.key) + ":";
      below(e.what, indent, e.at);
    }
  }

  std::string take() { return std::move(out_); }

private:
  void below(const node& x, std::size_t indent, place at) {
    if (x.is(kind::map) && !x.entries.empty()) {
      out_ += "\n";
      map(x, indent + 2, false);
    } else if (x.is(kind::list) && !x.items.empty()) {
      out_ += "\n";
      for (const auto& item : x.items) {
        out_ += std::string(indent + 2, ' ') + "-";
        if (item.is(kind::map) && !item.entries.empty()) {
          out_ += " ";
          map(item, indent + 4, true);
        } else {
          below(item, indent + 2, item.at);
        }
      }
    } else {
      line(x.is(kind::map) ? "{}" : x.is(kind::list) ? "[]" : scalar(x), x.at.line ? x.at : at);
    }
  }

  void line(const std::string& text, place at) {
    out_ +=
      " " + text + "  # " + from_.files[static_cast<std::size_t>(at.file)] + ":" + std::to_string(at.line);
    if (auto it = from_.variables.find({at.file, at.line, at.column}); it != from_.variables.end())
      out_ += " ${" + it->second + "}";
    out_ += "\n";
  }

  const cluster_reader& from_;
  std::string out_;
};

// ---- keys

/// The map within lists, names and alternatives: for `users` the map of one user.
const shape& inner(const shape& s) {
  for (const auto* one : s.alternatives)
    if (one->takes(kind::map))
      return inner(*one);
  if (s.items && s.keys.empty())
    return inner(*s.items);
  if (s.values && s.keys.empty() && s.values->takes(kind::map))
    return inner(*s.values);
  return s;
}

/// Whether an experiment's own keys begin here.
bool is_partial(std::string_view name) { return name == "defaults"; }

std::string owner_note(const shape& s) {
  if (s.items)
    return "list of maps";
  return s.values ? "map of maps, by name" : "map";
}

std::string entry_text(const std::string& path, const key& k) {
  const auto& within = inner(*k.what);
  auto type = !within.keys.empty() && k.what->alternatives.empty() ? owner_note(*k.what) : type_text(*k.what);
  if (is_partial(k.name))
    type = "map, as an experiment's configuration";
  auto out = path + ": " + type + "\n  " + k.doc + "\n  default: " + default_text(k) + "\n";
  if (!k.unit.empty())
    out += "  unit: " + k.unit + "\n";
  if (!k.example.empty())
    out += "  example: " + k.name + ": " + k.example + "\n";
  if (is_partial(k.name))
    return out + "keys: those of an experiment, see `troupe explain " + path + ".max_restarts`\n";
  if (!within.keys.empty()) {
    out += "keys:\n";
    std::size_t widest = 0;
    for (const auto& one : within.keys)
      widest = std::max(widest, one.name.size());
    for (const auto& one : within.keys)
      out += "  " + one.name + std::string(widest - one.name.size() + 2, ' ') + one.doc + "\n";
  }
  return out;
}

void add_rows(std::string& out, const std::string& way, const shape& s) {
  auto cell = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
      text.insert(at, "\\");
    return text;
  };
  for (const auto& k : s.keys) {
    const auto path = way.empty() ? k.name : way + "." + k.name;
    const auto& within = inner(*k.what);
    const bool is_layer = is_partial(k.name) || k.name == "task_container_defaults";
    const bool has_keys = !within.keys.empty() && !is_layer;
    auto type = has_keys && k.what->alternatives.empty() ? owner_note(*k.what)
                : is_layer                               ? "map"
                                                         : type_text(*k.what);
    out += "| `" + path + "` | " + cell(type) + " | " + cell(default_text(k)) + " | " + cell(k.doc) + " | " +
           (k.example.empty() ? "" : "`" + cell(k.example) + "`") + " |\n";
    if (has_keys)
      add_rows(out, path, within);
  }
}

} // namespace

std::string resolved_text(const node& root, const cluster_reader& from) {
  resolved_writer out(from);
  out.map(root, 0, false);
  return out.take();
}

result<std::string> explain_cluster_key(std::string_view key) {
  const auto& root = *schemas().at("cluster-file");
  if (key.empty()) {
    std::string out = "The file of a cluster (troupe up FILE). Keys:\n";
    for (const auto& k : root.keys)
      out += "  " + k.name + std::string(13 - std::min<std::size_t>(k.name.size(), 12), ' ') + k.doc + "\n";
    return out + "troupe explain KEY says more, as `troupe explain nodes.ssh.key`.\n";
  }
  const shape* at = &root;
  std::string way;
  auto rest = key;
  while (!rest.empty()) {
    auto name = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (auto bracket = name.find('['); bracket != std::string_view::npos)
      name = name.substr(0, bracket); // nodes[0].pool becomes nodes.pool
    const auto* k = inner(*at).find(name);
    if (!k && !rest.empty() && at->values) { // in pools.main.preemption the name of the pool is not a key
      name = rest.substr(0, rest.find('.'));
      k = inner(*at).find(name);
      if (k)
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    if (!k) {
      if (way.empty())
        if (auto of_experiment = explain(key))
          return "(of an experiment's configuration, and below `defaults` here)\n" + *of_experiment;
      std::vector<std::string_view> words;
      for (const auto& one : inner(*at).keys)
        words.push_back(one.name);
      auto near = nearest(name, words);
      std::string known;
      for (auto word : words)
        known += (known.empty() ? "" : ", ") + std::string(word);
      return error{errc::not_found,
                   "there is no key '" + std::string(key) + "' in a cluster file\nhint: " +
                     (near.empty() ? "known here: " + known
                                   : "did you mean '" + (way.empty() ? "" : way + ".") + near + "'?")};
    }
    way += (way.empty() ? "" : ".") + k->name;
    if (rest.empty())
      return entry_text(way, *k);
    if (is_partial(k->name)) {
      auto of_experiment = explain(rest);
      if (!of_experiment)
        return of_experiment.error();
      return way + "." + *of_experiment;
    }
    at = k->what;
  }
  return error{errc::not_found, "no key is named"};
}

std::string cluster_file_page() {
  std::string out = R"(# The cluster file

One YAML file for a whole cluster. Start it with `troupe up FILE`, change a running one with `troupe apply FILE`, look for
faults with `troupe check FILE`. `troupe: 1` alone is a cluster. This page is made from the table that the checks read;
`troupe explain KEY` says the same of one key. Examples: [examples/](../examples/).

- Unknown keys, keys given twice and wrong types are faults, all told at once with file, line and column.
- In values, `${NAME}` stands for an environment variable, `${NAME:-DEFAULT}` has a default, `${NAME:?MESSAGE}` must be set,
  `$${` stands for `${`. A file `.env` beside the cluster file gives those that are not set.
- Relative paths begin where the file lies that says them.
- `include` takes files below this one: the later wins, key by key; lists are replaced.
- `gpu[01-04,08]` stands for gpu01 gpu02 gpu03 gpu04 gpu08.
- An experiment's own configuration wins over its template, that over the `defaults` of its pool, those over the `defaults` of the
  file; below them lie the `task_container_defaults` of the pool, then those of the cluster, then the storage of the workspace, then
  `storage.default`. `task_container_defaults` hold for notebooks, shells, commands and TensorBoards too.
- `task_container_defaults` has the keys of Determined's. `environment_variables`, `bind_mounts`, `startup_hook`, `work_dir`,
  `shm_size_bytes`, `preemption_timeout` and `log_policies` have effect; the others are accepted, and each is named once.
  Those of a pool lie over the cluster's: a variable, a mount or a policy of the same name is replaced, others are added.
- `pools.NAME.workspaces` and the bindings of the API (`.../resource-pools/NAME/workspace-bindings`) add up: a workspace that one of
  the two names may use the pool, others may not. The API shows both and takes away its own alone. A name means whichever
  workspace has it; `apply` and `up` say which have none yet. A pool whose names have none is nobody's.

| key | type | default | meaning | example |
|---|---|---|---|---|
)";
  add_rows(out, "", *schemas().at("cluster-file"));
  return out;
}

} // namespace troupe::config

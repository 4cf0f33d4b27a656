#include "model/config/cluster_file_reader.hpp"

#include "model/config/scalar.hpp"

#include <algorithm>
#include <filesystem>

namespace troupe::config {
namespace {

constexpr std::size_t most_files = 100;
constexpr std::size_t deepest_include = 16;

void set_file(node& x, int number) {
  x.at.file = number;
  for (auto& item : x.items)
    set_file(item, number);
  for (auto& e : x.entries) {
    e.at.file = number;
    set_file(e.what, number);
  }
}

/// Lays `high` over `low` key by key; lists are replaced.
void lay_over(node& low, node high) {
  if (!low.is(kind::map) || !high.is(kind::map)) {
    low = std::move(high);
    return;
  }
  for (auto& e : high.entries) {
    auto same =
      std::find_if(low.entries.begin(), low.entries.end(), [&](const entry& x) { return x.key == e.key; });
    if (same == low.entries.end()) {
      low.entries.push_back(std::move(e));
    } else {
      same->at = e.at;
      lay_over(same->what, std::move(e.what));
    }
  }
  low.at = high.at;
}

std::string folder_of(const std::string& file) {
  auto slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash + 1);
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

} // namespace

void cluster_reader::fault(place at, std::string path, std::string message, std::string hint) {
  if (faults.size() < most_faults)
    faults.push_back({files[static_cast<std::size_t>(at.file)], at.line, at.column, std::move(path),
                      std::move(message), std::move(hint)});
}

void cluster_reader::warn(place at, std::string path, std::string message, std::string hint) {
  if (warnings.size() < most_faults)
    warnings.push_back({files[static_cast<std::size_t>(at.file)], at.line, at.column, std::move(path),
                        std::move(message), std::move(hint), true});
}

std::string cluster_reader::absolute(const std::string& path, int file) const {
  if (path.starts_with("~/") || path == "~")
    return world_.environment("HOME").value_or("") + path.substr(1);
  auto whole = path.starts_with('/') ? path : folder_of(files[static_cast<std::size_t>(file)]) + path;
  if (!whole.starts_with('/'))
    whole = world_.folder + "/" + whole;
  return std::filesystem::path(whole).lexically_normal().string();
}

bool cluster_reader::read(const std::string& path, node& out) {
  read_dotenv(folder_of(path) + ".env");
  return read(path, {}, {}, out);
}

bool cluster_reader::read(const std::string& path, place from, std::vector<std::string> way, node& out) {
  const auto whole = std::filesystem::path(path.starts_with('/') ? path : world_.folder + "/" + path)
                       .lexically_normal()
                       .string();
  if (std::find(way.begin(), way.end(), whole) != way.end()) {
    fault(from, "include", "'" + path + "' includes itself", "break the circle");
    return false;
  }
  if (way.size() >= deepest_include || files.size() >= most_files) {
    fault(from, "include",
          way.size() >= deepest_include ? "includes are nested more than 16 deep"
                                        : "more than 100 files are included",
          "");
    return false;
  }
  auto text = world_.read(path);
  if (!text) {
    if (files.empty())
      faults.push_back({path, 0, 0, "", "cannot read it: " + text.error().what, ""});
    else
      fault(from, "include", "cannot read '" + path + "': " + text.error().what, "");
    return false;
  }
  const auto number = static_cast<int>(files.size());
  files.push_back(path);
  auto got = read_document(*text, path);
  texts.emplace_back(path, std::move(*text));
  for (auto& one : got.faults)
    faults.push_back(std::move(one));
  if (!got.readable)
    return false;
  if (got.root.is(kind::null))
    got.root.type = kind::map;
  set_file(got.root, number);
  if (!got.root.is(kind::map)) {
    fault(got.root.at, "",
          std::string("expected a map with troupe: 1, got ") + name_with_article(got.root.type), "");
    return false;
  }
  way.push_back(whole);
  node below;
  below.type = kind::map;
  bool good = true;
  if (auto* include = got.root.find("include"); include && include->is(kind::list))
    for (auto item : include->items)
      if (item.is(kind::string)) {
        auto name = filled(item);
        node other;
        if (read(name.starts_with('/') ? name : folder_of(path) + name, item.at, way, other))
          lay_over(below, std::move(other));
        else
          good = false;
      }
  if (auto* include = got.root.find("include"); include && include->is(kind::list) &&
                                                std::all_of(include->items.begin(), include->items.end(),
                                                            [](const node& x) { return x.is(kind::string); }))
    std::erase_if(got.root.entries, [](const entry& e) { return e.key == "include"; });
  lay_over(below, std::move(got.root));
  out = std::move(below);
  return good;
}

void cluster_reader::read_dotenv(const std::string& path) {
  auto text = world_.read(path);
  if (!text)
    return;
  std::string_view rest = *text;
  while (!rest.empty()) {
    auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.remove_suffix(1);
    if (line.starts_with("export "))
      line.remove_prefix(7);
    auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos ||
        !is_variable_name(line.substr(0, equals)))
      continue;
    auto content = line.substr(equals + 1);
    if (content.size() >= 2 && (content.front() == '"' || content.front() == '\'') &&
        content.back() == content.front())
      content = content.substr(1, content.size() - 2);
    dotenv_[std::string(line.substr(0, equals))] = std::string(content);
  }
}

std::optional<std::string> cluster_reader::variable(const std::string& name) const {
  if (auto got = world_.environment(name))
    return got;
  if (auto it = dotenv_.find(name); it != dotenv_.end())
    return it->second;
  return std::nullopt;
}

std::string cluster_reader::filled(const node& x) {
  std::string out;
  std::string_view rest = x.text;
  for (;;) {
    auto at = rest.find("${");
    if (at == std::string_view::npos)
      return out + std::string(rest);
    if (at > 0 && rest[at - 1] == '$') { // $${ stands for ${
      out += std::string(rest.substr(0, at - 1)) + "${";
      rest.remove_prefix(at + 2);
      continue;
    }
    out += rest.substr(0, at);
    auto end = rest.find('}', at);
    auto inside = rest.substr(at + 2, end == std::string_view::npos ? 0 : end - at - 2);
    auto name = std::string(inside.substr(0, inside.find(':')));
    auto how = inside.substr(name.size());
    if (end == std::string_view::npos || !is_variable_name(name) ||
        !(how.empty() || how.starts_with(":-") || how.starts_with(":?"))) {
      fault(x.at, "", "what begins with '${' here is not a variable",
            "write ${NAME}, ${NAME:-DEFAULT} or ${NAME:?MESSAGE}; $${ stands for ${");
      return out;
    }
    auto got = variable(name);
    if (got && got->empty() && !how.empty())
      got.reset();
    variables[{x.at.file, x.at.line, x.at.column}] = name;
    if (got)
      out += *got;
    else if (how.starts_with(":-"))
      out += how.substr(2);
    else
      fault(x.at, "", "the environment variable " + name + " is not set",
            how.starts_with(":?") && how.size() > 2
              ? std::string(how.substr(2))
              : "set it, write it into .env, or give a default: ${" + name + ":-...}");
    rest.remove_prefix(end + 1);
  }
}

namespace {

/// Whether YAML took a bare word for a boolean (on, off, yes, no) where the schema has this very word.
bool is_meant_as_word(const node& x, const shape& s) {
  if (!x.is(kind::boolean) || s.takes(kind::boolean) || !s.takes(kind::string))
    return false;
  return s.allowed.empty() ? s.fits && s.fits(x.text)
                           : std::find(s.allowed.begin(), s.allowed.end(), value(x.text)) != s.allowed.end();
}

} // namespace

void cluster_reader::interpolate(node& x, const shape* s) {
  const auto* whole = s;
  if (s)
    s = &narrowed(*s, x);
  if (s && is_meant_as_word(x, *s))
    x.type = kind::string;
  if (x.is(kind::string) && x.text.find("${") != std::string::npos) {
    auto before = faults.size();
    auto made = filled(x);
    x.text = made;
    node plain;
    plain.at = x.at;
    static_cast<void>(resolve(plain, made, true, ""));
    const bool as_text = !whole || whole->takes(kind::string);
    if (whole && !plain.is(kind::string) && whole->kinds != 0 && (whole->takes(plain.type) || !as_text)) {
      x = std::move(plain);
      x.text = made;
    }
    if (!as_text && faults.size() != before)
      x.type = kind::null; // its fault is reported already
  }
  for (auto& item : x.items)
    interpolate(item, s ? s->items : nullptr);
  for (auto& e : x.entries) {
    const shape* below = nullptr;
    if (s) {
      const auto* k = s->find(e.key);
      below = k ? k->what : s->values;
    }
    interpolate(e.what, below);
  }
}

void cluster_reader::place_paths(node& x, const shape& s) const {
  static const auto* path = schemas().at("file-path");
  const auto& one = narrowed(s, x);
  if (&one == path) {
    if (x.is(kind::string) && !x.text.empty())
      x.text = absolute(x.text, x.at.file);
    return;
  }
  if (one.items)
    for (auto& item : x.items)
      place_paths(item, *one.items);
  for (auto& e : x.entries) {
    const auto* k = one.find(e.key);
    if (const auto* below = k ? k->what : one.values; below && below != &one)
      place_paths(e.what, *below);
  }
}

} // namespace troupe::config

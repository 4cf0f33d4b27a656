#include "model/config/secrets.hpp"

#include "model/config/document.hpp"
#include "model/config/master_config.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace troupe::config {

bool looks_secret(std::string_view word) {
  constexpr std::size_t shortest = 4; // a text may have a million other words
  if (word.size() < shortest)
    return false;
  if (is_secret(word))
    return true;
  std::string plain;
  for (const char c : word)
    if (c != '_' && c != '-')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* part : {"secret", "password", "passwd", "token", "credential", "accesskey", "apikey",
                           "privatekey", "connectionstring", "registryauth"})
    if (plain.find(part) != plain.npos)
      return true;
  return false;
}

namespace {

constexpr const char* of_storage[] = {"access_key", "secret_key", "connection_string", "credential",
                                      "session_token"};
constexpr const char* addresses_of_storage[] = {"endpoint_url", "account_url"};
constexpr const char* of_registry[] = {"password", "auth", "identitytoken", "registrytoken"};

value* inside(value& x, std::initializer_list<const char*> path) {
  auto* at = &x;
  for (const char* key : path) {
    if (!at->is_object())
      return nullptr;
    auto found = at->find(key);
    if (found == at->end())
      return nullptr;
    at = &*found;
  }
  return at;
}

bool is_given(const value& x) {
  return !x.is_null() && !(x.is_string() && x.get_ref<const std::string&>().empty());
}

/// Whether it is a mask, or what accounts::conceal gives: only asterisks or hexadecimal digits.
bool is_no_address(const std::string& text) { return text.find_first_of(".:/") == text.npos; }

void each_leaf(value& x, const std::function<void(value&)>& found) {
  if (x.is_structured())
    for (auto& part : x)
      each_leaf(part, found);
  else if (is_given(x))
    found(x);
}

void each_secret(value& config, const std::function<void(value&)>& found) {
  if (auto* storage = inside(config, {"checkpoint_storage"}))
    each_secret_of_storage(*storage, found);
  if (auto* registry = inside(config, {"environment", "registry_auth"})) {
    for (const char* key : of_registry)
      if (auto at = registry->is_object() ? registry->find(key) : registry->end();
          at != registry->end() && is_given(*at))
        found(*at);
    if (!registry->is_object()) // a template may have what is most likely the login
      each_leaf(*registry, found);
  }
  if (auto* data = inside(config, {"data", "secrets"}))
    each_leaf(*data, found);
}

/// Hides what a key has swallowed, as the colon behind it lacks a blank: {"secret_key:x": null}.
void mask_keys(value* section) {
  if (!section || !section->is_object())
    return;
  value shown = value::object();
  for (auto& [key, what] : section->items())
    shown[quotable(key)] = std::move(what);
  *section = std::move(shown);
}

/// Quotes the mask where the secret had no quotes: without them YAML reads it as an alias.
void mask_all(std::string& in, const std::string& what) {
  const std::string quoted = std::string("'") + secret_mask + "'";
  for (auto at = in.find(what); at != in.npos;) {
    const auto end = at + what.size();
    const bool in_quotes =
      at > 0 && end < in.size() && in[at - 1] == in[end] && (in[end] == '"' || in[end] == '\'');
    const std::string by = in_quotes ? secret_mask : quoted;
    in.replace(at, what.size(), by);
    at = in.find(what, at + by.size());
  }
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

/// The end of the first word on the line that names a secret, where a value may follow; npos: none does. A
/// key with escapes may be any word.
std::size_t end_of_secret_key(std::string_view line) {
  for (std::size_t at = 0; at < line.size();) {
    auto end = at;
    while (end < line.size() && is_word(line[end]))
      ++end;
    if (line[at] == '\\')
      return at;
    if (looks_secret(line.substr(at, end - at)))
      if (const auto next = line.find_first_not_of("\"' \t\r", end);
          next == line.npos || line[next] == ':' || line[next] == '=' ||
          (is_secret(line.substr(at, end - at)) && line[end] == ' ')) // its colon was forgotten
        return end;
    at = std::max(end, at + 1);
  }
  return line.npos;
}

std::size_t indentation(std::string_view line) { return line.find_first_not_of(" \t-"); }

/// Whether a line may go on the next one: its last bracket or quote is open, or its value is to come.
bool goes_on(std::string_view line) {
  const auto last = line.find_last_not_of(" \t\r");
  if (last == line.npos)
    return false;
  const auto is_open = [&](char quote) { return std::count(line.begin(), line.end(), quote) % 2 != 0; };
  return std::string_view(",{[:|>\\").find(line[last]) != std::string_view::npos || is_open('"') ||
         is_open('\'');
}

/// Whether the line that begins at `begin` lies below a secret key, or goes on with a line that has one.
bool is_below_secret(std::string_view text, std::size_t begin, std::size_t indent) {
  bool just_before = true;
  while (begin > 0 && (indent > 0 || just_before)) {
    const auto end = begin - 1;
    const auto before = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    begin = before == text.npos ? 0 : before + 1;
    const auto line = text.substr(begin, end - begin);
    const auto in = indentation(line);
    if (in == line.npos)
      continue;
    just_before = just_before && goes_on(line); // a list in brackets may have many lines
    if ((in < indent || just_before) && end_of_secret_key(line) != line.npos)
      return true;
    indent = std::min(indent, in);
  }
  return false;
}

} // namespace

std::string line_without_secrets(std::string_view text, std::size_t begin) {
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  const auto indent = indentation(line);
  // YAML may write a key behind `?` and its value behind `:` on lines of their own.
  const bool below = indent != line.npos && (line[indent] == ':' || is_below_secret(text, begin, indent));
  const auto end = end_of_secret_key(line);
  if (end == line.npos || (below && line.substr(end).starts_with('\\'))) // escapes are in texts, too
    return below ? secret_mask : std::string(line);
  return std::string(line.substr(0, end)) + (end < line.size() ? std::string(": ") + secret_mask : "");
}

std::string quotable(const std::string& text) {
  return text.find_first_of("=:") == text.npos ? text : line_without_secrets(text, 0);
}

void each_secret_of_storage(value& storage, const std::function<void(value&)>& found) {
  if (!storage.is_object())
    return;
  for (const char* key : of_storage)
    if (auto at = storage.find(key); at != storage.end() && is_given(*at))
      found(*at);
  for (const char* key : addresses_of_storage)
    if (auto at = storage.find(key); at != storage.end() && at->is_string() && is_given(*at))
      if (const auto& address = at->get_ref<const std::string&>();
          is_no_address(address) || address_without_login(address) != address)
        found(*at);
}

std::string address_without_login(const std::string& address) {
  auto out = address.substr(0, address.find_first_of("?#"));
  const auto host = out.find("://");
  if (host == out.npos)
    return out;
  const auto end = std::min(out.find('/', host + 3), out.size());
  if (const auto at = out.rfind('@', end); at != out.npos && at > host)
    out.erase(host + 3, at - host - 2);
  return out;
}

value without_secrets(value config) {
  each_secret(config, [](value& x) { x = secret_mask; });
  mask_keys(inside(config, {"checkpoint_storage"}));
  mask_keys(inside(config, {"environment", "registry_auth"}));
  return config;
}

value storage_without_secrets(value storage) {
  each_secret_of_storage(storage, [](value& x) { x = secret_mask; });
  return storage;
}

value policies_without_secrets(value policies) {
  if (auto* fixed = inside(policies, {"invariant_config"}))
    *fixed = without_secrets(std::move(*fixed));
  return policies;
}

std::string text_without_secrets(std::string_view text) {
  constexpr std::size_t mask_size = std::char_traits<char>::length(secret_mask);
  constexpr std::size_t shortest = 6; // a shorter one may occur in other words
  const bool may_have = text.find("checkpoint_storage") != text.npos ||
                        text.find("registry_auth") != text.npos || text.find("secrets") != text.npos ||
                        text.find('\\') != text.npos; // a key may be written with escapes
  if (!may_have)
    return std::string(text);
  const auto tree = [](std::string_view of) { return to_value(read_document(of, "").root); };
  auto config = tree(text);
  std::vector<std::string> secrets;
  bool plain = true;
  each_secret(config, [&](value& x) {
    plain = plain && x.is_string() && x.get_ref<const std::string&>().size() >= shortest;
    if (x.is_string())
      secrets.push_back(x);
  });
  if (secrets.empty() && plain)
    return std::string(text);
  auto masked = without_secrets(config);
  each_leaf(masked, [&](value& x) { // an alias may have put it elsewhere, too
    for (const auto& one : secrets)
      if (auto* text_of = x.get_ptr<std::string*>(); text_of && one.size() >= shortest)
        for (auto at = text_of->find(one); at != text_of->npos; at = text_of->find(one, at + mask_size))
          text_of->replace(at, one.size(), secret_mask);
  });
  std::string out(text);
  for (const auto& one : secrets)
    if (plain)
      mask_all(out, one);
  return plain && tree(out) == masked ? out : to_json(masked, 2) + "\n";
}

void restore_secrets(value& config, const value& from) {
  if (!from.is_object())
    return;
  std::vector<std::pair<value*, const value*>> pairs;
  const std::function<void(value&, const value&)> walk = [&](value& x, const value& of) {
    if (x.is_object() && of.is_object()) {
      for (auto& [key, part] : x.items())
        if (auto at = of.find(key); at != of.end())
          walk(part, *at);
    } else if (x.is_array() && of.is_array()) {
      for (std::size_t i = 0; i < x.size() && i < of.size(); ++i)
        walk(x[i], of[i]);
    } else if (x == secret_mask) {
      pairs.emplace_back(&x, &of);
    }
  };
  walk(config, from);
  each_secret(config, [&](value& secret) {
    for (const auto& [at, known] : pairs)
      if (at == &secret)
        secret = *known;
  });
}

std::string masked_secret(value config) {
  std::vector<std::pair<const value*, std::string>> masks;
  const std::function<void(value&, const std::string&)> walk = [&](value& x, const std::string& at) {
    if (x.is_object())
      for (auto& [key, part] : x.items())
        walk(part, at.empty() ? key : at + "." + key);
    else if (x.is_array())
      for (std::size_t i = 0; i < x.size(); ++i)
        walk(x[i], at + "[" + std::to_string(i) + "]");
    else if (x == secret_mask)
      masks.emplace_back(&x, at);
  };
  walk(config, {});
  std::string found;
  each_secret(config, [&](value& secret) {
    for (const auto& [at, place] : masks)
      if (at == &secret && found.empty())
        found = place;
  });
  return found;
}

namespace {

bool has_mask(const value& x) {
  return x.is_structured() ? std::any_of(x.begin(), x.end(), has_mask) : x == secret_mask;
}

} // namespace

result<void> check_no_mask(const value& config, const std::string& section) {
  if (!has_mask(config))
    return {};
  const auto place = masked_secret(config);
  if (place.empty())
    return {};
  return error{errc::invalid, (section.empty() ? "" : section + ".") + place + ": '" + secret_mask +
                                "' stands for a secret that nobody is shown\nhint: give the secret itself"};
}

bool restore_open_secrets(value& config, const value& from, const value& anybody) {
  auto closed = config, open = config;
  restore_secrets(closed, from);
  restore_secrets(open, anybody);
  if (closed != open)
    return false;
  config = std::move(open);
  return true;
}

void restore_storage_secrets(value& storage, const value& from) {
  if (from.is_object())
    each_secret_of_storage(storage, [&, &whole = storage](value& secret) {
      for (const auto& [key, part] : whole.items())
        if (&part == &secret && secret == secret_mask && from.contains(key))
          secret = from[key];
    });
}

} // namespace troupe::config

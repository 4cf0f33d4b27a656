#include "original_schema.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

namespace troupe::config {
namespace {

bool is_type(const value& x, const std::string& type) {
  if (type == "integer")
    return x.is_number_integer() || (x.is_number_float() && x.get<double>() == std::trunc(x.get<double>()));
  if (type == "number")
    return x.is_number();
  return type == (x.is_null()      ? "null"
                  : x.is_boolean() ? "boolean"
                  : x.is_string()  ? "string"
                  : x.is_array()   ? "array"
                  : x.is_object()  ? "object"
                                   : "");
}

std::string schema_name(const std::string& url) {
  auto name = url.substr(url.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

bool compares(const value& rule, const value& x) {
  auto a = x.find(rule["a"].get<std::string>()), b = x.find(rule["b"].get<std::string>());
  if (a == x.end() || b == x.end() || a->is_null() || b->is_null())
    return true;
  if (rule["type"] == "a<b" || rule["type"] == "a<=b") {
    if (!a->is_number() || !b->is_number())
      return true;
    return rule["type"] == "a<b" ? a->get<double>() < b->get<double>() : a->get<double>() <= b->get<double>();
  }
  if (!a->is_string() || !b->is_string())
    return true;
  namespace fs = std::filesystem;
  fs::path inner(a->get<std::string>()), outer(b->get<std::string>());
  if (!inner.is_absolute())
    return inner.empty() || *inner.lexically_normal().begin() != "..";
  auto relation = inner.lexically_normal().lexically_relative(outer.lexically_normal());
  return !relation.empty() && *relation.begin() != "..";
}

} // namespace

original_schemas::original_schemas(const std::string& directory) {
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    std::ifstream in(file.path());
    std::string text((std::istreambuf_iterator<char>(in)), {});
    schemas_[file.path().stem().string()] = parse_json(text).value();
  }
}

bool original_schemas::accepts(const std::string& name, const value& x, bool complete) const {
  return holds(schemas_.at(name), x, complete);
}

std::set<std::string> original_schemas::refusing(const std::string& name, const value& x,
                                                 bool complete) const {
  std::set<std::string> words;
  refusing_ = &words;
  own_ = name;
  holds(schemas_.at(name), x, complete);
  refusing_ = nullptr;
  return words;
}

bool original_schemas::holds_file(const std::string& url, const value& x, bool complete) const {
  auto name = schema_name(url);
  bool foreign = name != own_;
  foreign_ += foreign;
  bool good = holds(schemas_.at(name), x, complete);
  foreign_ -= foreign;
  return good;
}

bool original_schemas::holds(const value& schema, const value& x, bool complete) const {
  if (schema.is_boolean())
    return schema.get<bool>();
  bool good = true;
  for (const auto& [word, what] : schema.items()) {
    if (schema.contains("$ref") && word != "$ref") // in draft 7 the keywords beside $ref do not count
      continue;
    if (holds_keyword(schema, word, what, x, complete))
      continue;
    good = false;
    if (!refusing_)
      return false;
    if (foreign_ == 0)
      refusing_->insert(word);
  }
  return good;
}

bool original_schemas::holds_keyword(const value& schema, const std::string& word, const value& what,
                                     const value& x, bool complete) const {
  auto each = [&](const value& list) {
    return std::count_if(list.begin(), list.end(), [&](const value& one) { return holds(one, x, complete); });
  };
  auto missing = [&](const value& names, bool null_counts) {
    return x.is_object() && std::any_of(names.begin(), names.end(), [&](const value& name) {
             auto found = x.find(name.get<std::string>());
             return found == x.end() || (null_counts && found->is_null());
           });
  };
  if (word == "$ref")
    return holds_file(what.get<std::string>(), x, complete);
  if (word == "type")
    return what.is_array()
             ? std::any_of(what.begin(), what.end(), [&](const value& t) { return is_type(x, t); })
             : is_type(x, what);
  if (word == "const")
    return x == what;
  if (word == "enum")
    return std::find(what.begin(), what.end(), x) != what.end();
  if (word == "minimum")
    return !x.is_number() || x.get<double>() >= what.get<double>();
  if (word == "maximum")
    return !x.is_number() || x.get<double>() <= what.get<double>();
  if (word == "exclusiveMinimum")
    return !x.is_number() || x.get<double>() > what.get<double>();
  if (word == "pattern")
    return !x.is_string() || std::regex_search(x.get<std::string>(), std::regex(what.get<std::string>()));
  if (word == "minLength")
    return !x.is_string() || x.get<std::string>().size() >= what.get<std::size_t>();
  if (word == "items")
    return !x.is_array() ||
           std::count_if(x.begin(), x.end(), [&](const value& i) { return !holds(what, i, complete); }) == 0;
  if (word == "properties") { // `refusing` needs every property to be checked
    bool good = true;
    if (x.is_object())
      for (const auto& [key, inner] : what.items())
        good = (!x.contains(key) || holds(inner, x[key], complete)) && good;
    return good;
  }
  if (word == "additionalProperties") {
    bool good = true;
    if (x.is_object())
      for (const auto& [key, part] : x.items())
        good = ((schema.contains("properties") && schema["properties"].contains(key)) ||
                holds(what, part, complete)) &&
               good;
    return good;
  }
  if (word == "required")
    return !missing(what, false);
  if (word == "eventuallyRequired")
    return !complete || !missing(what, true);
  if (word == "eventually")
    return !complete || holds(what, x, complete);
  if (word == "not")
    return !holds(what, x, complete);
  if (word == "allOf")
    return each(what) == static_cast<std::ptrdiff_t>(what.size());
  if (word == "anyOf")
    return each(what) > 0;
  if (word == "oneOf")
    return each(what) == 1;
  if (word == "union")
    return each(what["items"]) > 0;
  if (word == "if")
    return !holds(what, x, complete) || !schema.contains("then") || holds(schema["then"], x, complete);
  if (word == "checks")
    return each(what) == static_cast<std::ptrdiff_t>(what.size());
  if (word == "compareProperties")
    return !x.is_object() || compares(what, x);
  if (word == "optionalRef")
    return x.is_null() || holds_file(what.get<std::string>(), x, complete);
  if (word == "disallowProperties") {
    return !x.is_object() || std::none_of(x.items().begin(), x.items().end(),
                                          [&](const auto& e) { return what.contains(e.key()); });
  }
  static const std::vector<std::string> without_meaning{"$schema", "$id",  "$comment", "title",
                                                        "default", "then", "unionKey", "defaultMessage"};
  if (std::find(without_meaning.begin(), without_meaning.end(), word) == without_meaning.end())
    throw std::runtime_error("a keyword that nobody interprets: " + word);
  return true;
}

} // namespace troupe::config

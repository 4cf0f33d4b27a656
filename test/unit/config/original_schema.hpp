#pragma once
// Determined's own schemas as they are written: JSON Schema draft 7 with Determined's extensions, interpreted
// keyword by keyword. It is slow and simple; the tests compare the table of keys with it.

#include "model/value.hpp"

#include <map>
#include <set>
#include <string>

namespace troupe::config {

class original_schemas {
public:
  explicit original_schemas(const std::string& directory);

  const std::map<std::string, value>& all() const { return schemas_; }
  /// Returns whether the schema `name` accepts `x`. `complete` also applies the keywords that begin with
  /// `eventually`.
  bool accepts(const std::string& name, const value& x, bool complete) const;
  /// Returns the keywords of the file `name` itself that refuse something within `x`. Every keyword is
  /// checked, even after another one has refused.
  std::set<std::string> refusing(const std::string& name, const value& x, bool complete) const;

private:
  bool holds_file(const std::string& url, const value& x, bool complete) const;
  bool holds(const value& schema, const value& x, bool complete) const;
  bool holds_keyword(const value& schema, const std::string& word, const value& what, const value& x,
                     bool complete) const;
  std::map<std::string, value> schemas_;
  mutable std::set<std::string>* refusing_ = nullptr; ///< where `refusing` collects keywords; null otherwise
  mutable int foreign_ = 0;                           ///< how many other files the check is within
  mutable std::string own_;
};

} // namespace troupe::config

#pragma once
// Determined's own schemas as they are written: JSON Schema draft 7 and its extensions, interpreted word by word.
// Slow and plain; the table is held against it.

#include "model/value.hpp"

#include <map>
#include <string>

namespace troupe::config {

class original_schemas {
public:
  explicit original_schemas(const std::string& directory);

  const std::map<std::string, value>& all() const { return schemas_; }
  /// `complete` applies the keywords that begin with `eventually` too.
  bool accepts(const std::string& name, const value& x, bool complete) const;

private:
  bool holds(const value& schema, const value& x, bool complete) const;
  bool holds_keyword(const value& schema, const std::string& word, const value& what, const value& x,
                     bool complete) const;
  std::map<std::string, value> schemas_;
};

} // namespace troupe::config

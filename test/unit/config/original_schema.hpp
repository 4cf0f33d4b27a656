#pragma once
// Determined's own schemas as they are written: JSON Schema draft 7 and its extensions, interpreted word by
// word. Slow and plain; the table is held against it.

#include "model/value.hpp"

#include <map>
#include <set>
#include <string>

namespace troupe::config {

class original_schemas {
public:
  explicit original_schemas(const std::string& directory);

  const std::map<std::string, value>& all() const { return schemas_; }
  /// `complete` applies the keywords that begin with `eventually` too.
  bool accepts(const std::string& name, const value& x, bool complete) const;
  /// The keywords of the file `name` itself that say no somewhere within `x`; each is asked, whatever another
  /// said.
  std::set<std::string> refusing(const std::string& name, const value& x, bool complete) const;

private:
  bool holds_file(const std::string& url, const value& x, bool complete) const;
  bool holds(const value& schema, const value& x, bool complete) const;
  bool holds_keyword(const value& schema, const std::string& word, const value& what, const value& x,
                     bool complete) const;
  std::map<std::string, value> schemas_;
  mutable std::set<std::string>* refusing_ = nullptr; ///< where `refusing` collects
  mutable int foreign_ = 0;                           ///< how deep within other files
  mutable std::string own_;
};

} // namespace troupe::config

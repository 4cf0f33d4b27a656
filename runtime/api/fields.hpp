#pragma once
// Reads a JSON request as leniently as grpc-gateway: keys in camelCase or snake_case, numbers as text, null
// as unset, unknown keys ignored. The first fault is kept; a faulty field reads as its default.

#include "model/value.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::api {

class fields {
public:
  /// `where` begins every message: "modelDefinition[3]".
  explicit fields(const value& object, std::string where = {});

  bool has(const char* name) const; ///< whether the key is present and not null
  const value* get(const char* name) const;
  std::string text(const char* name, std::string otherwise = {});
  std::int64_t number(const char* name, std::int64_t otherwise = 0);
  std::optional<double> real(const char* name);
  bool flag(const char* name, bool otherwise = false);
  /// A number that names a thing; an empty id where it is missing or 0.
  template <class Id>
  Id id(const char* name) {
    const auto given = number(name);
    if (given < 0)
      fault(name, "has to be a number above 0, or be left out");
    return {static_cast<std::uint64_t>(std::max<std::int64_t>(given, 0))};
  }
  /// A list of numbers that name things. A fault names the place of the first that cannot.
  template <class Id>
  std::vector<Id> ids(const char* name) {
    std::vector<Id> out;
    for (const auto number : numbers_above_0(name))
      out.push_back({number});
    return out;
  }
  std::vector<std::string> texts(const char* name); ///< a list of texts
  /// The object or list under `name`; an empty one where it is missing.
  const value& object(const char* name);
  const value& list(const char* name);

  /// Notes a fault where `name` is missing.
  void need(const char* name);
  void fault(const char* name, const std::string& what);
  const std::optional<error>& bad() const { return bad_; }

private:
  std::vector<std::uint64_t> numbers_above_0(const char* name);

  const value& object_;
  std::string where_;
  std::optional<error> bad_;
};

/// Reads a body; an empty one is {}. Fails with errc::invalid where it is not an object.
result<value> parse_object(std::string_view body);

} // namespace troupe::api

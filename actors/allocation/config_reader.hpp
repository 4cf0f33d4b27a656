#pragma once
// Reads configurations to start tasks with them: members by path, and the parts that all kinds of tasks have.
// Pure.

#include "actors/pool/pool_events.hpp"
#include "model/result.hpp"
#include "model/value.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Reads members of a configuration by paths such as "resources.slots_per_trial". The first member that has
/// the wrong kind becomes the fault.
class config_reader {
public:
  explicit config_reader(const value& config) : config_(config) {}

  /// The member; where it is absent, the default of the schema; where there is none, null.
  value at(std::string_view path);
  const value& find(std::string_view path) const {
    static const value nothing;
    const value* here = &config_;
    for (std::string_view rest = path; !rest.empty();) {
      const auto dot = rest.find('.');
      if (!here->is_object())
        return nothing;
      const auto it = here->find(std::string(rest.substr(0, dot)));
      if (it == here->end())
        return nothing;
      here = &*it;
      rest = dot == rest.npos ? std::string_view() : rest.substr(dot + 1);
    }
    return *here;
  }

  std::string text(std::string_view path) { return text_in(path, at(path)); }
  std::string text_in(std::string_view path, const value& x) {
    if (!x.is_string() && !x.is_null())
      refuse(path, "a text", x);
    return x.is_string() ? x.get<std::string>() : std::string();
  }
  std::optional<std::int64_t> integer(std::string_view path) { return integer_in(path, at(path)); }
  std::optional<std::int64_t> integer_in(std::string_view path, const value& x) {
    if (x.is_number_integer())
      return x.get<std::int64_t>();
    if (!x.is_null())
      refuse(path, "an integer", x);
    return std::nullopt;
  }
  void refuse(std::string_view path, std::string_view expected, const value& got) {
    if (!fault_)
      fault_ = error{errc::invalid,
                     std::string(path) + ": expected " + std::string(expected) + ", got " + to_json(got)};
  }
  void fault_at(const std::string& section, const error& why) {
    if (!fault_)
      fault_ = error{errc::invalid, section + ": " + why.what};
  }
  const std::optional<error>& fault() const { return fault_; }

private:
  const value& config_;
  std::optional<error> fault_;
};

/// The environment variables that a task gets. Where they differ by device, those for `device`.
std::map<std::string, std::string> variables_in(const config_reader& config,
                                                const std::string& device = "cpu");
/// Replaces the variables for processors in a task's environment by those for its device.
void choose_variables(std::map<std::string, std::string>& env, const config_reader& config,
                      const std::string& device);
/// Reads `resources.constraints`, without the rule `single_node`. A member that is not a rule becomes a fault
/// of `config`.
placement_rules placement_rules_in(config_reader& config);

} // namespace troupe

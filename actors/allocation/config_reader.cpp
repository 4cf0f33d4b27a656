#include "actors/allocation/config_reader.hpp"

#include "actors/pool/pool_settings.hpp"
#include "model/config/experiment_config.hpp"

namespace troupe {

value config_reader::at(std::string_view path) {
  const auto& given = find(path);
  return given.is_null() ? config::default_of(path) : given;
}

namespace {

/// Adds variables that are given as a list of "K=V" texts, or as an object.
void add_variables(std::map<std::string, std::string>& env, const value& list) {
  if (list.is_object())
    for (const auto& [key, one] : list.items())
      env[key] = one.is_string() ? one.get<std::string>() : one.dump();
  if (list.is_array())
    for (const auto& line : list)
      if (const auto* pair = line.get_ptr<const std::string*>(); pair) {
        const auto equals = pair->find('=');
        if (equals == 0 || pair->empty())
          continue; // an entry without a name was accepted once, and has no effect
        env[pair->substr(0, equals)] = equals == pair->npos ? "" : pair->substr(equals + 1);
      }
}

} // namespace

std::map<std::string, std::string> variables_in(const config_reader& config, const std::string& device) {
  std::map<std::string, std::string> env;
  const auto& all = config.find("environment.environment_variables");
  const bool by_device =
    all.is_object() && (all.contains("cpu") || all.contains("cuda") || all.contains("rocm"));
  add_variables(env, by_device ? config.find("environment.environment_variables." + device) : all);
  return env;
}

void choose_variables(std::map<std::string, std::string>& env, const config_reader& config,
                      const std::string& device) {
  for (const auto& [key, text] : variables_in(config))
    if (auto at = env.find(key); at != env.end() && at->second == text)
      env.erase(at);
  for (auto& [key, text] : variables_in(config, device))
    env.insert_or_assign(key, std::move(text));
}

placement_rules placement_rules_in(config_reader& config) {
  placement_rules out;
  if (const auto& given = config.find("resources.constraints"); given.is_object()) {
    auto kept = given; // absent keys may be there as null
    for (auto it = kept.begin(); it != kept.end();)
      it = it->is_null() ? kept.erase(it) : std::next(it);
    if (auto rules = placement_rules_of(kept))
      out = std::move(*rules);
    else
      config.fault_at("resources.constraints", rules.error());
  }
  return out;
}

} // namespace troupe

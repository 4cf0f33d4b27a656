#include "model/config/experiment_config.hpp"

#include "model/config/check.hpp"
#include "model/config/complete.hpp"
#include "model/config/made_up_name.hpp"
#include "model/rng.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::config {
namespace {

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min<std::size_t>(8, text.size() - i));
    hash = mix64(hash ^ word);
  }
  return hash;
}

void take_from_cluster(value& config, std::string_view text, const surroundings& cluster) {
  auto& storage = config["checkpoint_storage"];
  if (storage.is_null()) {
    storage = cluster.checkpoint_storage.is_null() ? value{{"type", "directory"}, {"container_path", "checkpoints"}}
                                                   : cluster.checkpoint_storage;
    fill_defaults(storage, *schemas().at("checkpoint-storage"));
  }
  auto& name = config["name"];
  if (name.is_null())
    name = cluster.name.empty() ? made_up_name(hash_of(text)) : cluster.name;
  auto& seed = config["reproducibility"]["experiment_seed"];
  if (seed.is_null())
    seed = cluster.seed ? *cluster.seed : static_cast<std::uint32_t>(hash_of(text) >> 32);
}

} // namespace

outcome load_experiment(std::string_view text, std::string_view file, level want) {
  return load_experiment(text, file, want, {});
}

outcome load_experiment(std::string_view text, std::string_view file, level want, const surroundings& cluster) {
  outcome out;
  auto read = read_document(text, file);
  if (!read.faults.empty()) {
    out.faults = std::move(read.faults);
    if (!read.readable)
      return out;
  }
  const auto& experiment = *schemas().at("experiment");
  report found{std::string(file)};
  check(read.root, experiment, found);
  for (auto& one : out.faults)
    found.fault({one.line, one.column}, one.path, one.message, one.hint);
  out.faults = found.take();
  if (!out.faults.empty())
    return out;
  out.config = to_value(read.root);
  normalize(out.config, experiment);
  if (want == level::sane)
    return out;
  fill_defaults(out.config, experiment);
  take_from_cluster(out.config, text, cluster);
  report missing{std::string(file)};
  check_completeness(out.config, experiment, read.root, missing);
  check_runnable(out.config, read.root, missing);
  out.faults = missing.take();
  return out;
}

} // namespace troupe::config

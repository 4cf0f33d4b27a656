#include "actors/retention/storage_history.hpp"

#include "actors/retention/retention.hpp"
#include "model/config/secrets.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// What tells one storage from another. A connection string names the account beside its key.
value place_in(const value& config) {
  auto place = config.is_object() ? config.value("checkpoint_storage", value()) : value();
  if (!place.is_object())
    return place;
  for (const auto* key : {"save_experiment_best", "save_trial_best", "save_trial_latest", "access_key",
                          "secret_key", "credential", "session_token"})
    place.erase(key);
  for (const auto* key : {"endpoint_url", "account_url"})
    if (auto at = place.find(key); at != place.end() && at->is_string())
      *at = config::address_without_login(at->get<std::string>());
  if (auto at = place.find("connection_string"); at != place.end() && at->is_string()) {
    std::string kept, rest = at->get<std::string>();
    while (!rest.empty()) {
      const auto end = std::min(rest.find(';'), rest.size());
      const auto part = rest.substr(0, end);
      rest.erase(0, end + 1);
      if (!part.starts_with("AccountKey=") && !part.starts_with("SharedAccessSignature="))
        kept += part + ";";
    }
    *at = std::move(kept);
  }
  for (auto at = place.begin(); at != place.end();)
    at = at->is_null() ? place.erase(at) : std::next(at);
  return place;
}

/// Whether the bytes may be those of this fact; decoding all would take longer.
bool may_be(std::string_view bytes, std::string_view tag) {
  return bytes.substr(0, 64).find(tag) != bytes.npos;
}

} // namespace

result<storage_history> storage_history::of(const storage::reader& reads, const experiment_row& row) {
  storage_history out;
  if (row.continued != 0) {
    auto stored = reads.facts_of(cluster_entity);
    if (!stored)
      return stored.error();
    for (const auto& bytes : *stored) {
      if (!may_be(bytes, experiment_created::tag) && !may_be(bytes, experiment_continued::tag))
        continue;
      auto known = decode(bytes);
      if (!known)
        return known.error();
      if (auto* made = std::get_if<experiment_created>(&*known); made && made->id == row.id)
        out.configs_[0] = std::move(made->config);
      else if (auto* again = std::get_if<experiment_continued>(&*known);
               again && again->id == row.id && again->number <= row.continued && !again->config.is_null())
        out.configs_[again->number] = std::move(again->config);
    }
  }
  if (out.configs_.empty())
    out.configs_[0] = value();
  out.configs_.rbegin()->second = row.config.get(); // users may have changed it since
  return out;
}

result<storage_number> storage_history::of_checkpoint(const storage::reader& reads,
                                                      const checkpoint_row& saved) {
  if (configs_.size() == 1)
    return storage_number();
  auto known = trials_.find(saved.trial);
  if (known == trials_.end()) {
    auto stored = reads.facts_of(entity(saved.trial));
    if (!stored)
      return stored.error();
    known = trials_.emplace(saved.trial, std::vector<trial_continued>()).first;
    for (const auto& bytes : *stored)
      if (may_be(bytes, trial_continued::tag))
        if (auto again = decode_as<trial_continued>(bytes))
          known->second.push_back(std::move(*again));
  }
  std::uint32_t number = 0;
  for (const auto& again : known->second)
    if (again.run < saved.run)
      number = std::max(number, again.number);
  auto own = configs_.upper_bound(number);
  if (own != configs_.begin())
    --own;
  const auto same =
    std::find_if(configs_.rbegin(), configs_.rend(),
                 [place = place_in(own->second)](const auto& one) { return place_in(one.second) == place; });
  return same == configs_.rbegin() ? storage_number() : storage_number(same->first);
}

value storage_history::config(storage_number of) const {
  const auto at = of ? configs_.find(*of) : std::prev(configs_.end());
  return at == configs_.end() ? value() : at->second;
}

bool storage_history::deletes_here(storage_number of) const { return retention_of(config(of)).deletes_here; }

std::vector<storage_number> storage_history::buckets() const {
  std::vector<storage_number> out;
  std::vector<value> seen;
  for (auto at = configs_.rbegin(); at != configs_.rend(); ++at) {
    const auto number = at == configs_.rbegin() ? storage_number() : storage_number(at->first);
    const auto place = place_in(at->second);
    if (deletes_here(number) || std::find(seen.begin(), seen.end(), place) != seen.end())
      continue;
    seen.push_back(place);
    out.push_back(number);
  }
  return out;
}

} // namespace troupe

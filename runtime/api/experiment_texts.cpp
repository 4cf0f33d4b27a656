#include "runtime/api/experiment_texts.hpp"

#include "runtime/api/shapes.hpp"

namespace troupe::api {
namespace {

std::shared_ptr<const experiment_texts::face> face_of(const experiment_row& row) {
  return std::make_shared<const experiment_texts::face>(experiment_texts::face{
    row.name, row.owner, row.description, pool_of(row), row.labels, row.created, row.parent});
}

} // namespace

/// With mutex_ held.
result<experiment_texts::known*> experiment_texts::found(const experiment_standing& now,
                                                         const storage::reader& storage, bool with_text) {
  auto at = known_.find(now.id);
  if (at != known_.end() && at->second.edits == now.edits && (!with_text || !at->second.constant.empty()))
    return &at->second;
  auto row = storage.experiment(now.id);
  if (!row)
    return row.error();
  if (at == known_.end())
    at = known_.emplace(now.id, known{}).first;
  auto& one = at->second;
  one.edits = row->edits;
  one.lasting = face_of(*row);
  auto text = to_json(lasting_experiment_shape(*row));
  text.pop_back();
  if (bytes_ + text.size() > most_bytes) {
    for (auto& [other, forgotten] : known_)
      forgotten.constant = std::string();
    bytes_ = 0;
  }
  bytes_ += text.size() - one.constant.size();
  one.constant = std::move(text);
  one.changing.clear();
  return &one;
}

result<std::vector<experiment_texts::entry>> experiment_texts::all(const storage::reader& storage) {
  auto standings = storage.experiment_standings();
  if (!standings)
    return standings.error();
  std::vector<entry> out;
  out.reserve(standings->size());
  std::lock_guard lock{mutex_};
  auto at = known_.begin(); // both stand in the order of ids
  for (auto& now : *standings) {
    while (at != known_.end() && at->first < now.id)
      ++at;
    if (at != known_.end() && at->first == now.id && at->second.edits == now.edits) {
      out.push_back({std::move(now), at->second.lasting});
      continue;
    }
    auto one = found(now, storage, false);
    if (!one && one.error().code == errc::not_found)
      continue; // deleted since
    if (!one)
      return one.error();
    out.push_back({std::move(now), (*one)->lasting});
  }
  return out;
}

result<void> experiment_texts::write(const entry& of, const storage::reader& storage, const accounts& users,
                                     const place_book& places, std::string& out) {
  const auto version = users.version();
  std::lock_guard lock{mutex_};
  auto one = found(of.now, storage, true);
  if (!one)
    return one.error();
  auto& kept = **one;
  if (kept.changing.empty() || !(kept.now == of.now) || kept.users != version) {
    kept.changing = to_json(changing_experiment_shape(of.now, of.lasting->owner, of.lasting->created, users));
    kept.changing.front() = ',';
    kept.changing.back() = ',';
    kept.now = of.now;
    kept.users = version;
  }
  const auto place = to_json(places.place_of(of.now.project, users));
  out.append(kept.constant).append(kept.changing).append(place, 1);
  return {};
}

} // namespace troupe::api

#include "runtime/api/experiment_texts.hpp"

#include "runtime/api/shapes.hpp"
#include "storage/standing_watch.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

std::shared_ptr<const experiment_texts::face> face_of(const experiment_row& row,
                                                      const std::string& usual_pool) {
  return std::make_shared<const experiment_texts::face>(experiment_texts::face{
    row.name, row.owner, row.description, pool_of(row, usual_pool), row.labels, row.created, row.parent});
}

} // namespace

/// The caller holds `mutex_`.
result<void> experiment_texts::look_at_pool(const storage::reader& storage) {
  auto now = usual_pool(storage);
  if (!now)
    return now.error();
  if (*now == usual_pool_)
    return {};
  usual_pool_ = std::move(*now);
  known_.clear();
  bytes_ = 0;
  of_ = nullptr;
  return {};
}

/// The caller holds `mutex_`.
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
  one.lasting = face_of(*row, usual_pool_);
  auto text = to_json(lasting_experiment_shape(*row, usual_pool_));
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
  if (auto fine = look_at_pool(storage); !fine)
    return fine.error();
  auto at = known_.begin(); // both lists are in the order of ids
  for (auto& now : *standings) {
    while (at != known_.end() && at->first < now.id)
      ++at;
    if (at != known_.end() && at->first == now.id && at->second.edits == now.edits) {
      out.push_back({std::move(now), at->second.lasting});
      continue;
    }
    auto one = found(now, storage, false);
    if (!one && one.error().code == errc::not_found)
      continue; // the experiment was deleted meanwhile
    if (!one)
      return one.error();
    out.push_back({std::move(now), (*one)->lasting});
  }
  return out;
}

const std::string& experiment_texts::text_of(const entry& of, text which) {
  const auto& face = *of.lasting;
  return which == text::name          ? face.name
         : which == text::owner       ? face.owner
         : which == text::description ? face.description
                                      : face.pool;
}

result<experiment_texts::listing> experiment_texts::kept(const storage::reader& everything,
                                                         std::optional<text> sorted_by) {
  const auto* watch = dynamic_cast<const storage::standing_watch*>(&everything);
  if (!watch) {
    auto rows = all(everything);
    if (!rows)
      return rows.error();
    return listing{std::make_shared<const std::vector<entry>>(std::move(*rows)), nullptr};
  }
  const auto forget_orders = [this] {
    for (auto& order : orders_)
      order.forget();
  };
  std::lock_guard lock{mutex_};
  if (auto fine = look_at_pool(everything); !fine)
    return fine.error();
  if (of_ != &everything) {
    forget_orders();
    entries_ = std::make_shared<std::vector<entry>>();
    of_ = &everything;
    version_ = 0;
  }
  auto news = watch->standings_since(version_);
  if (!news)
    return news.error();
  if (!news->changed.empty() && entries_.use_count() > 1)
    entries_ = std::make_shared<std::vector<entry>>(*entries_);
  bool some_gone = false;
  for (auto& now : news->changed) {
    auto at = std::lower_bound(entries_->begin(), entries_->end(), now.id,
                               [](const entry& x, experiment_id id) { return x.now.id < id; });
    const bool there = at != entries_->end() && at->now.id == now.id;
    if (now.project && !(there && at->now.edits == now.edits)) {
      auto one = found(now, everything, false);
      if (!one && one.error().code != errc::not_found)
        return one.error(); // the next call gets all of `changed` again
      if (!one)
        now.project = {}; // the experiment was deleted meanwhile
      else if (there) {
        at->lasting = (*one)->lasting;
        for (auto& order : orders_)
          order.changed(static_cast<std::size_t>(at - entries_->begin()));
      } else {
        if (at != entries_->end())
          forget_orders();
        at = entries_->insert(at, {now, (*one)->lasting});
      }
    }
    if (at != entries_->end() && at->now.id == now.id)
      at->now = now;
    some_gone = some_gone || !now.project;
  }
  if (some_gone && std::erase_if(*entries_, [](const entry& x) { return !x.now.project; }) > 0)
    forget_orders();
  version_ = news->version;
  listing out{entries_, nullptr};
  if (sorted_by)
    out.ranks = orders_[static_cast<std::size_t>(*sorted_by)].of(
      entries_->size(),
      [&](std::size_t row) -> const std::string& { return text_of((*entries_)[row], *sorted_by); });
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

#include "runtime/api/trial_texts.hpp"

#include "runtime/api/shapes.hpp"
#include "storage/trial_watch.hpp"

#include <algorithm>
#include <utility>

namespace troupe::api {
namespace {

constexpr std::size_t of_a_node = 160; ///< rough number of bytes that a text takes beside its characters

} // namespace

trial_texts::text trial_texts::text_of(const trial_row& row) {
  constexpr std::string_view key = "\"totalBatches\":";
  auto shape = trial_progress_shape(row);
  shape["totalBatches"] = 0;
  auto whole = to_json(shape);
  // Names of hyperparameters stand before the key, and quotes in users' texts are escaped, so the last match
  // is the trial's own key.
  const auto at = whole.rfind(key) + key.size();
  return {whole.substr(0, at), whole.substr(at + 1), std::max(row.latest.steps, row.best.steps),
          row.reported_steps};
}

/// Appends the JSON of all trials to `out`. The caller holds the mutex of `all`.
result<void> trial_texts::print(const list& all, const storage::reader& everything, std::string& out) {
  std::map<trial_id, std::int64_t> reported; // steps of each trial's newest report
  for (const auto& [id, text] : all.texts)
    reported.emplace_hint(reported.end(), id, text.reported);
  if (const auto* watch = dynamic_cast<const storage::trial_watch*>(&everything)) {
    std::vector<trial_id> ids;
    for (const auto& [id, steps] : reported)
      ids.push_back(id);
    auto steps = watch->reported_steps(ids);
    if (!steps)
      return steps.error();
    reported = *std::move(steps);
  }
  bool first = true;
  for (const auto& [id, text] : all.texts) {
    if (!std::exchange(first, false))
      out += ',';
    const auto found = reported.find(id);
    out += text.before;
    out += std::to_string(std::max(text.steps, found == reported.end() ? 0 : found->second));
    out += text.after;
  }
  return {};
}

/// Reads what has changed into the list. The caller holds the mutex of `into`.
result<void> trial_texts::read_on(experiment_id of, list& into, const storage::reader& everything) {
  const auto* watch = dynamic_cast<const storage::trial_watch*>(&everything);
  auto news = watch ? watch->trials_since(into.version) : storage::trial_changes{0, true, {}};
  // The changed trials may belong to other experiments. Where there are many, reading the list anew costs
  // less.
  if (news.all || news.changed.size() > into.texts.size() + 100) {
    auto rows = everything.trials(of);
    if (!rows)
      return rows.error();
    into.texts.clear();
    for (const auto& row : *rows)
      into.texts.emplace_hint(into.texts.end(), row.id, text_of(row));
  } else
    for (const auto id : news.changed) {
      auto row = everything.trial(id);
      if (row && row->experiment == of)
        into.texts[id] = text_of(*row);
      else if (row || row.error().code == errc::not_found)
        into.texts.erase(id);
      else
        return row.error();
    }
  into.version = news.version;
  into.bytes = sizeof into; // empty lists count as well, so that their number is bounded
  for (const auto& [id, text] : into.texts)
    into.bytes += text.before.size() + text.after.size() + of_a_node;
  return {};
}

result<void> trial_texts::write(experiment_id of, const storage::reader& everything, std::string& out) {
  if (!dynamic_cast<const storage::trial_watch*>(&everything)) {
    list once;
    auto read = read_on(of, once, everything);
    return read ? print(once, everything, out) : read;
  }
  std::shared_ptr<list> one;
  {
    std::lock_guard lock{mutex_};
    if (of_ != &everything) {
      lists_.clear();
      bytes_ = 0;
      of_ = &everything;
    }
    auto& place = lists_[of];
    if (!place.kept)
      place.kept = std::make_shared<list>();
    place.asked = ++asks_;
    one = place.kept;
  }
  std::size_t bytes = 0;
  {
    std::lock_guard alone{one->mutex};
    if (auto read = read_on(of, *one, everything); !read) {
      one->version = 0;
      return read;
    }
    if (auto printed = print(*one, everything, out); !printed)
      return printed;
    bytes = one->bytes;
  }
  std::lock_guard lock{mutex_};
  const auto at = lists_.find(of);
  if (at == lists_.end() || at->second.kept != one)
    return {};
  bytes_ += bytes - at->second.bytes;
  at->second.bytes = bytes;
  while (bytes_ > most_bytes_ && !lists_.empty()) {
    const auto oldest = std::min_element(lists_.begin(), lists_.end(), [](const auto& a, const auto& b) {
      return a.second.asked < b.second.asked;
    });
    bytes_ -= oldest->second.bytes;
    lists_.erase(oldest);
  }
  return {};
}

} // namespace troupe::api

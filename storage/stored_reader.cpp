#include "storage/stored_reader.hpp"

#include "model/names.hpp"
#include "storage/fact_rows.hpp"
#include "storage/keys.hpp"
#include "storage/log_rows.hpp"
#include "storage/projections/projections.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace troupe::storage {
namespace {

/// A row that must exist; errors name it by `what`.
template <class Row>
result<Row> row_at(const view& of, family where, std::string_view key, const std::string& what) {
  auto bytes = of.get(where, key);
  if (!bytes)
    return bytes.error();
  if (!*bytes)
    return error{errc::not_found, "there is no " + what};
  auto row = unpack<Row>(**bytes);
  if (!row)
    return error{errc::corrupt, what + ": " + row.error().what};
  return row;
}

result<experiment_row> read_experiment(const view& of, experiment_id id) {
  auto what = "experiment " + to_string(id);
  auto constant =
    row_at<projections::experiment_constant>(of, family::rows, keys::tagged('C', id.value), what);
  if (!constant)
    return constant.error();
  if (!constant->id)
    return error{errc::not_found, what + " was deleted"};
  auto changing =
    row_at<projections::experiment_changing>(of, family::rows, keys::tagged('E', id.value), what);
  if (!changing)
    return changing.error();
  if (!changing->edits)
    return projections::join(std::move(*constant), std::move(*changing), nullptr);
  auto described = row_at<experiment_described>(of, family::rows, keys::tagged('D', id.value), what);
  if (!described)
    return described.error();
  return projections::join(std::move(*constant), std::move(*changing), &*described);
}

/// The most steps of the reports of a trial that count; none where it has no report.
result<std::optional<std::int64_t>> steps_of(const view& of, trial_id id) {
  auto bytes = of.get(family::facts, keys::tagged('r', id.value));
  if (!bytes)
    return bytes.error();
  return *bytes && ((*bytes)->size() == 16 || (*bytes)->size() == 8) // 8: an older build's, without the run
           ? std::optional(static_cast<std::int64_t>(keys::last_number(**bytes)))
           : std::nullopt;
}

result<trial_row> read_trial(const view& of, trial_id id) {
  auto what = "trial " + to_string(id);
  auto constant = row_at<projections::trial_constant>(of, family::rows, keys::tagged('H', id.value), what);
  if (!constant)
    return constant.error();
  if (!constant->id)
    return error{errc::not_found, what + " was deleted"};
  auto changing = row_at<projections::trial_changing>(of, family::rows, keys::tagged('T', id.value), what);
  if (!changing)
    return changing.error();
  auto steps = steps_of(of, id);
  if (!steps)
    return steps.error();
  auto row = projections::join(std::move(*constant), std::move(*changing));
  row.reported_steps = steps->value_or(0);
  return row;
}

/// A trial's fact, which must be of this type; errors name its subject by `what`.
template <class Fact>
result<Fact> trial_fact_at(const view& of, trial_id trial, std::uint64_t number, const std::string& what) {
  const auto stream = entity(trial);
  const auto place = what + ": fact " + std::to_string(number) + " of " + stream;
  auto bytes = fact_at(of, stream, number);
  if (!bytes)
    return error{bytes.error().code, place + ": " + bytes.error().what};
  if (!*bytes)
    return error{errc::corrupt, place + " is missing"};
  auto known = decode(**bytes);
  if (!known)
    return error{known.error().code, place + ": " + known.error().what};
  auto* wanted = std::get_if<Fact>(&*known);
  if (!wanted)
    return error{errc::corrupt, place + " belongs to something else"};
  return std::move(*wanted);
}

/// `recorded` is the fact at that place, where the caller has read it already.
result<checkpoint_row> read_checkpoint(const view& of, const projections::checkpoint_entry& place,
                                       const std::string& what,
                                       std::optional<checkpoint_recorded> recorded = {}) {
  if (!recorded) {
    auto read = trial_fact_at<checkpoint_recorded>(of, place.trial, place.number, what);
    if (!read)
      return read.error();
    recorded = std::move(*read);
  }
  checkpoint_row row{std::move(recorded->saved), place.trial, place.experiment, recorded->run, recorded->at};
  if (place.described) {
    auto said = trial_fact_at<checkpoint_described>(of, place.trial, place.described - 1, what);
    if (!said)
      return said.error();
    row.saved.metadata = std::move(said->metadata);
  }
  if (!place.changed)
    return row;
  auto changed = trial_fact_at<checkpoint_changed>(of, place.trial, place.changed - 1, what);
  if (!changed)
    return changed.error();
  row.saved.files = std::move(changed->files);
  row.state = place.deleted ? checkpoint_state::deleted : checkpoint_state::partially_deleted;
  return row;
}

result<projections::checkpoint_entry> place_of(const view& of, std::string_view uuid,
                                               const std::string& what) {
  return row_at<projections::checkpoint_entry>(of, family::rows, keys::tagged('P', uuid), what);
}

/// Follows the chain, newest first; returns the oldest first.
result<std::vector<checkpoint_row>> read_checkpoints(const view& of, trial_id trial) {
  const auto what = "a checkpoint of trial " + to_string(trial);
  std::vector<checkpoint_row> rows;
  auto bytes = of.get(family::rows, keys::tagged('T', trial.value));
  if (!bytes)
    return bytes.error();
  if (!*bytes)
    return rows; // no such trial
  auto state = unpack<projections::trial_changing>(**bytes);
  if (!state)
    return error{errc::corrupt, "trial " + to_string(trial) + ": " + state.error().what};
  for (auto next = state->newest_recorded; next != 0;) {
    auto recorded = trial_fact_at<checkpoint_recorded>(of, trial, next - 1, what);
    if (!recorded)
      return recorded.error();
    auto place = place_of(of, recorded->saved.uuid, what);
    if (!place)
      return place.error();
    if (place->before >= next)
      return error{errc::corrupt,
                   what + ": the chain goes from fact " + std::to_string(next - 1) + " to a later one"};
    const bool newest = place->number == next - 1; // otherwise a later fact recorded it again
    auto row = read_checkpoint(of, *place, what, newest ? std::optional{std::move(*recorded)} : std::nullopt);
    if (!row)
      return row.error();
    rows.push_back(std::move(*row));
    next = place->before;
  }
  std::reverse(rows.begin(), rows.end());
  return rows;
}

/// The number of a series row stands only in its key.
result<metric_row> decode_metric(std::string_view key, std::string_view bytes) {
  auto row = unpack<metric_row>(bytes);
  if (row)
    row->row = keys::last_number(key);
  return row;
}
/// Looks through a row's lines in [begin, end); `out.last` becomes the last line that was looked at.
result<void> look_through(const log_row& row, std::uint64_t begin, std::uint64_t end, const line_search& what,
                          lines_found& out) {
  const auto room = what.most_found - out.lines.size();
  std::vector<std::uint64_t> hits;
  if (!what.next || row.of_one()) {
    end = std::min(end, begin + room);
    for (auto number = begin; number < end; ++number)
      hits.push_back(number);
  } else {
    const auto texts = row.texts();
    std::size_t place = 0;
    for (auto number = row.first(); number < begin; ++number)
      place = texts.find('\n', place) + 1;
    for (auto number = begin; number < end; ++number) {
      const auto hit = what.next(texts, place);
      if (hit >= texts.size())
        break;
      number += static_cast<std::uint64_t>(std::count(texts.begin() + place, texts.begin() + hit, '\n'));
      if (number >= end)
        break;
      hits.push_back(number);
      if (hits.size() == room)
        end = number + 1;
      place = texts.find('\n', hit) + 1;
    }
  }
  out.last = end - 1;
  if (hits.empty())
    return {};
  auto some = row.lines([at = hits.begin(), until = hits.end()](std::uint64_t number) mutable {
    return at != until && *at == number && (++at, true);
  });
  if (!some)
    return some.error();
  std::move(some->begin(), some->end(), std::back_inserter(out.lines));
  return {};
}

/// Decodes the rows of one trial within [from, until); returns those that `keep` accepts, at most `limit`.
template <class Row, class Decode, class Keep>
result<std::vector<Row>> collect(const view& of, family where, const std::string& from,
                                 const std::string& until, direction towards, std::size_t limit,
                                 Decode decode, Keep keep) {
  std::vector<Row> rows;
  auto at = of.scan(where, from, until, towards);
  for (; at->valid() && rows.size() < limit; at->next()) {
    auto row = decode(at->key(), at->data());
    if (!row)
      return row.error();
    if (keep(*row))
      rows.push_back(std::move(*row));
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  return rows;
}

/// All rows of one kind, in the order of their keys.
template <class Row>
result<std::vector<Row>> all_rows(const view& of, char tag) {
  return collect<Row>(
    of, family::rows, std::string(1, tag), keys::after(tag), direction::forward,
    std::numeric_limits<std::size_t>::max(),
    [](std::string_view, std::string_view bytes) { return unpack<Row>(bytes); },
    [](const Row&) { return true; });
}

} // namespace

result<std::vector<committed_fact>> read_facts_after(const view& of, std::uint64_t after, std::size_t limit) {
  std::vector<committed_fact> facts;
  auto commit = of.scan(family::facts, keys::tagged('g', after + 1), keys::after('g'));
  for (; commit->valid() && facts.size() < limit; commit->next()) {
    auto parts = unpack<std::vector<commit_part>>(commit->data());
    if (!parts)
      return error{errc::corrupt, "commit index: " + parts.error().what};
    std::uint64_t last = keys::last_number(commit->key()), total = 0;
    for (const auto& part : *parts)
      total += part.count;
    auto sequence = last - total + 1;
    std::unordered_map<std::string_view, fact_walk> walks; // parts of one stream follow each other
    for (const auto& part : *parts) {
      if (sequence + part.count <= after + 1) {
        sequence += part.count;
        continue;
      }
      auto stop = part.first + part.count;
      auto number = part.first + (after >= sequence ? after + 1 - sequence : 0);
      sequence += number - part.first;
      auto& fact = walks.try_emplace(part.entity, of, part.entity, number).first->second;
      for (; fact.valid() && fact.number() == number && number < stop && facts.size() < limit; fact.next())
        facts.push_back({sequence++, part.entity, number++, std::string(fact.data())});
      if (auto ok = fact.status(); !ok)
        return ok.error();
      if (facts.size() == limit)
        return facts;
      if (number != stop)
        return error{errc::corrupt, "fact " + std::to_string(number) + " of " + part.entity + " is missing"};
    }
  }
  if (auto ok = commit->status(); !ok)
    return ok.error();
  return facts;
}

result<std::uint64_t> greatest_number(const view& of, family where, std::string_view from,
                                      std::string_view until) {
  auto at = of.scan(where, from, until, direction::backward);
  if (auto ok = at->status(); !ok)
    return ok.error();
  return at->valid() ? keys::last_number(at->key()) : 0;
}

result<std::vector<experiment_row>> stored_reader::experiments() const {
  auto now = store_->look();
  std::vector<experiment_row> rows;
  auto at = now->scan(family::rows, keys::tagged('C', 0), keys::after('C'));
  for (; at->valid(); at->next()) {
    auto row = read_experiment(*now, {keys::last_number(at->key())});
    if (!row && row.error().code == errc::not_found)
      continue; // deleted
    if (!row)
      return row.error();
    rows.push_back(std::move(*row));
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  return rows;
}

/// Reads only at the first call. The caller holds standings_mutex_.
result<void> stored_reader::read_standings() const {
  if (standings_)
    return {};
  std::vector<experiment_standing> all;
  auto now = store_->look();
  auto at = now->scan(family::rows, keys::tagged('E', 0), keys::after('E'));
  for (; at->valid(); at->next()) {
    const experiment_id id{keys::last_number(at->key())};
    auto row = unpack<projections::experiment_changing>(at->data());
    if (!row)
      return error{errc::corrupt, "experiment " + to_string(id) + ": " + row.error().what};
    all.push_back(projections::standing_of(id, *row));
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  standing_versions_.assign(all.size(), standing_version_);
  standings_ = std::move(all);
  return {};
}

result<standing_changes> stored_reader::standings_since(std::uint64_t version) const {
  const std::scoped_lock lock(standings_mutex_);
  if (auto read = read_standings(); !read)
    return read.error();
  standing_changes out{standing_version_, {}};
  if (version == standing_version_)
    return out;
  for (std::size_t i = 0; i < standings_->size(); ++i)
    if (standing_versions_[i] > version)
      out.changed.push_back((*standings_)[i]);
  return out;
}

result<std::vector<experiment_standing>> stored_reader::experiment_standings() const {
  const std::scoped_lock lock(standings_mutex_);
  if (auto read = read_standings(); !read)
    return read.error();
  std::vector<experiment_standing> out;
  out.reserve(standings_->size());
  std::copy_if(standings_->begin(), standings_->end(), std::back_inserter(out),
               [](const auto& one) { return bool(one.project); }); // without those that were deleted
  return out;
}

void stored_reader::note(const std::vector<experiment_standing>& changed) {
  const std::scoped_lock lock(standings_mutex_);
  if (!standings_ || changed.empty())
    return; // the first question reads them all
  ++standing_version_;
  for (const auto& one : changed) {
    const auto at = std::lower_bound(standings_->begin(), standings_->end(), one.id,
                                     [](const auto& x, experiment_id id) { return x.id < id; });
    const auto version = standing_versions_.begin() + (at - standings_->begin());
    if (at != standings_->end() && at->id == one.id) {
      *at = one;
      *version = standing_version_;
    } else {
      standings_->insert(at, one);
      standing_versions_.insert(version, standing_version_);
    }
  }
}

void trial_log::note(const std::vector<trial_id>& changed) {
  constexpr std::size_t most = 50'000;
  const std::scoped_lock lock(mutex_);
  ++version_;
  for (const auto id : changed)
    changed_.emplace_back(version_, id);
  for (; changed_.size() > most; changed_.pop_front())
    known_after_ = changed_.front().first;
}

trial_changes trial_log::since(std::uint64_t version) const {
  const std::scoped_lock lock(mutex_);
  trial_changes out{version_, version < known_after_, {}};
  if (out.all)
    return out;
  auto at = std::upper_bound(changed_.begin(), changed_.end(), version,
                             [](std::uint64_t v, const auto& one) { return v < one.first; });
  for (; at != changed_.end(); ++at)
    out.changed.push_back(at->second);
  std::sort(out.changed.begin(), out.changed.end());
  out.changed.erase(std::unique(out.changed.begin(), out.changed.end()), out.changed.end());
  return out;
}

result<std::map<trial_id, std::int64_t>>
stored_reader::reported_steps(const std::vector<trial_id>& of) const {
  const auto now = store_->look();
  std::map<trial_id, std::int64_t> out;
  for (const auto id : of) {
    auto steps = steps_of(*now, id);
    if (!steps)
      return steps.error();
    if (*steps)
      out.emplace_hint(out.end(), id, **steps);
  }
  return out;
}

result<experiment_row> stored_reader::experiment(experiment_id id) const {
  return read_experiment(*store_->look(), id);
}

result<std::vector<experiment_id>> stored_reader::experiments_with_key(std::string_view key) const {
  const auto now = store_->look();
  std::vector<experiment_id> out;
  auto at = now->scan(family::rows, keys::tagged('K', key), keys::tagged('K', after_numbered(key)));
  for (; at->valid(); at->next()) {
    if (at->data().size() != 8)
      continue;
    const experiment_id id{keys::last_number(at->data())};
    if (auto there = read_experiment(*now, id))
      out.push_back(id);
    else if (there.error().code != errc::not_found) // deleted
      return there.error();
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  return out;
}

result<std::vector<trial_row>> stored_reader::trials(experiment_id id) const {
  auto now = store_->look();
  std::vector<trial_row> rows;
  auto at = now->scan(family::rows, keys::tagged('X', id.value, 0), keys::tagged('X', id.value + 1, 0));
  for (; at->valid(); at->next()) {
    auto row = read_trial(*now, {keys::last_number(at->key())});
    if (!row && row.error().code == errc::not_found)
      continue; // deleted
    if (!row)
      return row.error();
    rows.push_back(std::move(*row));
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  return rows;
}

result<std::vector<trial_id>> stored_reader::trial_ids(experiment_id id) const {
  auto now = store_->look();
  std::vector<trial_id> ids;
  auto at = now->scan(family::rows, keys::tagged('X', id.value, 0), keys::tagged('X', id.value + 1, 0));
  for (; at->valid(); at->next()) {
    const trial_id one{keys::last_number(at->key())};
    const auto row = row_at<projections::trial_constant>(*now, family::rows, keys::tagged('H', one.value),
                                                         "trial " + to_string(one));
    if (!row && row.error().code != errc::not_found)
      return row.error();
    if (row && row->id) // a deleted one has no id
      ids.push_back(one);
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  return ids;
}

result<trial_row> stored_reader::trial(trial_id id) const { return read_trial(*store_->look(), id); }

result<trial_id> stored_reader::trial_with_name(const local_name& name) const {
  const error none{errc::not_found, "there is no run " + to_string(name)};
  const auto now = store_->look();
  const auto number_at = [&](const std::string& key) -> result<std::uint64_t> {
    auto bytes = now->get(family::rows, key);
    if (!bytes)
      return bytes.error();
    return *bytes && (*bytes)->size() == 8 ? keys::last_number(**bytes) : 0;
  };
  auto project = number_at(keys::tagged('F', name.key));
  if (project && !*project && name.key == uncategorized_project().key)
    project = 1; // no fact tells of this project
  auto trial = project && *project ? number_at(keys::tagged('I', *project, name.number)) : project;
  if (!trial)
    return trial.error();
  if (!*trial)
    return none;
  const trial_id id{*trial};
  auto row = read_trial(*now, id);
  if (row)
    return id;
  return row.error().code == errc::not_found ? none : row.error();
}

result<task_row> stored_reader::task(task_id id) const {
  auto row = row_at<task_row>(*store_->look(), family::rows, keys::task_row(id), "task " + to_string(id));
  if (row && !row->id)
    return error{errc::not_found, "task " + to_string(id) + " was deleted"};
  return row;
}

static result<task_detail> read_other_task(const view& now, task_id id) {
  const auto what = "task " + to_string(id);
  auto made = row_at<task_created>(now, family::rows, projections::row_key('B', id), what);
  if (!made)
    return made.error();
  auto state = row_at<projections::task_changing>(now, family::rows, projections::row_key('Y', id), what);
  if (!state)
    return state.error();
  return projections::join(std::move(*made), std::move(*state));
}

result<task_detail> stored_reader::other_task(task_id id) const {
  return read_other_task(*store_->look(), id);
}

result<std::vector<task_detail>> stored_reader::other_tasks(task_kind kind, time_point since) const {
  auto now = store_->look();
  const auto first = std::uint64_t(kind) << 60;
  std::vector<task_detail> all;
  auto at =
    now->scan(family::rows, keys::tagged('Y', first), keys::tagged('Y', first + (std::uint64_t{1} << 60)));
  for (; at->valid(); at->next()) {
    auto state = unpack<projections::task_changing>(at->data());
    if (!state)
      return error{errc::corrupt, "the row of a task: " + state.error().what};
    if (state->ended != time_point{} && state->ended < since)
      continue;
    auto key = std::string(at->key());
    key.front() = 'B';
    auto bytes = now->get(family::rows, key);
    if (!bytes)
      return bytes.error();
    auto made = *bytes ? unpack<task_created>(**bytes)
                       : result<task_created>(error{errc::corrupt, "it has no row of its creation"});
    if (!made)
      return error{errc::corrupt, "the row of a task: " + made.error().what};
    all.push_back(projections::join(std::move(*made), std::move(*state)));
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  std::sort(all.begin(), all.end(), [](const task_detail& a, const task_detail& b) {
    return std::tie(a.made.at, a.made.id) < std::tie(b.made.at, b.made.id);
  });
  return all;
}

result<std::vector<run_row>> stored_reader::runs(task_id id) const {
  if (!id.is_trial()) {
    auto state = row_at<projections::task_changing>(*store_->look(), family::rows,
                                                    projections::row_key('Y', id), "task " + to_string(id));
    return state ? result<std::vector<run_row>>(std::move(state->runs)) : state.error();
  }
  auto state = row_at<projections::trial_changing>(
    *store_->look(), family::rows, keys::tagged('T', id.trial().value), "task " + to_string(id));
  return state ? result<std::vector<run_row>>(std::move(state->runs)) : state.error();
}

result<std::vector<task_row>> stored_reader::open_tasks() const {
  auto standings = experiment_standings();
  if (!standings)
    return standings.error();
  auto now = store_->look();
  std::vector<task_row> open;
  const auto add = [&](std::string_view bytes) -> result<void> {
    auto row = unpack<task_row>(bytes);
    if (!row)
      return error{errc::corrupt, "the row of a task: " + row.error().what};
    if (row->open)
      open.push_back(std::move(*row));
    return {};
  };
  for (const auto& experiment : *standings) { // most trials belong to ended ones, which have none open
    if (terminal(experiment.state))
      continue;
    auto at = now->scan(family::rows, keys::tagged('X', experiment.id.value, 0),
                        keys::tagged('X', experiment.id.value + 1, 0));
    for (; at->valid(); at->next()) {
      auto bytes = now->get(family::rows, keys::task_row(trial_id{keys::last_number(at->key())}));
      if (!bytes)
        return bytes.error();
      if (auto added = *bytes ? add(**bytes) : result<void>{}; !added)
        return added.error();
    }
    if (auto ok = at->status(); !ok)
      return ok.error();
  }
  auto other = now->scan(family::rows, keys::tagged('A', std::uint64_t{1} << 60), keys::after('A'));
  for (; other->valid(); other->next())
    if (auto added = add(other->data()); !added)
      return added.error();
  if (auto ok = other->status(); !ok)
    return ok.error();
  std::sort(open.begin(), open.end(), [](const task_row& a, const task_row& b) { return a.id < b.id; });
  return open;
}

result<std::vector<metric_row>> stored_reader::metrics(trial_id id, std::uint64_t after, std::size_t limit,
                                                       std::string_view group) const {
  return collect<metric_row>(
    *store_->look(), family::series, keys::two(id.value, after + 1), keys::two(id.value + 1, 0),
    direction::forward, limit, decode_metric,
    [&](const metric_row& r) { return group.empty() ? r.group != "system" : r.group == group; });
}

result<metric_row> stored_reader::metric(trial_id id, std::uint64_t row) const {
  auto key = keys::two(id.value, row);
  auto found = row_at<metric_row>(*store_->look(), family::series, key,
                                  "report " + std::to_string(row) + " of trial " + to_string(id));
  if (found)
    found->row = row;
  return found;
}

result<std::vector<checkpoint_row>> stored_reader::checkpoints(trial_id id) const {
  return read_checkpoints(*store_->look(), id);
}

result<checkpoint_row> stored_reader::checkpoint(std::string_view uuid) const {
  auto now = store_->look();
  const auto what = "checkpoint " + std::string(uuid);
  auto place = place_of(*now, uuid, what);
  if (!place)
    return place.error();
  if (auto trial = read_trial(*now, place->trial); !trial)
    return trial.error().code == errc::not_found ? error{errc::not_found, "there is no " + what}
                                                 : trial.error();
  return read_checkpoint(*now, *place, what);
}

result<std::vector<log_line>> stored_reader::logs(task_id id, std::uint64_t after, std::size_t limit) const {
  auto found = find_lines({.task = id, .after = after, .most_looked_at = limit, .most_found = limit});
  return found ? result<std::vector<log_line>>(std::move(found->lines)) : found.error();
}

result<std::vector<log_line>> stored_reader::logs_before(task_id id, std::uint64_t before,
                                                         std::size_t limit) const {
  std::vector<log_line> out;
  if (before <= 1)
    return out;
  auto now = store_->look();
  // The row that holds line `before` - 1 may end behind it.
  auto until = keys::after_task(id);
  if (auto above = now->scan(family::logs, keys::of_task(id, before - 1), until); above->valid())
    until = std::string(above->key()) + '\0';
  else if (auto ok = above->status(); !ok)
    return ok.error();
  auto at = now->scan(family::logs, keys::task(id), until, direction::backward);
  for (; at->valid() && out.size() < limit; at->next()) {
    auto row = log_row::open(at->key(), at->data());
    if (!row)
      return row.error();
    const auto end = std::min(before, row->last() + 1);
    const auto room = limit - out.size();
    auto some = row->lines(end > room ? end - room : 0, end);
    if (!some)
      return some.error();
    std::move(some->rbegin(), some->rend(), std::back_inserter(out));
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  return out;
}

result<lines_found> stored_reader::find_lines(const line_search& what) const {
  lines_found out{.lines = {}, .last = what.after};
  auto now = store_->look();
  auto at = now->scan(family::logs, keys::of_task(what.task, what.after + 1), keys::after_task(what.task));
  const auto full = [&] {
    return out.looked_at >= what.most_looked_at || out.lines.size() >= what.most_found;
  };
  while (at->valid() && !full()) {
    auto row = log_row::open(at->key(), at->data());
    if (!row)
      return row.error();
    const auto begin = std::max(row->first(), out.last + 1);
    const auto end = std::min(row->last() + 1, begin + (what.most_looked_at - out.looked_at));
    if (auto looked = look_through(*row, begin, end, what, out); !looked)
      return looked.error();
    out.looked_at += out.last + 1 - begin;
    if (out.last == row->last())
      at->next();
  }
  if (auto ok = at->status(); !ok)
    return ok.error();
  out.at_end = !at->valid();
  return out;
}

trial_id stored_reader::newest_trial() const {
  auto last =
    greatest_number(*store_->look(), family::rows, keys::tagged('H', std::uint64_t{0}), keys::after('H'));
  return {last ? *last : 0};
}

result<std::vector<committed_fact>> stored_reader::facts_after(std::uint64_t after, std::size_t limit) const {
  return read_facts_after(*store_->look(), after, limit);
}

result<std::vector<std::string>> stored_reader::facts_of(std::string_view entity, std::uint64_t first) const {
  auto now = store_->look();
  std::vector<std::string> facts;
  fact_walk at(*now, entity, first);
  for (; at.valid(); at.next())
    facts.emplace_back(at.data());
  if (auto ok = at.status(); !ok)
    return error{ok.error().code, std::string(entity) + ": " + ok.error().what};
  return facts;
}

result<std::uint64_t> stored_reader::next_of(std::string_view entity) const {
  return stream_length(*store_->look(), entity);
}

result<std::vector<user_changed>> stored_reader::users() const {
  return all_rows<user_changed>(*store_->look(), 'U');
}
result<std::vector<token_changed>> stored_reader::tokens() const {
  return all_rows<token_changed>(*store_->look(), 'R');
}
result<std::vector<setting_changed>> stored_reader::settings() const {
  return all_rows<setting_changed>(*store_->look(), 'S');
}
result<std::optional<configuration_changed>> stored_reader::configuration() const {
  auto rows = all_rows<configuration_changed>(*store_->look(), 'O');
  if (!rows)
    return rows.error();
  return rows->empty() ? std::nullopt : std::optional{std::move(rows->front())};
}

namespace {

template <class Row>
result<std::vector<Row>> rows_that_are_left(const view& of, char tag) {
  auto rows = all_rows<Row>(of, tag);
  if (rows)
    std::erase_if(*rows, [](const Row& one) { return one.deleted; });
  return rows;
}

} // namespace

result<std::vector<workspace_changed>> stored_reader::workspaces() const {
  auto rows = rows_that_are_left<workspace_changed>(*store_->look(), 'W');
  if (rows && (rows->empty() || rows->front().id != workspace_id{1}))
    rows->insert(rows->begin(), uncategorized_workspace());
  return rows;
}
result<std::vector<project_changed>> stored_reader::projects() const {
  auto rows = rows_that_are_left<project_changed>(*store_->look(), 'J');
  if (rows && (rows->empty() || rows->front().id != project_id{1}))
    rows->insert(rows->begin(), uncategorized_project());
  return rows;
}
result<project_changed> reader::project(project_id id) const {
  auto all = projects();
  if (!all)
    return all.error();
  for (auto& one : *all)
    if (one.id == id)
      return std::move(one);
  return error{errc::not_found, "project '" + to_string(id) + "' not found"};
}
result<project_changed> stored_reader::project(project_id id) const {
  const auto what = "project '" + to_string(id) + "'";
  auto row = row_at<project_changed>(*store_->look(), family::rows, keys::tagged('J', id.value), what);
  if (!row && row.error().code == errc::not_found && id == project_id{1})
    return uncategorized_project();
  if (!row && row.error().code != errc::not_found)
    return row.error();
  if (!row || row->deleted)
    return error{errc::not_found, what + " not found"};
  return row;
}
result<workspace_id> stored_reader::former_workspace(experiment_id id) const {
  const auto now = store_->look();
  auto row = row_at<projections::experiment_changing>(*now, family::rows, keys::tagged('E', id.value),
                                                      "experiment " + to_string(id));
  if (!row && row.error().code != errc::not_found)
    return row.error();
  if (!row || row->project || !row->former)
    return workspace_id{};
  auto project = row_at<project_changed>(*now, family::rows, keys::tagged('J', row->former.value),
                                         "project " + to_string(row->former));
  if (project)
    return project->workspace;
  if (project.error().code != errc::not_found)
    return project.error();
  return row->former == project_id{1} ? uncategorized_project().workspace : workspace_id{};
}
result<workspace_id> stored_reader::former_workspace(model_id id) const {
  auto row = row_at<model_changed>(*store_->look(), family::rows, keys::tagged('M', id.value),
                                   "model " + to_string(id));
  if (!row && row.error().code != errc::not_found)
    return row.error();
  return row && row->deleted ? row->workspace : workspace_id{};
}
result<std::vector<template_changed>> stored_reader::templates() const {
  return rows_that_are_left<template_changed>(*store_->look(), 'Q');
}
result<std::vector<model_changed>> stored_reader::models() const {
  return rows_that_are_left<model_changed>(*store_->look(), 'M');
}
result<std::vector<model_version_changed>> stored_reader::model_versions() const {
  return rows_that_are_left<model_version_changed>(*store_->look(), 'V');
}

result<std::vector<std::string>> stored_reader::records(std::string_view tag, std::string_view prefix) const {
  auto now = store_->look();
  const auto from = "Z" + keys::record(tag, prefix);
  auto until = from; // the next prefix of the same length: no name ends with so many bytes 0xff
  while (!until.empty() && static_cast<unsigned char>(until.back()) == 0xff)
    until.pop_back();
  ++until.back();
  return collect<std::string>(
    *now, family::rows, from, until, direction::forward, std::numeric_limits<std::size_t>::max(),
    [](std::string_view, std::string_view bytes) { return unpack<std::string>(bytes); },
    [](const std::string&) { return true; });
}

result<std::optional<kept_snapshot>> stored_reader::snapshot_of(std::string_view entity) const {
  auto bytes = store_->get(family::facts, keys::tagged('n', entity));
  if (!bytes)
    return bytes.error();
  if (!*bytes)
    return std::optional<kept_snapshot>{};
  auto kept = unpack<kept_snapshot>(**bytes);
  if (!kept)
    return error{errc::corrupt, "the snapshot of " + std::string(entity) + ": " + kept.error().what};
  return std::optional{std::move(*kept)};
}

result<std::vector<std::string>> stored_reader::entities(std::string_view kind) const {
  auto now = store_->look();
  std::vector<std::string> names;
  auto until = keys::tagged('f', std::string(kind) + "0"); // '0' is the character after '/'
  for (auto from = keys::tagged('f', std::string(kind) + "/");;) {
    auto at = now->scan(family::facts, from, until);
    if (auto ok = at->status(); !ok)
      return ok.error();
    if (!at->valid())
      break;
    auto key = at->key();
    names.emplace_back(key.substr(1, key.size() - 10)); // tag in front; zero byte and number behind
    from = keys::after_stream(names.back());
  }
  // Shorter numbers are smaller ones.
  std::stable_sort(names.begin(), names.end(),
                   [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  return names;
}

} // namespace troupe::storage

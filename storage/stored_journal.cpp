#include "storage/stored_journal.hpp"
#include "model/hex.hpp"

#include "storage/fact_rows.hpp"
#include "storage/keys.hpp"
#include "storage/log_rows.hpp"
#include "storage/projections/projections.hpp"
#include "storage/rollback.hpp"
#include "storage/stored_reader.hpp"

#include <set>
#include <unordered_map>

#include <sodium.h>

namespace troupe::storage {
namespace {

// Schema 1 had a row for each fact, schema 2 a row for each line of a log. Both are read.
constexpr std::uint64_t schema_version = 3;
constexpr std::size_t cached_rows = 4096;     ///< decoded rows of each type that are kept between commits
constexpr std::size_t cached_cursors = 65536; ///< numbers of each kind that are kept between commits
constexpr std::size_t rebuild_chunk = 4096;   ///< facts that are folded in one write

error with_place(const error& why, const std::string& place) { return {why.code, place + ": " + why.what}; }

class stored_journal : public journal {
public:
  stored_journal(std::shared_ptr<store> over, const journal_options& options)
      : store_(std::move(over)), lane_bytes_(options.lane_bytes), place_(options.directory.string()),
        batch_(store_->make_batch()),
        rows_([s = store_.get()](std::string_view key) { return s->get(family::rows, key); }) {}

  result<void> open(bool rebuild);

  result<void> append(const struct append& x) override;
  result<report_receipt> report(const report_batch& x) override;
  result<void> log(const log_batch& x) override;
  result<void> erase_log(task_id task, bool reports) override;
  result<void> keep_snapshot(const std::string& entity, const kept_snapshot& x) override;
  std::uint64_t log_position(const std::string& source) const override;
  result<std::string> put_blob(std::string_view bytes) override;
  bool dirty() const override { return !pending_.empty() || !changed_marks_.empty() || unsynced_; }
  result<commit_summary> commit() override;
  std::shared_ptr<reader> reads() const override { return reader_; }

private:
  struct log_source {
    std::uint64_t stored = 0, queued = 0;
  };
  struct reached_steps {
    run_id run; ///< the newest run that reported steps; 0: none, or an older build stored it
    std::int64_t steps = 0;
  };
  struct task_cursor {
    std::uint64_t last_row = 0, last_line = 0;
    bool rows_known = false, lines_known = false;
    /// The most steps of reports over HTTP since this cursor was made; 0: there were none. A report of more
    /// steps repeats nothing.
    std::int64_t most_steps = 0;
    reached_steps reached = {}; ///< as stored, or queued
    bool reached_known = false;
  };

  result<std::uint64_t> version(std::string_view key) const;
  result<void> fold_all();
  result<std::uint64_t*> next_of(const std::string& entity, bool may_be_new = false);
  result<std::string> fact_at(const std::string& entity, std::uint64_t number) const;
  result<std::uint64_t*> mark_of(const std::string& key);
  result<void> fence(allocation_id id);
  result<void> number_rows(trial_id trial);
  result<void> read_reached(trial_id trial);
  result<void> check_new(allocation_id by, const report_batch::report& x, const task_cursor& cursor) const;
  result<void> number_lines(task_id task);
  result<void> erase_keys(family where, std::string_view from, std::string_view until, bool as_range);
  result<log_source> position_of(const std::string& source) const;
  std::size_t queued_bytes() const { return batch_->bytes() + facts_.bytes(); }
  void write_commit_index();
  void settle();
  void abandon();

  std::shared_ptr<store> store_;
  std::size_t lane_bytes_;
  std::string place_;
  std::unique_ptr<batch> batch_;
  fact_rows facts_; ///< facts of this commit that are not yet in the batch
  projections::tables rows_;
  std::shared_ptr<stored_reader> reader_;
  std::optional<error> closed_; ///< set by the first write that fails; final

  std::uint64_t sequence_ = 0; ///< number of the newest durable fact among all streams
  std::vector<committed_fact> pending_;
  std::unordered_map<std::string, std::uint64_t>
    next_; ///< number of each stream's next fact; pending facts are counted

  std::unordered_map<std::string, std::uint64_t> marks_; ///< highest number by key; pending ones count
  std::vector<std::string> changed_marks_;
  std::set<task_id> queued_;                ///< tasks with reports or lines in this commit
  std::map<trial_id, reached_steps> steps_; ///< of each trial with queued reports
  bool awaited_ = false; ///< whether a script waits for a queued report; none waits for a sample (group
                         ///< "system"), which alone causes no sync
  std::unordered_map<task_id, task_cursor> cursors_;
  std::size_t report_bytes_ = 0; ///< bytes of queued reports

  std::size_t log_bytes_ = 0; ///< bytes of queued log lines
  bool unsynced_ = false;     ///< whether log lines or a snapshot are queued; they alone cause no sync
  mutable std::unordered_map<std::string, log_source> log_sources_;
  std::vector<std::string> changed_sources_;

  std::string key_;
  msgpack::sbuffer buffer_;
};

// ---- opening

result<std::uint64_t> stored_journal::version(std::string_view key) const {
  auto bytes = store_->get(family::facts, key);
  if (!bytes)
    return bytes.error();
  if (!*bytes)
    return 0;
  if ((*bytes)->size() != 8)
    return error{errc::corrupt, "a version row of " + std::to_string((*bytes)->size()) + " bytes"};
  return keys::last_number(**bytes);
}

result<void> stored_journal::open(bool rebuild) {
  auto schema = version(keys::schema);
  if (!schema)
    return schema.error();
  if (*schema > schema_version)
    return error{errc::unsupported, "the data was written by a newer troupe (schema " +
                                      std::to_string(*schema) + ", this build reads up to " +
                                      std::to_string(schema_version) +
                                      "); run that version, or choose another data directory"};
  auto folded = version(keys::projections);
  if (!folded)
    return folded.error();
  auto newest = greatest_number(*store_->look(), family::facts, keys::tagged('g', 0), keys::after('g'));
  if (!newest)
    return newest.error();
  sequence_ = *newest;
  reader_ = std::make_shared<stored_reader>(store_, sequence_);
  const bool current = *folded == projections::version && !rebuild;
  if (*schema == schema_version && current)
    return {};
  if (auto done = current ? result<void>{} : fold_all(); !done)
    return done.error();
  batch_->put(family::facts, keys::schema, keys::one(schema_version));
  batch_->put(family::facts, keys::projections, keys::one(projections::version));
  auto written = store_->write(*batch_, true);
  batch_->clear();
  return written;
}

/// Folds every row anew. If it is cut short, it starts again at the next opening, because the version of the
/// projections is erased first and written last.
result<void> stored_journal::fold_all() {
  if (!sequence_)
    return {};
  batch_->erase_range(family::facts, keys::projections, std::string(keys::projections) + '\0');
  batch_->erase_range(family::rows, std::string(1, '\0'), std::string(1, '\x7f'));
  for (std::uint64_t at = 0; at < sequence_;) {
    if (auto written = store_->write(*batch_, true); !written)
      return written;
    batch_->clear();
    rows_.settle();
    rows_.forget(cached_rows);
    auto facts = read_facts_after(*store_->look(), at, rebuild_chunk);
    if (!facts)
      return facts.error();
    if (facts->empty())
      return error{errc::corrupt, "facts after " + std::to_string(at) + " are missing"};
    for (const auto& f : *facts) {
      auto decoded = decode(f.bytes);
      if (!decoded)
        return error{decoded.error().code,
                     "fact " + std::to_string(f.number) + " of " + f.entity + ": " + decoded.error().what};
      auto subject = projections::subject_of(f.entity);
      subject.number = f.number;
      projections::fold(*decoded, subject, rows_);
    }
    if (auto fault = rows_.fault())
      return *fault;
    at = facts->back().sequence;
    rows_.write(*batch_);
  }
  if (auto written = store_->write(*batch_, true); !written)
    return written;
  batch_->clear();
  rows_.settle();
  rows_.forget(0);
  return {};
}

// ---- facts

/// `may_be_new` looks for the stream's beginning first, which is faster where there is none.
result<std::uint64_t*> stored_journal::next_of(const std::string& entity, bool may_be_new) {
  auto [at, fresh] = next_.try_emplace(entity, 0);
  if (fresh) {
    const auto now = store_->look();
    if (may_be_new)
      if (auto begin = now->get(family::facts, keys::fact(entity, 0)); begin && !*begin)
        return &at->second;
    auto length = stream_length(*now, entity);
    if (!length) {
      next_.erase(at);
      return length.error();
    }
    at->second = *length;
  }
  return &at->second;
}

result<std::string> stored_journal::fact_at(const std::string& entity, std::uint64_t number) const {
  for (auto at = pending_.rbegin(); at != pending_.rend(); ++at)
    if (at->number == number && at->entity == entity)
      return at->bytes;
  auto stored = storage::fact_at(*store_->look(), entity, number);
  if (stored && !*stored)
    return error{errc::corrupt, "fact " + std::to_string(number) + " of " + entity + " is missing"};
  if (!stored)
    return stored.error();
  return std::move(**stored);
}

result<void> stored_journal::append(const struct append& x) {
  if (closed_)
    return *closed_;
  if (x.entity.empty() || x.entity.size() > 255 || x.entity.find('\0') != std::string::npos)
    return error{errc::invalid, "the name of an entity is 1 to 255 bytes without a zero byte"};
  auto next = next_of(x.entity, x.first == 0);
  if (!next)
    return next.error();
  auto expected = **next;
  if (x.first > expected)
    return error{errc::gap, x.entity + ": append begins at fact " + std::to_string(x.first) + ", expected " +
                              std::to_string(expected)};
  auto repeated = std::min<std::uint64_t>(expected - x.first, x.facts.size());
  for (std::uint64_t i = 0; i < repeated; ++i) {
    auto stored = fact_at(x.entity, x.first + i);
    if (!stored)
      return stored.error();
    if (*stored != x.facts[i])
      return error{errc::gap, x.entity + ": another fact stands at number " + std::to_string(x.first + i) +
                                "; the next free one is " + std::to_string(expected)};
  }
  if (repeated == x.facts.size())
    return {};

  std::size_t bytes = 0;
  std::vector<fact> decoded;
  decoded.reserve(x.facts.size() - repeated);
  for (auto i = repeated; i < x.facts.size(); ++i) {
    auto one = decode(x.facts[i]);
    if (!one)
      return error{one.error().code, x.entity + ": " + one.error().what};
    decoded.push_back(std::move(*one));
    bytes += x.facts[i].size();
  }
  if (auto room = store_->admit(queued_bytes() + bytes); !room)
    return room;

  auto subject = projections::subject_of(x.entity);
  subject.number = expected;
  for (const auto& one : decoded) {
    projections::fold(one, subject, rows_);
    ++subject.number;
    if (const auto* made = std::get_if<task_created>(&one)) // an id that is new has no log lines yet
      cursors_.try_emplace(made->id, task_cursor{0, 0, false, true});
  }
  if (auto fault = rows_.fault()) {
    closed_ = with_place(*fault, place_);
    return *closed_;
  }
  for (auto i = repeated; i < x.facts.size(); ++i) {
    facts_.add(x.entity, expected, x.facts[i]);
    pending_.push_back({sequence_ + pending_.size() + 1, x.entity, expected, x.facts[i]});
    ++expected;
  }
  **next = expected;
  return {};
}

result<void> stored_journal::keep_snapshot(const std::string& entity, const kept_snapshot& x) {
  if (closed_)
    return *closed_;
  auto next = next_of(entity);
  if (!next)
    return next.error();
  if (x.facts > **next)
    return error{errc::gap, entity + ": a snapshot of " + std::to_string(x.facts) +
                              " facts, and its stream has " + std::to_string(**next)};
  if (auto room = store_->admit(queued_bytes() + x.bytes.size()); !room)
    return room;
  batch_->put(family::facts, keys::tagged('n', entity), pack(x));
  unsynced_ = true;
  return {};
}

// ---- reports

result<std::uint64_t*> stored_journal::mark_of(const std::string& key) {
  auto [at, fresh] = marks_.try_emplace(key, 0);
  if (fresh) {
    auto bytes = store_->get(family::facts, key);
    if (!bytes) {
      marks_.erase(at);
      return bytes.error();
    }
    if (*bytes && (*bytes)->size() == 8)
      at->second = keys::last_number(**bytes);
  }
  return &at->second;
}

result<void> stored_journal::fence(allocation_id id) {
  const auto what = std::string(name(id.task.kind())) + " " + to_string(id.task);
  if (!id.task.is_trial())
    return error{errc::conflict, what + " is not a trial; its reports are refused"};
  const auto* task = rows_.tasks.find(id.task);
  if (auto fault = rows_.fault())
    return *fault;
  if (!task)
    return error{errc::conflict, what + " is not known; its reports are refused"};
  if (task->run != id.run)
    return error{errc::conflict, "run " + to_string(id) + " is not the newest run of its trial" +
                                   (task->run ? " (" + to_string(task->run) + ")" : "") +
                                   "; its reports are refused"};
  if (!task->open)
    return error{errc::conflict, "run " + to_string(id) + " has ended; its reports are refused"};
  return {};
}

result<void> stored_journal::number_rows(trial_id trial) {
  auto& cursor = cursors_[trial];
  if (cursor.rows_known)
    return {};
  auto last = greatest_number(*store_->look(), family::series, keys::two(trial.value, 0),
                              keys::two(trial.value + 1, 0));
  if (!last)
    return last.error();
  cursor.last_row = *last;
  cursor.rows_known = true;
  return {};
}

result<void> stored_journal::read_reached(trial_id trial) {
  auto& cursor = cursors_[trial];
  if (cursor.reached_known)
    return {};
  auto bytes = store_->get(family::facts, keys::tagged('r', trial.value));
  if (!bytes)
    return bytes.error();
  if (*bytes && (*bytes)->size() == 16)
    cursor.reached = {{keys::last_number(std::string_view(**bytes).substr(0, 8))},
                      static_cast<std::int64_t>(keys::last_number(**bytes))};
  cursor.reached_known = true;
  return {};
}

/// Fails with errc::invalid where the run has reported one of these metrics in the same group at the same
/// steps. Only the newest rows are looked at, as reports of one step are close to each other.
result<void> stored_journal::check_new(allocation_id by, const report_batch::report& x,
                                       const task_cursor& cursor) const {
  constexpr std::uint64_t around = 8;
  if (x.steps <= 0 || (cursor.most_steps && x.steps > cursor.most_steps))
    return {};
  for (auto row = cursor.last_row; row > 0 && row + around > cursor.last_row; --row) {
    auto bytes = store_->get(family::series, keys::two(by.trial().value, row));
    if (!bytes)
      return bytes.error();
    if (!*bytes)
      continue; // the row is still queued: it belongs to another process of the run
    auto before = unpack<metric_row>(**bytes);
    if (!before)
      return before.error();
    if (before->run != by.run)
      break;
    if (before->group != x.group || before->steps != x.steps)
      continue;
    const auto known = parse_msgpack(before->metrics), told = parse_msgpack(x.metrics);
    if (!known || !told || !known->is_object() || !told->is_object())
      continue;
    for (const auto& [name, ignored] : told->items())
      if (known->contains(name))
        return error{errc::invalid, "trial " + to_string(by.trial()) + " has reported '" +
                                      name.substr(0, 100) + "' of group '" + x.group + "' at step " +
                                      std::to_string(x.steps) +
                                      " already\nhint: report each metric once at a step"};
  }
  return {};
}

result<report_receipt> stored_journal::report(const report_batch& x) {
  if (closed_)
    return *closed_;
  if (!x.first_sequence)
    return error{errc::invalid, "sequence numbers of reports count from 1"};
  auto mark_key = keys::mark(x.allocation, x.rank, x.process);
  auto mark = mark_of(mark_key);
  if (!mark)
    return mark.error();
  const auto known = **mark;
  const auto last = x.first_sequence + x.reports.size() - 1;
  if (x.first_sequence > known + 1)
    return error{errc::gap, "reports of " + to_string(x.allocation) + " rank " + std::to_string(x.rank) +
                              " begin at sequence " + std::to_string(x.first_sequence) + ", expected " +
                              std::to_string(known + 1)};
  if (last <= known) // a repeat gets the same answer as before, whatever has ended meanwhile
    return report_receipt{known, {}};
  if (auto open = fence(x.allocation); !open)
    return open.error();
  const auto skip = static_cast<std::size_t>(known + 1 - x.first_sequence);
  std::size_t bytes = 0;
  for (auto i = skip; i < x.reports.size(); ++i)
    bytes += x.reports[i].metrics.size() + x.reports[i].batches.size() + x.reports[i].group.size() + 48;
  if (report_bytes_ && report_bytes_ + log_bytes_ + bytes > lane_bytes_)
    return error{errc::busy, "the lane of reports is full; try again after the next commit"};
  if (auto room = store_->admit(queued_bytes() + bytes); !room)
    return room.error();
  if (auto numbered = number_rows(x.allocation.trial()); !numbered)
    return numbered.error();
  if (auto known = read_reached(x.allocation.trial()); !known)
    return known.error();

  auto& cursor = cursors_[x.allocation.task];
  if (x.rank < 0) // Over HTTP each report has an answer of its own; the libraries report in batches.
    for (auto i = skip; i < x.reports.size(); ++i) {
      if (auto fine = check_new(x.allocation, x.reports[i], cursor); !fine)
        return fine.error();
      cursor.most_steps = std::max(cursor.most_steps, x.reports[i].steps);
    }

  const auto experiment = rows_.tasks.find(x.allocation.task)->experiment;
  auto& row = cursor.last_row;
  report_receipt receipt{last, {}};
  msgpack::packer<msgpack::sbuffer> packer(buffer_);
  key_.clear();
  keys::add_number(key_, x.allocation.trial().value);
  for (auto i = skip; i < x.reports.size(); ++i) {
    const auto& r = x.reports[i];
    awaited_ = awaited_ || r.group != "system";
    if (r.group.empty())
      continue; // the gateway refused it: it only uses up its number
    if (has_step(r.group, r.steps)) {
      // The first report of a run archives what earlier runs reported above its step.
      auto& reached = cursor.reached;
      reached = {x.allocation.run,
                 reached.run == x.allocation.run ? std::max(reached.steps, r.steps) : r.steps};
      steps_[x.allocation.trial()] = reached;
    }
    key_.resize(8);
    keys::add_number(key_, ++row);
    buffer_.clear();
    packer.pack_array(r.batches.empty() ? 6 : 7); // the fields of a metric_row; the number stands in the key
    packer.pack_uint64(0);
    packer.pack(r.group);
    packer.pack(r.steps);
    packer.pack(x.allocation.run);
    packer.pack(r.at);
    packer.pack_str(static_cast<std::uint32_t>(r.metrics.size()));
    packer.pack_str_body(r.metrics.data(), static_cast<std::uint32_t>(r.metrics.size()));
    if (!r.batches.empty())
      packer.pack(r.batches);
    batch_->put(family::series, key_, {buffer_.data(), buffer_.size()});
    if (r.group == "validation")
      receipt.validations.push_back(
        {experiment, x.allocation, x.rank, x.process, x.first_sequence + i, row, r.steps, r.metrics});
  }
  queued_.insert(x.allocation.task);
  **mark = last;
  changed_marks_.push_back(std::move(mark_key));
  report_bytes_ += bytes;
  return receipt;
}

// ---- logs

result<void> stored_journal::number_lines(task_id task) {
  auto& cursor = cursors_[task];
  if (cursor.lines_known)
    return {};
  auto last = greatest_number(*store_->look(), family::logs, keys::task(task), keys::after_task(task));
  if (!last)
    return last.error();
  cursor.last_line = *last;
  cursor.lines_known = true;
  return {};
}

result<stored_journal::log_source> stored_journal::position_of(const std::string& source) const {
  if (auto found = log_sources_.find(source); found != log_sources_.end())
    return found->second;
  auto bytes = store_->get(family::facts, keys::tagged('l', source));
  if (!bytes)
    return bytes.error();
  auto position = *bytes && (*bytes)->size() == 8 ? keys::last_number(**bytes) : 0;
  return log_sources_[source] = {position, position};
}

std::uint64_t stored_journal::log_position(const std::string& source) const {
  auto position = position_of(source);
  return position ? position->stored : 0;
}

result<void> stored_journal::log(const log_batch& x) {
  if (closed_)
    return *closed_;
  auto position = position_of(x.source);
  if (!position)
    return position.error();
  if (x.position <= position->queued)
    return {};
  std::size_t bytes = 0;
  for (const auto& line : x.lines)
    bytes += line.text.size() + line.agent.size() + 64;
  // Lines take at most half of the lane, so that reports always find room beside them.
  if (log_bytes_ &&
      (log_bytes_ + bytes > lane_bytes_ / 2 || report_bytes_ + log_bytes_ + bytes > lane_bytes_))
    return error{errc::busy, "the lane of log lines is full; try again after the next commit"};
  if (auto room = store_->admit(queued_bytes() + bytes); !room)
    return room;
  if (auto numbered = number_lines(x.task); !numbered)
    return numbered;
  queued_.insert(x.task);
  auto& last = cursors_[x.task].last_line;
  write_log_rows(*batch_, x.task, last + 1, x.lines);
  last += x.lines.size();
  batch_->put(family::facts, keys::tagged('l', x.source), keys::one(x.position));
  log_sources_[x.source].queued = x.position;
  changed_sources_.push_back(x.source);
  log_bytes_ += bytes;
  unsynced_ = true;
  return {};
}

/// Erases a few keys one by one: until compaction, each range that is erased slows every lookup.
result<void> stored_journal::erase_keys(family where, std::string_view from, std::string_view until,
                                        bool as_range) {
  constexpr std::size_t few = 256;
  std::vector<std::string> found;
  if (!as_range) {
    const auto now = store_->look();
    const auto at = now->scan(where, from, until);
    for (; at->valid() && found.size() <= few; at->next())
      found.emplace_back(at->key());
    if (auto ok = at->status(); !ok)
      return ok;
  }
  if (as_range || found.size() > few) {
    batch_->erase_range(where, from, until);
    return {};
  }
  for (const auto& key : found)
    batch_->erase(where, key);
  return {};
}

result<void> stored_journal::erase_log(task_id task, bool reports) {
  if (closed_)
    return *closed_;
  auto from = keys::task(task), until = keys::after_task(task);
  if (auto room = store_->admit(queued_bytes() + from.size() + until.size()); !room)
    return room;
  const bool queued = queued_.contains(task); // only a range also erases what this commit will store
  if (auto ok = erase_keys(family::logs, from, until, queued); !ok)
    return ok;
  if (reports && task.is_trial()) {
    const auto trial = task.trial().value;
    steps_.erase(task.trial());
    if (const auto cursor = cursors_.find(task); cursor != cursors_.end())
      cursor->second.reached = {};
    batch_->erase(family::facts, keys::tagged('r', trial));
    // One by one, as a range must not begin with a key that ends in a number (disk_store.cpp).
    const auto now = store_->look();
    const auto former = now->scan(family::rows, keys::tagged('G', trial), keys::tagged('G', trial + 1));
    for (; former->valid(); former->next())
      batch_->erase(family::rows, former->key());
    if (auto ok = former->status(); !ok)
      return ok;
    if (auto ok = erase_keys(family::series, keys::one(task.trial().value), keys::one(task.trial().value + 1),
                             queued);
        !ok)
      return ok;
  }
  unsynced_ = true;
  return {};
}

// ---- blobs

result<std::string> stored_journal::put_blob(std::string_view bytes) {
  if (closed_)
    return *closed_;
  unsigned char digest[32];
  crypto_generichash(digest, sizeof digest, reinterpret_cast<const unsigned char*>(bytes.data()),
                     bytes.size(), nullptr, 0);
  auto name = hex({reinterpret_cast<const char*>(digest), sizeof digest});
  if (auto room = store_->admit(queued_bytes() + bytes.size()); !room)
    return room.error();
  if (auto kept = store_->put_blob(name, bytes); !kept)
    return kept.error();
  return name;
}

// ---- commit

void stored_journal::write_commit_index() {
  if (pending_.empty())
    return;
  std::vector<commit_part> parts;
  for (const auto& f : pending_) {
    if (parts.empty() || parts.back().entity != f.entity)
      parts.push_back({f.entity, f.number, 0});
    ++parts.back().count;
  }
  buffer_.clear();
  msgpack::pack(buffer_, parts);
  batch_->put(family::facts, keys::tagged('g', pending_.back().sequence), {buffer_.data(), buffer_.size()});
}

result<commit_summary> stored_journal::commit() {
  if (closed_)
    return *closed_;
  if (!dirty())
    return commit_summary{sequence_, {}};
  const bool sync = !pending_.empty() || awaited_;
  if (auto room = store_->admit(queued_bytes()); !room) {
    abandon();
    return room.error();
  }
  facts_.write(*batch_);
  write_commit_index();
  for (const auto& key : changed_marks_)
    batch_->put(family::facts, key, keys::one(marks_.at(key)));
  for (const auto& [trial, reached] : steps_)
    batch_->put(family::facts, keys::tagged('r', trial.value),
                keys::two(reached.run.value, static_cast<std::uint64_t>(reached.steps)));
  rows_.write(*batch_);

  if (auto written = store_->write(*batch_, sync); !written) {
    if (written.error().code != errc::no_space)
      closed_ = with_place(written.error(), place_);
    abandon();
    return written.error();
  }
  if (!pending_.empty())
    sequence_ = pending_.back().sequence;
  commit_summary summary{sequence_, std::move(pending_)};
  std::vector<experiment_standing> changed;
  rows_.experiment_states.each_changed(
    [&](experiment_id id, const auto& row) { changed.push_back(projections::standing_of(id, row)); });
  reader_->note(changed);
  std::vector<trial_id> trials;
  rows_.trials.each_changed([&](trial_id id, const auto&) { trials.push_back(id); });
  rows_.trial_states.each_changed([&](trial_id id, const auto&) { trials.push_back(id); });
  if (!trials.empty())
    reader_->note(trials);
  trials.clear();
  for (const auto& [trial, reached] : steps_)
    trials.push_back(trial);
  if (!trials.empty())
    reader_->note_reports(trials);
  settle();
  reader_->advance(sequence_);
  return summary;
}

/// Called when everything queued is durable: starts the next group with bounded caches.
void stored_journal::settle() {
  for (const auto& source : changed_sources_) {
    auto& position = log_sources_.at(source);
    position.stored = position.queued;
  }
  pending_.clear();
  changed_marks_.clear();
  queued_.clear();
  steps_.clear();
  awaited_ = false;
  changed_sources_.clear();
  report_bytes_ = log_bytes_ = 0;
  unsynced_ = false;
  batch_->clear();
  facts_.clear();
  rows_.settle();
  rows_.forget(cached_rows);
  if (next_.size() > cached_cursors)
    next_.clear();
  if (marks_.size() > cached_cursors)
    marks_.clear();
  if (cursors_.size() > cached_cursors)
    cursors_.clear();
  if (log_sources_.size() > cached_cursors)
    log_sources_.clear();
}

/// Called when nothing queued is durable or ever will be: tells those who queued it, and reads its state
/// anew.
void stored_journal::abandon() {
  changed_sources_.clear();
  settle();
  rows_.forget(0);
  next_.clear();
  marks_.clear();
  cursors_.clear();
  log_sources_.clear();
}

} // namespace

result<std::unique_ptr<journal>> make_journal(std::shared_ptr<store> over, const journal_options& options) {
  auto made = std::make_unique<stored_journal>(std::move(over), options);
  if (auto opened = made->open(options.rebuild_projections); !opened)
    return with_place(opened.error(), options.directory.string());
  return std::unique_ptr<journal>(std::move(made));
}

std::unique_ptr<journal> make_memory_journal() {
  journal_options options;
  options.directory = "memory";
  auto made = make_journal(make_memory_store(), options);
  return std::move(made.value());
}

} // namespace troupe::storage

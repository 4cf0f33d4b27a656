#pragma once
// The journal's contract in memory: numbered streams, gaps refused, group commits that take time, reports
// with a high-water mark and fencing. A crash loses what is queued; the group that is being written may
// survive.

#include "test/sim/actors/world.hpp"

#include <deque>

namespace troupe::sim {

struct report_row {
  allocation_id allocation;
  std::string process;
  std::uint64_t sequence = 0;
  std::int64_t steps = 0;
  std::string metrics;
};

class fake_journal {
public:
  explicit fake_journal(world& w) : w_(w) {}
  using streams = std::map<std::string, std::vector<std::string>, std::less<>>;
  using rows = std::map<trial_id, std::vector<report_row>>;

  /// The newest snapshot of an entity; it is durable at once.
  struct snapshot {
    std::uint64_t facts = 0;
    std::string machine;
    std::vector<searchers::search_event> heard;
  };
  std::map<std::string, snapshot, std::less<>> snapshots;

  const streams& facts() const { return durable_; }
  const std::vector<std::string>& facts_of(const std::string& entity) const {
    static const std::vector<std::string> none;
    auto it = durable_.find(entity);
    return it == durable_.end() ? none : it->second;
  }
  const rows& reports() const { return durable_rows_; }

  /// Appends facts; false on a gap or an overlap. `done` runs once the facts are durable.
  bool append(const std::string& entity, std::uint64_t first, std::vector<std::string> facts,
              std::function<void()> done) {
    auto& next = next_.try_emplace(entity, facts_of(entity).size()).first->second;
    if (first != next)
      return false;
    next += facts.size();
    for (const auto& bytes : facts)
      fence(entity, bytes);
    queue_.push_back({entity, std::move(facts), {}, {}, std::move(done)});
    commit_soon();
    return true;
  }

  enum class received { stored, repeat, fenced };
  /// Takes a report. `done(row number)` runs once the report is durable, and at once for a repeat of a
  /// durable one.
  received report(report_row row, std::function<void(std::uint64_t)> done) {
    auto open = open_.find(row.allocation.trial());
    auto key = std::pair{row.allocation, row.process};
    auto& mark = marks_[key];
    if (row.sequence <= mark) {
      queue_.push_back({{}, {}, {}, std::move(done), {}});
      commit_soon();
      return received::repeat;
    }
    if (open == open_.end() || open->second != row.allocation.run)
      return received::fenced;
    if (row.sequence != mark + 1)
      fail("the library sent report " + std::to_string(row.sequence) + " after " + std::to_string(mark));
    mark = row.sequence;
    queue_.push_back({{}, {}, std::move(row), std::move(done), {}});
    commit_soon();
    return received::stored;
  }

  void crash() {
    ++life_;
    if (committing_ && w_.random.chance(0.5))
      write(committing_); // the group reached the disk, but nobody was told
    committing_ = 0;
    queue_.clear();
    next_.clear();
    open_.clear();
    marks_.clear();
    for (const auto& [entity, facts] : durable_)
      for (const auto& bytes : facts)
        fence(entity, bytes);
    for (const auto& [trial, list] : durable_rows_)
      for (const auto& row : list)
        marks_[{row.allocation, row.process}] = row.sequence;
  }

private:
  struct entry {
    std::string entity;
    std::vector<std::string> facts;
    std::optional<report_row> row;
    std::function<void(std::uint64_t)> reported;
    std::function<void()> appended;
  };

  /// Notes which run of a trial may report: the open one, by the facts that are queued.
  void fence(const std::string& entity, const std::string& bytes) {
    if (!entity.starts_with("trial/"))
      return;
    auto trial = parse_id<trial_id>(std::string_view(entity).substr(6));
    auto fact = decode_as<trial_fact>(bytes);
    if (auto* started = std::get_if<run_started>(&*fact))
      open_[trial] = started->run;
    else if (std::holds_alternative<run_ended>(*fact))
      open_.erase(trial);
  }

  void commit_soon() {
    if (committing_ || scheduled_)
      return;
    scheduled_ = true;
    w_.clock.at(w_.now() + 10us, [this, life = life_] {
      scheduled_ = false;
      if (life == life_)
        begin_commit();
      else if (!queue_.empty())
        commit_soon();
    });
  }

  void begin_commit() {
    if (committing_ || queue_.empty())
      return;
    committing_ = queue_.size();
    w_.clock.at(w_.now() + w_.between(100us, w_.plan.most_commit), [this, life = life_] {
      if (life != life_)
        return;
      auto told = write(std::exchange(committing_, 0));
      for (auto& tell : told)
        tell();
      if (!queue_.empty())
        begin_commit();
    });
  }

  /// Makes the first `count` entries durable; returns the callbacks of their senders.
  std::vector<std::function<void()>> write(std::size_t count) {
    std::vector<std::function<void()>> told;
    for (; count > 0; --count) {
      auto x = std::move(queue_.front());
      queue_.pop_front();
      std::uint64_t number = 0;
      if (!x.entity.empty()) {
        auto& stream = durable_[x.entity];
        stream.insert(stream.end(), x.facts.begin(), x.facts.end());
      }
      if (x.row) {
        auto& list = durable_rows_[x.row->allocation.trial()];
        list.push_back(*x.row);
        number = list.size();
      }
      if (x.appended)
        told.push_back(std::move(x.appended));
      if (x.reported)
        told.push_back([number, reported = std::move(x.reported)] { reported(number); });
    }
    return told;
  }

  world& w_;
  int life_ = 0;
  std::size_t committing_ = 0; ///< number of entries in the group that is being written
  bool scheduled_ = false;
  std::deque<entry> queue_;
  streams durable_;
  rows durable_rows_;
  std::map<std::string, std::uint64_t, std::less<>> next_;
  std::map<trial_id, run_id> open_;
  std::map<std::pair<allocation_id, std::string>, std::uint64_t> marks_;
};

} // namespace troupe::sim

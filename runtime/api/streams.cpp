#include "runtime/api/streams.hpp"

#include "runtime/api/errors.hpp"
#include "runtime/api/fact_shape.hpp"
#include "runtime/api/line_pattern.hpp"
#include "runtime/api/listing.hpp"
#include "runtime/api/log_shape.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/api/veil.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

namespace troupe::api {
namespace {

constexpr std::size_t batch = 256, batch_bytes = 256u << 10;
/// Number of batches that a filter may drop before other connections have their turn.
constexpr int batches_at_once = 16;
constexpr duration heartbeat = 15s;

class events : public body_stream {
public:
  events(std::shared_ptr<storage::reader> storage, std::uint64_t after, event_filter keep)
      : storage_(std::move(storage)), after_(after), keep_(std::move(keep)),
        since_(keep_.since == time_point{} ? std::string() : to_rfc3339(keep_.since)),
        screen_(dynamic_cast<const screen*>(storage_.get())), rights_(screen_ ? screen_->rights() : 0),
        was_seen_(screen_ && is_seen()) {}

  result<piece> next(time_point now) override {
    piece out;
    if (const auto rights = screen_ ? screen_->rights() : 0; rights != rights_) {
      rights_ = rights;
      out.last = was_seen_ && !is_seen();
      if (out.last)
        return out;
    }
    bool more = true;
    for (int i = 0; more && out.bytes.empty(); ++i) {
      if (i == batches_at_once) {
        out.pause = duration{0};
        return out;
      }
      const auto newest = storage_->sequence(); // read before the facts, or a fact in between could be missed
      auto facts = storage_->facts_after(after_, batch);
      if (!facts)
        return facts.error();
      for (const auto& one : *facts) {
        after_ = one.sequence;
        if ((!keep_.until || after_ <= keep_.until) && (!keep_.tells || keep_.tells(one)))
          add(one, out.bytes);
      }
      more = facts->size() == batch;
      if (keep_.until) { // the last facts may be hidden from the reader; then none follows
        out.last = after_ >= keep_.until || (facts->empty() && newest >= keep_.until);
        more = !out.last && !facts->empty();
      }
    }
    if (!said_hello_) // tells the client at once that the stream has begun
      out.bytes.insert(0, ": troupe\n\n");
    said_hello_ = true;
    if (!out.bytes.empty())
      last_sent_ = now;
    else if (now - last_sent_ >= heartbeat) {
      out.bytes = ": alive\n\n";
      last_sent_ = now;
    } else
      out.pause = heartbeat - (now - last_sent_);
    return out;
  }

private:
  /// Whether the viewer sees the thing that the stream was asked for; true where it is none that has rights.
  bool is_seen() const {
    if (keep_.experiment && !storage_->experiment(keep_.experiment))
      return false;
    const auto slash = keep_.entity.find('/');
    if (slash == keep_.entity.npos)
      return true;
    const std::string_view kind(keep_.entity.data(), slash);
    const auto id = keep_.entity.substr(slash + 1);
    if (kind == "experiment")
      return bool(storage_->experiment(parse_id<experiment_id>(id)));
    if (kind == "trial" || kind == "task")
      return bool(storage_->task(named_task(id)));
    if (kind == "allocation")
      return bool(storage_->task(parse_allocation(id).task));
    return true;
  }

  void add(const storage::committed_fact& one, std::string& out) {
    const bool other_stream = !keep_.entity.empty() && one.entity != keep_.entity;
    if (other_stream && one.entity != cluster_entity)
      return;
    // Before the fact is shaped, which takes far longer.
    if (keep_.experiment && one.entity != cluster_entity &&
        experiment_of(one, {}, *storage_, experiments_) != keep_.experiment)
      return;
    auto shape = fact_shape(one);
    if (other_stream && (!shape || shape->at("entity") != keep_.entity))
      return;
    if (!shape) // a newer version wrote the fact, so only its place is shown
      shape = value{{"sequence", one.sequence},
                    {"entity", one.entity},
                    {"number", one.number},
                    {"type", "unknown"},
                    {"at", ""}};
    auto experiment = experiment_of(one, *shape, *storage_, experiments_);
    if (keep_.experiment && experiment != keep_.experiment)
      return;
    if (keep_.audit && shape->value("by", std::string()).empty())
      return;
    if (!since_.empty() && shape->at("at").get<std::string>() < since_)
      return;
    if (experiment)
      (*shape)["experiment"] = experiment.value;
    out += "id: " + std::to_string(one.sequence) + "\nevent: " + shape->at("type").get<std::string>() +
           "\ndata: " + to_json(*shape) + "\n\n";
  }

  std::shared_ptr<storage::reader> storage_;
  std::uint64_t after_;
  event_filter keep_;
  std::string since_; ///< in the form of times in facts, so that texts can be compared
  std::map<task_id, experiment_id> experiments_;
  const screen* screen_; ///< null where roles decide nothing
  std::uint64_t rights_; ///< as of the last look
  const bool was_seen_;  ///< what the stream was asked for; the stream ends once it is not seen any more
  time_point last_sent_;
  bool said_hello_ = false;
};

class logs : public body_stream {
public:
  logs(std::shared_ptr<storage::reader> storage, log_request what)
      : storage_(std::move(storage)), what_(std::move(what)) {
    if (what_.newest_first)
      at_ = std::numeric_limits<std::uint64_t>::max();
  }

  result<piece> next(time_point) override {
    piece out;
    std::optional<task_row> task; // read before the lines, or its last lines could be missed
    if (what_.follow) {
      auto row = storage_->task(what_.task);
      if (!row)
        return row.error();
      task = std::move(*row);
    }
    int batches = 0;
    for (bool more = true; more && out.bytes.empty();) {
      if (batches++ == batches_at_once) {
        out.pause = duration{0};
        return out;
      }
      auto lines = what_.newest_first ? storage_->logs_before(what_.task, at_, batch)
                                      : storage_->logs(what_.task, at_, batch);
      if (!lines)
        return lines.error();
      for (const auto& line : *lines) {
        at_ = what_.newest_first ? std::min(at_, line.number) : line.number;
        if (what_.keep && !what_.keep(line))
          continue;
        out.bytes += to_json({{"result", what_.shape(line)}}) + "\n";
        if (++sent_ == what_.limit && what_.limit != 0) {
          out.last = true;
          return out;
        }
      }
      more = lines->size() == batch;
    }
    if (out.bytes.empty())
      out.last = !task || task->ended != time_point{}; // an exit is reported after all lines: decision 008
    return out;
  }

private:
  std::shared_ptr<storage::reader> storage_;
  log_request what_;
  std::uint64_t at_ = 0, sent_ = 0;
};

/// The values that filters of a log can take.
class log_fields : public body_stream {
public:
  log_fields(std::shared_ptr<storage::reader> storage, task_id of, bool follow,
             std::function<bool(const log_line&)> keep)
      : storage_(std::move(storage)), of_(of), follow_(follow), keep_(std::move(keep)) {}

  result<piece> next(time_point) override {
    piece out;
    auto task = storage_->task(of_); // read before the lines, or its last lines could be missed
    if (!task)
      return task.error();
    int batches = 0;
    for (bool more = true; more;) {
      if (batches++ == batches_at_once) {
        out.pause = duration{0};
        return out;
      }
      auto lines = storage_->logs(of_, at_, batch);
      if (!lines)
        return lines.error();
      for (const auto& line : *lines)
        note(line);
      more = lines->size() == batch;
    }
    if (std::exchange(changed_, false))
      out.bytes = to_json({{"result",
                            {{"agentIds", agents_},
                             {"containerIds", value::array()},
                             {"rankIds", ranks_},
                             {"sources", sources_},
                             {"stdtypes", types_}}}}) +
                  "\n";
    out.last = !follow_ || task->ended != time_point{};
    return out;
  }

private:
  void note(const log_line& line) {
    at_ = line.number;
    if (keep_ && !keep_(line))
      return;
    const auto added = [&](auto& to, const auto& x) { changed_ |= to.insert(x).second; };
    added(agents_, line.agent);
    if (has_rank(line))
      added(ranks_, line.rank);
    added(types_, line.stream);
    added(sources_, line.stream == "troupe" ? "master" : "task");
  }

  std::shared_ptr<storage::reader> storage_;
  const task_id of_;
  const bool follow_;
  const std::function<bool(const log_line&)> keep_;
  std::uint64_t at_ = 0;
  bool changed_ = true; ///< the values have changed since they were sent
  std::set<std::string> agents_, types_, sources_;
  std::set<int> ranks_;
};

class metrics : public body_stream {
public:
  metrics(std::shared_ptr<storage::reader> storage, metric_request what)
      : storage_(std::move(storage)), what_(std::move(what)), after_(what_.after) {}

  result<piece> next(time_point) override {
    piece out;
    if (array() && !std::exchange(opened_, true))
      out.bytes = "[";
    for (; index_ < what_.trials.size(); ++index_, after_ = what_.after) {
      auto trial = storage_->trial(what_.trials[index_]);
      if (!trial)
        return failed(trial.error());
      auto gone = what_.columns->rollback(*trial, *storage_);
      if (!gone)
        return failed(gone.error());
      for (bool more = true; more;) {
        const auto want = what_.limit == 0 ? batch : std::min<std::uint64_t>(batch, what_.limit - sent_);
        auto rows = storage_->metrics(trial->id, after_, want, what_.group);
        if (!rows)
          return failed(rows.error());
        add(*rows, trial->id, **gone, out.bytes);
        more = rows->size() == want && !(what_.limit != 0 && sent_ >= what_.limit);
        if (more && out.bytes.size() >= batch_bytes)
          return out;
      }
      if (what_.follow && !terminal(trial->state))
        return out;
    }
    if (array())
      out.bytes += "]";
    out.last = true;
    return out;
  }

private:
  bool array() const { return what_.as == metric_request::form::array; }
  bool in_batches() const { return what_.as == metric_request::form::lines_of_batches; }

  /// The end of the body after an error. A reader of lines gets a line with the error; a reader of an array
  /// notices the missing end.
  result<piece> failed(const error& why) {
    if (array())
      return why;
    return piece{.bytes = stream_error_line(why), .last = true, .pause = {}};
  }

  void add(const std::vector<metric_row>& rows, trial_id trial, const storage::rollback& gone,
           std::string& out) {
    value list = value::array();
    std::vector<metric_row> steps;
    for (const auto& row : rows) {
      after_ = row.row;
      ++sent_;
      if (in_batches() && gone.archives(row))
        continue;
      if (!steps.empty() && of_one_step(steps.back(), row))
        join_step(steps.back(), row);
      else
        steps.push_back(row);
    }
    for (const auto& row : steps) {
      auto shape = metric_report_shape(row, trial, gone.archives(row), in_batches());
      if (in_batches())
        list.push_back(std::move(shape));
      else if (array())
        out += (std::exchange(some_, true) ? ",\n" : "") + to_json(shape);
      else
        out += to_json(shape) + "\n";
    }
    if (!list.empty())
      out += to_json({{"result", {{"metrics", std::move(list)}}}}) + "\n";
  }

  std::shared_ptr<storage::reader> storage_;
  metric_request what_;
  std::size_t index_ = 0;
  std::uint64_t after_, sent_ = 0;
  bool opened_ = false, some_ = false;
};

std::vector<std::string> owned(const std::vector<std::string_view>& texts) {
  return {texts.begin(), texts.end()};
}

} // namespace

std::unique_ptr<body_stream> event_stream(std::shared_ptr<storage::reader> storage, std::uint64_t after,
                                          event_filter keep) {
  return std::make_unique<events>(std::move(storage), after, std::move(keep));
}
std::unique_ptr<body_stream> log_stream(std::shared_ptr<storage::reader> storage, log_request what) {
  return std::make_unique<logs>(std::move(storage), std::move(what));
}
std::unique_ptr<body_stream> log_field_stream(std::shared_ptr<storage::reader> storage, task_id of,
                                              bool follow, std::function<bool(const log_line&)> keep) {
  return std::make_unique<log_fields>(std::move(storage), of, follow, std::move(keep));
}
std::unique_ptr<body_stream> metric_stream(std::shared_ptr<storage::reader> storage, metric_request what) {
  return std::make_unique<metrics>(std::move(storage), std::move(what));
}

namespace {

/// Reads a time of the query; nullopt where the query lacks it.
result<std::optional<time_point>> asked_time(const query_list& query, const char* name) {
  const auto text = query.first(name);
  if (text.empty())
    return std::optional<time_point>();
  const auto at = from_rfc3339(text);
  if (!at)
    return error{errc::invalid,
                 std::string(name) + " has to be a time as RFC 3339 writes them, as 2026-11-27T14:00:00Z"};
  return at;
}

} // namespace

result<log_request> log_request_of(const query_list& query) {
  log_request what;
  what.follow = query.flag("follow");
  auto limit = query.number("limit", 0);
  if (!limit)
    return limit.error();
  if (*limit < 0)
    return error{errc::invalid, "limit has to be 0 or more"};
  if (*limit > 0 && what.follow)
    return error{errc::invalid, "limit and follow exclude each other"};
  auto pattern = line_pattern::make(std::string(query.first("searchText")), query.flag("enableRegex"));
  if (!pattern)
    return pattern.error();
  what.limit = static_cast<std::uint64_t>(*limit);
  what.newest_first = is_descending(query);
  if (what.newest_first && what.follow)
    return error{errc::invalid, "the newest line first and follow exclude each other"};
  std::vector<int> ranks;
  for (const auto rank : query.every("rankIds")) {
    int number = 0;
    const auto [end, bad] = std::from_chars(rank.data(), rank.data() + rank.size(), number);
    if (bad != std::errc() || end != rank.data() + rank.size())
      return error{errc::invalid, "rankIds: '" + std::string(rank.substr(0, 50)) + "' is not a number"};
    ranks.push_back(number);
  }
  const auto before = asked_time(query, "timestampBefore"), after = asked_time(query, "timestampAfter");
  if (!before || !after)
    return before ? after.error() : before.error();
  what.keep = [agents = owned(query.every("agentIds")), ranks = std::move(ranks),
               levels = owned(query.every("levels")), types = owned(query.every("stdtypes")),
               sources = owned(query.every("sources")), containers = owned(query.every("containerIds")),
               allocations = owned(query.every("allocationIds")), pattern = std::move(*pattern),
               before = *before, after = *after](const log_line& line) {
    const auto in = [](const auto& wanted, const auto& own) {
      return wanted.empty() || std::find(wanted.begin(), wanted.end(), own) != wanted.end();
    };
    const auto allocation_wanted = [&] {
      return allocations.empty() || std::any_of(allocations.begin(), allocations.end(), [&](const auto& a) {
               return named_allocation(a) == line.allocation;
             });
    };
    const int rank = has_rank(line) ? line.rank : -1;
    return in(agents, line.agent) && in(ranks, rank) && in(levels, level_name(line.level)) &&
           in(types, line.stream) && in(sources, line.stream == "troupe" ? "master" : "task") &&
           containers.empty() && allocation_wanted() && pattern.in(line.text) &&
           (!before || line.at <= *before) && (!after || line.at > *after);
  };
  return what;
}

} // namespace troupe::api

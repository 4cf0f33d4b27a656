// Routes that read logs: lines around any place, and a search through many logs.

#include "runtime/api/errors.hpp"
#include "runtime/api/line_pattern.hpp"
#include "runtime/api/log_shape.hpp"
#include "runtime/api/route.hpp"
#include "storage/log_search.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace troupe::api {
namespace {

constexpr std::int64_t most_lines = 5000;
constexpr std::size_t batch = 64'000, hits_at_once = 1000;

/// The numbers of the oldest and the newest line; 0 where the log is empty.
result<std::pair<std::uint64_t, std::uint64_t>> ends_of(trial_id id, const storage::reader& storage) {
  auto first = storage.logs(id, 0, 1);
  auto last = storage.logs_before(id, std::numeric_limits<std::uint64_t>::max(), 1);
  if (!first)
    return first.error();
  if (!last)
    return last.error();
  if (first->empty() || last->empty())
    return std::pair<std::uint64_t, std::uint64_t>{0, 0};
  return std::pair{first->front().number, last->front().number};
}

result<value> lines(const call& c) {
  auto row = named_trial(c);
  if (!row)
    return row.error();
  auto from = c.query.number("from", 0), limit = c.query.number("limit", 500);
  for (const auto* one : {&from, &limit})
    if (!*one)
      return one->error();
  if (*from < 0 || *limit < 1 || *limit > most_lines)
    return error{errc::invalid, "from has to be a line, and limit 1 to 5000"};
  auto ends = ends_of(row->id, *c.parts->storage);
  if (!ends)
    return ends.error();
  const auto count = static_cast<std::size_t>(*limit);
  // Without `from` the last lines are read.
  auto some = c.query.has("from")
                ? c.parts->storage->logs(
                    row->id, static_cast<std::uint64_t>(std::max<std::int64_t>(*from - 1, 0)), count)
                : c.parts->storage->logs_before(row->id, std::numeric_limits<std::uint64_t>::max(), count);
  if (!some)
    return some.error();
  std::sort(some->begin(), some->end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  value list = value::array();
  for (const auto& line : *some)
    list.push_back(log_shape(line));
  return value{{"first", ends->first}, {"last", ends->second}, {"lines", std::move(list)}};
}

/// Searches the logs of some trials, one batch of lines at a time.
class search : public body_stream {
public:
  search(std::shared_ptr<const services> parts, std::vector<trial_id> of, line_pattern pattern,
         std::vector<std::string> levels, std::vector<std::string> ranks, std::uint64_t limit,
         trial_id after_trial, std::uint64_t after_line)
      : parts_(std::move(parts)), of_(std::move(of)), pattern_(std::move(pattern)),
        levels_(std::move(levels)), ranks_(std::move(ranks)), limit_(limit), line_(after_line) {
    while (index_ < of_.size() && of_[index_] < after_trial)
      ++index_;
    if (index_ < of_.size() && of_[index_] != after_trial)
      line_ = 0;
  }

  result<piece> next(time_point) override {
    piece out;
    for (std::size_t left = batch; index_ < of_.size() && out.bytes.empty();) {
      if (left == 0) { // lets other connections have their turn
        out.pause = duration{0};
        return out;
      }
      const auto most = std::min<std::uint64_t>(hits_at_once, limit_ - hits_);
      const auto next = [this](std::string_view texts, std::size_t from) {
        return pattern_.next(texts, from);
      };
      auto found = storage::find_lines(*parts_->storage, {of_[index_], line_, next, left, most});
      if (!found)
        return found.error();
      for (const auto& line : found->lines)
        hits_ += add(line, out.bytes);
      left -= std::min<std::size_t>(
        left, std::max<std::uint64_t>(found->looked_at, 200)); // opening a log costs time as well
      scanned_ += found->looked_at;
      line_ = found->last;
      if (hits_ == limit_) {
        finish(out, true);
        return out;
      }
      if (found->at_end) {
        ++index_;
        line_ = 0;
      }
    }
    if (index_ >= of_.size())
      finish(out, false);
    return out;
  }

private:
  bool add(const log_line& line, std::string& out) const {
    const auto in = [](const std::vector<std::string>& wanted, const std::string& own) {
      return wanted.empty() || std::find(wanted.begin(), wanted.end(), own) != wanted.end();
    };
    if (!in(levels_, line.level) || !in(ranks_, std::to_string(line.rank)))
      return false;
    if (!pattern_.in(line.text))
      return false;
    value spans = value::array();
    for (const auto& [begin, end] : pattern_.spans(line.text))
      spans.push_back({begin, end});
    auto shape = log_shape(line);
    shape["trial"] = of_[index_].value;
    shape["spans"] = std::move(spans);
    out += to_json({{"result", std::move(shape)}}) + "\n";
    return true;
  }

  void finish(piece& out, bool cut) const {
    value end = {{"scanned", scanned_}, {"hits", hits_}, {"after", nullptr}};
    if (cut)
      end["after"] = to_string(of_[index_]) + ":" + std::to_string(line_);
    out.bytes += to_json({{"end", std::move(end)}}) + "\n";
    out.last = true;
  }

  std::shared_ptr<const services> parts_;
  std::vector<trial_id> of_;
  line_pattern pattern_;
  std::vector<std::string> levels_, ranks_;
  std::uint64_t limit_, line_ = 0, scanned_ = 0, hits_ = 0;
  std::size_t index_ = 0;
};

/// The elements of the query's lists under `name`, separated by commas or given one by one.
std::vector<std::string> named_in(const call& c, std::string_view name) {
  std::vector<std::string> all;
  for (const auto text : c.query.every(name))
    for (auto& one : list_elements(text))
      all.push_back(std::move(one));
  return all;
}

result<std::vector<trial_id>> searched_trials(const call& c) {
  std::vector<trial_id> all;
  if (auto text = c.query.first("trial"); !text.empty()) {
    auto row = trial_of(c, text);
    return row ? result<std::vector<trial_id>>(std::vector{row->id}) : row.error();
  }
  auto standings = c.parts->storage->experiment_standings();
  if (!standings)
    return standings.error();
  std::set<experiment_id> wanted; // empty: all experiments
  for (const auto& text : named_in(c, "experiment")) {
    const auto id = parse_id<experiment_id>(text);
    if (!id || std::none_of(standings->begin(), standings->end(), [&](const auto& x) { return x.id == id; }))
      return error{errc::not_found, "experiment '" + text.substr(0, 100) + "' not found"};
    wanted.insert(id);
  }
  for (const auto& one : *standings) {
    if (!wanted.empty() && !wanted.contains(one.id))
      continue;
    auto rows = c.parts->storage->trials(one.id);
    if (!rows)
      return rows.error();
    for (const auto& t : *rows)
      all.push_back(t.id);
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// The wanted levels. The query may write them in any case and with Determined's prefix. UNSPECIFIED stands
/// for lines without a level.
result<std::vector<std::string>> wanted_levels(const call& c) {
  auto all = named_in(c, "levels");
  for (auto& one : all) {
    auto level = one;
    std::transform(level.begin(), level.end(), level.begin(),
                   [](char x) { return x >= 'a' && x <= 'z' ? static_cast<char>(x - 'a' + 'A') : x; });
    if (level.starts_with("LOG_LEVEL_"))
      level.erase(0, std::string_view("LOG_LEVEL_").size());
    if (level == "UNSPECIFIED")
      level.clear();
    else if (const auto known = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
             std::find(known.begin(), known.end(), level) == known.end())
      return error{errc::invalid, "'" + one.substr(0, 100) +
                                    "' is not a level; there are DEBUG, INFO, WARNING, ERROR, CRITICAL "
                                    "and UNSPECIFIED"};
    one = std::move(level);
  }
  return all;
}

result<std::vector<std::string>> wanted_ranks(const call& c) {
  auto all = named_in(c, "ranks");
  for (const auto& one : all)
    if (one.empty() || one.size() > 9 || one.find_first_not_of("0123456789") != one.npos)
      return error{errc::invalid, "'" + one.substr(0, 100) + "' is not a rank"};
  return all;
}

result<response> search_logs(const call& c) {
  const auto text = std::string(c.query.first("q"));
  if (text.empty())
    return error{errc::invalid, "q is missing: the text to look for"};
  auto pattern = line_pattern::make(text, c.query.flag("regex"));
  if (!pattern)
    return pattern.error();
  auto limit = c.query.number("limit", 1000);
  if (!limit)
    return limit.error();
  if (*limit < 1 || *limit > 100'000)
    return error{errc::invalid, "limit has to be 1 to 100000"};
  trial_id after_trial;
  std::uint64_t after_line = 0;
  if (const auto after = c.query.first("after"); !after.empty()) {
    const auto colon = after.find(':');
    after_trial = parse_id<trial_id>(after.substr(0, colon));
    if (!after_trial || colon == after.npos)
      return error{errc::invalid, "after has to be what the last answer's end said, as 12:345"};
    after_line = parse_id<trial_id>(after.substr(colon + 1)).value;
  }
  auto levels = wanted_levels(c), ranks = wanted_ranks(c);
  for (const auto* one : {&levels, &ranks})
    if (!*one)
      return one->error();
  auto of = searched_trials(c);
  if (!of)
    return of.error();
  response out;
  out.content_type = "application/x-ndjson";
  out.ends_by_itself = true;
  out.stream =
    std::make_unique<search>(c.parts, std::move(*of), std::move(*pattern), std::move(*levels),
                             std::move(*ranks), static_cast<std::uint64_t>(*limit), after_trial, after_line);
  return out;
}

} // namespace

std::vector<route> log_routes() {
  return {
    {"GET",
     "/troupe/v1/trials/{trialId}/log",
     {action::view, thing::log},
     answer_with(lines),
     "",
     "LogPage",
     "Lines of its log from the line `from` on; without it the last ones."},
    {"GET",
     "/troupe/v1/logs/search",
     {action::view, thing::search},
     respond_with(search_logs),
     "",
     "stream of LogHit",
     "Lines that hold the text `q`, or with `regex` match it (RE2), of one trial, some experiments (parted "
     "by commas), or all; "
     "newline-delimited, as they are found."},
  };
}

} // namespace troupe::api

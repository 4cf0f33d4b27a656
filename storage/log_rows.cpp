#include "storage/log_rows.hpp"

#include "model/pack.hpp"
#include "storage/keys.hpp"

#include <algorithm>

namespace troupe::storage {
namespace {

constexpr char several = '\xc1';
constexpr std::size_t most_row_bytes = 32 * 1024, most_row_lines = 1024;
constexpr std::size_t front_bytes = 9; ///< bytes of a row that stand before the head

/// Lines that follow one another and differ only in time and text.
struct alike {
  allocation_id allocation;
  std::string agent;
  int rank = 0;
  std::string stream, level;
  std::uint32_t count = 0;
  TROUPE_PACKED(allocation, agent, rank, stream, level, count)

  bool takes(const log_line& x) const {
    return allocation == x.allocation && agent == x.agent && rank == x.rank && stream == x.stream &&
           level == x.level;
  }
};

struct row_head {
  std::vector<alike> runs;
  std::vector<std::int64_t>
    steps; ///< microseconds from one line's time to the next; the first counts from 1970
  std::vector<std::uint32_t> lengths; ///< of each text, in bytes
  TROUPE_PACKED(runs, steps, lengths)
};

class row_of_several {
public:
  void add(const log_line& x) {
    if (head_.runs.empty() || !head_.runs.back().takes(x))
      head_.runs.push_back({x.allocation, x.agent, x.rank, x.stream, x.level, 0});
    ++head_.runs.back().count;
    head_.steps.push_back((x.at - before_).count());
    before_ = x.at;
    head_.lengths.push_back(static_cast<std::uint32_t>(x.text.size()));
    (texts_ += x.text) += '\n';
  }
  bool empty() const { return head_.lengths.empty(); }
  bool full() const { return head_.lengths.size() >= most_row_lines || texts_.size() >= most_row_bytes; }

  void write(batch& into, std::string_view key) {
    const auto head = pack(head_);
    std::string data(1, several);
    data.reserve(front_bytes + head.size() + texts_.size());
    for (auto number : {head_.lengths.size(), head.size()})
      for (int shift = 24; shift >= 0; shift -= 8)
        data += static_cast<char>(number >> shift & 0xff);
    (data += head) += texts_;
    into.put(family::logs, key, data);
    *this = {};
  }

private:
  row_head head_;
  time_point before_{};
  std::string texts_;
};

} // namespace

void write_log_rows(batch& into, task_id task, std::uint64_t first, std::span<const log_line> lines) {
  row_of_several row;
  auto number = first;
  for (const auto& line : lines) {
    const bool alone = line.text.find('\n') != line.text.npos;
    if (!row.empty() && (alone || row.full()))
      row.write(into, keys::of_task(task, number - 1));
    if (alone)
      into.put(family::logs, keys::of_task(task, number), pack(line));
    else
      row.add(line);
    ++number;
  }
  if (!row.empty())
    row.write(into, keys::of_task(task, number - 1));
}

result<log_row> log_row::open(std::string_view key, std::string_view data) {
  log_row out;
  out.last_ = keys::last_number(key);
  out.texts_ = data;
  if (data.empty() || data[0] != several)
    return out;
  std::uint64_t numbers[2] = {0, 0};
  for (std::size_t i = 1; i < std::min(data.size(), front_bytes); ++i)
    numbers[i > 4] = numbers[i > 4] << 8 | static_cast<unsigned char>(data[i]);
  const auto [count, length] = numbers;
  if (data.size() <= front_bytes || count == 0 || count > out.last_ || length == 0 ||
      length > data.size() - front_bytes)
    return error{errc::corrupt, "a row of log lines ends within its head"};
  out.count_ = count;
  out.head_ = data.substr(front_bytes, length);
  out.texts_ = data.substr(front_bytes + length);
  return out;
}

result<std::vector<log_line>> log_row::lines(std::uint64_t from, std::uint64_t until) const {
  return lines([=](std::uint64_t number) { return from <= number && number < until; });
}

result<std::vector<log_line>> log_row::lines(const std::function<bool(std::uint64_t number)>& wanted) const {
  std::vector<log_line> out;
  if (of_one()) {
    auto line = unpack<log_line>(texts_);
    if (!line)
      return line.error();
    line->number = last_;
    if (wanted(last_))
      out.push_back(std::move(*line));
    return out;
  }
  auto head = unpack<row_head>(head_);
  if (!head)
    return head.error();
  std::uint64_t told = 0, bytes = count_; // `count_` newlines
  for (const auto& run : head->runs)
    told += run.count;
  for (auto length : head->lengths)
    bytes += length;
  if (bytes != texts_.size() || told != count_ || head->lengths.size() != count_ ||
      head->steps.size() != count_)
    return error{errc::corrupt, "a row of log lines does not hold what its head says"};
  time_point at{};
  std::size_t place = 0, i = 0;
  for (const auto& run : head->runs)
    for (std::uint32_t n = 0; n < run.count; ++n, ++i) {
      at += duration{head->steps[i]};
      if (const auto number = first() + i; wanted(number))
        out.push_back({number, at, run.allocation, run.agent, run.rank, run.stream, run.level,
                       std::string(texts_.substr(place, head->lengths[i]))});
      place += head->lengths[i] + 1;
    }
  return out;
}

} // namespace troupe::storage

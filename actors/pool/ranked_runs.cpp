#include "actors/pool/ranked_runs.hpp"

#include "actors/pool/pool_state.hpp"

#include <algorithm>
#include <iterator>

namespace troupe {

bool by_rank::operator()(const pool_run* a, const pool_run* b) const {
  if (a->job != b->job && a->job->rank != b->job->rank)
    return a->job->rank < b->job->rank;
  return a->rank < b->rank;
}

bool operator<(const ranked_runs::entry& a, const ranked_runs::entry& b) {
  return a.started != b.started ? a.started < b.started : a.run->rank < b.run->rank;
}

void ranked_runs::insert(line& of, pool_run& run) { of.insert(of.end(), {run.rank.started, &run}); }

ranked_runs::line& ranked_runs::insert(pool_run& run) {
  const auto [job, fresh] = by_job_.try_emplace(run.job->terms.job);
  if (fresh)
    job->second = lines_.try_emplace({run.job->rank, run.job->terms.job}).first;
  auto& line = job->second->second;
  insert(line, run);
  return line;
}

bool ranked_runs::erase(pool_run& run) {
  const auto job = by_job_.find(run.job->terms.job);
  return job != by_job_.end() && erase(job->second->second, run);
}

bool ranked_runs::erase(line& of, pool_run& run) {
  if (const auto first = of.begin(); first->run == &run) // most runs are the first when they are served
    of.erase(first);
  else if (of.erase({run.rank.started, &run}) == 0)
    return false;
  if (of.empty()) {
    const auto job = by_job_.find(run.job->terms.job);
    lines_.erase(job->second);
    by_job_.erase(job);
  }
  return true;
}

void ranked_runs::move(const pool_job& job, job_rank to) {
  const auto at = by_job_.find(job.terms.job);
  if (at == by_job_.end())
    return;
  auto line = lines_.extract(at->second);
  line.key().first = to;
  at->second = lines_.insert(std::move(line)).position;
}

std::size_t ranked_runs::size() const {
  std::size_t n = 0;
  for (const auto& [key, line] : lines_)
    n += line.size();
  return n;
}

pool_run* ranked_runs::first() const {
  auto it = lines_.begin();
  const auto rank = it->first.first;
  auto best = *it->second.begin();
  for (++it; it != lines_.end() && it->first.first == rank; ++it)
    best = std::min(best, *it->second.begin());
  return best.run;
}

const ranked_runs::line* ranked_runs::line_of(const pool_job& job) const {
  const auto at = by_job_.find(job.terms.job);
  return at == by_job_.end() ? nullptr : &at->second->second;
}

std::size_t ranked_runs::before_in_line(const pool_run& run) const {
  const auto* line = line_of(*run.job);
  return line ? static_cast<std::size_t>(std::distance(
                  line->begin(), line->lower_bound({run.rank.started, const_cast<pool_run*>(&run)})))
              : 0;
}

std::size_t ranked_runs::before(const pool_run& run) const {
  std::size_t n = before_in_line(run);
  for (auto it = lines_.begin(); it != lines_.end() && !(run.job->rank < it->first.first); ++it)
    if (it->first.first < run.job->rank)
      n += it->second.size();
    else if (it->first.second != run.job->terms.job) // jobs of the same rank are compared run by run
      n += static_cast<std::size_t>(std::count_if(it->second.begin(), it->second.end(),
                                                  [&](const auto& x) { return x.run->rank < run.rank; }));
  return n;
}

void ranked_runs::walk::take_lines() {
  if (at_ == end_)
    return;
  const auto take = [&](auto it) { rests_.push_back({it->second.begin(), it->second.end()}); };
  if (backwards_) {
    const auto rank = std::prev(end_)->first.first;
    do
      take(--end_);
    while (at_ != end_ && std::prev(end_)->first.first == rank);
  } else {
    const auto rank = at_->first.first;
    do
      take(at_++);
    while (at_ != end_ && at_->first.first == rank);
  }
}

pool_run* ranked_runs::walk::next() {
  const auto later = [&](const rest& a, const rest& b) {
    return backwards_ ? *std::prev(a.to) < *std::prev(b.to) : *b.from < *a.from;
  };
  if (rests_.empty()) {
    take_lines();
    std::make_heap(rests_.begin(), rests_.end(), later); // mostly a single line
  }
  if (rests_.empty())
    return nullptr;
  std::pop_heap(rests_.begin(), rests_.end(), later);
  auto& first = rests_.back();
  auto* const run = backwards_ ? (--first.to)->run : (first.from++)->run;
  if (first.from == first.to)
    rests_.pop_back();
  else
    std::push_heap(rests_.begin(), rests_.end(), later);
  return run;
}

std::vector<pool_run*> ranked_runs::list() const {
  std::vector<pool_run*> all;
  walk runs(*this);
  while (auto* run = runs.next())
    all.push_back(run);
  return all;
}

void ranked_runs::collect_lines(std::vector<const line*>& to) const {
  for (const auto& [key, line] : lines_)
    to.push_back(&line);
}

std::vector<pool_run*> ranked_runs::firsts() const {
  std::vector<pool_run*> all;
  all.reserve(lines_.size());
  for (const auto& [key, line] : lines_)
    all.push_back(line.begin()->run);
  return all;
}

} // namespace troupe

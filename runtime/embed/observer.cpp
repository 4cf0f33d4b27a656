#include "runtime/embed/observer.hpp"

#include "runtime/api/fact_shape.hpp"

#include <pthread.h>

#include <algorithm>

namespace troupe::embedding {
namespace {

constexpr std::size_t page = 1000; ///< rows or facts that are read at once

} // namespace

observer::observer(std::shared_ptr<storage::reader> reads, std::function<void()> tick, milliseconds period)
    : reads_(std::move(reads)), tick_(std::move(tick)), period_(std::max(period, milliseconds(10))) {
  if (tick_)
    start();
}

observer::~observer() { stop(); }

void observer::committed() {
  ++commits_;
  if (waiting_ == 0)
    return;
  std::lock_guard lock(mutex_);
  wake_.notify_all();
}

void observer::wait_for_commit_after(std::uint64_t seen, milliseconds limit) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  wake_.wait_for(lock, limit, [&] { return stopping_ || commits_ != seen; });
  --waiting_;
}

/// The caller holds mutex_, except in the constructor.
void observer::start() {
  if (!thread_.joinable() && !stopping_)
    thread_ = std::thread([this] { loop(); });
}

void observer::on_metric(experiment_id of, metric_call fn, bool replay) {
  auto fresh = std::make_shared<listener>();
  fresh->of = of;
  fresh->fn = std::move(fn);
  if (!replay)
    if (auto trials = reads_->trials(of))
      for (const auto& trial : *trials)
        for (auto& heard = fresh->heard[trial.id.value];;) {
          auto rows = reads_->metrics(trial.id, heard, page);
          if (!rows || rows->empty())
            break;
          heard = rows->back().row;
        }
  std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(fresh));
  ++commits_; // what exists already is reported at once
  start();
  wake_.notify_all();
}

void observer::on_fact(fact_call fn) {
  std::lock_guard lock(mutex_);
  facts_.emplace_back(reads_->sequence(), std::move(fn));
  start();
}

std::optional<observer::end> observer::ended(experiment_id of) {
  {
    std::lock_guard lock(mutex_);
    for (const auto& one : listeners_)
      if (one->of == of && !one->over)
        return {};
  }
  auto row = reads_->experiment(of);
  if (!row || !terminal(row->state))
    return {};
  return end{row->state, row->why};
}

void observer::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable())
    thread_.join();
  std::lock_guard lock(mutex_);
  listeners_.clear(); // listeners may hold actors of the host, for which the end of an actor system waits
  facts_.clear();
}

void observer::loop() {
  ::pthread_setname_np(::pthread_self(), "troupe.events");
  auto next_tick = std::chrono::steady_clock::now();
  std::uint64_t seen = 0;
  for (bool first = true;; first = false) {
    if (tick_ && std::chrono::steady_clock::now() >= next_tick) {
      tick_();
      next_tick = std::chrono::steady_clock::now() + period_;
    }
    std::vector<std::shared_ptr<listener>> listeners;
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      const auto news = [&] { return stopping_ || commits_ != seen; };
      if (!first && tick_)
        wake_.wait_until(lock, next_tick, news);
      else if (!first)
        wake_.wait(lock, news);
      --waiting_;
      if (stopping_)
        return;
      seen = commits_;
      listeners = listeners_;
    }
    tell_facts();
    bool over = false;
    for (auto& one : listeners)
      over |= tell_metrics(*one);
    if (over) {
      std::lock_guard lock(mutex_);
      std::erase_if(listeners_, [](const auto& one) { return one->over; });
      ++commits_; // wakes those that wait for an end
      wake_.notify_all();
    }
  }
}

/// True when it has heard the last metric of its experiment.
bool observer::tell_metrics(listener& to) {
  if (to.over)
    return false;
  auto row = reads_->experiment(to.of); // read before its metrics: a report is durable before its trial's end
  auto trials = reads_->trials(to.of);
  if (!row || !trials)
    return false;
  for (const auto& trial : *trials) {
    if (to.ended.contains(trial.id.value))
      continue;
    auto& heard = to.heard[trial.id.value];
    for (;;) {
      auto rows = reads_->metrics(trial.id, heard, page);
      if (!rows || rows->empty())
        break;
      for (const auto& report : *rows) {
        heard = report.row;
        auto numbers = parse_msgpack(report.metrics);
        if (!numbers || !numbers->is_object())
          continue;
        for (const auto& [name, x] : numbers->items())
          if (auto number = number_in(x))
            to.fn({report.steps, name, *number, trial.id.value, report.group == "validation"});
      }
      if (rows->size() < page)
        break;
    }
    if (terminal(trial.state))
      to.ended.insert(trial.id.value);
  }
  if (!terminal(row->state))
    return false;
  std::lock_guard lock(mutex_);
  to.over = true;
  to.fn = nullptr;
  return true;
}

void observer::tell_facts() {
  std::size_t count = 0;
  {
    std::lock_guard lock(mutex_);
    count = facts_.size();
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t after = 0;
    fact_call fn;
    {
      std::lock_guard lock(mutex_);
      std::tie(after, fn) = facts_[i];
    }
    for (;;) {
      auto facts = reads_->facts_after(after, page);
      if (!facts || facts->empty())
        break;
      for (const auto& one : *facts) {
        after = one.sequence;
        if (auto shape = api::fact_shape(one))
          fn(one.sequence, one.entity, shape->value("type", std::string()), to_json(*shape));
      }
    }
    std::lock_guard lock(mutex_);
    facts_[i].first = after;
  }
}

} // namespace troupe::embedding

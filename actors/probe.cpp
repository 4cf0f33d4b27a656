#include "actors/probe.hpp"

#include <charconv>
#include <cstdio>

namespace troupe {

tick_scale::tick_scale() : first_(ticks_now()), first_steady_(std::chrono::steady_clock::now()) {}

double tick_scale::nanoseconds_per_tick() const {
  auto ticks = ticks_now() - first_;
  auto passed =
    std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - first_steady_).count();
  return ticks == 0 || passed <= 0 ? 1.0 : passed / static_cast<double>(ticks);
}

double tick_scale::microseconds(std::uint64_t ticks) const {
  return static_cast<double>(ticks) * nanoseconds_per_tick() / 1000;
}

std::uint64_t tick_scale::ticks(std::chrono::nanoseconds of) const {
  return static_cast<std::uint64_t>(static_cast<double>(of.count()) / nanoseconds_per_tick());
}

time_point tick_scale::wall(std::uint64_t at) const { return now().wall_at(at); }

tick_scale::moment tick_scale::now() const {
  moment out;
  out.wall = std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  out.ticks = ticks_now();
  const auto passed =
    std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - first_steady_).count();
  if (out.ticks > first_ && passed > 0)
    out.ns_per_tick = passed / static_cast<double>(out.ticks - first_);
  return out;
}

time_point tick_scale::moment::wall_at(std::uint64_t at) const {
  const auto ago = static_cast<double>(static_cast<std::int64_t>(ticks - at)) * ns_per_tick;
  return std::chrono::time_point_cast<duration>(wall -
                                                std::chrono::nanoseconds(static_cast<std::int64_t>(ago)));
}

std::array<std::uint64_t, tick_histogram::size> tick_histogram::read() const {
  std::array<std::uint64_t, size> out;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = counts_[i].load(std::memory_order_relaxed);
  return out;
}

std::uint64_t quantile(const std::array<std::uint64_t, tick_histogram::size>& counts, double q) {
  std::uint64_t total = 0, seen = 0;
  for (auto n : counts)
    total += n;
  if (total == 0)
    return 0;
  const auto wanted = static_cast<std::uint64_t>(q * static_cast<double>(total - 1)) + 1;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if ((seen += counts[i]) >= wanted)
      return tick_histogram::upper(static_cast<int>(i));
  return tick_histogram::upper(tick_histogram::size - 1);
}

std::string to_string_of(correlation x) {
  const auto id = std::to_string(x & 0x00ff'ffff'ffff'ffff);
  switch (static_cast<correlation_kind>(x >> 56)) {
  case correlation_kind::none:
    return "";
  case correlation_kind::experiment:
    return "experiment/" + id;
  case correlation_kind::trial:
    return "trial/" + id;
  case correlation_kind::task: {
    char text[24];
    std::snprintf(text, sizeof text, "task/*%014llx",
                  static_cast<unsigned long long>(x & 0x00ff'ffff'ffff'ffff));
    return text;
  }
  }
  return "";
}

correlation correlation_of(task_id id) {
  if (!id)
    return 0;
  return correlate(id.is_trial() ? correlation_kind::trial : correlation_kind::task, id.low());
}

correlation correlation_of_name(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == name.npos)
    return 0;
  const auto kind = name.substr(0, slash);
  constexpr std::size_t uuid_length = 36;
  if (const auto task = parse_task(name.substr(slash + 1, uuid_length)); task && !task.is_trial())
    return correlation_of(task);
  std::uint64_t id = 0;
  const auto* end = name.data() + name.size();
  auto [at, fault] = std::from_chars(name.data() + slash + 1, end, id);
  if (fault != std::errc{} || (at != end && *at != '.'))
    return 0;
  if (kind == "experiment" || kind == "searcher")
    return correlate(correlation_kind::experiment, id);
  if (kind == "trial" || kind == "allocation" || kind == "worker")
    return correlate(correlation_kind::trial, id);
  return 0;
}

probe::~probe() { delete briefs_.load(std::memory_order_relaxed); }

void probe::stamp(std::uint64_t number) noexcept {
  const auto reach = stamped * (skips_.load(std::memory_order_relaxed) + 1);
  if (number - done_.load(std::memory_order_relaxed) < reach) {
    auto& slot = arrival_of(number);
    slot.at.store(ticks_now(), std::memory_order_relaxed);
    slot.number.store(number, std::memory_order_release);
  } else if (sample_at_.load(std::memory_order_relaxed) == 0) {
    sample_number_.store(number, std::memory_order_relaxed);
    sample_at_.store(ticks_now(), std::memory_order_release);
  }
}

void probe::time(begun& b, std::uint64_t number) noexcept {
  b.at = latest_ = ticks_now();
  std::uint64_t came = 0;
  if (const auto& slot = arrival_of(number); slot.number.load(std::memory_order_acquire) == number)
    came = slot.at.load(std::memory_order_relaxed);
  else if (const auto then = sample_at_.load(std::memory_order_acquire);
           then && number >= sample_number_.load(std::memory_order_relaxed)) {
    came = then;
    sample_at_.store(0, std::memory_order_relaxed);
  }
  if (came)
    b.wait = b.at > came ? b.at - came : 0;
  // Decides whether the actor is busy. A busy actor is noticed at once; a calm one, once a window has passed.
  if (b.at - window_at_ > calm_window) {
    skips_.store(number - window_number_ <= calm_messages ? 0 : sampled - 1, std::memory_order_relaxed);
    window_at_ = b.at;
    window_number_ = number;
  } else if (number - window_number_ >= calm_messages)
    skips_.store(sampled - 1, std::memory_order_relaxed);
}

/// A timed message stands for all messages since the timed one before it, so that the sums of the histograms
/// are the numbers of messages.
std::uint64_t probe::timed(const begun& b, std::uint64_t number) noexcept {
  const auto now = ticks_now();
  const auto run = now > b.at ? now - b.at : 0;
  run_.add(run, number + 1 - last_run_);
  last_run_ = number + 1;
  b.slot->timed(run);
  if (b.wait != not_timed) {
    wait_.add(b.wait, number + 1 - last_wait_);
    last_wait_ = number + 1;
  }
  return run;
}

std::uint32_t probe::keep(brief_writer writes, const void* content) {
  auto* briefs = briefs_.load(std::memory_order_relaxed);
  if (!briefs) {
    briefs = new std::array<words, ring_slots>{};
    briefs_.store(briefs, std::memory_order_release);
  }
  std::array<std::uint64_t, brief_bytes / 8> bytes{};
  const auto count = writes(content, reinterpret_cast<char*>(bytes.data()), brief_bytes);
  auto& to = (*briefs)[done_.load(std::memory_order_relaxed) % ring_slots];
  for (std::size_t i = 0; i * 8 < count; ++i)
    to[i].store(bytes[i], std::memory_order_relaxed);
  return static_cast<std::uint32_t>(count);
}

std::vector<message_note> probe::recent() const {
  const auto before = done_.load(std::memory_order_acquire);
  std::vector<message_note> out;
  for (auto number = before > ring ? before - ring : 0; number < before; ++number) {
    const auto& slot = ring_[number % ring_slots];
    message_note note;
    note.number = number;
    note.at = slot.at.load(std::memory_order_relaxed);
    note.type = slot.type.load(std::memory_order_relaxed);
    note.sender = slot.sender.load(std::memory_order_relaxed);
    note.node = slot.node.load(std::memory_order_relaxed);
    note.request = slot.request.load(std::memory_order_relaxed);
    note.about = slot.about.load(std::memory_order_relaxed);
    note.wait = slot.wait.load(std::memory_order_relaxed);
    note.run = slot.run.load(std::memory_order_relaxed);
    const auto bytes = std::min<std::size_t>(slot.brief.load(std::memory_order_relaxed), brief_bytes);
    if (const auto* briefs = briefs_.load(std::memory_order_acquire); briefs && bytes) {
      std::array<std::uint64_t, brief_bytes / 8> copy;
      for (std::size_t i = 0; i < copy.size(); ++i)
        copy[i] = (*briefs)[number % ring_slots][i].load(std::memory_order_relaxed);
      note.brief.assign(reinterpret_cast<const char*>(copy.data()), bytes);
    }
    out.push_back(std::move(note));
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  // The message that is being noted now takes the slot of the oldest one.
  const auto after = done_.load(std::memory_order_relaxed);
  std::erase_if(out, [&](const auto& note) { return note.number + ring_slots <= after; });
  return out;
}

std::vector<probe::by_type> probe::of_types() const {
  std::vector<by_type> out;
  for (const auto& slot : types_) {
    by_type one;
    one.type = slot.type.load(std::memory_order_relaxed);
    if (one.type == 0)
      break;
    one.count = slot.count.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < one.run.size(); ++i)
      one.run[i] = slot.run[i].load(std::memory_order_relaxed);
    out.push_back(one);
  }
  return out;
}

void probe::type_slot::timed(std::uint64_t ticks) noexcept {
  auto& count = run[static_cast<std::size_t>(
    std::min<int>(std::bit_width(ticks >> tick_histogram::finest), tick_histogram::size - 1))];
  const auto n = count.load(std::memory_order_relaxed) + 1;
  count.store(n, std::memory_order_relaxed);
  if (n < (1u << 30))
    return;
  for (auto& one : run) // halving gives old times less weight, and no bucket overflows
    one.store(one.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
}

probe::type_slot* probe::add_slot(type_key type, correlation_reader reads, brief_writer writes) noexcept {
  for (std::size_t i = 0; i + 1 < types; ++i)
    if (auto& slot = types_[i]; slot.type.load(std::memory_order_relaxed) == 0) {
      slot.reads = reads;
      slot.writes = writes;
      slot.type.store(type, std::memory_order_relaxed);
      return last_slot_ = &slot;
    }
  auto& rest = types_.back();
  rest.reads = nullptr;
  rest.writes = nullptr;
  rest.type.store(1, std::memory_order_relaxed);
  return &rest;
}

} // namespace troupe

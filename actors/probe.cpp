#include "actors/probe.hpp"

#include <charconv>

namespace troupe {

tick_scale::tick_scale() : first_(ticks_now()), first_steady_(std::chrono::steady_clock::now()) {}

double tick_scale::nanoseconds_per_tick() const {
  auto ticks = ticks_now() - first_;
  auto passed = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - first_steady_).count();
  return ticks == 0 || passed <= 0 ? 1.0 : passed / static_cast<double>(ticks);
}

double tick_scale::microseconds(std::uint64_t ticks) const { return static_cast<double>(ticks) * nanoseconds_per_tick() / 1000; }

std::uint64_t tick_scale::ticks(std::chrono::nanoseconds of) const {
  return static_cast<std::uint64_t>(static_cast<double>(of.count()) / nanoseconds_per_tick());
}

time_point tick_scale::wall(std::uint64_t at) const {
  const auto now = std::chrono::system_clock::now();
  const auto ago = static_cast<double>(static_cast<std::int64_t>(ticks_now() - at)) * nanoseconds_per_tick();
  return std::chrono::time_point_cast<duration>(now - std::chrono::nanoseconds(static_cast<std::int64_t>(ago)));
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
  case correlation_kind::none: return "";
  case correlation_kind::experiment: return "experiment/" + id;
  case correlation_kind::trial: return "trial/" + id;
  }
  return "";
}

correlation correlation_of_name(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == name.npos)
    return 0;
  const auto kind = name.substr(0, slash);
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
    out.push_back(note);
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
  auto& count = run[static_cast<std::size_t>(std::min<int>(std::bit_width(ticks >> tick_histogram::finest), tick_histogram::size - 1))];
  const auto n = count.load(std::memory_order_relaxed) + 1;
  count.store(n, std::memory_order_relaxed);
  if (n < (1u << 30))
    return;
  for (auto& one : run) // old times count less, and no bucket overflows
    one.store(one.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
}

probe::type_slot* probe::add_slot(type_key type, correlation_reader reads) noexcept {
  for (std::size_t i = 0; i + 1 < types; ++i)
    if (auto& slot = types_[i]; slot.type.load(std::memory_order_relaxed) == 0) {
      slot.reads = reads;
      slot.type.store(type, std::memory_order_relaxed);
      return last_slot_ = &slot;
    }
  auto& rest = types_.back();
  rest.reads = nullptr;
  rest.type.store(1, std::memory_order_relaxed);
  return &rest;
}

} // namespace troupe

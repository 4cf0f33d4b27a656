#include "actors/host/log_pump_actor.hpp"

#include "actors/host/log_pump.hpp"
#include "actors/shells/driven.hpp"
#include "actors/shells/probed.hpp"
#include "workers/log_prefix.hpp"

#include <caf/all.hpp>
#include <deque>

namespace troupe {
namespace {

using base = actor_base<log_pump_actor>;
constexpr std::size_t batch_lines = 2000, batch_bytes = 256 << 10;
constexpr std::chrono::seconds journal_patience{30};

/// The line that the log gets at a hole in a spool's lines.
std::string lines_missing(std::uint64_t count) {
  return "troupe: " + std::to_string(count) + (count == 1 ? " line is" : " lines are") +
         " missing here: written faster than the cluster stored them, or this host's disk had no room";
}

class pump_state {
public:
  static inline const char* name = "log_pump";
  explicit pump_state(base* self) : self_(self) {}

  log_pump_actor::behavior_type make_behavior(agent_actor agent, duration pace) {
    self_->enter("log_pump");
    agent_ = std::move(agent);
    machine_.emplace(pace);
    return {
      [this](const pump_spool& x) {
        step(spool_opened{x.allocation, x.agent, x.spool});
      },
      [this](const pump_end& x) { step(spool_ended{x.allocation}); },
      [this](journal_actor& journal) {
        journal_ = std::move(journal);
        read_.clear();
        step(journal_reached{static_cast<bool>(journal_)});
      },
      [this](const time_passed&) {
        armed_.reset();
        step(time_passed{});
      },
    };
  }

private:
  /// What a spool says becomes an event of its own, which follows the event that led to its reading.
  void step(log_pump_event first) {
    std::deque<log_pump_event> events{std::move(first)};
    for (; !events.empty(); events.pop_front())
      for (auto& action : machine_->apply(events.front(), lease_time(self_->system())))
        std::visit([&](auto& x) { run(x, events); }, action);
    arm();
  }

  void arm() {
    const auto deadline = machine_->deadline();
    if (!deadline || (armed_ && *armed_ <= *deadline))
      return;
    armed_ = *deadline;
    self_->delayed_send(log_pump_actor{self_}, std::max(*deadline - lease_time(self_->system()), duration{0}),
                        time_passed{});
  }

  void run(const ask_position& x, std::deque<log_pump_event>&) {
    self_->request(journal_, journal_patience, log_position{x.key})
      .then(
        [this, id = x.allocation, n = x.question](const log_position_is& is) {
          step(position_told{id, n, is.position});
        },
        refused(x.allocation, x.question));
  }

  void run(const read_spool& x, std::deque<log_pump_event>& events) {
    using outcome = spool_read::outcome;
    auto batch = workers::read_log(x.spool, x.from, batch_lines, batch_bytes);
    if (!batch) {
      if (batch.error().code == errc::corrupt)
        if (auto next = workers::skip_damage(x.spool, x.from))
          return events.push_back(spool_read{x.allocation, outcome::damaged, *next});
      return events.push_back(spool_read{x.allocation, outcome::gone});
    }
    append_log mail{x.allocation.task, {}, {}, 0};
    auto last = x.line;
    for (const auto& line : batch->lines) {
      mail.position = line.number;
      if (line.number <= x.line)
        continue;
      if (line.number > last + 1)
        mail.lines.push_back({0, line.at, x.allocation, x.agent, line.rank, "troupe", "",
                              lines_missing(line.number - last - 1)});
      last = line.number;
      const char* stream = line.stream == workers::log_stream::err      ? "stderr"
                           : line.stream == workers::log_stream::notice ? "troupe"
                                                                        : "stdout";
      const auto prefix = workers::read_log_prefix(line.text);
      mail.lines.push_back({0, line.at, x.allocation, x.agent, prefix.rank.value_or(line.rank), stream,
                            std::string(prefix.level), std::string(prefix.rest)});
    }
    const auto what = mail.lines.empty() ? outcome::none : outcome::lines;
    if (what == outcome::lines)
      read_.insert_or_assign(x.allocation, std::move(mail));
    events.push_back(spool_read{x.allocation, what, batch->next, batch->at_end});
  }

  void run(const store_batch& x, std::deque<log_pump_event>&) {
    auto mail = read_.extract(x.allocation);
    if (!mail)
      return;
    mail.mapped().source = x.key;
    self_->request(journal_, journal_patience, std::move(mail.mapped()))
      .then(
        [this, id = x.allocation, n = x.question](const committed&) {
          step(batch_stored{id, n});
        },
        refused(x.allocation, x.question));
  }

  void run(const tell_pumped& x, std::deque<log_pump_event>&) { self_->send(agent_, pumped{x.allocation}); }

  std::function<void(const caf::error&)> refused(allocation_id id, std::uint64_t question) {
    return [this, id, question](const caf::error&) { step(journal_refused{id, question}); };
  }

  base* self_;
  agent_actor agent_;
  journal_actor journal_;
  std::optional<log_pump> machine_;
  std::map<allocation_id, append_log> read_; ///< lines that were read and wait for their `store_batch`
  std::optional<time_point> armed_;
};

} // namespace

log_pump_actor spawn_log_pump(caf::actor_system& sys, agent_actor agent, duration pace) {
  return spawn_with_own_thread<shell<pump_state, log_pump_actor, agent_actor, duration>>(
    sys, std::move(agent), pace);
}

} // namespace troupe

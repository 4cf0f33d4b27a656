#include "actors/host/log_pump_actor.hpp"

#include "actors/shells/probed.hpp"
#include "workers/log_prefix.hpp"
#include "workers/log_spool.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<log_pump_actor>;
constexpr std::size_t batch_lines = 2000, batch_bytes = 256 << 10;

/// A progress bar writes one endless line, each state after a carriage return: to a reader these are lines.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\r', begin), text.size());
    if (end > begin)
      parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.empty())
    parts.push_back({});
  return parts;
}

class pump_state {
public:
  static inline const char* name = "log_pump";
  explicit pump_state(base* self) : self_(self) {}

  log_pump_actor::behavior_type make_behavior(agent_actor agent, duration pace) {
    self_->enter("log_pump");
    pace_ = pace;
    agent_ = std::move(agent);
    return {
      [this](const pump_spool& x) {
        auto [it, fresh] = sources_.try_emplace(x.allocation, source{x.agent, x.spool});
        if (fresh)
          look_soon();
      },
      [this](const pump_end& x) {
        auto it = sources_.find(x.allocation);
        if (it == sources_.end())
          return self_->send(agent_, pumped{x.allocation});
        it->second.ending = true;
        go_on(it);
        if (!sources_.empty())
          look_soon();
      },
      [this](journal_actor& journal) {
        journal_ = std::move(journal);
        for (auto& [id, s] : sources_)
          s.waiting = s.positioned = false;
        look_soon();
      },
      [this](const time_passed&) {
        armed_ = false;
        for (auto& [id, s] : sources_)
          pump(id, s);
        std::erase_if(sources_, [](const auto& s) { return s.second.over; });
        if (!sources_.empty() && journal_)
          look_soon();
      },
    };
  }

private:
  struct source {
    std::string agent, spool;
    workers::log_position at;
    bool positioned = false; ///< the journal has said up to which line it holds
    std::uint64_t stored = 0;
    bool waiting = false, ending = false, over = false;
    bool refused = false; ///< whether the last batch was refused
  };

  void look_soon() {
    if (!std::exchange(armed_, true))
      self_->delayed_send(log_pump_actor{self_}, pace_, time_passed{});
  }

  void pump(allocation_id id, source& s) {
    if (!journal_ || s.waiting || s.over)
      return;
    s.refused = false;
    const auto key = to_string(id) + "@" + s.agent; // each agent of a gang has a spool of its own
    if (!s.positioned) {
      s.waiting = true;
      self_->request(journal_, std::chrono::seconds(30), log_position{key})
        .then(
          [this, id](const log_position_is& x) {
            with(id, [&](source& mine) {
              mine.waiting = false;
              mine.positioned = true;
              mine.stored = x.position;
            });
          },
          [this, id](const caf::error&) {
            with(id, [](source& mine) { mine.waiting = false, mine.refused = true; });
          });
      return;
    }
    auto batch = workers::read_log(s.spool, s.at, batch_lines, batch_bytes);
    if (!batch) {
      if (batch.error().code == errc::corrupt)
        if (auto next = workers::skip_damage(s.spool, s.at)) {
          s.at = *next;
          return;
        }
      if (s.ending)
        finish(id, s);
      return;
    }
    append_log mail{id.task, {}, key, 0};
    for (auto& line : batch->lines) {
      mail.position = line.number;
      if (line.number <= s.stored)
        continue;
      const char* stream = line.stream == workers::log_stream::err      ? "stderr"
                           : line.stream == workers::log_stream::notice ? "troupe"
                                                                        : "stdout";
      for (auto part : parts_of(line.text)) {
        const auto prefix = workers::read_log_prefix(part);
        mail.lines.push_back({0, line.at, id, s.agent, prefix.rank.value_or(line.rank), stream,
                              std::string(prefix.level), std::string(prefix.rest)});
      }
    }
    if (mail.lines.empty()) {
      s.at = batch->next;
      if (batch->at_end && s.ending)
        finish(id, s);
      return; // where there is more, with the next look
    }
    s.waiting = true;
    self_->request(journal_, std::chrono::seconds(30), std::move(mail))
      .then(
        [this, id, next = batch->next](const committed&) {
          with(id, [&](source& mine) {
            mine.waiting = false;
            mine.at = next;
            mine.stored = std::max(mine.stored, next.line);
          });
        },
        [this, id](const caf::error&) {
          with(id, [](source& mine) { mine.waiting = false, mine.refused = true; });
        });
  }

  void finish(allocation_id id, source& s) {
    s.over = true;
    self_->send(agent_, pumped{id});
  }

  template <class F>
  void with(allocation_id id, F change) {
    if (auto it = sources_.find(id); it != sources_.end()) {
      change(it->second);
      go_on(it);
    }
  }

  /// Somebody waits for the slots of a task that has ended: what is left of it is carried without a pause.
  /// What the journal has refused waits for the next look.
  void go_on(std::map<allocation_id, source>::iterator it) {
    if (it->second.ending && !it->second.refused)
      pump(it->first, it->second);
    if (it->second.over)
      sources_.erase(it);
  }

  base* self_;
  agent_actor agent_;
  duration pace_{};
  journal_actor journal_;
  std::map<allocation_id, source> sources_;
  bool armed_ = false;
};

} // namespace

log_pump_actor spawn_log_pump(caf::actor_system& sys, agent_actor agent, duration pace) {
  return sys.spawn<shell<pump_state, log_pump_actor, agent_actor, duration>, caf::detached>(std::move(agent),
                                                                                            pace);
}

} // namespace troupe

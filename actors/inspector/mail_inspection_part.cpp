#include "actors/inspector/mail_inspection_part.hpp"

#include "actors/inspector/actor_shapes_part.hpp"
#include "actors/shells/probed.hpp"

#include <cmath>

namespace troupe {
namespace {

constexpr std::size_t most_watches = 32;
constexpr auto forgotten_after = std::chrono::seconds(15);

/// Leaves out names that mean nothing.
std::vector<correlation> correlations(const std::vector<std::string>& names) {
  std::vector<correlation> out;
  for (const auto& one : names)
    if (auto c = correlation_of_name(one))
      out.push_back(c);
  return out;
}

} // namespace

command_result mail_inspection::not_here(const std::string& actor) const {
  return refused({errc::not_found, "no actor '" + actor.substr(0, 200) + "' on the node " + node_});
}

command_result mail_inspection::open(const commands::inspect_watch& x, instant now) {
  if (watches_.size() >= most_watches)
    return refused({errc::busy, "this node runs " + std::to_string(most_watches) + " traces already"});
  message_watch::wanted wish;
  wish.actor = x.actor;
  std::uint64_t id_of_actor = 0;
  if (!wish.actor.empty()) {
    auto entry = register_->find(wish.actor);
    if (!entry)
      return not_here(wish.actor);
    id_of_actor = entry->what->actor_id;
  }
  wish.about = correlations(x.about_these);
  wish.request = x.request;
  wish.requester = x.requester;
  if (const auto& type = x.msg; !type.empty()) {
    for (const auto& [key, reads] : message_readers())
      if (type_name(system_, key) == type)
        wish.types.push_back(key);
    if (wish.types.empty())
      return refused({errc::invalid, "the field 'msg': no message type '" + type.substr(0, 100) +
                                       "'; `msgs` and `stats` show types"});
  }
  wish.most = static_cast<std::uint64_t>(std::clamp(x.max, 1.0, 1'000'000.0));
  wish.per_second = static_cast<std::uint64_t>(std::clamp(x.rate, 1.0, 10'000.0));
  const auto lasts =
    std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(x.for_ms, 1.0, 3'600'000.0)));
  wish.until = ticks_now() + register_->scale.ticks(lasts);
  auto made = std::make_shared<message_watch>(wish, register_->scale);
  register_->watch(made);
  const auto id = ++ids_;
  watches_[id] = {made, wish.actor, id_of_actor, now};
  return answered({{"id", id}});
}

command_result mail_inspection::taken(const commands::inspect_taken& x, instant now) {
  auto it = watches_.find(x.id);
  if (it == watches_.end())
    return refused({errc::not_found, "no such trace on the node " + node_});
  auto& one = it->second;
  one.asked = now;
  if (auto about = correlations(x.about_these); !about.empty())
    one.what->about(std::move(about));
  message_watch::tally tally;
  value rows = value::array();
  const auto read_at = register_->scale.now();
  for (auto& r : one.what->take(tally))
    rows.push_back({{"at", to_rfc3339(read_at.wall_at(r.at))},
                    {"actor", r.actor},
                    {"from", r.from},
                    {"type", r.type},
                    {"correlation", r.about},
                    {"wait_us", actor_shapes::us(r.wait, read_at)},
                    {"run_us", actor_shapes::us(r.run, read_at)},
                    {"text", r.text},
                    {"node", node_}});
  bool gone = false;
  if (!one.actor.empty()) // an actor that is made again stays watched
    gone = !register_->find(one.actor);
  return answered({{"rows", std::move(rows)},
                   {"seen", tally.seen},
                   {"shown", tally.shown},
                   {"dropped", tally.dropped},
                   {"over", tally.over},
                   {"gone", gone}});
}

command_result mail_inspection::close(const commands::inspect_unwatch& x) {
  if (auto it = watches_.find(x.id); it != watches_.end()) {
    register_->unwatch(it->second.what);
    watches_.erase(it);
  }
  return answered();
}

void mail_inspection::forget_unasked(instant now) {
  for (auto it = watches_.begin(); it != watches_.end();)
    if (now - it->second.asked > forgotten_after) {
      register_->unwatch(it->second.what);
      it = watches_.erase(it);
    } else
      ++it;
}

command_result mail_inspection::disturb(const commands::inspect_fault& x) {
  if (!register_->allow_faults)
    return refused(
      {errc::denied,
       "the node " + node_ +
         " runs without --allow-faults\nhint: start it with --allow-faults; it is meant for tests"});
  if (x.fault == "clear") {
    register_->forget_faults();
    return answered();
  }
  if (!x.actor.empty() && !register_->find(x.actor))
    return not_here(x.actor);
  auto made = std::make_shared<message_fault>();
  made->actor = x.actor;
  made->until = ticks_now() + register_->scale.ticks(std::chrono::milliseconds(x.for_ms));
  if (x.fault == "pause") {
    made->what = message_fault::kind::hold;
    made->from_node = static_cast<std::uint32_t>(x.from_node);
    if (!x.from_actor.empty()) {
      auto sender = register_->find(x.from_actor);
      if (!sender)
        return not_here(x.from_actor);
      made->from_actor = sender->what->actor_id;
    }
  } else {
    made->what = x.fault == "drop" ? message_fault::kind::drop : message_fault::kind::delay;
    made->left = static_cast<std::int64_t>(x.n);
    made->delay = register_->scale.ticks(std::chrono::milliseconds(x.delay_ms));
  }
  register_->disturb(std::move(made));
  return answered();
}

} // namespace troupe

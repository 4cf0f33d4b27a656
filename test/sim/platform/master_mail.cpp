#include "test/sim/platform/master_mail.hpp"

#include "actors/allocation/owner.hpp"
#include "actors/experiment/experiment.hpp"
#include "actors/shells/probed.hpp"

#include <typeinfo>
#include <utility>

namespace troupe::sim {

master_mail::master_mail(std::uint64_t seed, double repeated, bool trials_go_on, probe_register& probes,
                         later do_later, bool grants_are_kept)
    : random_(seed), repeated_(repeated), probes_(probes), later_(std::move(do_later)),
      trials_go_on_(trials_go_on), grants_are_kept_(grants_are_kept) {}

void master_mail::lose_start(std::function<void(const start_ordered&)> lost) {
  starts_to_lose_.push_back(std::move(lost));
}

void master_mail::forget() {
  requests_.clear();
  late_.clear();
}

void master_mail::before(caf::scheduled_actor& who, caf::mailbox_element& mail) {
  if (repeated_ == 0 && starts_to_lose_.empty())
    return;
  const auto& what = static_cast<const caf::mailbox_element&>(mail).content();
  const auto type = key_of(what);
  const auto is = [type](const std::type_info& of) { return type == reinterpret_cast<type_key>(&of); };
  const auto taken = [&] {
    return sent{mail.sender, caf::strong_actor_ptr{who.ctrl()}, mail.copy_content_to_message()};
  };
  if (is(typeid(start_ordered)) && !starts_to_lose_.empty()) {
    starts_to_lose_.back()(what.get_as<start_ordered>(0));
    starts_to_lose_.pop_back();
    drop();
  } else if (is(typeid(allocation_ended)) && random_.chance(repeated_)) {
    repeat(taken(), true);
  } else if (is(typeid(trial_finished)) && random_.chance(repeated_)) {
    repeat(taken(), !trials_go_on_);
  } else if (is(typeid(slots_requested))) {
    see_request(what.get_as<slots_requested>(0), taken());
  } else if (is(typeid(slots_released))) {
    see_release(what.get_as<slots_released>(0), taken());
  }
}
void master_mail::after() {
  if (std::exchange(disturbed_, false))
    probes_.forget_faults();
}

void master_mail::repeat(sent mail, bool perhaps_late) {
  if (random_.chance(0.5) || !perhaps_late)
    return arrive(mail);
  later_(std::chrono::milliseconds(1 + random_.below(20'000)),
         [this, mail = std::move(mail)] { arrive(mail); });
}
void master_mail::arrive(const sent& mail) {
  mail.to->enqueue(mail.from, caf::make_message_id(), mail.what, nullptr);
}

/// An actor that was made again has asked anew: what its predecessor said came before, always.
bool master_mail::is_current(allocation_id id, const caf::strong_actor_ptr& who) const {
  const auto entry = probes_.find(entity(id));
  const auto now = entry ? entry->who.lock() : nullptr;
  return !now || now == who;
}

void master_mail::see_request(const slots_requested& x, sent mail) {
  if (late_.contains(x.allocation) || !random_.chance(repeated_))
    return;
  if (random_.chance(0.3))
    return arrive(mail);
  if (random_.chance(0.5)) {
    requests_[x.allocation] = std::move(mail);
    return;
  }
  later_(std::chrono::milliseconds(1 + random_.below(20'000)), [this, id = x.allocation, mail] {
    if (is_current(id, mail.from))
      arrive(mail);
  });
}

void master_mail::see_release(const slots_released& x, const sent& mail) {
  if (!x.agent.empty())
    return;
  if (grants_are_kept_ && late_.contains(x.allocation))
    return drop();
  const auto asked = requests_.find(x.allocation);
  if (asked == requests_.end() || asked->second.to != mail.to || asked->second.from != mail.from)
    return;
  late_.insert(x.allocation);
  arrive(asked->second);
  requests_.erase(asked);
}

/// It is forgotten after the next message of all actors, which is that one.
void master_mail::drop() {
  auto fault = std::make_shared<message_fault>();
  fault->what = message_fault::kind::drop;
  fault->left = 1;
  fault->until = not_timed;
  probes_.disturb(std::move(fault));
  disturbed_ = true;
}

} // namespace troupe::sim

#pragma once
// What happens to messages within the master that CAF itself does to none: some arrive twice, also much
// later, and an order to start may be lost on its way to a twin.

#include "actors/messages.hpp"
#include "actors/pool/pool_events.hpp"
#include "actors/shells/probe_register.hpp"
#include "model/rng.hpp"

#include <caf/all.hpp>

#include <functional>
#include <map>
#include <set>

namespace troupe::sim {

class master_mail {
public:
  using later = std::function<void(duration, std::function<void()>)>;
  /// `repeated`: share of the ends of allocations and trials, and of requests for slots, that arrive twice.
  /// `trials_go_on`: whether a trial may run again after its end, which does not say which end it is.
  /// `grants_are_kept`: a planted fault, an allocation that has ended keeps the slots of a late grant.
  master_mail(std::uint64_t seed, double repeated, bool trials_go_on, probe_register& probes, later do_later,
              bool grants_are_kept);

  /// `who` takes `mail`, which is no answer, now.
  void before(caf::scheduled_actor& who, caf::mailbox_element& mail);
  void after();
  void lose_start(std::function<void(const start_ordered&)> lost); ///< the next one
  void forget();                                                   ///< the master has died

private:
  struct sent {
    caf::strong_actor_ptr from, to;
    caf::message what;
  };
  void repeat(sent mail, bool perhaps_late);
  void arrive(const sent& mail);
  void see_request(const slots_requested& x, sent mail);
  void see_release(const slots_released& x, const sent& mail);
  bool is_current(allocation_id id, const caf::strong_actor_ptr& who) const;
  void drop();

  rng random_;
  double repeated_;
  probe_register& probes_;
  later later_;
  bool trials_go_on_, grants_are_kept_;
  bool disturbed_ = false;
  std::vector<std::function<void(const start_ordered&)>> starts_to_lose_;
  std::map<allocation_id, sent> requests_; ///< that may come again behind the release of what they asked for
  std::set<allocation_id> late_;           ///< those whose request did
};

} // namespace troupe::sim

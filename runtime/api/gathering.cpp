#include "runtime/api/gathering.hpp"

#include "runtime/api/errors.hpp"

#include <algorithm>

namespace troupe::api {

constexpr duration forgotten_after = 1h; // limit of the wait for the other peers

/// Adds a request to a round. It replaces an earlier try of the same request, for which usually nobody waits
/// any more.
void gathering::join(round& in, const std::string& request, value data, const reply& back,
                     std::vector<reply>& replaced) {
  auto own =
    std::find_if(in.parts.begin(), in.parts.end(), [&](const auto& p) { return p.request == request; });
  if (own == in.parts.end())
    own = in.parts.insert(in.parts.end(), {request, {}, {}});
  own->data = std::move(data);
  replaced = std::exchange(own->waiting, {back});
}

void gathering::add(allocation_id who, const std::string& request, std::size_t peers, value data,
                    time_point now, reply back) {
  if (peers == 0 || peers > most_peers || request.empty())
    return back(
      failure({errc::invalid,
               "a call that waits for all ranks needs a requestUuid and numPeers between 1 and 4096"}));
  std::vector<reply> complete, replaced, forgotten; // these are answered after the lock is released
  value all = value::array();
  std::size_t others = 0;
  {
    std::lock_guard lock{mutex_};
    std::erase_if(rounds_, [&](auto& one) {
      const bool over = now - one.second.last > forgotten_after;
      for (auto& part : one.second.parts)
        if (over)
          std::move(part.waiting.begin(), part.waiting.end(), std::back_inserter(forgotten));
      return over;
    });
    auto& round = rounds_[who];
    others = round.parts.empty() ? peers : round.peers;
    if (others == peers)
      join(round, request, std::move(data), back, replaced);
    round.peers = others;
    round.last = now;
    if (round.parts.size() >= others) {
      for (auto& part : round.parts) {
        all.push_back(std::move(part.data));
        std::move(part.waiting.begin(), part.waiting.end(), std::back_inserter(complete));
      }
      rounds_.erase(who);
    }
  }
  if (others != peers)
    back(failure({errc::invalid, "numPeers is " + std::to_string(peers) + ", but other peers said " +
                                   std::to_string(others)}));
  for (const auto& one : replaced)
    one(failure({errc::conflict, "the same request has come again, and waits in this one's place"}));
  for (const auto& one : forgotten)
    one(failure({errc::timeout, "the other peers have not come"}));
  for (const auto& one : complete)
    one(json({{"data", all}}));
}

} // namespace troupe::api

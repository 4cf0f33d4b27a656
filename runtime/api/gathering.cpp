#include "runtime/api/gathering.hpp"

#include "runtime/api/errors.hpp"

#include <algorithm>

namespace troupe::api {

constexpr duration forgotten_after = 1h; // peers that came and whose others never did

void gathering::add(allocation_id who, const std::string& request, std::size_t peers, value data, time_point now, reply back) {
  if (peers == 0 || peers > most_peers || request.empty())
    return back(failure({errc::invalid, "all_gather needs a requestUuid and numPeers between 1 and 4096"}));
  std::vector<reply> complete;
  value all = value::array();
  {
    std::lock_guard lock{mutex_};
    std::erase_if(rounds_, [&](const auto& one) { return now - one.second.last > forgotten_after; });
    auto& round = rounds_[who];
    if (!round.parts.empty() && round.peers != peers)
      return back(failure({errc::invalid, "numPeers is " + std::to_string(peers) + ", but other peers said " + std::to_string(round.peers)}));
    round.peers = peers;
    round.last = now;
    auto own = std::find_if(round.parts.begin(), round.parts.end(), [&](const auto& p) { return p.request == request; });
    if (own == round.parts.end())
      own = round.parts.insert(round.parts.end(), {request, {}, {}});
    own->data = std::move(data);
    own->waiting = {std::move(back)}; // an earlier try of the same request has given up
    if (round.parts.size() < peers)
      return;
    for (auto& part : round.parts) {
      all.push_back(std::move(part.data));
      std::move(part.waiting.begin(), part.waiting.end(), std::back_inserter(complete));
    }
    rounds_.erase(who);
  }
  for (const auto& one : complete)
    one(json({{"data", all}}));
}

} // namespace troupe::api

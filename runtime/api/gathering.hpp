#pragma once
// all_gather: each of N peers of an allocation brings its part and gets the parts of all. Parts are held in
// memory only: after a restart of this process the peers ask again and begin anew. Thread-safe.

#include "model/ids.hpp"
#include "runtime/api/http.hpp"

#include <map>
#include <mutex>

namespace troupe::api {

class gathering {
public:
  /// Answers every peer with {"data": [...]}, in the order of arrival, once `peers` distinct requests have
  /// come. A request that comes again (same id) replaces the earlier one, which is answered errc::conflict.
  /// Answers errc::invalid where `peers` differs from that of the other requests, and errc::timeout where the
  /// others have not come within an hour.
  void add(allocation_id who, const std::string& request, std::size_t peers, value data, time_point now,
           reply back);

  static constexpr std::size_t most_peers = 4096;

private:
  struct part {
    std::string request;
    value data;
    std::vector<reply> waiting;
  };
  struct round {
    std::size_t peers = 0;
    std::vector<part> parts;
    time_point last;
  };
  static void join(round& in, const std::string& request, value data, const reply& back,
                   std::vector<reply>& replaced);

  std::mutex mutex_;
  std::map<allocation_id, round> rounds_;
};

} // namespace troupe::api

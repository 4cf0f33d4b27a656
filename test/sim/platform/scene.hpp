#pragma once
// What the users of a history can do in it: give orders, wait, and read what is stored.

#include "model/result.hpp"
#include "model/time.hpp"
#include "model/value.hpp"
#include "storage/journal.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::sim {

struct scene {
  std::function<std::shared_ptr<storage::reader>()> reads; ///< null while the master is away
  std::function<void(duration, std::function<void()>)> later;
  /// Repeats an order until the master has answered, and passes the answer on.
  std::function<void(std::string order, value fields, std::function<void(const result<value>&)>)> insist;
  std::function<void(std::string)> note; ///< notes a fault, which ends the history
};

} // namespace troupe::sim

#pragma once
// What the users of a history have of it: they order, wait, and read what is stored.

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
  /// Says it until the master has answered, and hands on what it has answered.
  std::function<void(std::string order, value fields, std::function<void(const result<value>&)>)> insist;
  std::function<void(std::string)> note; ///< what should not be; the history ends of it
};

} // namespace troupe::sim

#pragma once
// The `searcher` section of an experiment configuration, read once, and a reader that collects every fault.

#include "searchers/searcher.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace troupe::searchers {

/// Reads members of one object. A missing or null member gives the fallback; a wrong one adds a fault.
class section {
public:
  section(const value& object, std::string where, std::vector<std::string>& faults);

  bool has(const char* key) const;
  std::string text(const char* key, std::string fallback = {});
  std::string one_of(const char* key, std::vector<std::string> names, std::string fallback);
  bool flag(const char* key, bool fallback);
  double number(const char* key, double fallback, double least,
                double most = std::numeric_limits<double>::max());
  std::int64_t integer(const char* key, std::int64_t fallback, std::int64_t least,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::vector<std::int64_t> integers(const char* key, std::int64_t least);
  std::vector<std::string> texts(const char* key); ///< reads a string or a list of strings
  const value& member(const char* key) const;      ///< null where there is none
  void fault(const std::string& key, const std::string& what);
  std::vector<std::string>& faults() { return faults_; }

private:
  const value* find(const char* key) const;
  const value& object_;
  std::string where_;
  std::vector<std::string>& faults_;
};

/// Settings of every search, whatever its algorithm.
struct settings {
  std::string name;
  std::string metric;
  bool smaller_is_better = true;
  std::string time_metric; ///< empty: reports are counted instead
  std::int64_t max_trials = 1;
  std::int64_t max_concurrent = 16; ///< 0: no limit
  std::uint64_t seed = 0;

  double sign() const { return smaller_is_better ? 1.0 : -1.0; }
};

settings read_settings(section& in, std::uint64_t seed);

} // namespace troupe::searchers

#pragma once
// A console on strings, and a function that runs a whole command line.

#include "runtime/cli/run.hpp"
#include "runtime/cli/session.hpp"

#include <map>
#include <sstream>

namespace troupe::cli {

struct outcome_of_call {
  int code = 0;
  std::string out, err;
};

using variables = std::map<std::string, std::string>;

inline outcome_of_call call(const words& given, const hooks& node = {}, variables env = {},
                            const std::string& in = "", const terminal& screen = {}) {
  std::istringstream input(in);
  std::ostringstream out, err;
  env.emplace("HOME", "/nonexistent");
  console io{input,
             out,
             err,
             screen,
             screen,
             -1,
             [] { return time_point{std::chrono::seconds(1'700'000'000)}; },
             [env](const char* name) {
               auto at = env.find(name);
               return at == env.end() ? std::string() : at->second;
             }};
  outcome_of_call got;
  got.code = run(given, node, io);
  got.out = out.str();
  got.err = err.str();
  return got;
}

} // namespace troupe::cli

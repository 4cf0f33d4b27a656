// The HTTP server with recorded rows behind it: prints its port, serves until its standard input ends.

#include "test/unit/api/fakes.hpp"

#include <iostream>

int main() {
  using namespace troupe;
  using namespace troupe::api;
  live x;
  x.cluster.answers["agent.list"] = [](const auto&) {
    return value{
      {"agents",
       value::array(
         {{{"id", "r4nd0m"},
           {"name", "a1"},
           {"host", "127.0.0.1"},
           {"since", to_rfc3339(t0)},
           {"state", "alive"},
           {"slots",
            value::array({{{"id", 0}, {"device", "cpu"}, {"enabled", true}, {"allocation", "12.2"}}})}}})}};
  };
  x.cluster.answers["experiment.create"] = [](const auto&) { return value{{"id", 7}}; };
  {
    std::lock_guard lock{x.reader->mutex};
    auto& e = x.reader->experiment_rows[7];
    e.state = experiment_state::completed;
    e.ended = t0 + 40s;
    auto& t = x.reader->trial_rows[12];
    t.state = trial_state::completed;
    t.ended = t.runs.back().ended = t0 + 40s;
  }
  std::cout << x.http->port() << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
}

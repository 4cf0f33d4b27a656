// Sends metric reports over HTTP: kept connections, each with one report at a time, every answer awaited.
// Prints one line of JSON.
//   perf_api_reports PORT TOKEN TRIAL RUN CONNECTIONS SECONDS

#include "test/unit/api/fakes.hpp"

#include <iostream>
#include <thread>

namespace {

using namespace troupe;
using namespace troupe::api;
using clock_type = std::chrono::steady_clock;

struct sent {
  long accepted = 0, refused = 0;
  std::vector<double> milliseconds;
};

sent send(std::uint16_t port, const std::string& token, const std::string& trial, const std::string& run,
          int connection, clock_type::time_point end) {
  sent all;
  raw_client c{port};
  const auto path = "/api/v1/trials/" + trial + "/metrics";
  for (long i = 0; clock_type::now() < end; ++i) {
    const auto body = R"({"group":"training","metrics":{"trialId":)" + trial + R"(,"trialRunId":)" + run +
                      R"(,"stepsCompleted":)" + std::to_string(i) +
                      R"(,"reportTime":null,"metrics":{"batchMetrics":null,"avgMetrics":{"loss":)" +
                      std::to_string(1.0 / double(i + 1)) + R"(,"connection":)" + std::to_string(connection) +
                      "}}}}";
    const auto began = clock_type::now();
    const auto status = c.ask("POST", path, token, body).status;
    all.milliseconds.push_back(std::chrono::duration<double, std::milli>(clock_type::now() - began).count());
    ++(status == 200 ? all.accepted : all.refused);
  }
  return all;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::cerr << "usage: perf_api_reports PORT TOKEN TRIAL RUN CONNECTIONS SECONDS\n";
    return 2;
  }
  const auto port = static_cast<std::uint16_t>(std::stoi(argv[1]));
  const int connections = std::stoi(argv[5]);
  const double seconds = std::stod(argv[6]);
  std::vector<sent> parts(static_cast<std::size_t>(connections));
  std::vector<std::thread> threads;
  const auto end = clock_type::now() +
                   std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(seconds));
  for (int i = 0; i < connections; ++i)
    threads.emplace_back(
      [&, i] { parts[static_cast<std::size_t>(i)] = send(port, argv[2], argv[3], argv[4], i, end); });
  for (auto& one : threads)
    one.join();
  sent all;
  for (auto& one : parts) {
    all.accepted += one.accepted;
    all.refused += one.refused;
    all.milliseconds.insert(all.milliseconds.end(), one.milliseconds.begin(), one.milliseconds.end());
  }
  std::sort(all.milliseconds.begin(), all.milliseconds.end());
  const auto at = [&](double share) {
    return all.milliseconds.empty()
             ? 0
             : all.milliseconds[std::min(all.milliseconds.size() - 1,
                                         std::size_t(share * double(all.milliseconds.size())))];
  };
  std::cout << to_json({{"accepted", all.accepted},
                        {"refused", all.refused},
                        {"per_second", double(all.accepted) / seconds},
                        {"p50_ms", at(0.5)},
                        {"p99_ms", at(0.99)}})
            << "\n";
  return all.refused ? 1 : 0;
}

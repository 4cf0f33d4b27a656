// Claim: the agent's listener adds at most 1 ms p50 to a task's request. A toy master answers a metric
// report; it is asked directly and through the listener, in turns, over kept connections, as the stock client
// keeps them.
//
//   perf_forward [ROUNDS [CLIENTS]]

#include "test/unit/forward/toy_master.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace troupe::forward;
using namespace troupe::forward::test;
using clock_type = std::chrono::steady_clock;

double percentile(std::vector<double> all, double part) {
  std::sort(all.begin(), all.end());
  return all.empty()
           ? 0
           : all[std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())))];
}

void print(const char* what, const std::vector<double>& us) {
  std::printf("%-28s p50 %7.0f us   p90 %7.0f us   p99 %7.0f us\n", what, percentile(us, 0.5),
              percentile(us, 0.9), percentile(us, 0.99));
}

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5000, clients = argc > 2 ? std::atoi(argv[2]) : 4;
  toy_master master{[](wire& w, int) {
    while (!w.message().empty())
      w.send(answer("{}"));
  }};
  forward_options how;
  how.master = [port = master.port()] { return std::optional{master_address{"127.0.0.1", port, {}}}; };
  auto it = forwarder::start(how);
  if (!it) {
    std::fprintf(stderr, "%s\n", it.error().what.c_str());
    return 1;
  }
  const std::string body(600, ' ');
  const std::string report =
    "POST /api/v1/trials/1/metrics HTTP/1.1\r\nHost: x\r\nGrpc-Metadata-x-allocation-token: Bearer t\r\n"
    "Content-Length: 602\r\n\r\n{" +
    body + "}";
  std::mutex mutex;
  std::vector<double> direct, through;
  std::vector<std::thread> threads;
  for (int n = 0; n < clients; ++n)
    threads.emplace_back([&] {
      auto one = dial(master.port()), other = dial((*it)->port());
      std::vector<double> a, b;
      for (int round = 0; round < rounds; ++round)
        for (auto [to, into] : {std::pair{&one, &a}, {&other, &b}}) {
          auto start = clock_type::now();
          to->send(report);
          if (!to->message().starts_with("HTTP/1.1 200"))
            std::abort();
          into->push_back(std::chrono::duration<double, std::micro>(clock_type::now() - start).count());
        }
      std::lock_guard lock(mutex);
      direct.insert(direct.end(), a.begin(), a.end());
      through.insert(through.end(), b.begin(), b.end());
    });
  for (auto& thread : threads)
    thread.join();
  const auto added = percentile(through, 0.5) - percentile(direct, 0.5);
  std::printf("%d clients, %d requests each way and client\n", clients, rounds);
  print("direct", direct);
  print("through the agent's listener", through);
  std::printf("added p50: %.0f us (claim: at most 1000)\n", added);
  (*it)->stop();
  return added <= 1000 ? 0 : 1;
}

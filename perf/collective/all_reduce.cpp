// all_reduce of f32 by two processes through `shm`, beside its floor: both have just written their data into
// memory that both see, copy the other's out of it once, and tell each other so. For each length given it
// prints a line `BYTES OWN_SECONDS COMMON_SECONDS FLOOR_SECONDS`: with data in a std::vector, and in memory
// of collective::allocate. Each figure is the slowest of the fastest tenth, because other work on the machine
// slows the rest.
#include "workers/collectives/shared_copy.hpp"
#include "workers/collectives/shm.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using clock_type = std::chrono::steady_clock;

struct floor_memory {
  alignas(64) std::atomic<std::uint32_t> told[2][16];
};

double seconds_since(clock_type::time_point from) {
  return std::chrono::duration<double>(clock_type::now() - from).count();
}

double fastest_tenth(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + std::ptrdiff_t(x.size() / 10), x.end());
  return x[x.size() / 10];
}

} // namespace

int main(int argc, char** argv) {
  std::size_t largest = 0;
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) {
    sizes.push_back(std::strtoull(argv[i], nullptr, 10));
    largest = std::max(largest, sizes.back());
  }
  if (largest == 0) {
    std::fprintf(stderr, "usage: perf_collective BYTES...\n");
    return 2;
  }
  const auto map = [](std::size_t bytes) {
    return static_cast<std::byte*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  };
  auto* memory = new (map(sizeof(floor_memory))) floor_memory{};
  std::byte* shared[2] = {map(largest), map(largest)};
  const std::string name = "perf-" + std::to_string(getpid());
  const int rank = fork() == 0 ? 1 : 0;
  cpu_set_t own; // else a scheduler may put both on one processor, where each finds the other's part done
  CPU_ZERO(&own);
  CPU_SET(rank, &own);
  sched_setaffinity(0, sizeof own, &own);

  auto c = troupe::join_shm({.name = name, .rank = rank, .size = 2});
  if (!c) {
    std::fprintf(stderr, "%s\n", c.error().what.c_str());
    return 1;
  }
  std::uint32_t turn = 0, spins = 0;
  const auto meet = [&] {
    memory->told[rank][0].store(++turn, std::memory_order_release);
    while (std::int32_t(memory->told[1 - rank][0].load(std::memory_order_acquire) - turn) < 0)
      if (++spins % 4096 == 0)
        sched_yield();
  };
  for (const std::size_t bytes : sizes) {
    std::vector<float> data(bytes / sizeof(float), 1.0f);
    const int repeats = std::clamp<int>(int((std::size_t(256) << 20) / (bytes + 65536)), 21, 1000);
    auto common = (*c)->allocate<float>(bytes / sizeof(float));
    if (!common) {
      std::fprintf(stderr, "%s\n", common.error().what.c_str());
      return 1;
    }
    bool right = true;
    const auto time_of = [&](std::span<float> memory, int i) {
      std::memset(memory.data(), i & 1, bytes); // as a backward pass writes it
      const float before = memory.front();
      meet();
      const auto from = clock_type::now();
      const bool done = bool((*c)->all_reduce(memory, troupe::reduce::sum));
      const double took = seconds_since(from);
      right = right && done && memory.front() == 2 * before && memory.back() == 2 * before;
      return took;
    };
    std::vector<double> own, in_common, least;
    for (int i = 0; i < repeats + 3; ++i) {
      const double times[] = {time_of(data, i), time_of(*common, i)};
      std::memset(shared[rank], i & 1, bytes);
      meet();
      const auto from = clock_type::now();
      troupe::copy_evenly(reinterpret_cast<std::byte*>(data.data()), shared[1 - rank],
                          bytes); // the faster way here
      meet();
      if (i >= 3) {
        own.push_back(times[0]);
        in_common.push_back(times[1]);
        least.push_back(seconds_since(from));
      }
    }
    if (!right) {
      std::fprintf(stderr, "wrong sums of %zu bytes\n", bytes);
      return 1;
    }
    if (rank == 0)
      std::printf("%zu %.9f %.9f %.9f\n", bytes, fastest_tenth(own), fastest_tenth(in_common),
                  fastest_tenth(least));
  }
  std::fflush(stdout);
  if (rank == 1)
    _exit(0);
  wait(nullptr);
  return 0;
}

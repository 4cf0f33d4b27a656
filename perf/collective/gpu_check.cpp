// What the member `nccl` does on a machine with a GPU: ranks are processes that share device 0, or have one
// each where there are enough.
//   gpu_check operations RANKS   every operation of every type against a reference
//   gpu_check abort RANKS        a rank is killed inside an operation; when do the others' end
//   gpu_check overhead RANKS     against the bare NCCL call, by size
#include "workers/collectives/nccl.hpp"
#include "workers/collectives/nccl_calls.hpp"
#include "workers/collectives/shm.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "gpu_check: %s\n", why.c_str());
  _exit(1);
}
void need(const result<void>& x, const char* what) {
  if (!x)
    die(std::string(what) + ": " + x.error().what);
}
void need(cudaError_t x, const char* what) {
  if (x != cudaSuccess)
    die(std::string(what) + ": " + cudaGetErrorString(x));
}
double seconds_since(steady::time_point from) {
  return std::chrono::duration<double>(steady::now() - from).count();
}

int devices() { // asked in another process: CUDA does not survive a fork
  int ends[2];
  if (pipe(ends) != 0)
    return 0;
  if (fork() == 0) {
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess)
      n = 0;
    (void)!write(ends[1], &n, sizeof n);
    _exit(0);
  }
  int n = 0;
  (void)!read(ends[0], &n, sizeof n);
  wait(nullptr);
  return n;
}

result<std::unique_ptr<collective>> join(const std::string& name, int rank, int size, int device) {
  auto host = join_shm({.name = name, .rank = rank, .size = size});
  if (!host)
    return host;
  return join_nccl(std::move(*host), {.device = device});
}

template <class T>
class device_memory {
public:
  explicit device_memory(std::size_t n) : n_(n) {
    need(cudaMalloc(reinterpret_cast<void**>(&at_), std::max<std::size_t>(n, 1) * sizeof(T)), "cudaMalloc");
  }
  ~device_memory() { cudaFree(at_); }
  void put(const std::vector<T>& x) {
    need(cudaMemcpy(at_, x.data(), n_ * sizeof(T), cudaMemcpyHostToDevice), "to the device");
  }
  std::vector<T> get() const {
    std::vector<T> x(n_);
    need(cudaMemcpy(x.data(), at_, n_ * sizeof(T), cudaMemcpyDeviceToHost), "from the device");
    return x;
  }
  std::span<T> all() { return {at_, n_}; }
  std::span<T> part(std::size_t from, std::size_t n) { return {at_ + from, n}; }

private:
  T* at_ = nullptr;
  std::size_t n_;
};

template <class T>
double wide(T x) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return to_float(x);
  else
    return double(x);
}
template <class T>
T narrow(double x) {
  if constexpr (std::is_same_v<T, f16>)
    return to_f16(float(x));
  else if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(float(x));
  else
    return T(x);
}
template <class T>
T value_of(int rank, std::size_t i) {
  return narrow<T>(double((i * 2654435761u + std::size_t(rank) * 40503u) % 201) - 100); // exact in every type
}
template <class T>
double expected(int size, std::size_t i, reduce how) {
  double sum = wide(value_of<T>(0, i));
  for (int r = 1; r < size; ++r) {
    const double x = wide(value_of<T>(r, i));
    sum = how == reduce::min ? std::min(sum, x) : how == reduce::max ? std::max(sum, x) : sum + x;
  }
  return how == reduce::average ? (std::is_integral_v<T> ? std::trunc(sum / size) : sum / size) : sum;
}
template <class T>
constexpr double tolerance = std::is_same_v<T, bf16>    ? 1e-2
                             : std::is_same_v<T, f16>   ? 2e-3
                             : std::is_same_v<T, float> ? 1e-6
                                                        : 1e-12;

int checked = 0;
template <class T>
void check(const std::vector<T>& got, const std::function<double(std::size_t)>& want, const char* what) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = wide(got[i]), b = want(i);
    if (std::abs(a - b) > tolerance<T> * std::max(1.0, std::abs(b)))
      die(std::string(what) + " of " + name(element_of<T>) + ": element " + std::to_string(i) + " is " +
          std::to_string(a) + ", expected " + std::to_string(b));
  }
  ++checked;
}

template <class T>
void operations_of(collective& c) {
  const auto ranks = std::size_t(c.size()), me = std::size_t(c.rank());
  for (const std::size_t n : {0, 1, 3, 257, 5001, 1 << 20}) {
    std::vector<T> mine(n), all(n * ranks);
    for (std::size_t i = 0; i < n; ++i)
      mine[i] = value_of<T>(c.rank(), i);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = value_of<T>(c.rank(), i);
    device_memory<T> a(n), b(n * ranks);
    for (const reduce how : {reduce::sum, reduce::average, reduce::min, reduce::max}) {
      a.put(mine);
      need(c.all_reduce(a.all(), how), "all_reduce");
      check<T>(
        a.get(), [&](std::size_t i) { return expected<T>(c.size(), i, how); }, "all_reduce");
      b.put(all);
      need(c.reduce_scatter(std::span<const T>(b.all()), a.all(), how), "reduce_scatter");
      check<T>(
        a.get(), [&](std::size_t i) { return expected<T>(c.size(), me * n + i, how); }, "reduce_scatter");
    }
    a.put(mine);
    auto first = c.all_reduce_async(a.all(), reduce::max), second = c.all_reduce_async(a.all(), reduce::max);
    need(second.wait(), "all_reduce_async");
    need(first.wait(), "all_reduce_async");
    check<T>(
      a.get(), [&](std::size_t i) { return expected<T>(c.size(), i, reduce::max); }, "all_reduce_async");
    a.put(mine);
    const std::size_t half = n / 2;
    const std::span<T> parts[] = {a.part(0, half), a.part(half, n - half)};
    need(c.all_reduce_grouped(parts, reduce::sum), "all_reduce_grouped");
    check<T>(
      a.get(), [&](std::size_t i) { return expected<T>(c.size(), i, reduce::sum); }, "all_reduce_grouped");
    for (int root = 0; root < c.size(); ++root) {
      a.put(mine);
      need(c.broadcast(a.all(), root), "broadcast");
      check<T>(
        a.get(), [&](std::size_t i) { return wide(value_of<T>(root, i)); }, "broadcast");
    }
    a.put(mine);
    need(c.all_gather(std::span<const T>(a.all()), b.all()), "all_gather");
    check<T>(
      b.get(),
      [&](std::size_t i) {
        return wide(value_of<T>(int(i / std::max<std::size_t>(n, 1)), i % std::max<std::size_t>(n, 1)));
      },
      "all_gather");
    std::vector<T> on_host = mine; // memory of a processor goes another way, through the same group
    need(c.all_reduce(on_host, reduce::sum), "all_reduce on the host");
    check<T>(
      on_host, [&](std::size_t i) { return expected<T>(c.size(), i, reduce::sum); },
      "all_reduce on the host");
    need(c.barrier(), "barrier");
  }
}

void operations(collective& c) {
  operations_of<f16>(c);
  operations_of<bf16>(c);
  operations_of<float>(c);
  operations_of<double>(c);
  operations_of<std::int32_t>(c);
  operations_of<std::int64_t>(c);
  if (c.rank() == 0)
    std::printf("operations, %d ranks: %d results are right\n", c.size(), checked);
}

void reduce_until_broken(collective& c) {
  device_memory<float> data(1 << 22);
  data.put(std::vector<float>(1 << 22, 0.0f));
  steady::time_point last = steady::now();
  for (;;) {
    auto outcome = c.all_reduce(data.all(), reduce::sum);
    if (!outcome) {
      std::printf("abort, %d ranks: rank %d ended %.0f ms after its last whole operation: %s\n", c.size(),
                  c.rank(), 1e3 * seconds_since(last), outcome.error().what.c_str());
      std::fflush(stdout);
      return;
    }
    last = steady::now();
  }
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + std::ptrdiff_t(x.size() / 2), x.end());
  return x[x.size() / 2];
}

void overhead(collective& c, int device) {
  const auto calls = load_nccl("");
  if (!calls)
    die(calls.error().what);
  const auto& nccl = **calls;
  ncclUniqueId id{};
  if (c.rank() == 0)
    nccl.nccl_unique_id(&id);
  std::vector<std::int32_t> words(sizeof id / 4);
  std::memcpy(words.data(), &id, sizeof id);
  need(c.broadcast(words, 0), "broadcast");
  std::memcpy(&id, words.data(), sizeof id);
  need(cudaSetDevice(device), "cudaSetDevice");
  ncclComm_t bare = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (nccl.nccl_init(&bare, c.size(), id, c.rank(), &config) != ncclSuccess)
    die("cannot make a bare communicator");
  cudaStream_t stream = nullptr;
  need(cudaStreamCreate(&stream), "a stream");
  if (c.rank() == 0)
    std::printf("overhead, %d ranks\n%10s %12s %12s %10s %8s\n", c.size(), "bytes", "bare us", "member us",
                "more us", "more %");
  for (std::size_t bytes = 1024; bytes <= (64u << 20); bytes *= 4) {
    device_memory<float> data(bytes / 4);
    std::vector<std::int32_t> repeats{20};
    std::vector<double> ours, theirs;
    const auto begun = steady::now();
    for (int i = 0; i < repeats[0]; ++i) { // in turns; each is first equally often
      for (const bool bare_now : {i % 2 == 0, i % 2 != 0}) {
        need(c.barrier(), "barrier");
        const auto from = steady::now();
        if (bare_now) {
          nccl.nccl_all_reduce(data.all().data(), data.all().data(), bytes / 4, ncclFloat32, ncclSum, bare,
                               stream);
          while (cudaStreamQuery(stream) == cudaErrorNotReady)
            ;
        } else {
          need(c.all_reduce(data.all(), reduce::sum), "all_reduce");
        }
        (bare_now ? theirs : ours).push_back(seconds_since(from));
      }
      if (i + 1 == 20) { // for about 2 s: ranks that share a GPU take turns of milliseconds on it
        repeats[0] = std::int32_t(std::clamp(40 / std::max(seconds_since(begun), 1e-6), 40.0, 2000.0));
        need(c.broadcast(repeats, 0), "broadcast");
        ours.clear();
        theirs.clear();
      }
    }
    const double a = median(theirs), b = median(ours);
    if (c.rank() == 0)
      std::printf("%10zu %12.2f %12.2f %10.2f %8.2f\n", bytes, 1e6 * a, 1e6 * b, 1e6 * (b - a),
                  100 * (b - a) / a);
  }
  nccl.nccl_abort(bare);
  cudaStreamDestroy(stream);
}

} // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  const int size = argc == 3 ? std::atoi(argv[2]) : 0;
  if (size < 1 || (mode != "operations" && mode != "abort" && mode != "overhead")) {
    std::fprintf(stderr, "usage: gpu_check operations|abort|overhead RANKS\n");
    return 2;
  }
  const int gpus = devices();
  if (gpus == 0) {
    std::fprintf(stderr, "gpu_check: CUDA sees no device\n");
    return 3;
  }
  const std::string name = "gpu-check-" + std::to_string(getpid());
  std::vector<pid_t> ranks;
  for (int r = 0; r < size; ++r) {
    std::fflush(stdout);
    if (const pid_t pid = fork(); pid != 0) {
      ranks.push_back(pid);
      continue;
    }
    const int device = r % gpus;
    auto c = join(name, r, size, device);
    if (!c)
      die("rank " + std::to_string(r) + ": " + c.error().what);
    if (mode == "operations")
      operations(**c);
    else if (mode == "overhead")
      overhead(**c, device);
    else
      reduce_until_broken(**c);
    std::fflush(stdout);
    c = error{};
    _exit(0);
  }
  int worst = 0;
  if (mode == "abort") {
    sleep(12); // long enough for all ranks to have joined and to be reducing
    kill(ranks.back(), SIGKILL);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    int status = 0;
    waitpid(ranks[i], &status, 0);
    if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0) && !(mode == "abort" && i + 1 == ranks.size()))
      worst = 1;
  }
  std::printf("%s, %d ranks: %s\n", mode.c_str(), size, worst == 0 ? "passed" : "FAILED");
  return worst;
}

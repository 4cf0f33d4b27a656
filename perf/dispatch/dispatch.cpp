// Claim: from launch() of a no-op task to its process running in its sandbox takes at most twice a bare spawn
// into the same namespaces. Each round measures both kinds of bare spawn and a launch, one after the other.
//
//   perf_dispatch [ROUNDS]

#include "workers/process_runtime.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sys/resource.h>

namespace {

using namespace troupe;
using namespace troupe::workers;
using clock_type = std::chrono::steady_clock;

double us(clock_type::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

double percentile(std::vector<double> all, double part) {
  std::sort(all.begin(), all.end());
  return all.empty()
           ? 0
           : all[std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())))];
}

double cpu_us() {
  double sum = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage u{};
    getrusage(who, &u);
    sum += static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
  }
  return sum;
}

/// Time that a process has run, from its schedstat; 0 where the process is gone.
double ran_us(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  double ns = 0;
  file >> ns;
  return ns / 1000;
}

/// A running bare_spawn, which is asked line by line.
class bare {
public:
  bare(const std::string& mode, const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder / "tmp");
    std::filesystem::create_directories(folder / "run");
    auto answers = folder / "answers";
    mkfifo_ = answers;
    auto command = std::string("mkfifo ") + answers.string();
    if (std::system(command.c_str()) != 0)
      std::exit(1);
    ask_ =
      ::popen((std::string(BARE_SPAWN_PROGRAM) + " " + mode + " " + folder.string() + " >" + answers.string())
                .c_str(),
              "w");
    answers_ = std::fopen(answers.c_str(), "r");
  }
  ~bare() {
    ::pclose(ask_);
    std::fclose(answers_);
  }
  void once(std::vector<double>& wall, std::vector<double>& cpu) {
    std::fputs("go\n", ask_);
    std::fflush(ask_);
    double ns = 0, us = 0;
    if (std::fscanf(answers_, "%lf %lf", &ns, &us) != 2) {
      std::fprintf(stderr, "bare_spawn gave no answer\n");
      std::exit(1);
    }
    wall.push_back(ns / 1000);
    cpu.push_back(us);
  }

private:
  std::filesystem::path mkfifo_;
  FILE* ask_ = nullptr;
  FILE* answers_ = nullptr;
};

/// Waits for events, one task at a time.
class watcher {
public:
  void tell(const task_event& event) {
    std::lock_guard lock(mutex_);
    if (const auto* x = std::get_if<task_started>(&event))
      started_ = x->id, started_at_ = clock_type::now();
    if (const auto* x = std::get_if<task_exited>(&event))
      exited_ = x->id;
    news_.notify_all();
  }
  clock_type::time_point started(const std::string& id) {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return started_ == id; });
    return started_at_;
  }
  void exited(const std::string& id) {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return exited_ == id; });
  }

private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::string started_, exited_;
  clock_type::time_point started_at_;
};

void print(const char* what, const std::vector<double>& wall, const std::vector<double>& cpu) {
  std::printf("%-34s p50 %8.0f us   p90 %8.0f us   p99 %8.0f us   cpu %7.0f us\n", what,
              percentile(wall, 0.5), percentile(wall, 0.9), percentile(wall, 0.99), percentile(cpu, 0.5));
}

} // namespace

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
  char pattern[] = "/tmp/troupe-dispatch-XXXXXX";
  std::filesystem::path folder = ::mkdtemp(pattern);
  watcher seen;
  process_runtime_options options;
  options.root = folder / "tasks";
  options.program = TROUPE_TASK_PROGRAM;
  options.spares = 1;
  auto made = process_runtime::start(options, [&](const task_event& event) { seen.tell(event); });
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().what.c_str());
    return 1;
  }
  auto& runtime = **made;
  bare fresh("fresh", folder / "fresh"), inside("inside", folder / "inside");
  std::vector<double> fresh_wall, fresh_cpu, inside_wall, inside_cpu, wall, cpu, cold_wall, cold_cpu;

  // `ready` waits for a spare. Without one, a launch makes its sandbox first.
  auto launch = [&](int n, bool ready, std::vector<double>& walls, std::vector<double>& cpus) {
    while (ready && runtime.spares_ready() < 1)
      ::usleep(200);
    // Prepared beforehand, like the files of a task.
    const auto id = "t" + std::to_string(n);
    const auto prepared = runtime.prepare(id);
    if (!prepared)
      std::exit(1);
    const auto run = *prepared / "run";
    for (const char* place : {"info", "workdir", "pythonuserbase", "train"})
      std::filesystem::create_directories(run / place);
    std::ofstream(run / "workdir" / "job.py") << "pass\n";
    std::ofstream(*prepared / "launch") << "{}";
    auto before = cpu_us();
    task_spec spec{.id = id, .ranks = {{{"/bin/true"}, {}, "/"}}, .limits = {}, .keep = {}};
    auto start = clock_type::now();
    if (auto ok = runtime.launch(spec); !ok)
      std::exit(1);
    auto at = seen.started(spec.id);
    seen.exited(spec.id);
    int helper = 0;
    std::ifstream(runtime.folder(spec.id) / "helper") >> helper;
    walls.push_back(us(at - start));
    cpus.push_back(cpu_us() - before + ran_us(helper));
    (void)runtime.forget(spec.id);
  };
  for (int n = 0; n < rounds; ++n) {
    fresh.once(fresh_wall, fresh_cpu);
    launch(2 * n, true, wall, cpu);
    inside.once(inside_wall, inside_cpu);
    if (n % 4 == 0) // the spare is not ready yet right after another launch
      launch(2 * n + 1, false, cold_wall, cold_cpu);
  }
  std::printf(
    "%d rounds; cpu is the median of all processes of one dispatch, for launches without /bin/true itself\n",
    rounds);
  print("bare spawn, namespaces made anew", fresh_wall, fresh_cpu);
  print("bare spawn, inside namespaces", inside_wall, inside_cpu);
  print("launch to started, spare ready", wall, cpu);
  print("launch to started, right after one", cold_wall, cold_cpu);
  std::printf("ratio of p50 to namespaces made anew: %.2f (claim: at most 2)\n",
              percentile(wall, 0.5) / percentile(fresh_wall, 0.5));
  std::printf("ratio of p50 to inside namespaces:    %.2f\n",
              percentile(wall, 0.5) / percentile(inside_wall, 0.5));
  made->reset();
  std::filesystem::remove_all(folder);
  return percentile(wall, 0.5) <= 2 * percentile(fresh_wall, 0.5) ? 0 : 1;
}

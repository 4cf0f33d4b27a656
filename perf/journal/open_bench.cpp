// How long opening takes and how much memory it needs, and how fast a long stream is read: for a database
// that was killed with full write-ahead logs. Usage: perf_journal_open [DIRECTORY]

#include "storage/journal.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace troupe;
using clock_type = std::chrono::steady_clock;
const time_point t0{std::chrono::seconds(1700000000)};

double milliseconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
}

double cpu_milliseconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto ms = [](timeval t) { return 1e3 * double(t.tv_sec) + 1e-3 * double(t.tv_usec); };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:"))
      return std::strtol(line.c_str() + 6, nullptr, 10);
  return 0;
}

void must(bool ok, const std::string& why) {
  if (ok)
    return;
  std::fprintf(stderr, "perf_journal_open: %s\n", why.c_str());
  std::_Exit(1);
}

/// Writes 100,000 facts of one stream and twice as many reports, then dies without closing anything.
[[noreturn]] void fill(const std::filesystem::path& at) {
  auto opened = storage::open_journal({.directory = at});
  must(bool(opened), opened ? "" : opened.error().what);
  auto& j = **opened;
  search_stepped step{.at = t0};
  step.created = {{{1}, "1", value{{"lr", 1}}, 1, ""}};
  must(bool(j.append(
         {"cluster", 0, {encode(experiment_created{t0, {1}, value{{"searcher", {{"metric", "loss"}}}}})}})),
       "append");
  must(bool(j.append({"experiment/1", 0, {encode(step)}})), "append");
  must(bool(j.append({"trial/1", 0, {encode(run_started{t0, {1}, "", 0})}})), "append");
  const std::string metrics =
    pack(std::map<std::string, double>{{"loss", 0.1}, {"accuracy", 0.2}, {"lr", 0.3}, {"epoch", 4}});
  std::uint64_t reports = 1;
  for (std::uint64_t first = 1; first <= 100'000; first += 1000) {
    storage::append a{"experiment/1", first, {}};
    for (std::uint64_t n = first; n < first + 1000; ++n)
      a.facts.push_back(encode(search_stepped{.at = t0,
                                              .input = search_input::validated,
                                              .trial = {1},
                                              .row = n,
                                              .steps = std::int64_t(n),
                                              .metrics = value{{"loss", 1.0 / double(n)}}}));
    must(bool(j.append(a)), "append");
    storage::report_batch b{{{1}, {1}}, 0, "p", reports, {}};
    for (int i = 0; i < 2000; ++i, ++reports)
      b.reports.push_back({"training", std::int64_t(reports), t0, metrics});
    must(bool(j.report(b)), "report");
    must(bool(j.commit()), "commit");
  }
  std::_Exit(0);
}

} // namespace

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  auto base = (count > 1 ? fs::path(arguments[1]) : fs::temp_directory_path()) / "troupe-perf-XXXXXX";
  auto name = base.string();
  must(::mkdtemp(name.data()) != nullptr, "no folder for the data");
  if (auto writer = ::fork(); writer == 0) {
    fill(name);
  } else {
    int status = 0;
    ::waitpid(writer, &status, 0);
    must(status == 0, "the writer failed");
  }
  std::uintmax_t logs = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(name) / "db"))
    if (entry.path().extension() == ".log")
      logs += entry.file_size();

  const auto before = resident_kib();
  for (const char* what : {"after the kill", "again"}) {
    auto begin = clock_type::now();
    auto cpu = cpu_milliseconds();
    auto opened = storage::open_journal({.directory = name});
    auto open_ms = milliseconds_since(begin);
    must(bool(opened), opened ? "" : opened.error().what);
    std::printf("open %s: %.1f ms (%.1f ms CPU), logs of %.1f MB, resident %ld KiB more than before\n", what,
                open_ms, cpu_milliseconds() - cpu, double(logs) / 1e6, resident_kib() - before);
  }
  auto opened = storage::open_journal({.directory = name});
  auto reads = (*opened)->reads();
  auto begin = clock_type::now();
  auto facts = reads->facts_of("experiment/1");
  must(facts && facts->size() > 100'000, "facts are missing");
  std::printf("facts_of: %.1f ms for %zu facts\n", milliseconds_since(begin), facts->size());
  begin = clock_type::now();
  auto all = reads->facts_after(0, 1 << 20);
  must(all && all->size() > 100'000, "facts are missing");
  std::printf("facts_after: %.1f ms\n", milliseconds_since(begin));
  begin = clock_type::now();
  auto rows = reads->metrics({1}, 0, 1 << 20);
  must(rows && rows->size() == 200'000, "reports are missing");
  std::printf("metrics: %.1f ms for %zu rows\n", milliseconds_since(begin), rows->size());
  opened->reset();
  reads.reset();
  begin = clock_type::now();
  opened = storage::open_journal({.directory = name, .rebuild_projections = true});
  must(bool(opened), "rebuild failed");
  std::printf("rebuild of the projections: %.1f ms; resident %ld KiB\n", milliseconds_since(begin),
              resident_kib());
  opened->reset();
  fs::remove_all(name);
}

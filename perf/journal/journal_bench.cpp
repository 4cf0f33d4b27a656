// Commit throughput of the journal beside raw RocksDB: synced batches of the same bytes, with the same number
// of rows in each, taking turns in one run. Usage: perf_journal [DIRECTORY [SECONDS [facts|reports [SIZE]]]]
//
// Raw is one put per fact or report, on RocksDB's default options. The journal also decodes and checks each
// fact, folds it into rows, and keeps the global order, the fences and the high-water marks.

#include "storage/journal.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace {

using namespace troupe;
using clock_type = std::chrono::steady_clock;
const time_point t0{std::chrono::seconds(1700000000)};
constexpr std::uint64_t trials = 64;

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto seconds = [](timeval t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void must(bool ok, const std::string& why) {
  if (ok)
    return;
  std::fprintf(stderr, "perf_journal: %s\n", why.c_str());
  std::exit(1);
}

/// The endless life of an experiment: each ten facts are six validations, three checkpoints and a pause.
class life {
public:
  storage::append next() {
    auto n = count_++;
    trial_id trial{n % trials + 1};
    auto at = t0 + std::chrono::milliseconds(n);
    switch (n % 10) {
    case 2:
    case 5:
    case 8: {
      checkpoint saved{uuid(n),
                       std::int64_t(n),
                       {{"state.pt", 123456}, {"optimizer.pt", 234567}, {"metadata.json", 321}},
                       value{{"steps_completed", n}},
                       "/data/checkpoints/0b57ab1e"};
      return of(entity(trial), checkpoint_recorded{at, {1}, saved});
    }
    case 9:
      return of(entity(trial), trial_activated{at});
    default:
      return of("experiment/1", search_stepped{.at = at,
                                               .input = search_input::validated,
                                               .trial = trial,
                                               .row = n,
                                               .steps = std::int64_t(n),
                                               .metrics = value{{"loss", 1.0 / double(n + 1)}, {"epoch", n}},
                                               .progress = 0.5});
    }
  }
  storage::append of(const std::string& entity, const fact& x) {
    return {entity, numbers_[entity]++, {encode(x)}};
  }

private:
  /// Names checkpoints as Troupe's packages do, a millisecond apart (version 7); with TROUPE_SCATTERED=1 as
  /// Determined's client does.
  static std::string uuid(std::uint64_t n) {
    static const bool scattered = std::getenv("TROUPE_SCATTERED") != nullptr;
    const auto milliseconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(t0.time_since_epoch()).count() + n);
    n = (n + 1) * 0x9e3779b97f4a7c15; // the mixing function of SplitMix64
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9;
    n = (n ^ (n >> 27)) * 0x94d049bb133111eb;
    n ^= n >> 31;
    const auto chance = n & 0xffffffffffff;
    if (scattered)
      return fmt::format("{:08x}-0000-4000-8000-{:012x}", n >> 32, chance);
    return fmt::format("{:08x}-{:04x}-7000-8000-{:012x}", milliseconds >> 16, milliseconds & 0xffff, chance);
  }

  std::uint64_t count_ = 0;
  std::map<std::string, std::uint64_t> numbers_;
};

void begin(storage::journal& j, life& facts) {
  value config{{"searcher", {{"name", "random"}, {"metric", "loss"}, {"smaller_is_better", true}}},
               {"hyperparameters", {{"lr", {{"type", "log"}, {"minval", -4}, {"maxval", -1}}}}},
               {"environment", std::string(2000, 'e')}};
  search_stepped step{.at = t0};
  for (std::uint64_t i = 1; i <= trials; ++i)
    step.created.push_back({{i}, std::to_string(i), value{{"lr", 0.1}, {"hidden", 64}}, 1, ""});
  must(bool(j.append(facts.of("cluster", experiment_created{t0, {1}, config, "n", "o", "", "", ""}))),
       "append");
  must(bool(j.append(facts.of("experiment/1", step))), "append");
  for (std::uint64_t i = 1; i <= trials; ++i)
    must(bool(j.append(facts.of(entity(trial_id{i}), run_started{t0, {1}, "", 0}))), "append");
  must(bool(j.commit()), "commit");
}

/// Eight scalars with names as users write them.
std::string metrics_of(std::uint64_t n) {
  msgpack::sbuffer buffer;
  msgpack::packer<msgpack::sbuffer> packer(buffer);
  packer.pack_map(8);
  for (const char* name : {"loss", "accuracy", "lr", "grad_norm", "epoch", "tokens", "seconds", "memory"}) {
    packer.pack(name);
    packer.pack(1.0 / double(++n));
  }
  return {buffer.data(), buffer.size()};
}

struct tally {
  double seconds = 0, cpu = 0;
  std::uint64_t things = 0, commits = 0, bytes = 0;
  double rate() const { return double(things) / seconds; }
};

/// Runs `work` for one slice. `work` returns how many rows and bytes one commit made durable.
template <class Work>
void slice(tally& into, double seconds, Work work) {
  auto begin = clock_type::now();
  auto cpu = cpu_seconds();
  auto elapsed = [&] { return std::chrono::duration<double>(clock_type::now() - begin).count(); };
  do {
    auto [things, bytes] = work();
    into.things += things;
    into.bytes += bytes;
    ++into.commits;
  } while (elapsed() < seconds);
  into.seconds += elapsed();
  into.cpu += cpu_seconds() - cpu;
}

void print(const char* what, std::size_t size, const tally& raw, const tally& ours) {
  std::printf("%-8s %6zu  raw %9.0f/s %5.2f us CPU each   journal %9.0f/s %5.2f us CPU each   ratio %.2f\n",
              what, size, raw.rate(), 1e6 * raw.cpu / double(raw.things), ours.rate(),
              1e6 * ours.cpu / double(ours.things), ours.rate() / raw.rate());
}

} // namespace

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  auto base = (count > 1 ? fs::path(arguments[1]) : fs::temp_directory_path()) / "troupe-perf-XXXXXX";
  const double seconds = count > 2 ? std::atof(arguments[2]) : 4;
  auto name = base.string();
  must(::mkdtemp(name.data()) != nullptr, "no folder for the data");
  const fs::path at = name;
  utsname machine{};
  ::uname(&machine);
  std::printf("%s %s, %ld cores, data in %s\n", machine.sysname, machine.release,
              ::sysconf(_SC_NPROCESSORS_ONLN), at.c_str());

  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::WriteOptions synced;
  synced.sync = true;
  constexpr int turns = 8;
  bool met = true;
  for (const char* what : {"facts", "reports"})
    for (std::size_t size : {1, 10, 100, 1000, 4000}) {
      if ((count > 3 && std::string(arguments[3]) != what) ||
          (count > 4 && std::strtoul(arguments[4], nullptr, 10) != size))
        continue;
      fs::remove_all(at);
      fs::create_directories(at);
      rocksdb::DB* db = nullptr;
      auto status = rocksdb::DB::Open(options, (at / "raw").string(), &db);
      must(status.ok(), status.ToString());
      auto opened = storage::open_journal({.directory = at / "journal", .lane_bytes = 8 << 20});
      must(bool(opened), opened ? "" : opened.error().what);
      auto& j = **opened;
      life for_raw, for_journal;
      begin(j, for_journal);
      std::array<std::uint64_t, trials + 1> sequences{};
      std::uint64_t raw_rows = 0, reports = 0;
      tally raw, ours;

      auto raw_facts = [&] {
        std::uint64_t bytes = 0;
        rocksdb::WriteBatch batch;
        std::vector<storage::append> group;
        for (std::size_t i = 0; i < size; ++i)
          group.push_back(for_raw.next());
        for (const auto& x : group) {
          auto key = "f" + x.entity + std::string(1, '\0');
          for (int byte = 7; byte >= 0; --byte)
            key += static_cast<char>(x.first >> (8 * byte));
          batch.Put(key, x.facts[0]);
          bytes += x.facts[0].size();
        }
        must(db->Write(synced, &batch).ok(), "raw write");
        return std::pair(group.size(), bytes);
      };
      auto our_facts = [&] {
        std::uint64_t bytes = 0;
        std::vector<storage::append> group;
        for (std::size_t i = 0; i < size; ++i)
          group.push_back(for_journal.next());
        for (const auto& x : group) {
          auto done = j.append(x);
          must(bool(done), done ? "" : done.error().what);
          bytes += x.facts[0].size();
        }
        auto done = j.commit();
        must(bool(done), done ? "" : done.error().what);
        return std::pair(group.size(), bytes);
      };
      // Sixteen senders; each sends as many reports as the group asks for.
      auto make_reports = [&] {
        std::vector<storage::report_batch> group;
        const std::size_t senders = std::min<std::size_t>(16, size);
        for (std::size_t s = 0; s < senders; ++s) {
          trial_id trial{s + 1};
          storage::report_batch b{{trial, {1}}, 0, "8f1d2c3b4a596877", 0, {}};
          for (std::size_t i = s; i < size; i += senders)
            b.reports.push_back({"training", std::int64_t(reports), t0, metrics_of(reports++)});
          group.push_back(std::move(b));
        }
        return group;
      };
      auto raw_reports = [&] {
        std::uint64_t bytes = 0;
        rocksdb::WriteBatch batch;
        for (const auto& b : make_reports())
          for (const auto& r : b.reports) {
            std::string key;
            for (std::uint64_t number : {b.allocation.trial().value, ++raw_rows})
              for (int byte = 7; byte >= 0; --byte)
                key += static_cast<char>(number >> (8 * byte));
            auto row = pack(r);
            batch.Put(key, row);
            bytes += row.size();
          }
        must(db->Write(synced, &batch).ok(), "raw write");
        return std::pair(size, bytes);
      };
      auto our_reports = [&] {
        for (auto& b : make_reports()) {
          b.first_sequence = sequences[b.allocation.trial().value] + 1;
          sequences[b.allocation.trial().value] += b.reports.size();
          auto done = j.report(b);
          must(bool(done), done ? "" : done.error().what);
        }
        auto done = j.commit();
        must(bool(done), done ? "" : done.error().what);
        return std::pair(size, std::uint64_t(0));
      };
      const bool facts = std::string(what) == "facts";
      for (int turn = 0; turn < turns; ++turn) {
        facts ? slice(raw, seconds / turns, raw_facts) : slice(raw, seconds / turns, raw_reports);
        facts ? slice(ours, seconds / turns, our_facts) : slice(ours, seconds / turns, our_reports);
      }
      print(what, size, raw, ours);
      met = met && ours.rate() >= 0.6 * raw.rate();
      opened->reset();
      delete db;
    }
  fs::remove_all(at);
  std::printf("target: at least 0.60 at every size: %s\n", met ? "met" : "MISSED");
  return met ? 0 : 1;
}

// The agent's side of the task link without an agent: the real socket and the real machine before a journal
// in memory. For tests of the Python package against the C++ side, and for perf/ingest, where it shows what
// the link alone can do.
//
//   harness_gateway [--endpoint E] [--commit-ms N] [--stop-at-epoch N] [--print]
//
// Holds allocation 12.3 with the token "secret". Prints its endpoint as the first line, with --print every
// durable report and checkpoint as a line of JSON, and ends when its standard input does, with one line of
// counts.

#include "actors/harness/harness.hpp"
#include "workers/harness_link.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe {
namespace {

time_point now() { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }

struct options {
  std::string endpoint = "tcp://127.0.0.1:*";
  std::chrono::milliseconds commit{0};
  int stop_at_epoch = -1;
  bool print = false;
};

class gateway {
public:
  explicit gateway(options o) : options_(std::move(o)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  int run() {
    auto opened = workers::open_harness_link({.endpoint = options_.endpoint}, [this](auto batch) {
      std::lock_guard guard(mutex_);
      for (auto& x : batch)
        inbox_.push_back(std::move(x));
      std::uint64_t one = 1;
      [[maybe_unused]] auto written = ::write(wake_, &one, sizeof one);
    });
    if (!opened)
      return std::fprintf(stderr, "%s\n", opened.error().what.c_str()), 1;
    link_ = std::move(*opened);
    say(link_->endpoint());
    apply(task_expected{{{12}, {3}}, "secret", "/checkpoints"});
    while (round())
      ;
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    say(to_json(value{{"reports", stored_},
                      {"commits", commits_},
                      {"appends", appends_},
                      {"cpu_s", seconds(used.ru_utime) + seconds(used.ru_stime)}}));
    return 0;
  }

private:
  static void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  bool round() {
    auto wait = std::chrono::milliseconds(-1);
    auto until = [&](time_point at) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(at - now());
      left = std::max(left, std::chrono::milliseconds(0));
      wait = wait.count() < 0 ? left : std::min(wait, left);
    };
    if (auto due = machine_.deadline())
      until(*due);
    if (!open_.empty())
      until(commit_at_);
    pollfd fds[] = {{wake_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    ::poll(fds, 2, static_cast<int>(wait.count()));
    if (fds[0].revents) {
      std::uint64_t count = 0;
      [[maybe_unused]] auto got = ::read(wake_, &count, sizeof count);
      frames_received all;
      {
        std::lock_guard guard(mutex_);
        all.messages.swap(inbox_);
      }
      apply(all);
    }
    if (!open_.empty() && now() >= commit_at_)
      commit();
    if (auto due = machine_.deadline(); due && *due <= now())
      apply(time_passed{});
    char byte = 0;
    return !fds[1].revents || ::read(STDIN_FILENO, &byte, 1) > 0;
  }

  void apply(const harness_event& event) {
    for (auto& action : machine_.apply(event, now()))
      std::visit([this](auto& x) { obey(x); }, action);
  }
  void obey(send_frame& x) { link_->send(std::move(x.peer), x.frame); }
  void obey(release_credit& x) { link_->release(x.bytes); }
  void obey(reports_drained&) {}
  void obey(forward_progress&) {}
  void obey(forward_worker&) {}
  void obey(append_task_reports& x) {
    if (open_.empty())
      commit_at_ = now() + options_.commit;
    open_.push_back(std::move(x));
  }
  void obey(forward_checkpoint& x) {
    if (options_.print)
      say(to_json(value{{"uuid", x.saved.uuid},
                        {"steps", x.saved.steps},
                        {"files", x.saved.files},
                        {"metadata", x.saved.metadata}}));
    checkpoint_answered answer{x.stream.allocation, x.saved.uuid, ""};
    apply(answer);
  }

  void commit() { // what the journal does, without a disk
    auto batches = std::exchange(open_, {});
    ++commits_;
    for (auto& x : batches) {
      auto& b = x.batch;
      task_stream stream{b.allocation, b.rank, b.process};
      // A journal would outlive this process; here a stream goes on where its first append says.
      auto& mark = marks_.try_emplace(stream, b.first_sequence - 1).first->second;
      ++appends_;
      if (b.first_sequence > mark + 1) {
        apply(reports_answered{x.number, mark, error{errc::gap, "a report is missing"}});
        continue;
      }
      std::vector<validation_decided> decisions;
      for (std::size_t i = 0; i < b.reports.size(); ++i) {
        auto number = b.first_sequence + i;
        if (number <= mark)
          continue;
        const auto& r = b.reports[i];
        ++stored_;
        if (options_.print || options_.stop_at_epoch >= 0)
          show(stream, number, r, decisions);
      }
      mark = std::max(mark, b.first_sequence + b.reports.size() - 1);
      apply(reports_answered{x.number, mark, {}});
      for (const auto& d : decisions)
        apply(d);
    }
  }

  void show(const task_stream& stream, std::uint64_t number, const storage::report_batch::report& r,
            std::vector<validation_decided>& decisions) {
    value metrics;
    if (auto read = parse_msgpack(r.metrics))
      metrics = std::move(*read);
    if (options_.print)
      say(to_json(value{{"process", stream.process},
                        {"seq", number},
                        {"group", r.group},
                        {"steps", r.steps},
                        {"metrics", metrics}}));
    if (r.group == "validation") {
      bool over = metrics.is_object() && metrics.value("epoch", -2) == options_.stop_at_epoch;
      decisions.push_back({stream, number, over, over ? "pruned" : ""});
    }
  }

  const options options_;
  const int wake_;
  std::mutex mutex_;
  std::vector<workers::task_message> inbox_;
  std::unique_ptr<workers::harness_link> link_;
  harness machine_;
  std::vector<append_task_reports> open_;
  time_point commit_at_;
  std::map<task_stream, std::uint64_t> marks_;
  std::uint64_t stored_ = 0, commits_ = 0, appends_ = 0;
};

} // namespace
} // namespace troupe

int main(int count, char** words) {
  troupe::options o;
  for (int i = 1; i < count; ++i) {
    std::string_view word = words[i];
    const char* next = i + 1 < count ? words[i + 1] : "";
    if (word == "--print")
      o.print = true;
    else if (word == "--endpoint")
      o.endpoint = words[++i];
    else if (word == "--commit-ms")
      o.commit = std::chrono::milliseconds(std::atoi(next)), ++i;
    else if (word == "--stop-at-epoch")
      o.stop_at_epoch = std::atoi(next), ++i;
  }
  return troupe::gateway(std::move(o)).run();
}

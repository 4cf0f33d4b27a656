#include "system/random.hpp"
#include "workers/collectives/nccl.hpp"
#include "workers/collectives/shm.hpp"
#include "workers/collectives/tcp.hpp"
#include "workers/trial/trial_loop.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <unistd.h>

namespace troupe {

void metrics::set(std::string name, double x) {
  const auto place = std::find_if(all_.begin(), all_.end(), [&](const listed& m) { return m.first == name; });
  if (place != all_.end())
    place->second = x;
  else
    all_.emplace_back(std::move(name), x);
}

batch_share share_of(std::int64_t batch, int rank, int size) {
  const auto each = batch / size, over = batch % size;
  batch_share mine{rank * each + std::min<std::int64_t>(rank, over), each + (rank < over ? 1 : 0)};
  mine.weight = batch > 0 ? double(mine.count) * size / double(batch) : 1;
  return mine;
}

namespace trial {
namespace {

class context final : public trial_context {
public:
  context(const settings& s, troupe::collective& group) : settings_(s), group_(group) {}
  troupe::collective& collective() override { return group_; }
  std::uint64_t seed() const override { return settings_.seed; }
  result<void> faults() const { return fault_ ? result<void>(*fault_) : result<void>{}; }

protected:
  result<std::string> find_text(std::string_view name) override {
    return noted(text_in(settings_.hparams, name));
  }
  result<double> find_double(std::string_view name) override {
    return noted(double_in(settings_.hparams, name));
  }
  result<std::int64_t> find_integer(std::string_view name) override {
    return noted(integer_in(settings_.hparams, name));
  }
  result<bool> find_bool(std::string_view name) override { return noted(bool_in(settings_.hparams, name)); }
  bool given(std::string_view name) const override { return find(settings_.hparams, name) != nullptr; }

private:
  template <class T>
  result<T> noted(result<T> found) {
    if (!found && !fault_)
      fault_ = found.error();
    return found;
  }

  const settings& settings_;
  troupe::collective& group_;
  std::optional<error> fault_;
};

int fail(const error& why, const char* program) {
  std::fprintf(stderr, "%s: %s\n", program, why.what.c_str());
  return 1;
}

result<std::unique_ptr<collective>> join_processors(const settings& s) {
  if (s.size == 1 && s.member != "nccl")
    return make_alone_collective();
  if (s.meeting_port != 0)
    return join_tcp({.name = s.group,
                     .secret = s.on_cluster() ? s.token : s.group,
                     .host = s.meeting,
                     .port = s.meeting_port,
                     .rank = s.rank,
                     .size = s.size});
  shm_group group{.name = s.group, .rank = s.rank, .size = s.size};
  return join_shm(group);
}

result<std::unique_ptr<collective>> join_ranks(const settings& s) {
  auto group = join_processors(s);
  const bool needed = s.member == "nccl";
  if (!group || !(needed || (s.member.empty() && s.has_gpus && s.size > 1)))
    return group;
  return join_nccl(std::move(*group), {.device = s.local_rank, .needed = needed});
}

/// Runs one trial in one group of ranks, from the last checkpoint to the end.
result<void> train_in_group(const settings& s, std::uint32_t generation, conductor& leader, report_sink& sink,
                            progress_line& line, run_memory& memory,
                            const std::function<std::unique_ptr<trial_program>()>& make) {
  auto group = join_ranks(s);
  if (!group)
    return group.error();
  if (generation > 0)
    if (auto ok = share_memory(**group, memory); !ok)
      return ok;
  context around(s, **group);
  result<void> outcome;
  try {
    const auto trial = make();
    outcome = trial_loop(*trial, **group, sink, line, leader, memory, generation).run(around, [&] {
      return around.faults();
    });
  } catch (const std::exception& why) {
    outcome = error{errc::internal, std::string("the trial threw an exception: ") + why.what()};
  }
  if (!outcome)
    (*group)->abort("rank " + std::to_string(s.rank) + " failed: " + outcome.error().what);
  return outcome;
}

/// The settings of the next group after a group broke, where the allocation wants one. Waits for its order as
/// long as the news of an agent's end may take.
std::optional<settings> next_group(const settings& started, const error& why, std::uint32_t generation,
                                   conductor& leader) {
  const auto& before = leader.orders().look();
  if (why.code != errc::unreachable || !before.may_rebuild)
    return std::nullopt;
  leader.enter(workers::worker_phase::broken, generation, 0, 0);
  const auto& m = leader.orders().await(
    [&](const mandate& x) { return x.generation > generation || !x.stop.empty() || !x.refused.empty(); },
    std::chrono::minutes(2));
  return m.generation > generation ? settings_in_group(started, m.members, m.generation) : std::nullopt;
}

int train(const settings& s, const char* program,
          const std::function<std::unique_ptr<trial_program>()>& make) {
  auto sink = s.on_cluster() ? open_task_link(s) : open_local_run(s, program);
  if (!sink)
    return fail(sink.error(), program);
  const auto leader = s.on_cluster() ? start_worker(**sink) : std::make_unique<by_hand>();
  progress_line line(s.on_cluster() || s.rank != 0, isatty(STDERR_FILENO) == 1);
  run_memory memory;
  auto now = s;
  auto outcome = train_in_group(now, 0, *leader, **sink, line, memory, make);
  for (std::uint32_t generation = 0; !outcome;) {
    const auto next = next_group(s, outcome.error(), generation, *leader);
    if (!next)
      break;
    line.say("rank " + std::to_string(now.rank) + " of " + std::to_string(now.size) + " goes on as rank " +
             std::to_string(next->rank) + " of " + std::to_string(next->size) + ": " + outcome.error().what);
    now = *next;
    generation = leader->orders().look().generation;
    outcome = train_in_group(now, generation, *leader, **sink, line, memory, make);
  }
  line.end();
  if (!outcome) {
    leader->fail(outcome.error().what);
    (void)(*sink)->finish();
    return fail(outcome.error(), program);
  }
  if (now.rank == 0) {
    if (auto ok = (*sink)->finish(); !ok)
      return fail(ok.error(), program);
    if (!s.on_cluster())
      std::fprintf(stderr, "reports and checkpoints: %s\n", (*sink)->place().c_str());
  }
  return 0;
}

} // namespace
} // namespace trial

int run_trial_program(int argc, char** argv, const std::function<std::unique_ptr<trial_program>()>& make) {
  const char* program = argc > 0 ? argv[0] : "trial";
  const auto s = trial::read_settings(
    [](const char* name) {
      const char* text = std::getenv(name);
      return std::string(text ? text : "");
    },
    std::vector<std::string>(argv + std::min(argc, 1), argv + argc), random_hex(16));
  if (!s) {
    std::fprintf(stderr, "%s: %s\n", program, s.error().what.c_str());
    return 2;
  }
  if (s->wants_help) {
    std::printf("usage: %s [--NAME=VALUE]...\n\nTrains this trial alone. Hyperparameters are given as "
                "--NAME=VALUE; reports and checkpoints go to\n"
                "./troupe-runs/NAME (TROUPE_RUN_NAME), and TROUPE_RESUME=NAME or =latest resumes from the "
                "newest checkpoint.\n",
                program);
    return 0;
  }
  return trial::train(*s, program, make);
}

} // namespace troupe

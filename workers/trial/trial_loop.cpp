#include "workers/trial/trial_loop.hpp"

#include <algorithm>

namespace troupe::trial {
namespace {

bool is_due(std::int64_t step, std::int64_t every, std::int64_t last) {
  return step == last || (every > 0 && step % every == 0);
}

error at_step(const char* what, std::int64_t step, const error& why) {
  return {why.code, std::string(what) + " at step " + std::to_string(step) + ": " + why.what};
}

std::int64_t hash_of(const std::vector<std::pair<std::string, double>>& sums) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [name, ignored] : sums)
    for (const char c : name + '\n')
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return std::int64_t(hash);
}

// Sends a uuid from one rank to all.
result<void> tell_all(collective& group, std::string& uuid, int root) {
  std::vector<std::int32_t> letters(36, 0);
  for (std::size_t i = 0; i < uuid.size() && i < letters.size(); ++i)
    letters[i] = uuid[i];
  if (auto ok = group.broadcast(letters, root); !ok)
    return ok;
  uuid.assign(letters.begin(), letters.end());
  return {};
}

result<void> check(const schedule& plan) {
  if (plan.batches < 1)
    return error{errc::invalid, "build: the schedule has " + std::to_string(plan.batches) +
                                  " batches; at least 1 is needed"};
  if (plan.report_every < 0 || plan.validate_every < 0 || plan.checkpoint_every < 0)
    return error{
      errc::invalid,
      "build: report_every, validate_every and checkpoint_every of the schedule count batches, from 0"};
  return {};
}

} // namespace

result<void> trial_loop::run(trial_context& context, const std::function<result<void>()>& check_hparams) {
  auto plan = trial_.build(context);
  if (auto ok = check_hparams(); !ok)
    return ok;
  if (!plan)
    return error{plan.error().code, "build: " + plan.error().what};
  plan_ = *plan;
  if (auto ok = check(plan_); !ok)
    return ok;
  if (auto ok = load(); !ok)
    return ok;
  line_.begin(at_.steps, plan_.batches);
  leader_.enter(workers::worker_phase::ready, generation_, at_.steps, plan_.batches);
  while (at_.steps < plan_.batches) {
    auto orders = agree();
    if (!orders)
      return orders.error();
    if (orders->stop) {
      line_.say("stopping at step " + std::to_string(at_.steps) +
                (sink_.stop_reason().empty() ? "" : " (" + sink_.stop_reason() + ")"));
      return checkpoint();
    }
    if (orders->validations > memory_.validations) {
      memory_.validations = orders->validations;
      if (auto ok = validate(); !ok)
        return ok;
    }
    if (orders->checkpoints > memory_.checkpoints) {
      memory_.checkpoints = orders->checkpoints;
      if (auto ok = checkpoint(); !ok)
        return ok;
    }
    if (orders->until <= at_.steps) {
      if (auto ok = wait_for_orders(); !ok)
        return ok;
      continue;
    }
    if (!std::exchange(training_, true))
      leader_.enter(workers::worker_phase::training, generation_, at_.steps, plan_.batches);
    if (auto ok = train(at_.steps + 1); !ok)
      return ok;
    leader_.orders().stepped(at_.steps);
  }
  return group_.barrier(); // no rank leaves while another one still needs it
}

result<void> trial_loop::load() {
  auto from = memory_.checkpoint.empty() ? sink_.resume_from() : sink_.checkpoint_root();
  if (!from)
    return from.error();
  if (!memory_.checkpoint.empty())
    *from /= memory_.checkpoint;
  if (from->empty())
    return {};
  auto position = read_position(*from);
  if (!position)
    return position.error();
  if (auto ok = trial_.load(*from); !ok)
    return error{ok.error().code, "load of " + from->string() + ": " + ok.error().what};
  at_ = std::move(*position);
  checkpoint_at_ = at_.steps;
  line_.say("going on after step " + std::to_string(at_.steps));
  return {};
}

result<void> trial_loop::train(std::int64_t step) {
  auto m = trial_.train_batch(step);
  if (!m)
    return at_step("train_batch", step, m.error());
  at_.steps = step;
  ++at_.batches_in_means;
  for (const auto& [name, x] : m->all()) {
    const auto place = std::lower_bound(at_.sums.begin(), at_.sums.end(), name,
                                        [](const auto& a, const auto& b) { return a.first < b; });
    if (place != at_.sums.end() && place->first == name)
      place->second += x;
    else if (at_.batches_in_means == 1)
      at_.sums.insert(place, {name, x});
    else
      return error{errc::invalid, "train_batch at step " + std::to_string(step) + ": the metric '" + name +
                                    "' is new; a trial names the same metrics in each batch"};
  }
  line_.stepped(step, *m);
  const auto last = plan_.batches;
  if (is_due(step, plan_.report_every, last))
    if (auto ok = report(); !ok)
      return ok;
  if (is_due(step, plan_.validate_every, last))
    if (auto ok = validate(); !ok)
      return ok;
  if (is_due(step, plan_.checkpoint_every, last))
    if (auto ok = checkpoint(); !ok)
      return ok;
  if (group_.rank() == 0)
    sink_.progress(double(step) / double(last));
  return {};
}

result<metrics> trial_loop::mean_over_ranks(const std::vector<std::pair<std::string, double>>& sums,
                                            double divisor, const char* whose) {
  std::vector<double> values;
  for (const auto& [name, sum] : sums)
    values.push_back(sum / divisor);
  if (group_.size() > 1) {
    const std::int64_t hash = hash_of(sums);
    std::vector<std::int64_t> least{hash, ~hash}; // both minima are its own only where all are equal
    if (auto ok = group_.all_reduce(least, reduce::min); !ok)
      return ok.error();
    if (least[0] != hash || least[1] != ~hash)
      return error{errc::invalid, std::string("the ranks name different metrics in ") + whose};
    if (auto ok = group_.all_reduce(values, reduce::average); !ok)
      return ok.error();
  }
  metrics m;
  for (std::size_t i = 0; i < sums.size(); ++i)
    m.set(sums[i].first, values[i]);
  return m;
}

result<void> trial_loop::report() {
  auto m = mean_over_ranks(at_.sums, double(at_.batches_in_means), "train_batch");
  if (!m)
    return m.error();
  at_.sums.clear();
  at_.batches_in_means = 0;
  const bool again = at_.steps <= memory_.reported; // a smaller group trains these steps a second time
  memory_.reported = std::max(memory_.reported, at_.steps);
  return group_.rank() == 0 && !again ? sink_.training(at_.steps, *m) : result<void>{};
}

result<void> trial_loop::validate() {
  auto mine = trial_.validate();
  if (!mine)
    return at_step("validate", at_.steps, mine.error());
  auto sorted = mine->all();
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  auto m = mean_over_ranks(sorted, 1, "validate");
  if (!m)
    return m.error();
  line_.validated(at_.steps, *m);
  const bool again = at_.steps <= memory_.validated;
  memory_.validated = std::max(memory_.validated, at_.steps);
  return group_.rank() == 0 && !again ? sink_.validation(at_.steps, *m) : result<void>{};
}

// Each rank has its own sums for the current means. Rank 0's file takes the average of all ranks' sums, and
// every rank goes on with that.
result<void> trial_loop::checkpoint() {
  if (checkpoint_at_ == at_.steps)
    return {};
  auto position = at_;
  if (!at_.sums.empty()) {
    auto m = mean_over_ranks(at_.sums, 1, "train_batch");
    if (!m)
      return m.error();
    position.sums = m->all();
  }
  if (group_.rank() == 0) {
    auto root = sink_.checkpoint_root();
    if (!root)
      return root.error();
    auto written = write_checkpoint(
      *root, position, [this](const std::filesystem::path& folder) { return trial_.save(folder); });
    if (!written)
      return at_step("save", at_.steps, written.error());
    if (auto ok = sink_.checkpoint(written->uuid, at_.steps, written->files); !ok)
      return ok;
    line_.say("checkpoint " + written->uuid + " at step " + std::to_string(at_.steps));
    memory_.checkpoint = written->uuid;
  }
  if (auto ok = tell_all(group_, memory_.checkpoint, 0); !ok)
    return ok;
  checkpoint_at_ = memory_.checkpoint_step = at_.steps;
  return {};
}

// Ranks hear of an order at different times, and follow it at the same step.
result<trial_loop::agreed> trial_loop::agree() {
  const auto& m = leader_.orders().look();
  if (!m.refused.empty())
    return error{errc::denied, "the agent refused this process: " + m.refused};
  if (m.generation > generation_) {
    group_.abort("the group is rebuilt");
    return error{errc::unreachable, "the group is rebuilt"};
  }
  std::int64_t heard[4] = {m.stop.empty() && sink_.stop_reason().empty() ? 0 : 1, std::int64_t(m.validations),
                           std::int64_t(m.checkpoints), m.until};
  if (auto ok = group_.all_reduce(heard, reduce::max); !ok)
    return ok.error();
  return agreed{heard[0] != 0, std::uint64_t(heard[1]), std::uint64_t(heard[2]), heard[3]};
}

result<void> trial_loop::wait_for_orders() {
  training_ = false;
  const auto news = [this](const mandate& m) {
    return m.until > at_.steps || !m.stop.empty() || !m.refused.empty() || m.generation > generation_ ||
           m.validations > memory_.validations || m.checkpoints > memory_.checkpoints;
  };
  while (sink_.stop_reason().empty() && !news(leader_.orders().await(news, std::chrono::milliseconds(200))))
    ;
  return {};
}

result<void> share_memory(collective& group, run_memory& memory) {
  std::vector<std::int64_t> best{memory.reported, memory.validated, std::int64_t(memory.validations),
                                 std::int64_t(memory.checkpoints)};
  if (auto ok = group.all_reduce(best, reduce::max); !ok)
    return ok;
  std::vector<std::int64_t> steps(std::size_t(group.size()), -1);
  const std::vector<std::int64_t> mine{memory.checkpoint_step};
  if (auto ok = group.all_gather(std::span<const std::int64_t>(mine), std::span<std::int64_t>(steps)); !ok)
    return ok;
  const auto newest = std::max_element(steps.begin(), steps.end());
  if (*newest >= 0)
    if (auto ok = tell_all(group, memory.checkpoint, int(newest - steps.begin())); !ok)
      return ok;
  memory = {best[0], best[1], memory.checkpoint, *newest, std::uint64_t(best[2]), std::uint64_t(best[3])};
  return {};
}

} // namespace troupe::trial

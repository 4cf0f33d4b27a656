#include "searchers/search_core.hpp"

#include "model/assert.hpp"
#include "model/rng.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace troupe::searchers {
namespace {

constexpr std::uint32_t snapshot_magic = 0x4e535254; // "TRSN"
constexpr std::uint32_t snapshot_version = 1;
constexpr std::uint64_t trial_seed_stream = 2;

const trial_key* trial_of(const search_event& event) {
  return std::visit(
    [](const auto& x) -> const trial_key* {
      if constexpr (requires { x.trial; })
        return &x.trial;
      else
        return nullptr;
    },
    event);
}

} // namespace

std::string key_of(ordinal trial) { return std::to_string(std::uint64_t{trial} + 1); }

std::optional<ordinal> ordinal_of(const trial_key& key) {
  std::uint64_t n = 0;
  auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), n);
  if (fault != std::errc{} || end != key.data() + key.size() || n == 0 || n > 0xffffffffu || key[0] == '0')
    return std::nullopt;
  return static_cast<ordinal>(n - 1);
}

search_core::search_core(core_limits limits, std::unique_ptr<method> inner,
                         std::unique_ptr<early_stopping> policies)
    : limits_(std::move(limits)), inner_(std::move(inner)), policies_(std::move(policies)) {}

result<std::vector<search_action>> search_core::apply(const search_event& event) {
  actions_.clear();
  if (const auto* key = trial_of(event)) {
    auto trial = ordinal_of(*key);
    if (!trial || *trial >= book_->trials.size())
      return error{errc::not_found, "trial `" + *key + "` was never created by this search"};
    if (book_->over)
      return std::vector<search_action>{};
    std::visit(
      [&](const auto& x) {
        if constexpr (requires { x.trial; })
          on(x, *trial);
      },
      event);
  } else if (std::holds_alternative<search_ordered>(event)) {
    return error{errc::unsupported,
                 "a `" + limits_.name + "` search decides by itself; only `custom` takes orders"};
  } else if (const auto* continued = std::get_if<search_continued>(&event)) {
    if (auto fine = on(*continued); !fine)
      return fine.error();
  } else {
    on(search_started{});
  }
  check();
  return std::move(actions_);
}

void search_core::on(const search_started&) {
  if (std::exchange(book_->started, 1))
    return;
  fill();
  finish();
}

result<void> search_core::on(const search_continued& event) {
  if (!inner_->independent() || policies_)
    return error{errc::unsupported, "a `" + limits_.name + "` search cannot be continued after its end"};
  auto& book = *book_;
  std::vector<ordinal> revived;
  for (const auto& key : event.trials) {
    const auto trial = ordinal_of(key);
    if (!trial || *trial >= book.trials.size())
      return error{errc::not_found, "trial `" + key + "` was never created by this search"};
    revived.push_back(*trial);
  }
  book.over = 0;
  for (const auto trial : revived) {
    auto& record = book.trials[trial];
    if (record.at == stage::running || record.at == stage::paused)
      continue;
    if (record.at != stage::closed)
      --book.open;
    if (std::exchange(record.invalid, 0))
      --book.invalid;
    set_progress(record, 0);
    record.at = stage::paused;
    record.left_early = 0;
    record.again = 1;
  }
  // From now on the ends of its trials decide whether the search failed.
  book.failed = book.canceled = 0;
  fill();
  finish();
  return {};
}

report search_core::read(const trial_validated& event, ordinal trial) const {
  report r{trial, 0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
           &event.metrics};
  r.step = book_->trials[trial].reports + 1.0;
  if (!limits_.time_metric.empty())
    r.step = std::numeric_limits<double>::quiet_NaN();
  if (!event.metrics.is_object())
    return r;
  if (auto it = event.metrics.find(limits_.metric); it != event.metrics.end())
    if (auto x = number_in(*it)) {
      r.as_given = *x;
      if (std::isfinite(*x))
        r.worth = limits_.sign * *x;
    }
  if (!limits_.time_metric.empty())
    if (auto it = event.metrics.find(limits_.time_metric); it != event.metrics.end())
      if (auto x = number_in(*it); x && std::isfinite(*x))
        r.step = *x;
  return r;
}

void search_core::on(const trial_validated& event, ordinal trial) {
  auto& record = book_->trials[trial];
  if (record.at != stage::running)
    return;
  auto r = read(event, trial);
  if (!std::isnan(r.step)) {
    if (record.reports > 0 && r.step <= record.last_step)
      return; // a repeat, or a step from before a restart
    record.last_step = r.step;
  }
  ++record.reports;
  inner_->reported(r, *this);
  if (policies_ && book_->trials[trial].at == stage::running)
    if (auto reason = policies_->judge(r, limits_.sign))
      stop(trial, std::move(*reason));
  fill();
  finish();
}

void search_core::on(const trial_exited_early& event, ordinal trial) {
  auto& record = book_->trials[trial];
  if (record.at == stage::closed || std::exchange(record.left_early, 1))
    return;
  bool ordered = record.at == stage::stopping; // told to stop: how it ends does not matter
  auto how = ending::completed;
  switch (event.reason) {
  case exit_reason::errored:
    how = ending::errored;
    break;
  case exit_reason::user_requested_stop:
    how = ending::requested;
    break;
  case exit_reason::user_canceled:
    how = ending::canceled;
    break;
  case exit_reason::invalid_hp:
  case exit_reason::init_invalid_hp:
    how = ending::invalid;
    break;
  }
  if (ordered)
    return;
  book_->failed += how == ending::errored;
  book_->canceled += how == ending::canceled;
  if (how == ending::invalid) {
    set_progress(record, 0);
    record.invalid = 1;
    ++book_->invalid;
  }
  give_up_slot(trial, stage::leaving, how);
  fill();
  finish();
}

void search_core::on(const trial_exited&, ordinal trial) {
  auto& record = book_->trials[trial];
  if (record.at == stage::closed)
    return;
  give_up_slot(trial, stage::closed, ending::completed);
  set_progress(book_->trials[trial], 1);
  fill();
  finish();
}

void search_core::on(const trial_progressed& event, ordinal trial) {
  auto& record = book_->trials[trial];
  if (record.at != stage::closed && std::isfinite(event.progress))
    set_progress(record, std::clamp(event.progress, 0.0, 1.0));
}

void search_core::on(const trial_checkpointed& event, ordinal trial) {
  if (book_->trials[trial].invalid || event.checkpoint.empty())
    return;
  inner_->checkpointed(trial, event.step, event.checkpoint);
}

void search_core::set_progress(trial_record& r, double progress) {
  if (r.invalid)
    return;
  book_->progress_sum += progress - r.progress;
  r.progress = progress;
}

/// Moves a trial to `next`. The method hears of its end once, when the trial gives up its slot for good.
void search_core::give_up_slot(ordinal trial, stage next, ending how) {
  auto& record = book_->trials[trial];
  auto before = std::exchange(record.at, next);
  record.again = 0; // also of a continued trial that ends before its turn
  if (before == stage::running)
    --book_->live;
  if (before == stage::paused && next != stage::closed)
    ++book_->open;
  if (before != stage::paused && next == stage::closed)
    --book_->open;
  if (before == stage::running || before == stage::paused) {
    inner_->left(trial, how);
    if (policies_)
      policies_->left(trial, how);
  }
}

void search_core::stop(ordinal trial, stop_trial reason) {
  auto at = book_->trials[trial].at;
  if (at != stage::running && at != stage::paused)
    return;
  reason.trial = key_of(trial);
  actions_.push_back(std::move(reason));
  // A paused trial has no process, so its exit is not waited for.
  give_up_slot(trial, at == stage::running ? stage::stopping : stage::closed, ending::stopped);
  if (at == stage::paused)
    set_progress(book_->trials[trial], 1);
}

void search_core::pause(ordinal trial) {
  auto& record = book_->trials[trial];
  if (record.at != stage::running)
    return;
  record.at = stage::paused;
  --book_->live;
  --book_->open;
  actions_.push_back(pause_trial{key_of(trial)});
}

void search_core::perturb(ordinal trial, ordinal source, std::string checkpoint, double step, value hparams) {
  auto& record = book_->trials[trial];
  if (record.at != stage::running)
    return;
  record.last_step = step;
  actions_.push_back(perturb_trial{key_of(trial), key_of(source), std::move(checkpoint), std::move(hparams)});
}

void search_core::fill() {
  auto& book = *book_;
  if (!book.started || book.over)
    return;
  if (book.invalid > limits_.max_invalid()) {
    actions_.push_back(shut_down{false, true});
    book.over = 1;
    return;
  }
  inner_->settle(*this);
  while (limits_.max_concurrent == 0 || book.live < limits_.max_concurrent) {
    auto fresh = static_cast<ordinal>(book.trials.size());
    auto counted = book.trials.size() - (limits_.replaces_invalid ? book.invalid : 0);
    bool may_create = counted < limits_.max_trials && book.trials.size() < 0xffffffffu;
    const auto again = std::find_if(book.trials.begin(), book.trials.end(),
                                    [](const trial_record& r) { return r.again != 0; });
    auto p = again != book.trials.end()
               ? proposal{continue_paused{static_cast<ordinal>(again - book.trials.begin()), 0}}
               : inner_->next(fresh, may_create);
    if (auto* fresh_trial = std::get_if<start_new>(&p)) {
      TROUPE_ASSERT(may_create);
      auto seed = static_cast<std::uint32_t>(random_bits(limits_.seed, trial_seed_stream, fresh) >> 33);
      actions_.push_back(create_trial{key_of(fresh), std::move(fresh_trial->hparams), seed,
                                      std::move(fresh_trial->source_checkpoint)});
      book.trials.emplace_back();
      ++book.live;
      ++book.open;
    } else if (auto* paused = std::get_if<continue_paused>(&p)) {
      auto& record = book.trials[paused->trial];
      TROUPE_ASSERT(record.at == stage::paused);
      record.at = stage::running;
      record.again = 0;
      ++book.live;
      ++book.open;
      auto key = key_of(paused->trial);
      // The same event paused the trial and continued it: the trial goes on without a pause.
      auto just_paused = std::find_if(actions_.begin(), actions_.end(), [&](const search_action& a) {
        auto* x = std::get_if<pause_trial>(&a);
        return x && x->trial == key;
      });
      if (just_paused != actions_.end())
        actions_.erase(just_paused);
      else
        actions_.push_back(resume_trial{key, paused->until});
    } else {
      break;
    }
  }
}

void search_core::finish() {
  auto& book = *book_;
  if (book.over || !book.started || book.live > 0 || book.open > 0)
    return;
  for (ordinal t = 0; t < book.trials.size();
       ++t) // it stays paused: no process runs, so no exit is waited for
    if (book.trials[t].at == stage::paused) {
      book.trials[t].at = stage::closed;
      stop_trial reason;
      reason.trial = key_of(t);
      reason.why = "the search is over and this trial was not promoted";
      reason.metric = reason.needed = std::numeric_limits<double>::quiet_NaN();
      actions_.push_back(std::move(reason));
    }
  book.over = 1;
  auto n = book.trials.size();
  actions_.push_back(shut_down{book.canceled >= n, book.failed >= n});
}

double search_core::progress() const {
  if (book_->over)
    return 1;
  return std::clamp(book_->progress_sum / static_cast<double>(limits_.max_trials), 0.0, 1.0);
}

void search_core::check() const {
  const auto& book = *book_;
  TROUPE_ASSERT(limits_.max_concurrent == 0 || book.live <= limits_.max_concurrent);
  TROUPE_ASSERT(book.live <= book.open || book.over);
}

void search_core::ledger::persist(archive& ar) {
  ar(trials, live, open, invalid, failed, canceled, progress_sum, started, over);
}

void search_core::persist(archive& ar) const {
  ar(*book_);
  inner_->persist(ar);
  if (policies_)
    policies_->persist(ar);
}

std::string search_core::snapshot() const {
  archive ar;
  auto magic = snapshot_magic, version = snapshot_version;
  auto name = limits_.name;
  auto dimensions = limits_.dimensions;
  ar(magic, version, name, dimensions);
  persist(ar);
  return sealed(ar.take());
}

result<void> search_core::restore(std::string_view bytes) {
  auto payload = unsealed(bytes);
  if (!payload)
    return payload.error();
  archive ar(*payload);
  std::uint32_t magic = 0, version = 0;
  std::string name;
  std::uint64_t dimensions = 0;
  ar(magic, version, name, dimensions);
  if (ar.failed() || magic != snapshot_magic)
    return error{errc::corrupt, "searcher snapshot: these bytes are not a native snapshot"};
  if (version != snapshot_version)
    return error{errc::unsupported, "searcher snapshot: version " + std::to_string(version) +
                                      ", this build reads " + std::to_string(snapshot_version)};
  if (name != limits_.name || dimensions != limits_.dimensions)
    return error{errc::conflict, "searcher snapshot: taken of a `" + name + "` search over " +
                                   std::to_string(dimensions) + " dimensions, not of a `" + limits_.name +
                                   "` over " + std::to_string(limits_.dimensions)};
  persist(ar);
  if (ar.failed() || !ar.at_end())
    return error{errc::corrupt, "searcher snapshot: lengths do not fit together"};
  return {};
}

} // namespace troupe::searchers

#include "actors/cluster/cluster_unmanaged_part.hpp"

#include "actors/shells/durable.hpp"
#include "model/checkpoint_place.hpp"
#include "model/chosen_name.hpp"
#include "model/names.hpp"
#include "system/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t most_name = 255;
constexpr std::size_t most_changes = 1'000;   ///< limit of the waiting changes of one experiment
constexpr std::size_t most_followed = 50'000; ///< trials in memory, unless one experiment has more
constexpr std::size_t most_watched = 1'000;   ///< experiments with log policies whose lines are looked at

error not_unmanaged(experiment_id id) {
  return {errc::invalid, "experiment " + to_string(id) +
                           " is managed: trials can only be created on unmanaged experiments, and those of "
                           "others are reported by their own tasks"};
}

error run_over(const allocation_id& run) {
  return {errc::conflict, "allocation " + to_string(run) + " is over"};
}

/// An empty id is valid: the experiment then has no external id.
result<void> check_external_id(const std::string& id) {
  if (id.size() > most_name)
    return error{errc::invalid, "the external id has more than 255 bytes"};
  return id.empty() ? result<void>{} : check_chosen_name("the external id", id, most_name);
}

bool is_open(const trial_row& trial, run_id run) {
  return !trial.runs.empty() && trial.runs.back().run == run && trial.runs.back().ended == time_point{};
}

} // namespace

std::optional<error> cluster_unmanaged::refuses(const commands::experiment_create& x, bool known) const {
  if (!x.unmanaged && !x.external_id.empty())
    return error{errc::invalid, "only unmanaged experiments have a name of their own: set unmanaged"};
  if (x.unmanaged && x.parent)
    return error{errc::invalid, "can't fork into an unmanaged experiment"};
  if (!known)
    if (auto fine = check_external_id(x.external_id); !fine)
      return fine.error();
  return std::nullopt;
}

void cluster_unmanaged::recover(const experiment_row& row) {
  const auto trials = peers_.reads->trials(row.id);
  if (!trials)
    return;
  bool lives = false;
  for (const auto& trial : *trials) {
    if (trial.state == trial_state::running) {
      alive_[trial.id] = {row.id, trial.heard};
      lives = true;
    }
    auto missed = peers_.reads->metrics(trial.id, trial.latest.row, 100'000, "validation");
    for (const auto& one : missed ? *missed : std::vector<metric_row>())
      take({row.id, {trial.id, {}, one.row, one.steps, one.metrics, one.run}});
  }
  if (lives)
    with_.arm();
  if (!terminal(row.state))
    watch_lines(row);
  if (unmanaged::settle(row, *trials, self_->now()).empty())
    return; // there is nothing to mend, as with nearly all experiments
  in_turn(
    row.id,
    [](const experiment_row&) {
      decision none;
      none.settles = true;
      return none;
    },
    [](const command_result&) {});
}

result<void> cluster_unmanaged::takes_runs(const experiment_row& of) const {
  auto open = unmanaged::takes_runs(of);
  if (open)
    open = machine_.where.takes_runs(of.id);
  return open;
}

caf::result<command_result> cluster_unmanaged::on(const commands::trial_create& x) {
  return in_turn(x.experiment, [this, x](const experiment_row& row) -> result<decision> {
    if (auto open = takes_runs(row); !open)
      return open.error();
    const auto key = x.external_id.empty() ? random_uuid() : external_key(x.external_id);
    auto known = follow(row);
    if (!known)
      return known.error();
    decision out;
    if (const auto id = (*known)->trials.with_key(key)) {
      out.answer = {{"id", id.value}};
      return out;
    }
    if (auto fine = check_external_id(x.external_id); !fine)
      return fine.error();
    trial_created made{machine_.ids.reserve_trials(1), key, x.hparams, 0, {}, 0};
    out.answer = {{"id", made.trial.value}};
    search_stepped step;
    step.at = self_->now();
    step.progress = 0;
    step.created.push_back(std::move(made));
    out.of_experiment.emplace_back(std::move(step));
    return out;
  });
}

caf::result<command_result> cluster_unmanaged::on(const commands::trial_start& x) {
  auto row = trial(x.id);
  if (!row)
    return refused(row.error());
  return in_turn(row->experiment, [this, x](const experiment_row& of) -> result<decision> {
    if (auto open = takes_runs(of); !open)
      return open.error();
    watch_lines(of);
    auto row = trial(x.id);
    auto newest = row ? newest_checkpoint(x.id) : result<std::optional<checkpoint>>(row.error());
    if (!newest)
      return newest.error();
    auto begun = unmanaged::start(*row, x.resume, *newest, self_->now());
    if (!begun)
      return begun.error();
    decision out;
    out.answer = {{"run", begun->run.value}, {"checkpoint", begun->checkpoint}, {"steps", begun->steps}};
    out.of_trials[x.id] = std::move(begun->facts);
    return out;
  });
}

caf::result<command_result> cluster_unmanaged::on(const commands::trial_hear& x) {
  auto row = trial(x.id);
  if (!row)
    return refused(row.error());
  if (auto it = alive_.find(x.id); it != alive_.end())
    it->second.heard = self_->now();
  return in_turn(row->experiment, of_trial(x.id, [this, x](const trial_row& now) {
                   const auto at = self_->now();
                   if (x.state == "completed")
                     return unmanaged::ended(now, trial_state::completed, "", at);
                   if (x.state == "canceled")
                     return unmanaged::ended(now, trial_state::canceled, "canceled by its process", at);
                   if (x.state == "error")
                     return unmanaged::ended(now, trial_state::error, "its process says that it failed", at);
                   return unmanaged::alive(now, at);
                 }));
}

caf::result<command_result> cluster_unmanaged::on(allocation_id run, commands::checkpoint_report x) {
  auto row = trial(run.trial());
  if (!row)
    return refused(row.error());
  return in_turn(
    row->experiment, [this, run, x = std::move(x)](const experiment_row& of) -> result<decision> {
      auto now = trial(run.trial());
      if (!now)
        return now.error();
      if (!is_open(*now, run.run))
        return run_over(run);
      decision out;
      if (auto known = peers_.reads->checkpoint(x.uuid); known)
        return known->trial == now->id
                 ? result<decision>(std::move(out))
                 : error{errc::conflict, "checkpoint " + x.uuid + " exists already, of another trial"};
      auto settings = with_.settings(of);
      if (!settings)
        return settings.error();
      checkpoint saved{x.uuid, x.steps, x.files, x.metadata, {}, {settings->launch.checkpoint_store, x.uuid}};
      saved.path = folder_of(saved.place);
      out.of_trials[now->id].emplace_back(checkpoint_recorded{self_->now(), run.run, std::move(saved)});
      return out;
    });
}

caf::result<command_result> cluster_unmanaged::on(allocation_id run, const commands::trial_progress& x) {
  auto row = trial(run.trial());
  if (!row)
    return refused(row.error());
  return in_turn(row->experiment, of_trial(run.trial(), [this, run, x](const trial_row& now) {
                   using facts = result<std::vector<trial_fact>>;
                   if (!is_open(now, run.run))
                     return facts(run_over(run));
                   if (std::floor(now.progress * 100) == std::floor(x.progress * 100))
                     return facts(std::vector<trial_fact>{});
                   return facts(std::vector<trial_fact>{trial_progressed{self_->now(), x.progress}});
                 }));
}

caf::result<command_result> cluster_unmanaged::stop(const experiment_row& row, const std::string& why,
                                                    const std::string& by) {
  return in_turn(row.id, [this, why, by](const experiment_row& now) -> result<decision> {
    auto trials = peers_.reads->trials(now.id);
    if (!trials)
      return trials.error();
    decision out;
    out.by = by;
    for (const auto& trial : *trials)
      if (auto facts = unmanaged::ended(trial, trial_state::canceled, why, self_->now()); !facts.empty())
        out.of_trials[trial.id] = std::move(facts);
    if (trials->empty() && !terminal(now.state))
      out.of_experiment.emplace_back(experiment_changed{self_->now(), experiment_state::canceled, why, by});
    return out;
  });
}

caf::result<command_result> cluster_unmanaged::stop(const trial_row& row, const std::string& why,
                                                    const std::string& by) {
  return in_turn(
    row.experiment, of_trial(row.id, [this, why, by](const trial_row& now) {
      auto facts = unmanaged::ended(now, trial_state::canceled, why, self_->now());
      if (!facts.empty())
        facts.insert(facts.begin(), trial_stop_ordered{self_->now(), trial_state::canceled, true, why, by});
      return facts;
    }));
}

void cluster_unmanaged::take(const route_validation& x) {
  in_turn(
    x.experiment,
    [this, what = x.what](const experiment_row& row) -> result<decision> {
      auto now = trial(what.trial);
      auto settings = now ? with_.settings(row) : result<experiment_settings>(now.error());
      if (!settings)
        return settings.error();
      decision out;
      if (what.row > now->latest.row) // an older one was heard before a restart
        out.of_experiment.emplace_back(
          unmanaged::heard_validation(experiment_spec_of(*settings), what, self_->now()));
      return out;
    },
    [](const command_result&) {});
}

void cluster_unmanaged::take(const line_matched& x, experiment_id of,
                             std::function<void(const caf::error&)> done) {
  in_turn(of,
          of_trial(x.allocation.trial(),
                   [this, x](const trial_row& now) {
                     return unmanaged::matched(matched_patterns(now.id), x, self_->now());
                   }),
          [done = std::move(done)](const command_result& got) {
            // A line of a trial that is gone is stored nowhere, either.
            done(got.got || got.got.error().code == errc::not_found ? caf::error{} : to_caf(got.got.error()));
          });
}

/// Lines of the experiment's trials are looked at from now on, also after the end, as some come late. The
/// oldest experiments are forgotten where there are too many.
void cluster_unmanaged::watch_lines(const experiment_row& row) {
  if (!with_.lines || !row.config->is_object() || !watched_.insert(row.id).second)
    return;
  with_.lines->watch(row.id, row.config->value("log_policies", value()));
  if (watched_.size() > most_watched) {
    with_.lines->forget(*watched_.begin());
    watched_.erase(watched_.begin());
  }
}

/// The patterns of log policies that lines of the trial have matched so far.
std::set<std::string> cluster_unmanaged::matched_patterns(trial_id id) const {
  std::set<std::string> out;
  const auto facts = peers_.reads->facts_of(entity(id), 0);
  for (const auto& bytes : facts ? *facts : std::vector<std::string>())
    if (const auto fact = decode_as<trial_fact>(bytes))
      if (const auto* match = std::get_if<log_policy_matched>(&*fact))
        out.insert(match->pattern);
  return out;
}

/// The times of the trial's newest report, newest line and checkpoints. Rows of reports count from 1, so the
/// newest one is found in the logarithm of their number.
std::vector<time_point> cluster_unmanaged::signs_of(const trial_row& row) const {
  const auto at_of = [&](std::uint64_t after) -> std::optional<time_point> {
    const auto next = peers_.reads->metrics(row.id, after, 1, {});
    return next && !next->empty() ? std::optional{next->front().at} : std::nullopt;
  };
  std::uint64_t step = 1, known = 0;
  for (; at_of(known + step - 1); step *= 2)
    known += step;
  for (; step > 0; step /= 2)
    if (at_of(known + step - 1))
      known += step;
  std::vector<time_point> said;
  if (known > 0)
    said.push_back(at_of(known - 1).value_or(time_point{}));
  if (const auto line = peers_.reads->logs_before(row.id, std::numeric_limits<std::uint64_t>::max(), 1);
      line && !line->empty())
    said.push_back(line->back().at);
  if (const auto saved = peers_.reads->checkpoints(row.id))
    for (const auto& one : *saved)
      said.push_back(one.at);
  return said;
}

std::optional<time_point> cluster_unmanaged::deadline() const {
  std::optional<time_point> next;
  for (const auto& [id, one] : alive_)
    next = std::min(next.value_or(time_point::max()), unmanaged::next_look(one.heard, one.looked));
  return next;
}

void cluster_unmanaged::time_passed() {
  for (auto& [id, one] : alive_) {
    if (self_->now() < unmanaged::next_look(one.heard, one.looked))
      continue;
    one.looked = self_->now();
    in_turn(one.experiment,
            of_trial(id,
                     [this, heard = one.heard](const trial_row& now) {
                       const auto it =
                         alive_.find(now.id); // the trial may have reported while this change waited
                       const auto last = unmanaged::latest_sign(it == alive_.end() ? heard : it->second.heard,
                                                                signs_of(now), self_->now());
                       if (it != alive_.end())
                         it->second.heard = last;
                       return unmanaged::silent(now, last, self_->now());
                     }),
            [](const command_result&) {});
  }
}

// ---- one change after the other

cluster_unmanaged::decide
cluster_unmanaged::of_trial(trial_id id,
                            std::function<result<std::vector<trial_fact>>(const trial_row&)> facts) const {
  return [this, id, facts = std::move(facts)](const experiment_row&) -> result<decision> {
    auto now = trial(id);
    auto made = now ? facts(*now) : result<std::vector<trial_fact>>(now.error());
    if (!made)
      return made.error();
    decision out;
    if (!made->empty())
      out.of_trials[id] = std::move(*made);
    return out;
  };
}

caf::result<command_result> cluster_unmanaged::in_turn(experiment_id id, decide how) {
  auto promise = self_->make_response_promise<command_result>();
  in_turn(id, std::move(how), [promise](command_result got) mutable { promise.deliver(std::move(got)); });
  return promise;
}

void cluster_unmanaged::in_turn(experiment_id id, decide how, done_callback done) {
  auto& waiting = changes_[id];
  if (waiting.size() >= most_changes)
    return done(refused({errc::busy, "too much is said of experiment " + to_string(id) + " at once"}));
  waiting.push_back({std::move(how), std::move(done)});
  if (waiting.size() == 1)
    begin(id);
}

void cluster_unmanaged::begin(experiment_id id) {
  auto row = peers_.reads->experiment(id);
  if (!row)
    return over(id, refused({errc::not_found, "experiment '" + to_string(id) + "' not found"}));
  if (!row->unmanaged)
    return over(id, refused(not_unmanaged(id)));
  auto decided = changes_[id].front().how(*row);
  if (!decided)
    return over(id, refused(decided.error()));
  std::vector<append_facts> all;
  const auto add = [&](const std::string& stream, const auto& facts) {
    std::vector<std::string> encoded;
    for (const auto& one : facts)
      encoded.push_back(encode_as(one));
    if (!encoded.empty())
      all.push_back(facts_for(stream, std::move(encoded)));
  };
  auto& changed = changes_[id].front().trials;
  changed.clear();
  add(entity(id), decided->of_experiment);
  for (const auto& one : decided->of_experiment)
    if (const auto* step = std::get_if<search_stepped>(&one))
      for (const auto& made : step->created)
        changed.push_back(made.trial);
  bool settles = decided->settles;
  for (const auto& [trial, facts] : decided->of_trials) {
    changed.push_back(trial);
    add(entity(trial), facts);
    for (const auto& one : facts)
      settles = settles || std::holds_alternative<trial_ended>(one) ||
                (std::holds_alternative<trial_heard>(one) && !alive_.contains(trial));
  }
  std::reverse(all.begin(), all.end());
  changes_[id].front().by = std::move(decided->by);
  commit(id, std::move(all), std::move(decided->answer), settles);
}

append_facts cluster_unmanaged::facts_for(const std::string& stream, std::vector<std::string> facts) const {
  const auto next = peers_.reads->next_of(stream);
  return {stream, next ? *next : 0, std::move(facts)};
}

void cluster_unmanaged::commit(experiment_id id, std::vector<append_facts> left, value answer, bool settles) {
  if (left.empty()) {
    note_changes(id);
    return settles ? settle(id, std::move(answer)) : over(id, answered(std::move(answer)));
  }
  auto next = std::move(left.back());
  left.pop_back();
  self_->request(peers_.journal, journal_timeout, std::move(next))
    .then([this, id, left, answer, settles](const committed&) { commit(id, left, answer, settles); },
          [this, id](const caf::error& why) {
            followed_.erase(id); // a part of the change may be durable
            auto& first = changes_[id].front();
            if (from_caf(why).code == errc::gap && first.tries-- > 0)
              return begin(id); // the change is decided again, from the newer rows
            over(id, refused(from_caf(why)));
          });
}

/// Decides the state of the experiment anew, as the durable changes of its trials may change it.
void cluster_unmanaged::settle(experiment_id id, value answer) {
  auto row = peers_.reads->experiment(id);
  const auto known = row ? follow(*row) : result<followed*>(row.error());
  if (!known)
    return over(id, refused(known.error()));
  for (const auto& [trial, heard] : std::exchange((*known)->news, {}))
    if (!heard)
      alive_.erase(trial);
    else if (auto [it, fresh] = alive_.try_emplace(trial, life{id, *heard}); !fresh)
      it->second.heard = std::max(it->second.heard, *heard);
  with_.arm();
  std::vector<std::string> facts;
  const auto& trials = (*known)->trials;
  auto changes = trials.settle(*row, self_->now());
  if (trials.size() == 0 && row->state == experiment_state::canceled)
    changes.clear(); // a user ended the experiment before it had a trial
  for (auto& one : changes) {
    if (auto* changed = std::get_if<experiment_changed>(&one))
      changed->by = changes_[id].front().by;
    facts.push_back(encode_as(one));
  }
  if (facts.empty())
    return over(id, answered(std::move(answer)));
  const bool ends = terminal(std::get<experiment_changed>(changes.front()).state);
  self_->request(peers_.journal, journal_timeout, facts_for(entity(id), std::move(facts)))
    .then(
      [this, id, answer, ends](const committed&) {
        if (ends)
          with_.ended(id);
        over(id, answered(answer));
      },
      [this, id](const caf::error& why) { over(id, refused(from_caf(why))); });
}

void cluster_unmanaged::over(experiment_id id, command_result how) {
  auto it = changes_.find(id);
  auto done = std::move(it->second.front().done);
  it->second.pop_front();
  const bool more = !it->second.empty();
  if (!more)
    changes_.erase(it);
  done(std::move(how));
  if (more)
    begin(id);
}

// ---- rows

/// Takes the rows of the trials that the change under way was about, which is durable.
void cluster_unmanaged::note_changes(experiment_id id) {
  const auto at = followed_.find(id);
  if (at == followed_.end())
    return;
  for (const auto one : changes_[id].front().trials) {
    const auto row = peers_.reads->trial(one);
    if (!row) {
      followed_.erase(at); // to be read anew
      return;
    }
    at->second.note(*row);
  }
}

void cluster_unmanaged::followed::note(const trial_row& row) {
  trials.note(row);
  news[row.id] = row.state == trial_state::running ? std::optional{row.heard} : std::nullopt;
}

result<cluster_unmanaged::followed*> cluster_unmanaged::follow(const experiment_row& row) {
  if (const auto at = followed_.find(row.id);
      at != followed_.end() && at->second.trials.size() == row.num_trials)
    return &at->second;
  const auto rows = peers_.reads->trials(row.id);
  if (!rows)
    return rows.error();
  auto count = rows->size();
  for (const auto& [id, one] : followed_)
    count += one.trials.size();
  if (count > most_followed)
    followed_.clear();
  auto& known = followed_[row.id];
  known = {};
  for (const auto& trial : *rows)
    known.note(trial);
  return &known;
}

result<trial_row> cluster_unmanaged::trial(trial_id id) const {
  auto row = peers_.reads->trial(id);
  if (!row && row.error().code == errc::not_found)
    return error{errc::not_found, "trial '" + to_string(id) + "' not found"};
  return row;
}

result<std::optional<checkpoint>> cluster_unmanaged::newest_checkpoint(trial_id id) const {
  auto all = peers_.reads->checkpoints(id);
  if (!all)
    return all.error();
  std::optional<checkpoint> newest;
  for (auto& one : *all)
    if (one.state == checkpoint_state::completed && (!newest || one.saved.steps >= newest->steps))
      newest = std::move(one.saved);
  return newest;
}

} // namespace troupe

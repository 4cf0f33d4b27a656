#include "actors/cluster/cluster_trials_part.hpp"

#include "actors/shells/durable.hpp"
#include "actors/shells/obey.hpp"
#include "actors/task/task_settings.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t most_waiting = 20'000; ///< limit of the waiting changes of one trial
constexpr std::size_t most_at_once = 500;    ///< limit of the changes that one append stores
constexpr std::size_t most_of_files = 500;   ///< limit of the waiting changes of one checkpoint's files
constexpr int most_tries = 5;                ///< how often an append is repeated with another number

/// Who did it, for facts: empty where a task asks by itself.
std::string user_of(const client_command& from) { return from.allocation.empty() ? from.user : ""; }

/// Name of the removal that lasts until the changes of the checkpoint's files are stored.
std::string change_of(const std::string& uuid) { return "change of " + uuid; }

bool is_removal(const client_command& from) {
  return parse_allocation(from.allocation).task.kind() == task_kind::checkpoint_gc;
}

/// The same for files of checkpoints, which a task may remove because a user has ordered it.
std::string user_of_removal(const client_command& from, const storage::reader& reads) {
  const auto task = parse_allocation(from.allocation).task;
  if (!is_removal(from))
    return user_of(from);
  const auto row = reads.other_task(task);
  const auto by = row && row->made.details.is_object() ? row->made.details.value("by", value()) : value();
  return by.is_string() ? by.get<std::string>() : std::string();
}

/// The files without those that are noted as gone: another removal has noted that after this one had found
/// them.
commands::file_sizes without_gone(const checkpoint_row& now, commands::file_sizes listed) {
  if (now.state == checkpoint_state::completed)
    return listed;
  std::erase_if(listed, [&](const auto& one) { return !now.saved.files.contains(one.first); });
  // Folders alone are not a checkpoint.
  const bool some =
    std::any_of(listed.begin(), listed.end(), [](const auto& one) { return !one.first.ends_with('/'); });
  return some ? std::move(listed) : commands::file_sizes{};
}

} // namespace

caf::result<command_result> cluster_trials::obey(client_command& x) {
  return troupe::obey<commands_here>(x.name, std::move(x.fields),
                                     [this, &x](auto order) { return on(x, std::move(order)); });
}

caf::result<command_result> cluster_trials::on(const client_command&, const commands::trial_metadata& x) {
  auto row = peers_.reads->trial(x.id);
  if (!row)
    return refused(row.error());
  return answered({{"metadata", row->metadata.is_object() ? row->metadata : value::object()}});
}

caf::result<command_result> cluster_trials::on(const client_command& from,
                                               const commands::trial_set_metadata& x) {
  auto row = peers_.reads->trial(x.id);
  if (!row)
    return refused(row.error());
  auto promise = self_->make_response_promise<command_result>();
  auto call = x;
  call.by = user_of(from);
  change(
    *row, task_call_of({x.id, {}}, call),
    [fact = trial_metadata_set{self_->now(), x.metadata, call.by}] { return fact; },
    [promise, given = x.metadata](command_result& done) mutable {
      promise.deliver(done.got ? answered({{"metadata", given}}) : std::move(done));
    });
  return promise;
}

caf::result<command_result> cluster_trials::on(const client_command& from,
                                               const commands::checkpoint_patch& x) {
  if (from.allocation.empty()) { // a task tells which of its files it has deleted, and they are gone already
    std::vector<std::string> uuids;
    for (const auto& one : x.checkpoints)
      uuids.push_back(one.uuid);
    if (auto fine = machine_.books.check_unregistered(uuids, {}, "patched"); !fine)
      return refused(fine.error());
  }
  if (auto fine = check_sweep(from, x); !fine)
    return refused(fine.error());
  struct pending {
    std::size_t left = 1;
    command_result worst = answered();
  };
  const auto by = user_of_removal(from, *peers_.reads);
  auto all = std::make_shared<pending>();
  auto promise = self_->make_response_promise<command_result>();
  auto done = [all, promise](command_result& one) mutable {
    if (!one.got && all->worst.got)
      all->worst = one;
    if (--all->left == 0)
      promise.deliver(all->worst);
  };
  for (const auto& one : x.checkpoints) {
    auto saved = peers_.reads->checkpoint(one.uuid);
    auto row = saved ? peers_.reads->trial(saved->trial) : result<trial_row>(saved.error());
    if (!row)
      return refused(row.error());
    if (!one.files)
      continue;
    ++all->left;
    change_files(one.uuid, {*one.files, by, is_removal(from), done});
  }
  auto last = answered();
  done(last);
  return promise;
}

caf::result<command_result> cluster_trials::on(const client_command& from,
                                               const commands::checkpoint_describe& x) {
  auto saved = peers_.reads->checkpoint(x.uuid);
  auto row = saved ? peers_.reads->trial(saved->trial) : result<trial_row>(saved.error());
  if (!row)
    return refused(row.error());
  auto promise = self_->make_response_promise<command_result>();
  auto call = x;
  call.by = from.user;
  change(
    *row, task_call_of({row->id, {}}, call),
    [fact = checkpoint_described{self_->now(), from.user, x.uuid, x.metadata}] { return fact; },
    [promise](command_result& done) mutable { promise.deliver(std::move(done)); });
  return promise;
}

/// A sweep asks that its checkpoints are noted as deleted before it removes their files. Fails with
/// errc::conflict where one of them has come into use since the sweep was planned, or the experiment goes on.
result<void> cluster_trials::check_sweep(const client_command& from,
                                         const commands::checkpoint_patch& x) const {
  const auto task = is_removal(from) ? peers_.reads->other_task(parse_allocation(from.allocation).task)
                                     : result<task_detail>(error{errc::not_found, ""});
  if (!task || collects_on_agent(task->made)) // such a task tells of files after it has removed them
    return {};
  const auto of = peers_.reads->experiment(collected_experiment(*task));
  if (!of)
    return of.error();
  if (!terminal(of->state) || machine_.ids.continued(of->id) != of->continued)
    return error{errc::conflict, "experiment " + to_string(of->id) + " goes on"};
  for (const auto& one : x.checkpoints)
    if (machine_.uses.in_use(one.uuid, machine_.books))
      return error{errc::conflict, "checkpoint " + one.uuid + " is in use"};
  return {};
}

void cluster_trials::change_files(const std::string& uuid, files_left wanted) {
  auto& waiting = files_[uuid];
  if (waiting.size() >= most_of_files) {
    auto no = refused({errc::busy, "checkpoint " + uuid +
                                     " has too many changes that are not stored yet\nhint: ask once more"});
    return wanted.done(no);
  }
  waiting.push_back(std::move(wanted));
  machine_.uses.begin_removal(change_of(uuid), {uuid});
  if (waiting.size() == 1)
    change_next_files(uuid);
}

void cluster_trials::change_next_files(const std::string& uuid) {
  const auto done = [this, uuid](command_result& answer) {
    const auto at = files_.find(uuid);
    const auto told = std::move(at->second.front().done);
    at->second.pop_front();
    if (at->second.empty()) {
      files_.erase(at);
      machine_.uses.end_removal(change_of(uuid));
    } else
      change_next_files(uuid);
    told(answer);
  };
  const auto& next = files_.at(uuid).front();
  const auto saved = peers_.reads->checkpoint(uuid);
  const auto row = saved ? peers_.reads->trial(saved->trial) : result<trial_row>(saved.error());
  if (!row) {
    auto no = refused(row.error());
    return done(no);
  }
  const auto left = next.listed ? without_gone(*saved, next.files) : next.files;
  const bool same =
    left == saved->saved.files && (!left.empty() || saved->state == checkpoint_state::deleted);
  if (next.listed && same) {
    auto noted = answered();
    return done(noted);
  }
  const auto by = next.by;
  const auto fact = [this, uuid, files = next.files, by, listed = next.listed, at = self_->now()] {
    const auto now = peers_.reads->checkpoint(uuid); // a sweep may have deleted it meanwhile
    return checkpoint_changed{at, uuid, listed && now ? without_gone(*now, files) : files, by};
  };
  change(*row, task_call_of({row->id, {}}, commands::checkpoint_files{uuid, left, by}), fact, done);
}

void cluster_trials::change(const trial_row& row, task_call call, fact_maker fact, change_done done) {
  const auto live = with_.experiment(row.experiment);
  if (!live || terminal(row.state))
    return append_to(row.id, std::move(fact), std::move(done));
  self_->request(live, journal_timeout, std::move(call))
    .then(
      [this, id = row.id, fact, done](command_result& answer) {
        if (answer.got || answer.got.error().code != errc::not_found)
          return done(answer);
        append_to(id, fact, done);
      },
      [this, id = row.id, fact, done](const caf::error& why) {
        if (auto now = peers_.reads->trial(id); now && terminal(now->state))
          return append_to(id, fact, done); // the trial ended while the message was on its way
        auto no = refused(from_caf(why));
        done(no);
      });
}

void cluster_trials::append_to(trial_id id, fact_maker fact, change_done done) {
  auto& stream = streams_[id];
  if (stream.waiting.size() >= most_waiting) {
    auto no = refused({errc::busy, "trial " + to_string(id) +
                                     " has too many changes that are not stored yet\nhint: ask once more"});
    return done(no);
  }
  stream.waiting.push_back({std::move(fact), std::move(done)});
  if (stream.waiting.size() == 1)
    append_next(id, most_tries);
}

void cluster_trials::append_next(trial_id id, int tries) {
  auto& stream = streams_.at(id);
  const auto next = peers_.reads->next_of(entity(id));
  append_facts mail{entity(id), next ? *next : 0, {}};
  stream.under_way = std::min(stream.waiting.size(), most_at_once);
  for (std::size_t i = 0; i < stream.under_way; ++i)
    mail.facts.push_back(encode_as(stream.waiting[i].fact()));
  self_->request(peers_.journal, journal_timeout, std::move(mail))
    .then([this, id](const committed&) { appended(id, {}); },
          [this, id, tries](const caf::error& why) {
            const auto fault = from_caf(why);
            if (fault.code == errc::gap && tries > 0) // another change took the number
              append_next(id, tries - 1);
            else
              appended(id, fault);
          });
}

void cluster_trials::appended(trial_id id, const std::optional<error>& fault) {
  auto& stream = streams_.at(id);
  const auto last = stream.waiting.begin() + static_cast<std::ptrdiff_t>(stream.under_way);
  std::vector<change_waiting> stored(std::make_move_iterator(stream.waiting.begin()),
                                     std::make_move_iterator(last));
  stream.waiting.erase(stream.waiting.begin(), last);
  if (stream.waiting.empty())
    streams_.erase(id);
  else
    append_next(id, most_tries);
  for (const auto& one : stored) {
    auto answer = fault ? refused(*fault) : answered();
    one.done(answer);
  }
}

} // namespace troupe

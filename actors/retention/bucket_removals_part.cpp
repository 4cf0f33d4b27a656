#include "actors/retention/bucket_removals_part.hpp"

#include "actors/shells/durable.hpp"
#include "model/commands/task_commands.hpp"

#include <cstdint>

#include <caf/all.hpp>

namespace troupe {
namespace {

/// Time between two looks at the tasks that are waited for. Their rows tell of their ends, also where these
/// came in an earlier life of the master.
constexpr auto look_every = std::chrono::seconds(1);
constexpr std::size_t lines_read = 20; ///< last lines of a log in which the reason of a failure stands

} // namespace

void bucket_removals::order(bucket_order what, done_callback then) {
  if (auto fine = check(what); !fine)
    return then(fine);
  auto part = first_part(what);
  what.checkpoints.erase(what.checkpoints.begin(),
                         what.checkpoints.begin() + static_cast<std::ptrdiff_t>(part.checkpoints.size()));
  begin(part, [this, what = std::move(what), then = std::move(then)](const result<task_id>& task) {
    if (!task || what.checkpoints.empty())
      return then(task ? result<void>() : result<void>(task.error()));
    order(what, then);
  });
}

void bucket_removals::remove(bucket_order what, done_callback then, done_callback refused) {
  const auto begun = [this, then = std::move(then),
                      refused = std::move(refused)](const result<task_id>& task) {
    if (!task)
      return refused(task.error());
    waiting_[*task].push_back(then);
    if (!look_at_)
      look_at_ = self_->now() + look_every;
    arm_();
  };
  begin(first_part(std::move(what)), begun);
}

/// An open task that does the same, which an earlier life of the master or of this actor has ordered.
std::optional<task_id> bucket_removals::open_for(const bucket_order& what) const {
  auto tasks = peers_.reads->other_tasks(task_kind::checkpoint_gc, self_->now());
  for (const auto& task : tasks ? *tasks : std::vector<task_detail>())
    if (!terminal(task.state) && covers(task.made.details, what))
      return task.made.id;
  return std::nullopt;
}

void bucket_removals::begin(const bucket_order& what, std::function<void(result<task_id>)> then) {
  if (const auto open = open_for(what))
    return then(*open);
  auto row = peers_.reads->experiment(what.experiment);
  if (!row)
    return then(row.error());
  auto project = peers_.reads->project(row->project);
  client_command create;
  create.user = row->owner;
  create.name = commands::task_create::is.name;
  create.fields = creation_of(what, project ? project->workspace : workspace_id{1});
  self_->request(peers_.cluster, journal_timeout, std::move(create))
    .then(
      [then](const command_result& answer) {
        if (!answer.got)
          return then(answer.got.error());
        const auto id = parse_task(answer.got->value("id", std::string()));
        then(id ? result<task_id>(id) : result<task_id>(error{errc::internal, "the created task has no id"}));
      },
      [then](const caf::error& why) { then(from_caf(why)); });
}

void bucket_removals::time_passed() {
  if (!look_at_ || self_->now() < *look_at_)
    return;
  look_at_.reset();
  std::vector<std::pair<done_callback, result<void>>> ended;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    auto row = peers_.reads->other_task(at->first);
    if (row && !terminal(row->state)) {
      ++at;
      continue;
    }
    result<void> outcome = row ? result<void>() : result<void>(row.error());
    if (row) {
      auto last = peers_.reads->logs_before(at->first, UINT64_MAX, lines_read);
      if (auto why = failure_of(*row, last ? *last : std::vector<log_line>()); !why.empty())
        outcome = error{errc::io, why};
    }
    for (auto& then : at->second)
      ended.emplace_back(std::move(then), outcome);
    at = waiting_.erase(at);
  }
  if (!waiting_.empty())
    look_at_ = self_->now() + look_every;
  for (auto& [then, outcome] : ended)
    then(outcome);
}

} // namespace troupe

#include "actors/retention/collections_part.hpp"

#include "actors/retention/open_collections.hpp"
#include "actors/shells/durable.hpp"
#include "model/config/cluster_config.hpp"

#include <algorithm>

#include <caf/all.hpp>

namespace troupe {

collections::collections(actor_base<retention_actor>* self, journal_actor journal,
                         std::shared_ptr<storage::reader> reads,
                         std::function<std::string(std::size_t)> id_bytes)
    : self_(self), journal_(std::move(journal)), reads_(std::move(reads)), id_bytes_(std::move(id_bytes)),
      life_(std::to_string(self->now().time_since_epoch().count())) {}

std::vector<checkpoint_files_removed> collections::recover() {
  auto out = open_collections(*reads_);
  for (const auto& order : out) {
    const auto [it, fresh] = open_.emplace(order.id, entry{collection(order, true), {}, 0, 0, {}});
    add_line(order.id, it->second, it->second.what.first_line());
  }
  return out;
}

checkpoint_files_removed collections::order_of(experiment_id id, const char* cause,
                                               const std::string& by) const {
  if (auto row = reads_->experiment(id))
    return order_of(*row, cause, by);
  experiment_row gone;
  gone.id = id;
  return order_of(gone, cause, by);
}

checkpoint_files_removed collections::order_of(const experiment_row& row, const char* cause,
                                               const std::string& by) const {
  checkpoint_files_removed order;
  order.by = by;
  order.experiment = row.id;
  order.cause = cause;
  order.owner = row.owner;
  if (auto project = reads_->project(row.project))
    order.workspace = project->workspace;
  const auto known = reads_->configuration();
  order.pool = config::default_pool(known && *known ? (*known)->configuration : value());
  return order;
}

std::optional<checkpoint_files_removed> collections::order(task_id id) const {
  const auto it = open_.find(id);
  return it == open_.end() ? std::nullopt : std::optional(it->second.what.order());
}

bool collections::is_open(const checkpoint_files_removed& wanted) const {
  return std::any_of(open_.begin(), open_.end(),
                     [&](const auto& one) { return same_collection(one.second.what.order(), wanted); });
}

void collections::begin(checkpoint_files_removed wanted, std::function<void(result<task_id>)> then) {
  auto at = std::find_if(open_.begin(), open_.end(),
                         [&](const auto& one) { return same_collection(one.second.what.order(), wanted); });
  if (at == open_.end()) {
    wanted.id = collection_id(id_bytes_(16));
    wanted.at = self_->now();
    wanted.step = deletion_step::ordered;
    const auto id = wanted.id;
    at = open_.emplace(id, entry{collection(std::move(wanted)), {}, 0, 0, {}}).first;
    add_line(id, at->second, at->second.what.first_line());
  }
  // For a collection that is open already, the bytes are the same and the journal takes them as a repeat: its
  // first answer may have been lost.
  const auto id = at->first;
  const bool repeats = at->second.what.order().cause != collected_by::request;
  append_facts order{entity(id), 0, {encode(at->second.what.order())}};
  post([this, id, repeats, order = std::move(order), then = std::move(then)] {
    self_->request(journal_, journal_timeout, order)
      .then([id, then](const committed&) { then(id); },
            [this, id, repeats, then](const caf::error& why) {
              // If the order is durable nevertheless, the next start finds it and carries it out.
              if (!repeats)
                open_.erase(id);
              then(from_caf(why));
            });
  });
}

void collections::post(std::function<void()> mail) {
  outbox_.push_back(std::move(mail));
  empty_outbox();
}

void collections::removed() {
  --removing_;
  empty_outbox();
}

void collections::empty_outbox() {
  if (!goes_to_journal(outbox_.size(), open_.size(), removing_))
    return;
  for (const auto& mail : std::exchange(outbox_, {}))
    mail();
}

void collections::add_line(task_id id, entry& to, collection_line line) {
  log_line out;
  out.at = self_->now();
  out.allocation = {id, run_id{1}};
  out.stream = "troupe";
  out.level = line.level;
  out.text = std::move(line.text);
  to.lines.push_back(std::move(out));
}

void collections::note(task_id id, const removal& one) {
  if (auto it = open_.find(id); it != open_.end())
    add_line(id, it->second, it->second.what.note(one));
}

void collections::write_log(task_id id, std::function<void()> then) {
  const auto it = open_.find(id);
  if (it == open_.end())
    return then();
  auto& of = it->second;
  of.when_written.push_back(std::move(then));
  append_log mail{id, std::exchange(of.lines, {}), "retention/" + to_string(id) + "/" + life_, 0};
  ++of.unanswered;
  if (mail.lines.empty())
    return written(id);
  mail.position = of.position += mail.lines.size();
  post([this, id, mail = std::move(mail)] {
    self_->request(journal_, journal_timeout, mail)
      .then([this, id](const committed&) { written(id); }, [this, id](const caf::error&) { written(id); });
  });
}

void collections::written(task_id id) {
  const auto it = open_.find(id);
  if (it == open_.end() || --it->second.unanswered)
    return;
  for (const auto& then : std::exchange(it->second.when_written, {}))
    then();
}

void collections::when_log_written(task_id id, std::function<void()> then) {
  const auto it = open_.find(id);
  if (it == open_.end() || it->second.unanswered == 0)
    return then();
  it->second.when_written.push_back(std::move(then));
}

void collections::end(task_id id, std::function<void(result<void>)> then) {
  const auto it = open_.find(id);
  if (it == open_.end())
    return then({});
  add_line(id, it->second, it->second.what.last_line());
  write_log(id, [] {});
  // Sent beside the lines, which the journal takes first: one commit serves both.
  const auto closed = [this, id, then](result<void> done) {
    when_log_written(id, [this, id, then, done] {
      if (done)
        open_.erase(id);
      then(done);
    });
  };
  append_facts end{entity(id), 1, {encode(it->second.what.end(self_->now()))}};
  post([this, id, closed, end = std::move(end)] {
    self_->request(journal_, journal_timeout, end)
      .then([closed](const committed&) { closed({}); },
            [this, id, closed](const caf::error& why) {
              auto row = reads_->task(id);
              // An earlier try may have made the end durable.
              const bool is_durable = row && row->ended != time_point{};
              closed(is_durable ? result<void>() : result<void>(from_caf(why)));
            });
  });
}

} // namespace troupe

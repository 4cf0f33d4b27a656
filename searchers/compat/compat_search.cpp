#include "searchers/compat/compat_search.hpp"

#include "searchers/portable_math.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::searchers {
namespace {

constexpr std::uint32_t snapshot_magic = 0x43535254; // "TRSC"
constexpr std::uint32_t snapshot_version = 1;

} // namespace

compat_search::compat_search(settings common, std::shared_ptr<const space> domain,
                             std::unique_ptr<compat_method> inner)
    : common_(std::move(common)), domain_(std::move(domain)), inner_(std::move(inner)),
      random_(std::make_unique<nprand>(static_cast<std::uint32_t>(common_.seed))) {}

result<std::vector<search_action>> compat_search::apply(const search_event& event) {
  actions_.clear();
  if (std::holds_alternative<search_started>(event)) {
    if (!std::exchange(book_->started, 1))
      inner_->start(*this);
    return std::move(actions_);
  }
  return std::visit(
    [this](const auto& x) -> result<std::vector<search_action>> {
      if constexpr (requires { x.trial; }) {
        auto it = by_id_.find(x.trial);
        if (it == by_id_.end())
          return error{errc::not_found, "trial `" + x.trial + "` was never created by this search"};
        if (!book_->over)
          on(x, it->second);
      }
      return std::move(actions_);
    },
    event);
}

void compat_search::on(const trial_validated& event, ordinal trial) {
  if (book_->trials[trial].closed)
    return;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  report r{trial, nan, std::numeric_limits<double>::infinity(), nan, &event.metrics};
  auto find = [&](const std::string& key) -> std::optional<double> {
    if (!event.metrics.is_object())
      return std::nullopt;
    auto it = event.metrics.find(key);
    return it == event.metrics.end() ? std::nullopt : number_in(*it);
  };
  if (auto x = find(common_.metric)) {
    r.as_given = *x;
    if (std::isfinite(*x))
      r.worth = common_.sign() * *x;
  }
  if (auto x = find(common_.time_metric); x && std::isfinite(*x))
    r.step = *x;
  inner_->reported(r, *this);
}

void compat_search::on(const trial_exited_early& event, ordinal trial) {
  auto& t = book_->trials[trial];
  if (t.closed || std::exchange(t.left_early, 1))
    return;
  bool invalid = event.reason == exit_reason::invalid_hp || event.reason == exit_reason::init_invalid_hp;
  book_->failed += event.reason == exit_reason::errored;
  book_->canceled += event.reason == exit_reason::user_canceled;
  if (invalid) {
    t.invalid = 1;
    book_->tally.reported -= t.progress;
    --book_->tally.known;
    if (++book_->invalid > max_invalid()) { // the one difference: Determined goes on for ever
      book_->over = 1;
      actions_.push_back(shut_down{false, true});
      return;
    }
  }
  inner_->exited_early(trial, invalid, *this);
  finish(false);
}

void compat_search::on(const trial_exited&, ordinal trial) {
  auto& t = book_->trials[trial];
  if (std::exchange(t.closed, 1))
    return;
  ++book_->closed;
  if (!t.invalid)
    book_->tally.reported += 1 - t.progress;
  inner_->exited(trial, *this);
  finish(true);
}

void compat_search::on(const trial_progressed& event, ordinal trial) {
  auto& t = book_->trials[trial];
  if (t.closed || t.invalid || !std::isfinite(event.progress))
    return;
  double progress = std::clamp(event.progress, 0.0, 1.0);
  book_->tally.reported += progress - t.progress;
  t.progress = progress;
}

ordinal compat_search::create() {
  const auto& dimensions = domain_->dimensions();
  std::vector<value> values;
  for (const auto& d : dimensions)
    switch (d.kind) {
    case axis::categorical:
      values.push_back(d.choices[random_->below(d.choices.size())]);
      break;
    case axis::integer:
      values.push_back(d.least + static_cast<std::int64_t>(random_->below(d.values())));
      break;
    case axis::real:
      values.push_back(random_->uniform(d.low, d.high));
      break;
    case axis::logarithmic:
      values.push_back(portable_pow(d.base, random_->uniform(d.low, d.high)));
      break;
    }
  return create_with(domain_->assemble(std::move(values)));
}

ordinal compat_search::create_point(std::uint64_t index) { return create_with(domain_->grid_point(index)); }

ordinal compat_search::create_with(value hparams) {
  auto trial = static_cast<ordinal>(book_->trials.size());
  auto id = random_->request_id();
  auto seed = static_cast<std::uint32_t>(random_->below(std::uint64_t{1} << 31));
  by_id_.emplace(id, trial);
  actions_.push_back(create_trial{id, std::move(hparams), seed, {}});
  book_->ids.push_back(std::move(id));
  book_->trials.emplace_back();
  ++book_->tally.known;
  return trial;
}

void compat_search::stop(ordinal trial, stop_trial reason) {
  reason.trial = book_->ids[trial];
  actions_.push_back(std::move(reason));
}

void compat_search::finish(bool exit) {
  auto requested = book_->trials.size();
  if (requested != book_->closed)
    return;
  book_->over = 1;
  actions_.push_back(shut_down{exit && book_->canceled >= requested, book_->failed >= requested});
}

double compat_search::progress() const { return std::clamp(inner_->progress(book_->tally), 0.0, 1.0); }

std::uint64_t compat_search::max_invalid() const {
  return std::max<std::uint64_t>(100, 10 * static_cast<std::uint64_t>(common_.max_trials));
}

std::string compat_search::snapshot() const {
  archive ar;
  auto magic = snapshot_magic, version = snapshot_version;
  auto name = common_.name;
  ar(magic, version, name, *random_, *book_);
  inner_->persist(ar);
  return sealed(ar.take());
}

result<void> compat_search::restore(std::string_view bytes) {
  auto payload = unsealed(bytes);
  if (!payload)
    return payload.error();
  archive ar(*payload);
  std::uint32_t magic = 0, version = 0;
  std::string name;
  ar(magic, version, name);
  if (ar.failed() || magic != snapshot_magic)
    return error{errc::corrupt, "searcher snapshot: these bytes are not a compat snapshot"};
  if (version != snapshot_version)
    return error{errc::unsupported, "searcher snapshot: version " + std::to_string(version) +
                                      ", this build reads " + std::to_string(snapshot_version)};
  if (name != common_.name)
    return error{errc::conflict, "searcher snapshot: taken of a `" + name + "` search"};
  ar(*random_, *book_);
  inner_->persist(ar);
  if (ar.failed() || !ar.at_end() || book_->ids.size() != book_->trials.size())
    return error{errc::corrupt, "searcher snapshot: lengths do not fit together"};
  by_id_.clear();
  for (ordinal t = 0; t < book_->ids.size(); ++t)
    by_id_.emplace(book_->ids[t], t);
  return {};
}

} // namespace troupe::searchers

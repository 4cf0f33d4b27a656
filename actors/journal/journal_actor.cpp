#include "actors/journal/journal_actor.hpp"

#include "actors/shells/driven.hpp"
#include "actors/shells/durable.hpp"
#include "actors/shells/probed.hpp"
#include "system/background_thread.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <map>

namespace troupe {
namespace {

using base = actor_base<journal_actor>;

class journal_state {
public:
  static inline const char* name = "journal";
  explicit journal_state(base* self) : self_(self) {}

  journal_actor::behavior_type make_behavior(std::shared_ptr<storage::journal> journal, journal_peers peers) {
    self_->enter("journal");
    if (!driven_by_test(self_->system()))
      take_short_slices();
    journal_ = std::move(journal);
    peers_ = std::move(peers);
    self_->describe_by([this]() -> value {
      return {{"waiting_for_commit", waiting_.size() + reports_.size()},
              {"validations", validations_.size()},
              {"dirty", journal_->dirty()}};
    });
    self_->set_exit_handler([this](caf::exit_msg& x) {
      commit(); // every request that still waits gets its answer
      self_->quit(x.reason);
    });
    return {
      [this](append_facts& x) {
        return take<committed>(journal_->append({std::move(x.entity), x.first, std::move(x.facts)}),
                               committed{});
      },
      [this](append_reports& x) -> caf::result<reports_committed> {
        storage::report_batch batch{x.allocation, x.rank, std::move(x.process), x.first_sequence,
                                    std::move(x.reports)};
        auto receipt = journal_->report(batch);
        if (!receipt && !(is_final(receipt.error().code) && journal_->dirty())) {
          look_after(receipt.error());
          return refusal(receipt.error());
        }
        // A final refusal may rest on a fact that is only queued, so that the refusal waits for the same
        // commit as that fact.
        auto promise = self_->make_response_promise<reports_committed>();
        reports_.emplace_back(promise,
                              receipt ? reports_committed{receipt->up_to, {}} : refusal(receipt.error()));
        if (receipt)
          for (auto& v : receipt->validations)
            validations_.push_back(std::move(v));
        flush_soon();
        return promise;
      },
      [this](append_log& x) -> caf::result<committed> {
        auto found = peers_.lines ? peers_.lines->look(x.lines) : std::vector<line_matched>();
        if (found.empty()) {
          const auto held = held_.find(x.task);
          if (held == held_.end() || !is_of_platform(x))
            return take<committed>(stored(x), committed{});
          auto promise = self_->make_response_promise<committed>();
          held->second.of_platform.emplace_back(promise, std::move(x));
          return promise;
        }
        // The effects of lines become durable before the lines do: if the master ends in between, whoever
        // sends the lines again makes the journal look for the same patterns again.
        auto promise = self_->make_response_promise<committed>();
        auto lines = std::make_shared<append_log>(std::move(x));
        ++held_[lines->task].batches;
        self_->request(peers_.cluster(), journal_timeout, lines_matched{found})
          .then(
            [this, promise, lines, found](const committed&) {
              peers_.lines->told(found);
              const auto task = lines->task;
              store(*lines, promise);
              release(task);
            },
            [this, promise, lines](const caf::error& why) mutable {
              promise.deliver(why);
              release(lines->task);
            });
        return promise;
      },
      [this](store_blob& x) -> caf::result<blob_stored> {
        auto stored = journal_->put_blob(x.bytes);
        if (!stored)
          return take<blob_stored>(stored.error(), {});
        return take<blob_stored>({}, blob_stored{*stored});
      },
      [this](store_snapshot& x) {
        return take<committed>(journal_->keep_snapshot(x.entity, {x.facts, std::move(x.bytes)}), committed{});
      },
      [this](const erase_log& x) {
        return take<committed>(journal_->erase_log(x.task, x.reports), committed{});
      },
      [this](const log_position& x) { return log_position_is{journal_->log_position(x.source)}; },
      [this](const flush_journal&) {
        scheduled_ = false;
        commit();
      },
    };
  }

private:
  static reports_committed refusal(const error& why) { return {0, why}; }
  /// Whether a refusal with this code closes the stream of reports for good.
  static bool is_final(errc code) { return code == errc::conflict || code == errc::gap; }

  /// After a refusal of these kinds, the journal may have closed itself; its next commit tells whether it
  /// has.
  void look_after(const error& why) {
    if (why.code != errc::io && why.code != errc::corrupt)
      return;
    suspect_ = true;
    flush_soon();
  }

  template <class Answer>
  caf::result<Answer> take(result<void> queued, Answer answer) {
    if (!queued) {
      look_after(queued.error());
      return to_caf(queued.error());
    }
    auto promise = self_->make_response_promise<Answer>();
    wait(promise, answer);
    return promise;
  }
  template <class Answer>
  void wait(caf::typed_response_promise<Answer> promise, Answer answer) {
    waiting_.push_back([promise, answer](const caf::error* why) mutable {
      if (why)
        promise.deliver(*why);
      else
        promise.deliver(answer);
    });
    flush_soon();
  }
  result<void> stored(append_log& x) {
    return journal_->log({x.task, std::move(x.lines), std::move(x.source), x.position});
  }
  void store(append_log& x, caf::typed_response_promise<committed> promise) {
    const auto fine = stored(x);
    if (fine)
      return wait(promise, committed{});
    look_after(fine.error());
    promise.deliver(to_caf(fine.error()));
  }
  static bool is_of_platform(const append_log& x) {
    return std::all_of(x.lines.begin(), x.lines.end(),
                       [](const auto& line) { return line.stream == "troupe"; });
  }
  /// To be called when one batch of the task has left `held_`.
  void release(task_id task) {
    const auto at = held_.find(task);
    if (--at->second.batches > 0)
      return;
    for (auto& [promise, x] : at->second.of_platform)
      store(x, promise);
    held_.erase(at);
  }

  /// Sends a message to the end of the mailbox: whatever arrives before that message is handled joins the
  /// same commit.
  void flush_soon() {
    if (!std::exchange(scheduled_, true))
      self_->send(journal_actor{self_}, flush_journal{});
  }

  void commit() {
    if (waiting_.empty() && reports_.empty() && !std::exchange(suspect_, false))
      return;
    auto done = journal_->commit();
    auto waiting = std::exchange(waiting_, {});
    auto reports = std::exchange(reports_, {});
    auto validations = std::exchange(validations_, {});
    if (!done) {
      auto why = to_caf(done.error());
      for (auto& answer : waiting)
        answer(&why);
      for (auto& [promise, answer] : reports)
        promise.deliver(refusal(done.error()));
      if (done.error().code != errc::no_space && peers_.on_fatal)
        peers_.on_fatal(done.error());
      return;
    }
    // Validations come first: decisions on them can be made while the acknowledgements are on their way.
    if (peers_.on_validation)
      for (auto& v : validations)
        peers_.on_validation(std::move(v));
    for (auto& answer : waiting)
      answer(nullptr);
    for (auto& [promise, answer] : reports)
      promise.deliver(std::move(answer));
    if (peers_.on_commit)
      peers_.on_commit(*done);
  }

  base* self_;
  std::shared_ptr<storage::journal> journal_;
  journal_peers peers_;
  std::vector<std::function<void(const caf::error*)>> waiting_;
  std::vector<std::pair<caf::typed_response_promise<reports_committed>, reports_committed>> reports_;
  std::vector<storage::recorded_validation> validations_;
  /// Lines of one task that wait until the effects of lines that matched are durable.
  struct held_lines {
    std::size_t batches = 0; ///< batches with a line that matched
    /// What the platform says in the log meanwhile, often of that line: it is stored after the line.
    std::vector<std::pair<caf::typed_response_promise<committed>, append_log>> of_platform;
  };
  std::map<task_id, held_lines> held_;
  bool scheduled_ = false;
  bool suspect_ = false; ///< whether the journal may be closed, and nobody waits who would be told
};

} // namespace

journal_actor spawn_journal(caf::actor_system& sys, std::shared_ptr<storage::journal> journal,
                            journal_peers peers) {
  using impl = shell<journal_state, journal_actor, std::shared_ptr<storage::journal>, journal_peers>;
  return spawn_with_own_thread<impl>(sys, std::move(journal), std::move(peers));
}

} // namespace troupe

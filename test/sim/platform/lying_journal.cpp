#include "test/sim/platform/lying_journal.hpp"

#include "model/facts.hpp"

#include <caf/all.hpp>

namespace troupe::sim {
namespace {

/// Whether the fact is an order of a user for a task or a search.
bool is_order(const fact& x) {
  return std::holds_alternative<task_stop_ordered>(x) || std::holds_alternative<task_paused>(x) ||
         std::holds_alternative<task_prioritized>(x) || std::holds_alternative<experiment_described>(x) ||
         std::holds_alternative<experiment_moved>(x);
}

bool is_of_run(const append_facts& x) {
  return x.entity.starts_with("trial/") || x.entity.starts_with("allocation/");
}

void lose_trials(append_facts& x) {
  for (auto& bytes : x.facts)
    if (auto known = decode(bytes))
      if (auto* again = std::get_if<experiment_continued>(&*known)) {
        again->trials.clear();
        bytes = encode(*again);
      }
}

} // namespace

bool lies(planted_fault planted) {
  return planted == planted_fault::orders_forgotten || planted == planted_fault::reports_stay ||
         planted == planted_fault::continuation_loses_trials || planted == planted_fault::act_before_commit;
}

journal_actor lying_journal(caf::actor_system& sys, journal_actor journal, planted_fault planted) {
  return sys.spawn([journal, planted](journal_actor::pointer self) -> journal_actor::behavior_type {
    self->monitor(journal);
    self->set_down_handler([self](const caf::down_msg& x) { self->quit(x.reason); });
    return {
      [=](append_facts& x) -> caf::result<committed> {
        if (planted == planted_fault::orders_forgotten)
          for (const auto& bytes : x.facts)
            if (const auto known = decode(bytes); known && is_order(*known))
              return committed{};
        if (planted == planted_fault::continuation_loses_trials)
          lose_trials(x);
        if (planted == planted_fault::act_before_commit && is_of_run(x)) {
          caf::delayed_anon_send(journal, std::chrono::milliseconds(5), std::move(x));
          return committed{};
        }
        return self->delegate(journal, std::move(x));
      },
      [=](append_reports& x) -> caf::result<reports_committed> {
        return self->delegate(journal, std::move(x));
      },
      [=](append_log& x) -> caf::result<committed> { return self->delegate(journal, std::move(x)); },
      [=](store_blob& x) -> caf::result<blob_stored> { return self->delegate(journal, std::move(x)); },
      [=](log_position& x) -> caf::result<log_position_is> { return self->delegate(journal, std::move(x)); },
      [=](const flush_journal& x) { self->send(journal, x); },
      [=](erase_log& x) -> caf::result<committed> {
        if (planted == planted_fault::reports_stay && x.reports)
          return committed{};
        return self->delegate(journal, std::move(x));
      },
      [=](store_snapshot& x) -> caf::result<committed> { return self->delegate(journal, std::move(x)); }};
  });
}

} // namespace troupe::sim

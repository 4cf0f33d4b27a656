#include "actors/searcher/searcher_actor.hpp"

#include "actors/shells/driven.hpp"
#include "actors/shells/probed.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<searcher_actor>;

searchers::search_event from_ask(const search_ask& x) {
  switch (x.input) {
  case search_input::started:
    return searchers::search_started{};
  case search_input::validated:
    return searchers::trial_validated{x.key, x.metrics};
  case search_input::exited_early:
    return searchers::trial_exited_early{x.key, static_cast<searchers::exit_reason>(x.reason)};
  case search_input::exited:
    return searchers::trial_exited{x.key};
  case search_input::checkpointed:
    return searchers::trial_checkpointed{x.key, x.time, x.checkpoint};
  case search_input::ordered:
    return searchers::search_ordered{x.metrics};
  case search_input::continued: {
    searchers::search_continued event;
    for (const auto& one : x.metrics)
      event.trials.push_back(one.get<std::string>());
    return event;
  }
  }
  return searchers::search_started{};
}

class searcher_state {
public:
  std::string name = "searcher";
  explicit searcher_state(base* self) : self_(self) {}

  searcher_actor::behavior_type make_behavior(searcher_setup setup) {
    name = "searcher/" + to_string(setup.experiment);
    self_->enter(name);
    auto recalled = setup.recall ? setup.recall(setup) : result<void>{};
    auto made = setup.snapshot.empty()
                  ? searchers::make_searcher(setup.config, setup.hyperparameters, setup.seed)
                  : searchers::load_searcher(setup.config, setup.hyperparameters, setup.seed,
                                             searchers::search_mode::native, setup.snapshot);
    if (!recalled) {
      fault_ = "the search cannot be read: " + recalled.error().what;
    } else if (!made) {
      fault_ = made.error().what;
    } else {
      searcher_ = std::move(*made);
      for (const auto& event : setup.history)
        if (auto step = searcher_->apply(event); !step && fault_.empty())
          fault_ = "the search cannot be replayed: " + step.error().what;
    }
    self_->describe_by([this]() -> value {
      return {{"progress", searcher_ ? value(searcher_->progress()) : value()}, {"fault", fault_}};
    });
    return {
      [this](const search_ask& x) { return answer(x); },
      [this](const search_save&) -> caf::result<search_saved> {
        if (!fault_.empty())
          return to_caf({errc::conflict, fault_});
        return search_saved{searcher_->snapshot()};
      },
    };
  }

private:
  search_decided answer(const search_ask& x) {
    search_decided out;
    if (!fault_.empty()) {
      out.fault = fault_;
      return out;
    }
    auto step = searcher_->apply(from_ask(x));
    if (!step) { // orders from outside that make no sense do not end the search
      (x.input == search_input::ordered ? out.refused : out.fault) = step.error().what;
      return out;
    }
    for (auto& action : *step)
      std::visit(
        overloaded{
          [&](searchers::create_trial& a) {
            out.created.push_back({{}, a.trial, std::move(a.hparams), a.trial_seed, a.source_checkpoint});
          },
          [&](searchers::stop_trial& a) {
            out.stopped.emplace_back(a.trial,
                                     trial_stop_decided{{}, a.why, a.rung, a.units, a.metric, a.needed});
          },
          [&](searchers::shut_down& a) {
            out.shut_down = true;
            out.cancel = a.cancel;
            out.failure = a.failure;
          },
          [&](searchers::pause_trial& a) { out.paused.push_back(std::move(a.trial)); },
          [&](searchers::resume_trial& a) { out.resumed.emplace_back(std::move(a.trial), a.until); },
          [&](searchers::perturb_trial& a) {
            out.perturbed.push_back({a.trial, a.source, a.checkpoint, std::move(a.hparams)});
          },
        },
        action);
    out.progress = searcher_->progress();
    self_->trace_decision([&] {
      return "create " + std::to_string(out.created.size()) + " stop " + std::to_string(out.stopped.size());
    });
    return out;
  }

  base* self_;
  std::unique_ptr<searchers::searcher> searcher_;
  std::string fault_;
};

} // namespace

search_ask to_ask(const searchers::search_event& event) {
  return std::visit(
    overloaded{
      [](const searchers::trial_validated& x) {
        return search_ask{search_input::validated, x.trial, x.metrics};
      },
      [](const searchers::trial_exited_early& x) {
        return search_ask{search_input::exited_early, x.trial, {}, static_cast<int>(x.reason)};
      },
      [](const searchers::trial_exited& x) {
        return search_ask{search_input::exited, x.trial};
      },
      [](const searchers::trial_checkpointed& x) {
        return search_ask{search_input::checkpointed, x.trial, {}, 0, x.checkpoint, x.step};
      },
      [](const searchers::search_ordered& x) {
        return search_ask{search_input::ordered, "", x.orders};
      },
      [](const searchers::search_continued& x) {
        return search_ask{search_input::continued, "", x.trials};
      },
      [](const auto&) { return search_ask{}; },
    },
    event);
}

searcher_actor spawn_searcher(caf::actor_system& sys, searcher_setup setup) {
  return spawn_with_own_thread<shell<searcher_state, searcher_actor, searcher_setup>>(sys, std::move(setup));
}

} // namespace troupe

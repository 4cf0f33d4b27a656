#include "runtime/node/cluster_gate.hpp"

#include "actors/shells/obey.hpp"
#include "runtime/node/task_records.hpp"

#include <caf/all.hpp>

namespace troupe::node {
namespace {

/// Time until a full lane of the journal is tried again.
constexpr duration lane_wait = std::chrono::milliseconds(20);

time_point now() { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }

/// The answer for the caller; nothing if the request has to be sent again.
using outcome = std::optional<result<value>>;

outcome outcome_of(errc code, std::string why) {
  return code == errc::busy ? std::nullopt : outcome{error{code, std::move(why)}};
}
outcome taken(const command_result& x) { return x.got; }
outcome taken(const reports_committed& x) {
  return x.refused ? outcome_of(x.refused->code, x.refused->what) : outcome{value::object()};
}
outcome taken(const committed&) { return outcome{value::object()}; }

duration patience_of(const commands::row& command, const value& fields) {
  const auto held = fields.is_object() ? fields.value("timeout_ms", value()) : value();
  return command.is.patience +
         std::chrono::milliseconds(held.is_number_integer() ? held.get<std::int64_t>() : 0);
}

/// The name by which the desk knows a command: without "shell.".
std::string word_of(const std::string& command) { return command.substr(command.find('.') + 1); }

/// Each command has a short-lived actor, which holds the timeout, so that nobody blocks.
template <class Answer, class Handle, class Message>
struct asker {
  caf::event_based_actor* self;
  Handle to;
  Message message;
  duration patience;
  api::answer done;

  void ask() {
    const auto begun = now();
    self->request(to, std::chrono::duration_cast<std::chrono::microseconds>(patience), message)
      .then([this, begun](const Answer& x) { hear(taken(x), begun); },
            [this, begun](const caf::error& why) {
              auto fault = from_caf(why);
              hear(outcome_of(fault.code, fault.what), begun);
            });
  }

  void hear(outcome x, time_point begun) {
    if (x) {
      done(std::move(*x));
      self->quit();
      return;
    }
    patience -= std::max<duration>(now() - begun, lane_wait);
    if (patience <= duration{0}) {
      done(error{errc::busy, "too much is written at once; try again"});
      self->quit();
      return;
    }
    self->delayed_send(self, lane_wait, time_passed{});
  }
};

template <class Answer, class Handle, class Message>
void ask(caf::actor_system& sys, Handle to, Message message, duration patience, api::answer done) {
  sys.spawn([to = std::move(to), message = std::move(message), patience,
             done = std::move(done)](caf::event_based_actor* self) mutable -> caf::behavior {
    using state_type = asker<Answer, Handle, Message>;
    auto state = std::make_shared<state_type>(
      state_type{self, std::move(to), std::move(message), patience, std::move(done)});
    state->ask();
    return {[state](const time_passed&) { state->ask(); }}; // the state lives as long as this behavior
  });
}

} // namespace

void cluster_gate::call(const api::principal& who, const std::string& command, value fields,
                        api::answer done) {
  const auto* known = commands::find(command);
  if (!known || command == commands::orders_together::is.name)
    return done(error{errc::unsupported, "no command '" + command.substr(0, 100) + "'"});
  const auto patience = patience_of(*known, fields);
  switch (known->is.by) {
  case commands::taker::journal: {
    auto to_journal = [&](const auto& x) -> result<std::monostate> {
      record(parse_allocation(who.allocation), x, patience, done);
      return std::monostate{};
    };
    auto read =
      commands::dispatch<std::monostate, commands::journal_commands>(command, std::move(fields), to_journal);
    return read ? void() : done(read.error());
  }
  case commands::taker::desk:
    return ask<command_result>(sys_, shell_.desk(),
                               shell_call{who.user, who.admin, word_of(command), std::move(fields)}, patience,
                               std::move(done));
  case commands::taker::configuration:
    return configuration_.call(who, command, std::move(fields), std::move(done));
  default:
    return ask<command_result>(
      sys_, cluster_, client_command{who.user, who.admin, who.allocation, command, std::move(fields)},
      patience, std::move(done));
  }
}

void cluster_gate::call_together(const api::principal& who, std::vector<api::grouped_order> orders) {
  if (orders.empty())
    return;
  commands::orders_together with;
  std::vector<api::answer> told;
  for (auto& one : orders) {
    with.orders.push_back({std::move(one.command), std::move(one.fields)});
    told.push_back(std::move(one.done));
  }
  ask<command_result>(sys_, cluster_, client_command_of(std::move(with), who.user, who.admin, who.allocation),
                      commands::orders_together::is.patience, [told = std::move(told)](result<value> got) {
                        for (std::size_t i = 0; i < told.size(); ++i) {
                          const auto said = got ? got->at("answers").at(i) : value();
                          const auto why = said.find("error");
                          told[i](!got ? result<value>(got.error())
                                  : why != said.end()
                                    ? result<value>(error{errc::conflict, why->get<std::string>()})
                                    : result<value>(said));
                        }
                      });
}

void cluster_gate::record(allocation_id task, const commands::trial_report& x, duration patience,
                          api::answer done) {
  ask<reports_committed>(sys_, journal_, report_of(task, x, now()), patience, std::move(done));
}
void cluster_gate::record(allocation_id task, const commands::task_log& x, duration patience,
                          api::answer done) {
  ask<committed>(sys_, journal_, log_of(task, x), patience, std::move(done));
}

void cluster_gate::open(const api::principal& who, const std::string& command, value fields,
                        std::shared_ptr<api::feed> to, api::answer done) {
  auto sink = std::make_shared<row_sink>();
  sink->push = [to](value row) { to->push(std::move(row)); };
  sink->end = [to](value row) { to->end(std::move(row)); };
  sink->closed = [to] { return to->closed(); };
  ask<command_result>(
    sys_, shell_.desk(),
    open_stream{{who.user, who.admin, word_of(command), std::move(fields)}, std::move(sink)},
    std::chrono::seconds(60), std::move(done));
}

} // namespace troupe::node

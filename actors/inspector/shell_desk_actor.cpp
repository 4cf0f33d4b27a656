#include "actors/inspector/shell_desk_actor.hpp"

#include "actors/inspector/desk_part.hpp"
#include "actors/inspector/operator_table.hpp"
#include "actors/shells/driven.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<desk_actor>;

constexpr auto stream_tick = std::chrono::milliseconds(100);
/// Time within which a restarted actor must live again.
constexpr auto back_within = std::chrono::seconds(10);

/// Whether no owner makes such an actor anew, so that its node ends with it.
bool holds_its_node(const std::string& kind) {
  constexpr const char* kinds[] = {"journal", "cluster", "agent_node"};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

class desk_state {
public:
  static inline const char* name = "desk";
  explicit desk_state(base* self) : self_(self) {}

  desk_actor::behavior_type make_behavior(desk_setup setup) {
    self_->enter("desk");
    desk_.emplace(self_, std::move(setup));
    views_.emplace(*desk_);
    streams_.emplace(*desk_);
    desk_->on_event = [this](const value& row) { streams_->tell(row); };
    streams_->on_open = [this] { arm(); };
    self_->set_down_handler([this](const caf::down_msg& down) { desk_->node_down(down); });
    for (const auto& order : desk_->setup.standing ? desk_->setup.standing() : value::array())
      stand(order.value("name", std::string()), order.value("fields", value::object()));
    return {
      [this](shell_call& x) { return take(std::move(x)); },
      [this](open_stream& x) {
        auto promise = self_->make_response_promise<command_result>();
        streams_->open(x, into(promise));
        return promise;
      },
      [this](node_joined& x) { desk_->joined(std::move(x)); },
      [this](const time_passed&) { tick(); },
    };
  }

private:
  using answer_to = caf::typed_response_promise<command_result>;
  static given into(answer_to promise) {
    return [promise](result<value> got) mutable { promise.deliver(command_result{std::move(got)}); };
  }

  using commands_here = commands::join<commands::desk_looks, commands::desk_orders>;
  static constexpr commands::reading typed_by_hand{.numbers_as_text = true};

  caf::result<command_result> take(shell_call x) {
    auto promise = self_->make_response_promise<command_result>();
    auto done = into(promise);
    return obey<commands_here>(
      "shell." + x.name, x.fields,
      [&](auto order) -> caf::result<command_result> {
        using order_type = decltype(order);
        const auto right = order_type::is.right;
        if (!authority::may({.user = x.user, .admin = x.admin}, right.what, {right.on, ""}))
          done(error{errc::denied, "this changes the cluster, so it is for operators: log in as an admin"});
        else if constexpr (commands::contains<commands::desk_looks, order_type>)
          views_->on(order, done);
        else
          on(x, std::move(order), done);
        return promise;
      },
      typed_by_hand);
  }

  // ---- acting

  /// Writes the row to disk before the order is carried out.
  result<void> audit(const shell_call& x, const std::string& actor, const std::string& what) {
    const value row{{"at", now_text()},
                    {"user", x.user},
                    {"actor", actor},
                    {"what", what},
                    {"order", {{"name", x.name}, {"fields", x.fields}}}};
    if (auto ok = desk_->setup.audit->append(row); !ok)
      return error{ok.error().code, ok.error().what + "; nothing was done"};
    streams_->tell(audit_row(row));
    return {};
  }

  /// Writes a row of its own for an order that failed.
  given noting(const shell_call& x, const std::string& actor, given done) {
    return [this, x, actor, done](result<value> got) {
      if (!got) {
        auto failed = x;
        failed.name += ".failed"; // `standing_orders` then drops the order
        static_cast<void>(audit(failed, actor, "that failed: " + got.error().what));
      }
      done(std::move(got));
    };
  }

  void to_cluster(client_command order, given done) {
    self_->request(desk_->setup.cluster, std::chrono::seconds(30), std::move(order))
      .then([done](command_result& answer) { done(std::move(answer.got)); },
            [done](const caf::error& why) { done(from_caf(why)); });
  }

  void on(const shell_call& x, commands::shell_send order, given done) {
    desk_->locate(order.actor, [this, x, order, done](result<desk_context::place> at) {
      if (!at)
        return done(at.error());
      const auto& wanted = order.message;
      auto message = find_operator_message(at->kind, wanted);
      if (!message)
        return done(message.error());
      auto fields = checked_fields(**message, order.given, id_of(at->actor));
      if (!fields)
        return done(fields.error());
      auto answer = [done](result<value> got) {
        if (got)
          done(value{{"answer", std::move(*got)}});
        else
          done(got.error());
      };
      if ((*message)->is.name ==
          std::string_view(commands::agent_drain::is.name)) { // the audit log names it as that order
        commands::shell_drain drain{id_of(at->actor), fields->value("on", true), {}};
        if (fields->contains("slot"))
          drain.slot = (*fields)["slot"].get<std::int64_t>();
        return on({x.user, x.admin, "drain", commands::write(drain)}, drain, answer);
      }
      given finish = answer;
      if (acts(**message)) {
        if (auto ok =
              audit(x, at->actor, "send " + wanted + (order.given.empty() ? "" : " " + to_json(order.given)));
            !ok)
          return done(ok.error());
        finish = noting(x, at->actor, answer);
      }
      deliver(x, *at, **message, std::move(*fields), finish);
    });
  }

  /// Sends commands of the cluster to the cluster, commands of a run to its allocation, and the rest to the
  /// actor's inspector.
  void deliver(const shell_call& x, const desk_context::place& at, const commands::row& message, value fields,
               given done) {
    if (message.is.by == commands::taker::cluster && at.kind != "retention")
      return to_cluster({x.user, x.admin, "", message.is.name, std::move(fields)}, done);
    const std::string word = message.is.operators.word;
    if (message.is.by == commands::taker::allocation && at.kind == "trial")
      return to_open_run(at, word, done);
    if (message.is.by == commands::taker::allocation && at.kind == "worker")
      return to_allocation_of(at, word, done);
    desk_->ask(at.node, commands::inspect_send{at.actor, word, x.user, std::move(fields)}, done,
               std::chrono::seconds(25));
  }

  void to_open_run(const desk_context::place& at, const std::string& message, given done) {
    desk_->ask(at.node, commands::inspect_tree{}, [this, at, message, done](result<value> got) {
      if (!got)
        return done(got.error());
      for (const auto& row : (*got)["rows"])
        if (field_text(row, "owner") == at.actor)
          return to_allocation(at.node, field_text(row, "actor"), message, done);
      done(error{errc::conflict, at.actor + " has no open run: there is nothing to " + message});
    });
  }

  /// Orders for one rank go to its allocation, which tells all ranks, because ranks act together.
  void to_allocation_of(const desk_context::place& at, const std::string& message, given done) {
    const auto id = id_of(at.actor);
    to_allocation(desk_->setup.node, "allocation/" + id.substr(0, id.find('/')), message, done);
  }

  void to_allocation(const std::string& node, const std::string& actor, const std::string& message,
                     given done) {
    desk_->ask(node, commands::inspect_send{actor, message, "", value::object()}, done,
               std::chrono::seconds(25));
  }

  void on(const shell_call& x, const commands::shell_kill& order, given done) {
    end(x, order.actor, false, std::move(done));
  }
  void on(const shell_call& x, const commands::shell_restart& order, given done) {
    end(x, order.actor, true, std::move(done));
  }

  void end(const shell_call& x, const std::string& actor, bool restart, given done) {
    desk_->locate(actor, [this, x, restart, done](result<desk_context::place> at) {
      if (!at)
        return done(at.error());
      if (holds_its_node(at->kind))
        return done(
          error{errc::conflict,
                "nothing makes " + at->actor +
                  " again while its node runs: without it the node ends\nhint: stop "
                  "the node itself, with `troupe down` or a signal; it recovers at the next start"});
      if (auto ok = audit(x, at->actor, x.name + " " + at->actor); !ok)
        return done(ok.error());
      auto finish = noting(x, at->actor, done);
      const auto why = (restart ? "restarted by " : "killed by ") + x.user;
      if (at->kind == "desk") { // the target is the desk itself: it answers before it ends
        finish(value{{"done", "the desk ends; " + at->owner + " makes it again"}});
        return self_->send_exit(self_, to_caf({errc::internal, why}));
      }
      desk_->ask(at->node, commands::inspect_end{at->actor, why},
                 [this, restart, at = *at, finish](result<value> got) {
                   if (!got)
                     return finish(got.error());
                   if (!restart)
                     return finish(value{{"done", at.actor + " was killed; " + at.owner + " notices"}});
                   wait_for_return(at, self_->clock().now() + back_within, finish);
                 });
    });
  }

  void wait_for_return(const desk_context::place& before, std::chrono::steady_clock::time_point until,
                       given done) {
    desk_->ask(before.node, commands::inspect_here{before.actor},
               [this, before, until, done](result<value> got) {
                 if (got && got->value("id", before.id) != before.id)
                   return done(value{{"done", before.actor + " is back, made again by " + before.owner}});
                 if (self_->clock().now() >= until)
                   return done(error{errc::timeout, before.actor + " is not back after " +
                                                      std::to_string(back_within.count()) +
                                                      " s; `events` may say why"});
                 desk_->later(std::chrono::milliseconds(50),
                              [this, before, until, done] { wait_for_return(before, until, done); });
               });
  }

  void on(const shell_call& x, const commands::shell_drain& order, given done) {
    auto agent = order.node;
    if (agent == desk_->setup.node && !desk_->setup.local_agent.empty())
      agent = desk_->setup.local_agent;
    const bool on = order.on;
    desk_->locate(
      "agent/" + agent, [this, x, agent, on, slot = order.slot, done](result<desk_context::place> at) {
        if (!at)
          return done(
            error{errc::not_found, "no agent on a node '" + agent.substr(0, 200) + "'; `nodes` lists them"});
        auto noted = x;
        noted.fields["node"] = agent;
        const auto what = slot ? "slot " + std::to_string(*slot) + " of " + agent : agent;
        if (auto ok = audit(noted, at->actor,
                            std::string(on ? "drain" : "drain ends") +
                              (slot ? ", slot " + std::to_string(*slot) : std::string()));
            !ok)
          return done(ok.error());
        to_cluster(
          client_command_of(commands::agent_drain{agent, on, slot}, x.user, x.admin),
          noting(noted, at->actor, [what, on, done](result<value> got) {
            if (!got)
              return done(got.error());
            done(value{{"done", on ? "nothing new is placed on " + what : what + " takes work again"}});
          }));
      });
  }

  /// Applies again what an operator ordered before this start.
  void stand(const std::string& name, const value& fields) {
    if (name == "config")
      static_cast<void>(set(field_text(fields, "key"), fields.value("value", value())));
  }

  void on(shell_call x, const commands::shell_log_set& order, given done) {
    const commands::shell_config as_setting{"log.level", order.level};
    x.fields = commands::write(as_setting);
    x.name = "config";
    on(x, as_setting, [this, done](result<value> got) {
      if (!got)
        return done(got.error());
      desk_->ask(desk_->setup.node, commands::inspect_log{}, done);
    });
  }

  void on(const shell_call& x, const commands::shell_config& order, given done) {
    const auto& [key, wanted] = order;
    if (auto ok = settable(key, wanted); !ok)
      return done(ok.error());
    if (auto ok = audit(x, "cluster", "config " + key + " = " + to_json(wanted)); !ok)
      return done(ok.error());
    to_cluster(client_command_of(commands::setting_change{key, wanted}, x.user, x.admin),
               [this, order, done](result<value> got) {
                 auto ok = got ? set(order.key, order.wanted) : result<void>(got.error());
                 if (!ok)
                   return done(ok.error());
                 done(value{{"done", order.key + " is " + to_json(order.wanted)}});
               });
  }

  static std::optional<double> as_number(const value& x) {
    if (x.is_number())
      return x.get<double>();
    return x.is_string() ? number_in_text(x.get<std::string>()) : std::nullopt;
  }

  result<void> settable(const std::string& key, const value& wanted) const {
    if (key == "log.level") {
      for (const char* level : {"error", "warning", "info", "debug"})
        if (wanted == level)
          return {};
      return error{errc::invalid, "the field 'value': log.level is one of error, warning, info, debug"};
    }
    if (key == "trace.rate" || key == "trace.max") {
      const auto n = as_number(wanted);
      const double most = key == "trace.rate" ? 10'000 : 1'000'000;
      if (n && *n >= 1 && *n <= most)
        return {};
      return error{errc::invalid, "the field 'value': " + key + " is a number of 1 to " +
                                    std::to_string(static_cast<int>(most))};
    }
    return error{errc::invalid, "the field 'key': '" + key.substr(0, 100) +
                                  "' cannot be changed while the cluster runs\nhint: log.level, trace.max "
                                  "(rows that a trace shows at most) and trace.rate (rows a second) can"};
  }

  result<void> set(const std::string& key, const value& wanted) {
    if (auto ok = settable(key, wanted); !ok)
      return ok;
    if (key == "log.level")
      for (const auto& node : desk_->nodes())
        desk_->ask(node, commands::inspect_log{wanted.get<std::string>()}, [](result<value>) {});
    else if (key == "trace.rate")
      streams_->most_rate = *as_number(wanted);
    else
      streams_->most_rows = *as_number(wanted);
    return {};
  }

  // ---- faults

  void on(shell_call x, const commands::shell_fault& order, given done) {
    if (!desk_->setup.allow_faults)
      return done(error{errc::denied, "this cluster runs without --allow-faults\nhint: start `troupe up` or "
                                      "`troupe master` with --allow-faults; it is meant for tests"});
    const auto& kind = order.fault;
    if (kind == "kill") {
      x.name = "kill";
      return end(x, order.actor, false, done);
    }
    desk_->locate(order.actor, [this, x, order, kind, done](result<desk_context::place> at) {
      if (!at)
        return done(at.error());
      if (kind == "pause" && at->kind != "agent")
        return done(
          error{errc::invalid, "the field 'actor': the link that pauses is that of an agent, agent/NAME"});
      // The inspector knows the limits; only text becomes a number here.
      value fields{{"actor", at->actor}, {"fault", kind}};
      for (const auto& [key, n] :
           {std::pair{"n", order.n}, {"delay_ms", order.delay_ms}, {"for_ms", order.for_ms}})
        if (n)
          fields[key] = *n;
      if (order.for_s)
        fields["for_ms"] = *order.for_s * 1000;
      auto fault = commands::read<commands::inspect_fault>("fault", fields);
      if (!fault)
        return done(fault.error());
      if (auto ok = audit(x, at->actor, "fault " + kind + " " + to_json(fields)); !ok)
        return done(ok.error());
      auto finish = noting(x, at->actor, [at = *at, kind, done](result<value> got) {
        if (got)
          done(value{{"done", kind + " is set for " + at.actor}});
        else
          done(got.error());
      });
      if (kind == "pause")
        return pause_link(id_of(at->actor), std::move(*fault), finish);
      desk_->ask(at->node, std::move(*fault), finish);
    });
  }

  /// Makes both ends of an agent's link hold back what comes from the other end.
  void pause_link(const std::string& agent, commands::inspect_fault fault, given done) {
    // If both ends are in one process, only their mail to each other is held.
    if (agent == desk_->setup.local_agent) {
      auto down = fault, up = fault;
      down.actor = up.from_actor = "agent_node/" + agent;
      up.actor = down.from_actor = "agent/" + agent;
      return desk_->ask(desk_->setup.node, std::move(down), [this, up, done](result<value> got) {
        if (!got)
          return done(got.error());
        desk_->ask(desk_->setup.node, up, done);
      });
    }
    fault.actor.clear();
    desk_->ask_all("", commands::inspect_node{}, [this, agent, fault, done](named_answers got) {
      auto theirs = got.find(agent), ours = got.find(desk_->setup.node);
      if (theirs == got.end() || !theirs->second || ours == got.end() || !ours->second)
        return done(error{errc::unreachable, "the node " + agent + " is away: its link is down already"});
      auto there = fault, here = fault;
      there.from_node = ours->second->value("code", 0u);
      here.from_node = theirs->second->value("code", 0u);
      // The far end comes first: its answer could not cross the link once this end holds mail back.
      desk_->ask(agent, std::move(there), [this, here, done](result<value> first) {
        if (!first)
          return done(first.error());
        desk_->ask(desk_->setup.node, here, done);
      });
    });
  }

  // ---- time

  void arm() {
    if (!std::exchange(armed_, true))
      self_->delayed_send(desk_actor{self_}, stream_tick, time_passed{});
  }
  void tick() {
    desk_->run_timers();
    const auto now = self_->clock().now();
    if (now - served_ < stream_tick / 2)
      return;
    served_ = now;
    armed_ = false;
    streams_->serve();
    if (!streams_->idle())
      arm();
  }

  base* self_;
  std::optional<desk_context> desk_;
  std::optional<shell_views> views_;
  std::optional<shell_streams> streams_;
  std::chrono::steady_clock::time_point served_;
  bool armed_ = false;
};

} // namespace

value standing_orders(const std::filesystem::path& audit_file) {
  std::map<std::string, value> latest;
  static_cast<void>(storage::audit_log::replay(audit_file, [&](const value& row) {
    const auto order = row.contains("order") ? row["order"] : value();
    const auto fields = order.is_object() && order.contains("fields") ? order["fields"] : value();
    if (!fields.is_object())
      return;
    const auto name = field_text(order, "name");
    if ((name == "drain" && !fields.contains("slot")) || name == "config") {
      auto& last =
        latest[name + " " + (name == "drain" ? field_text(fields, "node") : field_text(fields, "key"))];
      last = order;
      last["user"] = field_text(row, "user");
    } else if (name == "drain.failed")
      latest.erase("drain " + field_text(fields, "node"));
  }));
  value out = value::array();
  for (auto& [key, order] : latest)
    out.push_back(std::move(order));
  return out;
}

desk_actor spawn_shell_desk(caf::actor_system& sys, desk_setup setup) {
  return spawn_with_own_thread<shell<desk_state, desk_actor, desk_setup>>(sys, std::move(setup));
}

} // namespace troupe

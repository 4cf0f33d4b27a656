#include "actors/inspector/inspector_actor.hpp"

#include "actors/inspector/actor_shapes_part.hpp"
#include "actors/inspector/mail_inspection_part.hpp"
#include "actors/inspector/state_path.hpp"
#include "actors/shells/log_levels.hpp"
#include "actors/shells/obey.hpp"

#include <caf/all.hpp>

#include <cmath>

namespace troupe {

void add_shell_messages(caf::actor_system_config& to) { to.add_message_types<caf::id_block::troupe_shell>(); }

namespace {

using base = actor_base<inspector_actor>;
using promise_of_result = caf::typed_response_promise<command_result>;

/// Limit of the wait for an actor that answers between two of its messages.
constexpr auto patience = std::chrono::seconds(2);

class inspector_state {
public:
  static inline const char* name = "inspector";
  explicit inspector_state(base* self) : self_(self) {}

  inspector_actor::behavior_type make_behavior(inspector_setup setup) {
    self_->enter("inspector");
    setup_ = std::move(setup);
    since_ = wall_now();
    if (const auto* ours = dynamic_cast<const node_config*>(&self_->system().config()))
      reg_ = ours->probes;
    else
      // An embedding program's actor system that lacks our configuration: the inspector sees nothing.
      reg_ = std::make_shared<probe_register>();
    shapes_.emplace(self_->system(), reg_, setup_.node);
    mail_.emplace(self_->system(), reg_, setup_.node);
    return {
      [this](inspect_request& x) -> caf::result<command_result> {
        if (!x.fields.is_object())
          x.fields = value::object();
        if (x.what.empty()) { // an actor of this node has answered
          if (auto open = open_asks_.extract(x.fields.value("ask", std::uint64_t{0})); !open.empty())
            open.mapped()(std::move(x.fields["got"]));
          return answered();
        }
        // Each question about one actor is a command of its own.
        const auto word = x.what == "actor" ? x.fields.value("what", value()) : value(x.what);
        if (!word.is_string())
          return refused({errc::invalid, "the field 'what' has to be a text"});
        return obey<commands::inspector_commands>("inspect." + word.get<std::string>(), std::move(x.fields),
                                                  [this](auto order) { return on(std::move(order)); });
      },
      [this](const time_passed&) { tick(); },
    };
  }

private:
  command_result not_here(const std::string& actor) const {
    return refused({errc::not_found, "no actor '" + actor.substr(0, 200) + "' on the node " + setup_.node});
  }

  // ---- lists

  command_result on(const commands::inspect_node&) const {
    std::uint64_t backlog = 0, actors = 0;
    for (const auto& p : reg_->all()) {
      backlog += p->backlog();
      ++actors;
    }
    return answered({{"node", setup_.node},
                     {"role", setup_.role},
                     {"actors", actors},
                     {"backlog", backlog},
                     {"version", setup_.version},
                     {"uptime_s", in_seconds(wall_now() - since_)},
                     {"code", node_code(self_->node(), caf::node_id{})},
                     {"allow_faults", reg_->allow_faults}});
  }

  caf::result<command_result> on(const commands::inspect_ps& x) {
    const auto& kind = x.kind;
    const auto window = std::chrono::milliseconds(std::min<std::uint64_t>(x.window_ms, 60'000));
    std::vector<std::pair<std::shared_ptr<probe>, std::uint64_t>> first;
    for (auto& p : reg_->all())
      if (kind.empty() || p->kind == kind)
        first.emplace_back(p, p->done());
    if (window.count() == 0) { // without a window, the rates cover the actors' whole lives
      value rows = value::array();
      rows.get_ref<value::array_t&>().reserve(first.size());
      const auto now = reg_->scale.now();
      for (const auto& [p, done] : first)
        rows.push_back(shapes_->row_of(
          *p, static_cast<double>(done) / std::max(0.001, in_seconds(now.wall - p->since)), now));
      return answered({{"rows", std::move(rows)}});
    }
    auto promise = self_->make_response_promise<command_result>();
    const auto begun = self_->clock().now();
    later(window, [this, promise, first = std::move(first), begun, kind]() mutable {
      const auto passed = std::chrono::duration<double>(self_->clock().now() - begun).count();
      std::unordered_map<const probe*, std::uint64_t> before(first.size());
      for (const auto& [p, done] : first)
        before[p.get()] = done;
      value rows = value::array();
      const auto now = reg_->scale.now();
      for (const auto& p : reg_->all()) {
        if (!kind.empty() && p->kind != kind)
          continue;
        auto it = before.find(p.get());
        const auto done = p->done();
        rows.push_back(shapes_->row_of(
          *p, static_cast<double>(done - (it == before.end() ? 0 : it->second)) / std::max(0.001, passed),
          now));
      }
      promise.deliver(answered({{"rows", std::move(rows)}}));
    });
    return promise;
  }

  command_result on(const commands::inspect_tree&) const {
    value rows = value::array();
    for (const auto& p : reg_->all())
      rows.push_back(
        {{"actor", p->name}, {"owner", p->owner}, {"state", state_of(*p)}, {"restarts", p->restarts}});
    return answered({{"rows", std::move(rows)}});
  }

  command_result on(const commands::inspect_names& x) const {
    value out = value::object();
    for (auto id : x.ids)
      if (auto name = reg_->name_of(id); !name.empty())
        out[std::to_string(id)] = name;
    return answered({{"names", std::move(out)}});
  }

  command_result on(const commands::inspect_events& x) const {
    value rows = value::array();
    std::uint64_t newest = x.after;
    for (const auto& e : reg_->events(newest, x.max)) {
      rows.push_back({{"at", to_rfc3339(e.at)},
                      {"kind", e.kind},
                      {"actor", e.actor},
                      {"what", e.what},
                      {"user", e.user},
                      {"node", setup_.node}});
      newest = std::max(newest, e.number);
    }
    return answered({{"rows", std::move(rows)}, {"newest", newest}});
  }

  // ---- one actor

  /// Runs `ask` on the actor's own thread, between two of its messages, and answers with the result.
  caf::result<command_result> on_actor(const probe_register::entry& entry,
                                       std::function<value(probe_side&)> ask,
                                       std::function<command_result(value)> shape) {
    auto to = caf::actor_cast<caf::actor>(entry.who.lock());
    if (!to)
      return not_here(entry.what->name);
    if (to.id() == self_->id()) // this actor cannot wait for itself
      return refused({errc::unsupported, "the inspector does not inspect itself"});
    auto promise = self_->make_response_promise<command_result>();
    const auto id = ++asks_;
    open_asks_[id] = [promise, shape](value got) mutable { promise.deliver(shape(std::move(got))); };
    inspector_actor me{self_};
    auto run =
      std::make_shared<std::function<void(probe_side&)>>([me, id, ask = std::move(ask)](probe_side& side) {
        value got = ask(side);
        caf::anon_send(me, inspect_request{"", {{"ask", id}, {"got", std::move(got)}}});
      });
    caf::anon_send<caf::message_priority::high>(to, probe_order{std::move(run)});
    later(patience, [this, id, promise, name = entry.what->name]() mutable {
      if (open_asks_.erase(id))
        promise.deliver(
          refused({errc::timeout, name + " did not come to it within " + std::to_string(patience.count()) +
                                    " s: it is busy with one message, or was just made"}));
    });
    return promise;
  }

  /// Prefers what a worker has reported from its task's process to what its stand-in here did.
  static value heard_or(value otherwise, value heard, std::size_t most) {
    if (!heard.is_array() || heard.empty())
      return otherwise;
    if (heard.size() > most)
      heard.erase(heard.begin(), heard.end() - static_cast<std::ptrdiff_t>(most));
    return heard;
  }

  command_result on(const commands::inspect_here& x) const {
    auto entry = reg_->find(x.actor);
    if (!entry)
      return not_here(x.actor);
    const auto& p = *entry->what;
    return answered({{"id", p.actor_id}, {"kind", p.kind}, {"owner", p.owner}});
  }
  caf::result<command_result> on(const commands::inspect_msgs& x) {
    auto entry = reg_->find(x.actor);
    if (!entry)
      return not_here(x.actor);
    auto p = entry->what;
    const auto most = static_cast<std::size_t>(std::clamp(x.max, 0.0, static_cast<double>(probe::ring)));
    if (p->kind != "worker")
      return answered({{"rows", shapes_->recent(*p, most)}});
    return on_actor(
      *entry, [](probe_side& side) { return side.heard ? side.heard() : value::array(); },
      [this, p, most](value heard) {
        return answered({{"rows", heard_or(shapes_->recent(*p, most), std::move(heard), most)}});
      });
  }
  command_result on(const commands::inspect_stats& x) const {
    auto entry = reg_->find(x.actor);
    return entry ? answered(shapes_->stats(*entry->what)) : not_here(x.actor);
  }
  caf::result<command_result> on(const commands::inspect_links& x) {
    auto entry = reg_->find(x.actor);
    if (!entry)
      return not_here(x.actor);
    return on_actor(
      *entry, [reg = reg_](probe_side& side) { return ask_links(*reg, side); },
      [this, p = entry->what](value got) {
        return answered({{"rows", shapes_->links_of(*p, got["peers"].get<std::vector<std::string>>())}});
      });
  }
  caf::result<command_result> on(const commands::inspect_state& x) {
    auto entry = reg_->find(x.actor);
    if (!entry)
      return not_here(x.actor);
    return on_actor(
      *entry,
      [](probe_side& side) -> value {
        return {{"known", side.describe != nullptr},
                {"state", side.describe ? side.describe() : value::object()}};
      },
      [p = entry->what, path = x.path](value got) {
        if (!got["known"].get<bool>())
          return answered({{"actor", p->name}, {"state", {{"state", state_of(*p)}}}});
        auto part = at_path(got["state"], path);
        return part ? answered({{"actor", p->name}, {"state", *part}}) : refused(part.error());
      });
  }
  caf::result<command_result> on(const commands::inspect_info& x) {
    auto entry = reg_->find(x.actor);
    if (!entry)
      return not_here(x.actor);
    return on_actor(
      *entry,
      [reg = reg_](probe_side& side) {
        auto got = ask_links(*reg, side);
        if (side.describe)
          got["state_bytes"] = to_msgpack(side.describe()).size();
        if (side.heard)
          got["heard"] = side.heard();
        return got;
      },
      [this, p = entry->what](value got) {
        auto info = shapes_->info(*p, got);
        info["recent"] = heard_or(std::move(info["recent"]), got.value("heard", value()), 8);
        return answered(std::move(info));
      });
  }

  caf::result<command_result> on(const commands::inspect_waits&) {
    std::vector<probe_register::entry> busy;
    for (const auto& p : reg_->all())
      if (p->waits_for() > 0 && p->actor_id != self_->id())
        if (auto entry = reg_->find(p->name))
          busy.push_back(*entry);
    if (busy.empty())
      return answered({{"rows", value::array()}});
    auto promise = self_->make_response_promise<command_result>();
    struct gathered {
      value rows = value::array();
      std::size_t left = 0;
      bool done = false;
    };
    auto all = std::make_shared<gathered>();
    all->left = busy.size();
    inspector_actor me{self_};
    for (const auto& entry : busy) {
      auto to = caf::actor_cast<caf::actor>(entry.who.lock());
      const auto id = ++asks_;
      open_asks_[id] = [all, promise](value got) mutable {
        for (auto& row : got["waits"])
          all->rows.push_back(std::move(row));
        if (--all->left == 0 && !std::exchange(all->done, true))
          promise.deliver(answered({{"rows", std::move(all->rows)}}));
      };
      auto run = std::make_shared<std::function<void(probe_side&)>>([reg = reg_, me, id](probe_side& side) {
        caf::anon_send(me, inspect_request{"", {{"ask", id}, {"got", ask_links(*reg, side)}}});
      });
      if (to)
        caf::anon_send<caf::message_priority::high>(to, probe_order{std::move(run)});
      expired_.push_back(id);
    }
    later(patience, [this, all, promise, ids = std::exchange(expired_, {})]() mutable {
      for (auto id : ids)
        open_asks_.erase(id);
      if (!std::exchange(all->done, true)) // an actor is busy: the answer lacks its rows
        promise.deliver(answered({{"rows", std::move(all->rows)}}));
    });
    return promise;
  }

  // ---- acting

  caf::result<command_result> on(const commands::inspect_end& x) {
    auto entry = reg_->find(x.actor);
    auto to = entry ? caf::actor_cast<caf::actor>(entry->who.lock()) : caf::actor{};
    if (!to)
      return not_here(x.actor);
    // The actor's own handler receives an exit with a reason and ends its children as well, as it does after
    // any fault of its own.
    self_->send_exit(to, to_caf({errc::internal, x.why}));
    return answered({{"id", entry->what->actor_id}});
  }

  struct addressee {
    probe_register::entry entry;
    caf::actor to;
    allocation_id allocation; ///< set if the actor is an allocation
  };
  /// Commands that an operator may send to an actor through the inspector.
  using delivered =
    commands::join<commands::actor_commands,
                   commands::list<commands::logs_cleanup, commands::allocation_pending_preemption,
                                  commands::worker_validate, commands::worker_checkpoint>>;

  caf::result<command_result> on(commands::inspect_send x) {
    auto entry = reg_->find(x.actor);
    auto to = entry ? caf::actor_cast<caf::actor>(entry->who.lock()) : caf::actor{};
    if (!to)
      return not_here(x.actor);
    const auto* command = commands::find_spoken(entry->what->kind, x.message);
    if (!command)
      return refused({errc::unsupported, "'" + x.message + "' is not delivered by a node's inspector"});
    const auto id = x.actor.substr(std::min(x.actor.find('/') + 1, x.actor.size()));
    return obey<delivered>(command->is.name, std::move(x.given),
                           [this, at = addressee{*entry, to, parse_allocation(id)}](const auto& order) {
                             return deliver(at, order);
                           });
  }

  caf::result<command_result> deliver(const addressee& at, const commands::actor_ping&) {
    const auto sent = ticks_now();
    return on_actor(
      at.entry, [](probe_side&) -> value { return ticks_now(); },
      [this, sent](value got) {
        return answered({{"wait_us", shapes_->us(got.get<std::uint64_t>() - sent)}});
      });
  }
  caf::result<command_result> deliver(const addressee& at, const commands::journal_flush&) {
    caf::anon_send(at.to, flush_journal{});
    return answered();
  }
  caf::result<command_result> deliver(const addressee& at, const commands::agent_redial&) {
    caf::anon_send(at.to, dial_master{});
    return answered();
  }
  caf::result<command_result> deliver(const addressee& at, const commands::searcher_save&) {
    return pass(at.to, search_save{}, [](const search_saved& got) -> value {
      return {{"state_bytes", got.bytes.size()}};
    });
  }
  caf::result<command_result> deliver(const addressee& at, const commands::logs_cleanup&) {
    return pass(at.to, clean_logs{}, [](const logs_cleaned& got) -> value {
      return {{"trials", got.trials}};
    });
  }
  /// Delivers a command to an allocation.
  template <commands::command C>
  requires(commands::contains<commands::allocation_commands, C>) caf::result<command_result> deliver(
    const addressee& at, const C& order) {
    return pass(at.to, task_call_of(at.allocation, order),
                [](const command_result& answer) -> value { return *answer.got; });
  }
  caf::result<command_result> deliver(const addressee& at, const commands::pool_describe&) {
    return pass(at.to, describe_pool{}, [](const pool_description& got) -> value {
      value agents = value::object(), waiting = value::array();
      for (const auto& [agent, slots] : got.agents) {
        agents[agent] = value::array();
        for (const auto& id : slots)
          agents[agent].push_back(id ? value(to_string(id)) : value());
      }
      for (const auto& [id, slots] : got.waiting)
        waiting.push_back({{"allocation", to_string(id)}, {"slots", slots}});
      return {{"total", got.total}, {"used", got.used}, {"agents", agents}, {"waiting", waiting}};
    });
  }

  template <class Message, class Shape>
  caf::result<command_result> pass(const caf::actor& to, Message message, Shape shape) {
    auto promise = self_->make_response_promise<command_result>();
    self_->request(to, std::chrono::seconds(20), std::move(message))
      .then(heard(promise, shape),
            [promise](const caf::error& why) mutable { promise.deliver(refused(from_caf(why))); });
    return promise;
  }
  template <class Shape>
  static auto heard(promise_of_result promise, Shape shape) {
    return heard_as(promise, shape, &Shape::operator());
  }
  template <class Shape, class Answer>
  static auto heard_as(promise_of_result promise, Shape shape, value (Shape::*)(const Answer&) const) {
    return [promise, shape](const Answer& got) mutable {
      if constexpr (std::is_same_v<Answer, command_result>)
        if (!got.got) {
          promise.deliver(got);
          return;
        }
      promise.deliver(answered(shape(got)));
    };
  }

  // ---- mail

  command_result on(const commands::inspect_watch& x) {
    auto answer = mail_->open(x, self_->clock().now());
    arm();
    return answer;
  }
  command_result on(const commands::inspect_taken& x) { return mail_->taken(x, self_->clock().now()); }
  command_result on(const commands::inspect_unwatch& x) { return mail_->close(x); }
  command_result on(const commands::inspect_fault& x) { return mail_->disturb(x); }

  // ---- settings

  caf::result<command_result> on(const commands::inspect_log& x) {
    if (!x.level.empty())
      reg_->log_level.store(log_level_of(x.level));
    return answered({{"level", log_level_names[std::clamp(reg_->log_level.load(), 0, 3)]}});
  }

  // ---- time, by the clock of this actor

  void later(std::chrono::milliseconds wait, std::function<void()> what) {
    timers_.emplace(self_->clock().now() + wait, std::move(what));
    self_->delayed_send(inspector_actor{self_}, wait + std::chrono::milliseconds(1), time_passed{});
  }
  void arm() { self_->delayed_send(inspector_actor{self_}, std::chrono::seconds(5), time_passed{}); }
  void tick() {
    const auto now = self_->clock().now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
      auto what = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      what();
    }
    mail_->forget_unasked(now);
    if (mail_->any() && now - armed_ > std::chrono::seconds(4)) {
      armed_ = now;
      arm();
    }
  }

  base* self_;
  inspector_setup setup_;
  time_point since_;
  std::shared_ptr<probe_register> reg_;
  std::optional<actor_shapes> shapes_;
  std::optional<mail_inspection> mail_;
  std::uint64_t asks_ = 0;
  std::map<std::uint64_t, std::function<void(value)>> open_asks_;
  std::vector<std::uint64_t> expired_;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> timers_;
  std::chrono::steady_clock::time_point armed_;
};

} // namespace

inspector_actor spawn_inspector(caf::actor_system& sys, inspector_setup setup) {
  return sys.spawn<shell<inspector_state, inspector_actor, inspector_setup>>(std::move(setup));
}

} // namespace troupe

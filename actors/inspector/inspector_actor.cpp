#include "actors/inspector/inspector_actor.hpp"

#include "actors/inspector/actor_shapes_part.hpp"
#include "actors/inspector/state_path.hpp"

#include <caf/all.hpp>

#include <cmath>

namespace troupe {

void add_shell_messages(caf::actor_system_config& to) { to.add_message_types<caf::id_block::troupe_shell>(); }

namespace {

using base = actor_base<inspector_actor>;
using promise_of_result = caf::typed_response_promise<command_result>;
using fields_of = const value&;

constexpr std::size_t most_watches = 32;
constexpr auto forgotten_after = std::chrono::seconds(15); ///< a watch that nobody asks for
constexpr auto patience = std::chrono::seconds(2); ///< with an actor that is asked between two messages
constexpr const char* levels[] = {"error", "warning", "info", "debug"};

std::string text(fields_of x, const char* name) {
  auto it = x.find(name);
  return it != x.end() && it->is_string() ? it->get<std::string>() : std::string();
}
std::uint64_t number(fields_of x, const char* name, std::uint64_t otherwise) {
  auto it = x.find(name);
  return it != x.end() && it->is_number() ? static_cast<std::uint64_t>(std::max(0.0, it->get<double>()))
                                          : otherwise;
}

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
      reg_ = std::make_shared<probe_register>(); // a host's system without our configuration: nothing is seen
    shapes_.emplace(self_->system(), reg_, setup_.node);
    return {
      [this](inspect_request& x) -> caf::result<command_result> {
        if (!x.fields.is_object())
          x.fields = value::object();
        if (x.what.empty()) { // what an actor of this node was asked
          if (auto open = open_asks_.extract(number(x.fields, "ask", 0)); !open.empty())
            open.mapped()(std::move(x.fields["got"]));
          return answered();
        }
        if (x.what == "node")
          return answered(node());
        if (x.what == "ps")
          return ps(x.fields);
        if (x.what == "actor")
          return about_actor(x.fields);
        if (x.what == "tree")
          return answered(tree());
        if (x.what == "names")
          return answered(names(x.fields));
        if (x.what == "waits")
          return waits();
        if (x.what == "events")
          return answered(events(x.fields));
        if (x.what == "end")
          return end(x.fields);
        if (x.what == "send")
          return send(x.fields);
        if (x.what == "watch")
          return watch(x.fields);
        if (x.what == "taken")
          return taken(x.fields);
        if (x.what == "unwatch")
          return unwatch(number(x.fields, "id", 0));
        if (x.what == "log")
          return log(x.fields);
        if (x.what == "fault")
          return fault(x.fields);
        return refused({errc::unsupported, "this node's inspector knows no '" + x.what + "'"});
      },
      [this](const time_passed&) { tick(); },
    };
  }

private:
  command_result not_here(const std::string& actor) const {
    return refused({errc::not_found, "no actor '" + actor.substr(0, 200) + "' on the node " + setup_.node});
  }

  // ---- lists

  value node() const {
    std::uint64_t backlog = 0, actors = 0;
    for (const auto& p : reg_->all()) {
      backlog += p->backlog();
      ++actors;
    }
    return {{"node", setup_.node},
            {"role", setup_.role},
            {"actors", actors},
            {"backlog", backlog},
            {"version", setup_.version},
            {"uptime_s", in_seconds(wall_now() - since_)},
            {"code", node_code(self_->node(), caf::node_id{})},
            {"allow_faults", reg_->allow_faults}};
  }

  caf::result<command_result> ps(fields_of x) {
    const auto kind = text(x, "kind");
    const auto window =
      std::chrono::milliseconds(std::min<std::uint64_t>(number(x, "window_ms", 1000), 60'000));
    std::vector<std::pair<std::shared_ptr<probe>, std::uint64_t>> first;
    for (auto& p : reg_->all())
      if (kind.empty() || p->kind == kind)
        first.emplace_back(p, p->done());
    if (window.count() == 0) { // over their lives
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

  value tree() const {
    value rows = value::array();
    for (const auto& p : reg_->all())
      rows.push_back(
        {{"actor", p->name}, {"owner", p->owner}, {"state", state_of(*p)}, {"restarts", p->restarts}});
    return {{"rows", std::move(rows)}};
  }

  value names(fields_of x) const {
    value out = value::object();
    if (auto ids = x.find("ids"); ids != x.end() && ids->is_array())
      for (const auto& id : *ids)
        if (id.is_number_unsigned())
          if (auto name = reg_->name_of(id.get<std::uint64_t>()); !name.empty())
            out[std::to_string(id.get<std::uint64_t>())] = name;
    return {{"names", std::move(out)}};
  }

  value events(fields_of x) const {
    value rows = value::array();
    std::uint64_t newest = number(x, "after", 0);
    for (const auto& e : reg_->events(newest, number(x, "max", 512))) {
      rows.push_back({{"at", to_rfc3339(e.at)},
                      {"kind", e.kind},
                      {"actor", e.actor},
                      {"what", e.what},
                      {"user", e.user},
                      {"node", setup_.node}});
      newest = std::max(newest, e.number);
    }
    return {{"rows", std::move(rows)}, {"newest", newest}};
  }

  // ---- one actor

  /// Runs `ask` on the actor's own thread, between two of its messages, and answers with what it gives.
  caf::result<command_result> on_actor(const probe_register::entry& entry,
                                       std::function<value(probe_side&)> ask,
                                       std::function<command_result(value)> shape) {
    auto to = caf::actor_cast<caf::actor>(entry.who.lock());
    if (!to)
      return not_here(entry.what->name);
    if (to.id() == self_->id()) // it cannot wait for itself
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

  /// What a worker took, in its task's process, rather than what its stand-in here did; where it has said so.
  static value heard_or(value otherwise, value heard, std::size_t most) {
    if (!heard.is_array() || heard.empty())
      return otherwise;
    if (heard.size() > most)
      heard.erase(heard.begin(), heard.end() - static_cast<std::ptrdiff_t>(most));
    return heard;
  }

  caf::result<command_result> about_actor(fields_of x) {
    const auto name = text(x, "actor"), what = text(x, "what");
    auto entry = reg_->find(name);
    if (!entry)
      return not_here(name);
    auto p = entry->what;
    const auto most = std::min<std::size_t>(number(x, "max", probe::ring), probe::ring);
    if (what == "here")
      return answered({{"id", p->actor_id}, {"kind", p->kind}, {"owner", p->owner}});
    if (what == "msgs" && p->kind == "worker")
      return on_actor(
        *entry, [](probe_side& side) { return side.heard ? side.heard() : value::array(); },
        [this, p, most](value heard) {
          return answered({{"rows", heard_or(shapes_->recent(*p, most), std::move(heard), most)}});
        });
    if (what == "msgs")
      return answered({{"rows", shapes_->recent(*p, most)}});
    if (what == "stats")
      return answered(shapes_->stats(*p));
    if (what == "links")
      return on_actor(
        *entry, [reg = reg_](probe_side& side) { return ask_links(*reg, side); },
        [this, p](value got) {
          return answered({{"rows", shapes_->links_of(*p, got["peers"].get<std::vector<std::string>>())}});
        });
    if (what == "state")
      return on_actor(
        *entry,
        [](probe_side& side) -> value {
          return {{"known", side.describe != nullptr},
                  {"state", side.describe ? side.describe() : value::object()}};
        },
        [p, path = text(x, "path")](value got) {
          if (!got["known"].get<bool>())
            return answered({{"actor", p->name}, {"state", {{"state", state_of(*p)}}}});
          auto part = at_path(got["state"], path);
          return part ? answered({{"actor", p->name}, {"state", *part}}) : refused(part.error());
        });
    if (what == "info")
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
        [this, p](value got) {
          auto info = shapes_->info(*p, got);
          info["recent"] = heard_or(std::move(info["recent"]), got.value("heard", value()), 8);
          return answered(std::move(info));
        });
    return refused({errc::invalid, "an actor has no '" + what + "'"});
  }

  caf::result<command_result> waits() {
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
      if (!std::exchange(all->done, true)) // one that is busy with one message: what the others said
        promise.deliver(answered({{"rows", std::move(all->rows)}}));
    });
    return promise;
  }

  // ---- acting

  caf::result<command_result> end(fields_of x) {
    const auto name = text(x, "actor");
    auto entry = reg_->find(name);
    auto to = entry ? caf::actor_cast<caf::actor>(entry->who.lock()) : caf::actor{};
    if (!to)
      return not_here(name);
    // An exit with a reason that its own handler hears: it takes its children along, as after any fault of
    // its own.
    self_->send_exit(to, to_caf({errc::internal, text(x, "why")}));
    return answered({{"id", entry->what->actor_id}});
  }

  caf::result<command_result> send(fields_of x) {
    const auto name = text(x, "actor"), message = text(x, "message");
    auto entry = reg_->find(name);
    auto to = entry ? caf::actor_cast<caf::actor>(entry->who.lock()) : caf::actor{};
    if (!to)
      return not_here(name);
    if (message == "ping") {
      const auto sent = ticks_now();
      return on_actor(
        *entry, [](probe_side&) -> value { return ticks_now(); },
        [this, sent](value got) {
          return answered({{"wait_us", shapes_->us(got.get<std::uint64_t>() - sent)}});
        });
    }
    if (message == "flush") {
      caf::anon_send(to, flush_journal{});
      return answered();
    }
    if (message == "redial") {
      caf::anon_send(to, dial_master{});
      return answered();
    }
    if (message == "save")
      return pass(to, search_save{}, [](const search_saved& got) -> value {
        return {{"state_bytes", got.bytes.size()}};
      });
    if (message == "clean_logs")
      return pass(to, clean_logs{}, [](const logs_cleaned& got) -> value {
        return {{"trials", got.trials}};
      });
    if (message == "preempt" || message == "validate" || message == "checkpoint") {
      const auto id = parse_allocation(name.substr(std::min(name.size(), std::string("allocation/").size())));
      return pass(to,
                  task_call{id, message == "preempt" ? "allocation.pending_preemption" : "worker." + message,
                            value::object()},
                  [](const command_result& got) -> value { return got.answer; });
    }
    if (message == "describe")
      return pass(to, describe_pool{}, [](const pool_description& got) -> value {
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
    return refused({errc::unsupported, "'" + message + "' is not delivered by a node's inspector"});
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
        if (got.refused) {
          promise.deliver(got);
          return;
        }
      promise.deliver(answered(shape(got)));
    };
  }

  // ---- watches

  struct open_watch {
    std::shared_ptr<message_watch> what;
    std::string actor;
    std::uint64_t actor_id = 0;
    std::chrono::steady_clock::time_point asked;
  };

  caf::result<command_result> watch(fields_of x) {
    if (watches_.size() >= most_watches)
      return refused({errc::busy, "this node runs " + std::to_string(most_watches) + " traces already"});
    message_watch::wanted wish;
    wish.actor = text(x, "actor");
    std::uint64_t id_of_actor = 0;
    if (!wish.actor.empty()) {
      auto entry = reg_->find(wish.actor);
      if (!entry)
        return not_here(wish.actor);
      id_of_actor = entry->what->actor_id;
    }
    wish.about = abouts(x);
    wish.request = number(x, "request", 0);
    wish.requester = number(x, "requester", 0);
    if (const auto type = text(x, "msg"); !type.empty()) {
      for (const auto& [key, reads] : message_readers())
        if (type_name(self_->system(), key) == type)
          wish.types.push_back(key);
      if (wish.types.empty())
        return refused({errc::invalid, "the field 'msg': no message type '" + type.substr(0, 100) +
                                         "'; `msgs` and `stats` show types"});
    }
    wish.most = std::clamp<std::uint64_t>(number(x, "max", 100), 1, 1'000'000);
    wish.per_second = std::clamp<std::uint64_t>(number(x, "rate", 50), 1, 10'000);
    const auto lasts =
      std::chrono::milliseconds(std::clamp<std::uint64_t>(number(x, "for_ms", 30'000), 1, 3'600'000));
    wish.until = ticks_now() + reg_->scale.ticks(lasts);
    auto made = std::make_shared<message_watch>(wish, reg_->scale);
    reg_->watch(made);
    const auto id = ++watch_ids_;
    watches_[id] = {made, wish.actor, id_of_actor, self_->clock().now()};
    arm();
    return answered({{"id", id}});
  }

  static std::vector<correlation> abouts(fields_of x) {
    std::vector<correlation> out;
    if (auto it = x.find("about"); it != x.end() && it->is_array())
      for (const auto& one : *it)
        if (one.is_string())
          if (auto c = correlation_of_name(one.get<std::string>()))
            out.push_back(c);
    return out;
  }

  caf::result<command_result> taken(fields_of x) {
    auto it = watches_.find(number(x, "id", 0));
    if (it == watches_.end())
      return refused({errc::not_found, "no such trace on the node " + setup_.node});
    auto& one = it->second;
    one.asked = self_->clock().now();
    if (auto about = abouts(x); !about.empty())
      one.what->about(std::move(about));
    message_watch::tally tally;
    value rows = value::array();
    const auto now = reg_->scale.now();
    for (auto& r : one.what->take(tally))
      rows.push_back({{"at", to_rfc3339(now.wall_at(r.at))},
                      {"actor", r.actor},
                      {"from", r.from},
                      {"type", r.type},
                      {"correlation", r.about},
                      {"wait_us", actor_shapes::us(r.wait, now)},
                      {"run_us", actor_shapes::us(r.run, now)},
                      {"text", r.text},
                      {"node", setup_.node}});
    bool gone = false;
    if (!one.actor.empty()) // one that was made again goes on being watched
      gone = !reg_->find(one.actor);
    return answered({{"rows", std::move(rows)},
                     {"seen", tally.seen},
                     {"shown", tally.shown},
                     {"dropped", tally.dropped},
                     {"over", tally.over},
                     {"gone", gone}});
  }

  caf::result<command_result> unwatch(std::uint64_t id) {
    if (auto it = watches_.find(id); it != watches_.end()) {
      reg_->unwatch(it->second.what);
      watches_.erase(it);
    }
    return answered();
  }

  // ---- settings, faults

  caf::result<command_result> log(fields_of x) {
    if (const auto wanted = text(x, "level"); !wanted.empty()) {
      auto it = std::find(std::begin(levels), std::end(levels), wanted);
      if (it == std::end(levels))
        return refused({errc::invalid, "the field 'level': '" + wanted.substr(0, 50) +
                                         "' is none of error, warning, info, debug"});
      reg_->log_level.store(static_cast<int>(it - std::begin(levels)));
    }
    return answered({{"level", levels[std::clamp(reg_->log_level.load(), 0, 3)]}});
  }

  caf::result<command_result> fault(fields_of x) {
    if (!reg_->allow_faults)
      return refused(
        {errc::denied,
         "the node " + setup_.node +
           " runs without --allow-faults\nhint: start it with --allow-faults; it is meant for tests"});
    const auto kind = text(x, "fault"), actor = text(x, "actor");
    const auto n = number(x, "n", 1), delay = number(x, "delay_ms", 100), lasts = number(x, "for_ms", 10'000);
    if (kind == "clear") {
      reg_->forget_faults();
      return answered();
    }
    if (!actor.empty() && !reg_->find(actor))
      return not_here(actor);
    if (n < 1 || n > 10'000)
      return refused({errc::invalid, "the field 'n' has to be 1 to 10000"});
    if (delay < 1 || delay > 60'000)
      return refused({errc::invalid, "the field 'delay_ms' has to be 1 to 60000"});
    if (lasts < 1 || lasts > 120'000)
      return refused({errc::invalid, "the field 'for_ms' has to be 1 to 120000"});
    auto made = std::make_shared<message_fault>();
    made->actor = actor;
    made->until = ticks_now() + reg_->scale.ticks(std::chrono::milliseconds(lasts));
    if (kind == "drop" || kind == "delay") {
      made->what = kind == "drop" ? message_fault::kind::drop : message_fault::kind::delay;
      made->left = static_cast<std::int64_t>(n);
      made->delay = reg_->scale.ticks(std::chrono::milliseconds(delay));
    } else if (kind == "pause") {
      made->what = message_fault::kind::hold;
      made->from_node = static_cast<std::uint32_t>(number(x, "from_node", 0));
      if (const auto from = text(x, "from_actor"); !from.empty()) {
        auto sender = reg_->find(from);
        if (!sender)
          return not_here(from);
        made->from_actor = sender->what->actor_id;
      }
    } else
      return refused({errc::invalid, "the field 'fault': '" + kind.substr(0, 50) +
                                       "' is none of kill, drop, delay, pause, clear"});
    reg_->disturb(std::move(made));
    return answered();
  }

  // ---- time, by the actor's clock

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
    for (auto it = watches_.begin(); it != watches_.end();)
      if (now - it->second.asked > forgotten_after) {
        reg_->unwatch(it->second.what);
        it = watches_.erase(it);
      } else
        ++it;
    if (!watches_.empty() && now - armed_ > std::chrono::seconds(4)) {
      armed_ = now;
      arm();
    }
  }

  base* self_;
  inspector_setup setup_;
  time_point since_;
  std::shared_ptr<probe_register> reg_;
  std::optional<actor_shapes> shapes_;
  std::uint64_t asks_ = 0, watch_ids_ = 0;
  std::map<std::uint64_t, std::function<void(value)>> open_asks_;
  std::vector<std::uint64_t> expired_;
  std::map<std::uint64_t, open_watch> watches_;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> timers_;
  std::chrono::steady_clock::time_point armed_;
};

} // namespace

inspector_actor spawn_inspector(caf::actor_system& sys, inspector_setup setup) {
  return sys.spawn<shell<inspector_state, inspector_actor, inspector_setup>>(std::move(setup));
}

} // namespace troupe
